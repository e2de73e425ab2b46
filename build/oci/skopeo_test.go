package oci_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/durable"
	"github.com/solutionctl/solutionctl/schema/report"
)

func skopeo(t *testing.T, args ...string) {
	t.Helper()
	tool := needs(t, "skopeo", "skopeo")
	cmd := exec.Command(tool, append([]string{"--insecure-policy", "--tmpdir", t.TempDir()}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("skopeo %v: %v\n%s", args, err, out)
	}
}

// The output of skopeo is read, and an image that it did not convert keeps its digest.
func TestSkopeoWrites(t *testing.T) {
	l := newLayout()
	l.tag("one", l.image("linux/amd64", "base", "operator"))
	l.tag("all", l.multi(l.image("linux/amd64", "base", "ui"), l.image("linux/arm64", "base-arm", "ui")))
	source, base := l.dir(t), t.TempDir()
	skopeo(t, "copy", "oci:"+source+":one", "oci:"+base+"/layout:renamed")
	skopeo(t, "copy", "oci:"+source+":one", "dir:"+base+"/dir")
	skopeo(t, "copy", "oci:"+source+":one", "oci-archive:"+base+"/oci.tar:one")
	skopeo(t, "copy", "oci:"+source+":one", "docker-archive:"+base+"/docker.tar:acme/operator:1.0.0")
	skopeo(t, "copy", "--all", "oci:"+source+":all", "dir:"+base+"/dir-all")

	one := resolve(t, oci.Options{}, "oci:"+source+":one")
	all := resolve(t, oci.Options{}, "oci:"+source+":all")
	for _, test := range []struct {
		source string
		want   *oci.Image
	}{
		{"oci:layout", one}, {"oci:layout:renamed", one}, {"dir:dir", one}, {"oci-archive:oci.tar", one}, {"dir:dir-all", all},
	} {
		t.Run(test.source, func(t *testing.T) {
			got := resolve(t, oci.Options{BaseDir: base}, test.source)
			if got.Root.Digest != test.want.Root.Digest || len(got.Blobs) != len(test.want.Blobs) {
				t.Errorf("root is %s with %d blobs, want %s with %d", got.Root.Digest, len(got.Blobs), test.want.Root.Digest, len(test.want.Blobs))
			}
		})
	}
	docker := resolve(t, oci.Options{BaseDir: base}, "docker-archive:docker.tar:acme/operator:1.0.0")
	if docker.Origin != "docker.io/acme/operator:1.0.0" || len(docker.Blobs) != len(one.Blobs) {
		t.Errorf("docker-archive: origin %q, %d blobs", docker.Origin, len(docker.Blobs))
	}
}

// skopeo reads an archive's OCI view as well as the directories that MetalK8s serves.
func TestSkopeoReads(t *testing.T) {
	images := append(solution(t), payload(t))
	tree, out := t.TempDir(), t.TempDir()
	if err := os.CopyFS(tree, mapFS(t, layoutOf(t, images...))); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ source, name string }{
		{"oci:" + tree + ":operator:1.0.0", "oci"},
		{"oci:" + tree + ":ui:1.0.0", "index"},
		{"dir:" + tree + "/images/operator/0.9.0", "docker"},
		{"dir:" + tree + "/images/ui/1.0.0", "multi"},
	} {
		t.Run(test.name, func(t *testing.T) {
			skopeo(t, "copy", "--all", test.source, "dir:"+filepath.Join(out, test.name))
			want := images[0]
			switch test.name {
			case "oci":
				want = images[2]
			case "docker":
				want = images[4]
			}
			if got := resolve(t, oci.Options{}, "dir:"+filepath.Join(out, test.name)); got.Root.Digest != want.Root.Digest {
				t.Errorf("root is %s, want %s", got.Root.Digest, want.Root.Digest)
			}
		})
	}
}

// everySource is one image of each kind of source, for one platform and for several.
func everySource(t *testing.T) map[string]*oci.Image {
	t.Helper()
	base := t.TempDir()
	put := func(name string, data []byte) {
		if err := os.WriteFile(filepath.Join(base, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	old := tarOf(dockerSave(map[string][]string{"acme/operator:1.0.0": {"base", "operator"}}))
	put("old.tar", old)
	l := newLayout()
	l.tag("one", l.image("linux/amd64", "base", "operator"))
	l.tag("all", l.multi(l.image("linux/amd64", "base", "ui"), l.image("linux/arm64", "base-arm", "ui")))
	foreign := l.manifest("linux/s390x", "base-s390x")
	l.tag("foreign", l.json(foreign.MediaType, foreign))
	docker := dockerTypes(l.manifest("linux/s390x", "base-s390x"))
	l.tag("docker", l.json(docker.MediaType, docker))
	put("layout.tar", tarOfFS(t, l.fs())) // as podman writes oci-archive:, and docker 25 and later docker-archive:
	if err := os.CopyFS(filepath.Join(base, "layout"), l.fs()); err != nil {
		t.Fatal(err)
	}
	reg := newRegistry(t)
	list := mutate.IndexMediaType(reg.index, types.DockerManifestList)
	if err := remote.WriteIndex(reg.tag(t, "list"), list); err != nil {
		t.Fatal(err)
	}
	daemon := dockerDaemon(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(old) })
	r := newResolver(t, oci.Options{BaseDir: base, DockerHost: daemon, OpenArchive: openMap(mapFS(t, layoutOf(t, solution(t)...)))})
	images := map[string]*oci.Image{}
	for _, source := range []string{
		"docker-archive:old.tar", "docker-archive:layout.tar:one", "docker-archive:layout.tar:all", "docker-daemon:acme/operator:1.0.0",
		"oci:layout:one", "oci:layout:all", "oci:layout:foreign", "oci:layout:docker", "oci-archive:layout.tar:one",
		"docker://" + reg.host + "/acme/operator:1.0.0", "docker://" + reg.host + "/acme/operator:multi", "docker://" + reg.host + "/acme/operator:list",
		"solution:old.iso:operator:0.9.0", "solution:old.iso:my.plain_tool",
	} {
		image, err := r.Resolve(t.Context(), testRef, source)
		if err != nil {
			t.Fatal(err)
		}
		kind, name, _ := strings.Cut(source, ":")
		images[kind+" "+name[strings.LastIndexByte(name, ':')+1:]] = image
	}
	for _, name := range []string{"docker-archive old.tar", "oci all"} {
		dir := filepath.Join(base, "dir "+name)
		if err := os.CopyFS(dir, mapFS(t, layoutOf(t, images[name]))); err != nil {
			t.Fatal(err)
		}
		images["dir of "+name] = resolve(t, oci.Options{}, "dir:"+dir+"/images/operator/1.0.0")
	}
	return images
}

// For any source of an image, skopeo finds it by its name in the OCI view of an archive and in the output of Save, and
// copies it with its digest.
func TestSkopeoReadsEverySource(t *testing.T) {
	for name, image := range everySource(t) {
		t.Run(name, func(t *testing.T) {
			base := t.TempDir()
			if err := os.CopyFS(base+"/archive", mapFS(t, layoutOf(t, image))); err != nil {
				t.Fatal(err)
			}
			if err := oci.Save(t.Context(), image, "oci:"+base+"/saved:mine"); err != nil {
				t.Fatal(err)
			}
			for i, source := range []string{"archive:operator:1.0.0", "saved:mine"} {
				to := fmt.Sprintf("%s/%d", base, i)
				skopeo(t, "copy", "oci:"+base+"/"+source, "dir:"+to)
				got := resolve(t, oci.Options{}, "dir:"+to).Root.Digest
				if !slices.ContainsFunc(image.Manifests, func(m oci.Manifest) bool { return m.Digest == got }) {
					t.Errorf("%s: skopeo copied %s, which the image does not have", source, got)
				}
				if all := resolve(t, oci.Options{}, "oci:"+base+"/"+source); all.Root.Digest != image.Root.Digest {
					t.Errorf("%s: root is %s, want %s", source, all.Root.Digest, image.Root.Digest)
				}
			}
		})
	}
}

// Docker's own format: skopeo reads it, and the image keeps its ID.
func TestSaveForDocker(t *testing.T) {
	for name, image := range everySource(t) {
		t.Run(name, func(t *testing.T) {
			base := t.TempDir()
			err := oci.Save(t.Context(), image, "docker-archive:"+base+"/image.tar:acme/renamed:2")
			if len(image.Platforms()) > 1 {
				checkError(t, err, report.Usage, "linux/amd64, linux/arm64", "--platform linux/amd64")
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			skopeo(t, "copy", "docker-archive:"+base+"/image.tar:acme/renamed:2", "dir:"+base+"/dir")
			got := resolve(t, oci.Options{}, "dir:"+base+"/dir")
			if !slices.ContainsFunc(image.Blobs, func(b oci.Blob) bool { return b.Digest == got.Blobs[0].Digest }) {
				t.Errorf("the image ID is %s", got.Blobs[0].Digest)
			}
			again := resolve(t, oci.Options{}, "docker-archive:"+base+"/image.tar:acme/renamed:2")
			if len(again.Blobs) != len(got.Blobs) {
				t.Errorf("%d blobs, want %d", len(again.Blobs), len(got.Blobs))
			}
		})
	}
}

func TestSaveRefuses(t *testing.T) {
	image := solution(t)[2]
	damaged := *image
	damaged.Blobs = slices.Clone(image.Blobs)
	damaged.Blobs[1].Open = openText(strings.Repeat("x", int(damaged.Blobs[1].Size)))
	for _, test := range []struct {
		name, to string
		image    *oci.Image
		code     report.Code
		message  string
	}{
		{"registry", "docker://example.com/a", image, report.Usage, "images cannot be written to"},
		{"nonsense", "out", image, report.Usage, "images cannot be written to"},
		{"directory is there", "oci:there", image, report.Usage, "there exists"},
		{"file is there", "docker-archive:file:a", image, report.Usage, "file exists"},
		{"dangling link", "oci:dangling", image, report.Usage, "dangling exists"},
		{"no directory above", "oci:nowhere/out", image, report.NotFound, "write nowhere/out"},
		{"damaged layer", "oci:out", &damaged, report.Corrupt, "its bytes have the digest"},
		{"damaged layer in a tar", "docker-archive:out", &damaged, report.Corrupt, "its bytes have the digest"},
		{"no image", "docker-archive:out", payload(t), report.Usage, "not an image that Docker runs"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			if err := errors.Join(os.Mkdir("there", 0o755), os.WriteFile("file", nil, 0o600), os.Symlink("target", "dangling")); err != nil {
				t.Fatal(err)
			}
			checkError(t, oci.Save(t.Context(), test.image, test.to), test.code, test.message, "")
			entries, err := os.ReadDir(".")
			if err != nil || len(entries) != 3 {
				t.Errorf("left behind: %v, %v", entries, err)
			}
		})
	}
}

// TestSaveBeside: nothing is written where another process writes already.
func TestSaveBeside(t *testing.T) {
	t.Chdir(t.TempDir())
	image := solution(t)[2]
	for _, format := range []string{"oci:", "docker-archive:"} {
		other, err := durable.Create("out")
		if err != nil {
			t.Fatal(err)
		}
		if err = oci.Save(t.Context(), image, format+"out"); !errors.Is(err, durable.ErrBusy) {
			t.Errorf("%s: got %v", format, err)
		}
		if err = other.Discard(); err != nil {
			t.Fatal(err)
		}
		if err = errors.Join(oci.Save(t.Context(), image, format+"out"), os.RemoveAll("out")); err != nil {
			t.Errorf("%s: %v", format, err)
		}
	}
}
