package oci_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/solutionctl/solutionctl/build/oci"
)

func skopeo(t *testing.T, args ...string) {
	t.Helper()
	tool := needs(t, "skopeo", "skopeo")
	cmd := exec.Command(tool, append([]string{"--insecure-policy", "--tmpdir", t.TempDir()}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("skopeo %v: %v\n%s", args, err, out)
	}
}

// What skopeo writes is read, and an image that it did not convert keeps its digest.
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
