package oci_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// solution is a set of images of every kind that an archive can hold. Its bytes never change: golden files hold them.
func solution(t *testing.T) []*oci.Image {
	t.Helper()
	l := newLayout()
	operator := l.image("linux/amd64", "base", "operator")
	l.tag("operator", operator)
	l.artifact("application/spdx+json", operator)
	docker := dockerTypes(l.manifest("linux/amd64", "base", "old"))
	l.tag("docker", l.json(docker.MediaType, docker))
	l.tag("multi", l.multi(l.image("linux/amd64", "base", "ui"), l.image("linux/arm64", "base-arm", "ui")))
	noType := l.manifest("linux/amd64", "base", "plain")
	noType.MediaType = ""
	l.tag("plain", l.json("", noType))
	r := newResolver(t, oci.Options{BaseDir: l.dir(t)})
	var images []*oci.Image
	for _, want := range []struct{ name, tag, source string }{
		{"ui", "1.0.0", "multi"},
		{"my.plain_tool", "1.0.0", "plain"},
		{"operator", "1.0.0", "operator"},
		{"operator", "latest", "operator"},
		{"operator", "0.9.0", "docker"},
	} {
		image, err := r.Resolve(t.Context(), schema.ImageRef{Name: want.name, Tag: want.tag}, "oci:.:"+want.source)
		if err != nil {
			t.Fatal(err)
		}
		if want.tag != "latest" {
			image.Origin = "ghcr.io/acme/" + want.name + ":" + want.tag
		}
		images = append(images, image)
	}
	return images
}

// dockerTypes gives a manifest the media types of Docker's format.
func dockerTypes(m v1.Manifest) v1.Manifest {
	m.MediaType, m.Config.MediaType = types.DockerManifestSchema2, types.DockerConfigJSON
	for i := range m.Layers {
		m.Layers[i].MediaType = types.DockerLayer
	}
	return m
}

func payload(t *testing.T) *oci.Image {
	t.Helper()
	var files []oci.PayloadFile
	for _, f := range []struct{ path, text string }{{"manifest.yaml", "kind: Solution\n"}, {"ui/a.yaml", "{}"}, {"ui/b.yaml", ""}, {"ui/c.yaml", "{}"}} {
		digest, size, err := v1.SHA256(strings.NewReader(f.text))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, oci.PayloadFile{Path: f.path, Digest: digest, Size: size, Open: openText(f.text)})
	}
	image, err := oci.PayloadImage(files)
	if err != nil {
		t.Fatal(err)
	}
	image.Ref = schema.ImageRef{Name: "payload", Tag: "1.0.0"}
	return image
}

// artifacts are the parts of an archive besides images.
func artifacts(t *testing.T) []*oci.Image {
	t.Helper()
	return []*oci.Image{payload(t), web(t, "1.0.0+x", "signed")}
}

// golden compares with a file of testdata; UPDATE_GOLDEN=1 writes it.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	name = filepath.Join("testdata", name)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(name, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs from what is written now:\n%s", name, got)
	}
}

func TestLayout(t *testing.T) {
	images := append(solution(t), payload(t))
	entries := layoutOf(t, images...)
	var listing strings.Builder
	content := map[string][]byte{}
	for _, e := range entries {
		fmt.Fprintf(&listing, "%s %d %s\n", e.Path, e.Size, e.Key)
		data := e.Data
		if e.Blob != nil {
			data = readBlob(t, *e.Blob)
		}
		if digest, _, err := v1.SHA256(bytes.NewReader(data)); err != nil || digest.String() != e.Key {
			t.Errorf("%s has the key %s, but its digest is %s", e.Path, e.Key, digest)
		}
		if known, ok := content[e.Key]; ok && !bytes.Equal(known, data) {
			t.Errorf("%s shares a key with other content", e.Path)
		}
		content[e.Key] = data
	}
	golden(t, "layout.txt", []byte(listing.String()))

	slices.Reverse(images)
	if !slices.EqualFunc(entries, layoutOf(t, images...), func(a, b oci.Entry) bool { return a.Path == b.Path && a.Key == b.Key }) {
		t.Error("the layout depends on the order of the images")
	}
	firstBlob := slices.IndexFunc(entries, func(e oci.Entry) bool { return e.Blob != nil })
	if slices.ContainsFunc(entries[firstBlob:], func(e oci.Entry) bool { return e.Blob == nil }) {
		t.Error("manifests lie between blobs")
	}
}

func TestLayoutRefuses(t *testing.T) {
	images := solution(t)
	for _, test := range []struct {
		name    string
		images  []*oci.Image
		message string
	}{
		{"twice", []*oci.Image{images[0], images[0]}, "two images are named ui:1.0.0"},
		{"no name", []*oci.Image{{Root: images[0].Root, Manifests: images[0].Manifests}}, "is not valid"},
		{"no manifest", []*oci.Image{{Ref: testRef}}, "has no manifest"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := oci.Layout(test.images)
			checkError(t, err, report.Invalid, test.message, "")
			_, err = oci.RegistryConfig(test.images, oci.Extended)
			checkError(t, err, report.Invalid, test.message, "")
		})
	}
	other := *images[1]
	other.Blobs = slices.Clone(other.Blobs)
	for i := range other.Blobs {
		other.Blobs[i].Size++
	}
	_, err := oci.Layout([]*oci.Image{images[2], &other})
	checkError(t, err, report.Corrupt, "in another image", "")
	_, err = oci.RegistryConfig(images, "nginx")
	checkError(t, err, report.Invalid, `"nginx" is unknown`, "extended and legacy")
}

func TestStore(t *testing.T) {
	images := append(solution(t), artifacts(t)...)
	files := mapFS(t, layoutOf(t, images...))
	dirs := fstest.MapFS{}
	for name, f := range files {
		if strings.HasPrefix(name, "images/") {
			dirs[name] = f
		}
	}
	for _, test := range []struct {
		name   string
		fsys   fs.FS
		origin bool
	}{{"OCI layout", files, true}, {"directories", dirs, false}} {
		t.Run(test.name, func(t *testing.T) {
			store, err := oci.Open(test.fsys)
			if err != nil {
				t.Fatal(err)
			}
			if n := len(store.Images()); n != 5 {
				t.Errorf("%d images, want 5", n)
			}
			for _, want := range images[:5] {
				got := store.Image(want.Ref)
				if got == nil {
					t.Errorf("no image %s", want.Ref)
					continue
				}
				checkContent(t, got)
				manifests := len(want.Manifests)
				if want.Ref.Tag == "1.0.0" && want.Ref.Name == "operator" || want.Ref.Tag == "latest" {
					if !test.origin {
						manifests-- // a directory does not contain the manifests that refer to its image
					}
				}
				if got.Root.Digest != want.Root.Digest || len(got.Manifests) != manifests || !slices.Equal(got.Platforms(), want.Platforms()) {
					t.Errorf("%s: %d manifests for %v, want %d for %v", want.Ref, len(got.Manifests), got.Platforms(), manifests, want.Platforms())
				}
				if test.origin && got.Origin != want.Origin {
					t.Errorf("%s: origin %q, want %q", want.Ref, got.Origin, want.Origin)
				}
			}
			if store.Image(schema.ImageRef{Name: "nope", Tag: "1"}) != nil {
				t.Error("an image that is not there")
			}
		})
	}
	store, err := oci.Open(fstest.MapFS{"manifest.yaml": {}})
	if err != nil || len(store.Images()) != 0 {
		t.Errorf("an archive without images: %v, %v", store, err)
	}
}

func TestFind(t *testing.T) {
	store, err := oci.Open(mapFS(t, layoutOf(t, append(solution(t), artifacts(t)...)...)))
	if err != nil {
		t.Fatal(err)
	}
	arm := []schema.Platform{{OS: "linux", Architecture: "arm64"}}
	image, err := store.Find(t.Context(), "ui", arm)
	if err != nil || image.Ref.String() != "ui:1.0.0" || !slices.Equal(image.Platforms(), arm) {
		t.Fatalf("got %+v, %v", image, err)
	}
	to := filepath.Join(t.TempDir(), "arm.tar")
	if err = oci.Save(t.Context(), image, "docker-archive:"+to); err != nil {
		t.Fatal(err)
	}
	if got := resolve(t, oci.Options{}, "docker-archive:"+to+":ui:1.0.0"); !slices.Equal(got.Platforms(), arm) {
		t.Errorf("saved for %v", got.Platforms())
	}
	_, err = store.Find(t.Context(), "operator", nil)
	checkError(t, err, report.NotFound, `it holds 3 images named "operator"`, "operator:0.9.0")
	_, err = store.Find(t.Context(), "operator:1.0", nil)
	checkError(t, err, report.NotFound, `it holds no image named "operator:1.0"`, "operator:1.0.0")
	_, err = store.Find(t.Context(), "operator:1.0.0", arm)
	checkError(t, err, report.Invalid, "the image is for linux/amd64, want linux/arm64", "")
}

// Images that are read back and laid out again have the same bytes.
func TestStoreRoundTrip(t *testing.T) {
	files := mapFS(t, layoutOf(t, append(solution(t), artifacts(t)...)...))
	store, err := oci.Open(files)
	if err != nil {
		t.Fatal(err)
	}
	again := mapFS(t, layoutOf(t, slices.Concat(store.Artifacts(), store.Images())...))
	if len(again) != len(files) {
		t.Errorf("%d files became %d", len(files), len(again))
	}
	for name, f := range files {
		if again[name] == nil || !bytes.Equal(again[name].Data, f.Data) {
			t.Errorf("%s differs", name)
		}
	}
}

func TestStoreRefuses(t *testing.T) {
	images := solution(t)
	ui := images[0]
	layer := ui.Blobs[1].Digest.Hex
	child := ui.Manifests[1].Digest.Hex
	docker := images[4].Root.Digest.Hex
	standIn := standInOf(t, mapFS(t, layoutOf(t, images...)))
	for _, test := range []struct {
		name    string
		damage  func(fstest.MapFS)
		code    report.Code
		message string
	}{
		{"missing blob", func(f fstest.MapFS) { delete(f, "blobs/sha256/"+layer) }, report.Corrupt, "blobs/sha256/" + layer + " is missing"},
		{"short blob", func(f fstest.MapFS) { f["blobs/sha256/"+layer] = &fstest.MapFile{} }, report.Corrupt, "has 0 bytes"},
		{"changed manifest", func(f fstest.MapFS) {
			f["blobs/sha256/"+child].Data = bytes.Clone(f["blobs/sha256/"+child].Data) // the images have it, too
			f["blobs/sha256/"+child].Data[3] ^= 1
		}, report.Corrupt, "its bytes have the digest"},
		{"missing child", func(f fstest.MapFS) { delete(f, "blobs/sha256/"+child) }, report.Corrupt, child + " is missing"},
		{"no index", func(f fstest.MapFS) { f["index.json"].Data = []byte("[") }, report.Invalid, "index.json is not valid"},
		{"large index", func(f fstest.MapFS) { f["index.json"].Data = make([]byte, 9<<20) }, report.Invalid, "more than"},
		{"odd name", func(f fstest.MapFS) {
			f["index.json"].Data = bytes.ReplaceAll(f["index.json"].Data, []byte(`"ui:1.0.0"`), []byte(`"{{ui"`))
		}, report.Invalid, "index.json: image"},
		{"stand-in of nothing", func(f fstest.MapFS) {
			f["index.json"].Data = bytes.ReplaceAll(f["index.json"].Data, []byte(`stands-for":"sha256:`+docker[:4]), []byte(`stands-for":"sha256:ffff`))
		}, report.Invalid, `"operator:0.9.0" stands for an image that is not listed`},
		{"stand-in of another name", func(f fstest.MapFS) {
			before, after, _ := bytes.Cut(f["index.json"].Data, []byte(`"io.solutionctl.stands-for":"sha256:`+docker+`","org.opencontainers.image.ref.name":"operator:0.9.0"`))
			f["index.json"].Data = slices.Concat(before, []byte(`"io.solutionctl.stands-for":"sha256:`+docker+`","org.opencontainers.image.ref.name":"operator:1.0.0"`), after)
		}, report.Invalid, `"operator:1.0.0" stands for an image that is not listed`},
		{"stand-in with other content", func(f fstest.MapFS) {
			index := bytes.ReplaceAll(f["blobs/sha256/"+standIn.Hex].Data, []byte(docker), []byte(child))
			digest, _, _ := v1.SHA256(bytes.NewReader(index))
			f["blobs/sha256/"+digest.Hex] = &fstest.MapFile{Data: index}
			f["index.json"].Data = bytes.ReplaceAll(f["index.json"].Data, []byte(standIn.Hex), []byte(digest.Hex))
		}, report.Invalid, "lists image operator:0.9.0 twice, and the two differ"},
		{"stand-in of an OCI image", func(f fstest.MapFS) {
			f["index.json"].Data = bytes.ReplaceAll(f["index.json"].Data, []byte(`"annotations":{"io.containerd.image.name":"ghcr.io/acme/ui:1.0.0"`),
				[]byte(`"annotations":{"io.solutionctl.stands-for":"sha256:`+ui.Root.Digest.Hex+`","io.containerd.image.name":"ghcr.io/acme/ui:1.0.0"`))
		}, report.Invalid, `"ui:1.0.0" stands for an image that is not listed`},
		{"missing stand-in", func(f fstest.MapFS) { delete(f, "blobs/sha256/"+standIn.Hex) }, report.Corrupt, standIn.Hex + " is missing"},
		{"missing blob of a directory", func(f fstest.MapFS) {
			delete(f, "index.json")
			delete(f, "images/ui/1.0.0/"+layer)
		}, report.Corrupt, "image ui:1.0.0: "},
		{"directory as blob", func(f fstest.MapFS) {
			delete(f, "blobs/sha256/"+layer)
			f["blobs/sha256/"+layer+"/x"] = &fstest.MapFile{}
		}, report.Invalid, "not a regular file"},
		{"odd directory", func(f fstest.MapFS) {
			delete(f, "index.json")
			f["images/UI/1/manifest.json"] = f["images/operator/latest/manifest.json"]
		}, report.Corrupt, "image UI:1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			files := mapFS(t, layoutOf(t, images...))
			test.damage(files)
			_, err := oci.Open(files)
			checkError(t, err, test.code, test.message, "")
		})
	}
}

// standInOf returns the digest of the one stand-in of an archive.
func standInOf(t *testing.T, fsys fs.FS) oci.Digest {
	t.Helper()
	data, err := fs.ReadFile(fsys, "index.json")
	var index v1.IndexManifest
	if err = errors.Join(err, json.Unmarshal(data, &index)); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(index.Manifests, func(d oci.Descriptor) bool { return d.Annotations["io.solutionctl.stands-for"] != "" })
	if i < 0 {
		t.Fatal("there is no stand-in")
	}
	return index.Manifests[i].Digest
}

func TestPayload(t *testing.T) {
	image := payload(t)
	var m v1.Manifest
	if err := json.Unmarshal(image.Manifests[0].Data, &m); err != nil {
		t.Fatal(err)
	}
	if m.ArtifactType != oci.PayloadType || m.Config.MediaType != types.OCIEmptyJSON || len(m.Layers) != 4 || m.Layers[1].Annotations["org.opencontainers.image.title"] != "ui/a.yaml" {
		t.Errorf("manifest is %s", image.Manifests[0].Data)
	}
	if len(image.Blobs) != 3 { // "{}" is the configuration as well as two of the files
		t.Errorf("%d blobs, want 3", len(image.Blobs))
	}
	if len(image.Platforms()) != 0 {
		t.Errorf("a payload is for %v", image.Platforms())
	}
	for _, e := range layoutOf(t, image) {
		if strings.HasPrefix(e.Path, "images/") {
			t.Errorf("%s: MetalK8s would take it for an image", e.Path)
		}
	}
	if _, err := oci.PayloadImage([]oci.PayloadFile{{Path: "x", Digest: oci.Digest{Algorithm: "sha512"}}}); report.CodeOf(err) != report.Invalid {
		t.Errorf("sha512: %v", err)
	}
	created, err := image.Created(t.Context())
	if err != nil || !created.IsZero() {
		t.Errorf("created %v, %v", created, err)
	}
}

// TestPayloadOfManyFiles: a registry takes no manifest that lists 20,000 files.
func TestPayloadOfManyFiles(t *testing.T) {
	var files []oci.PayloadFile
	for i := range 20_000 {
		text := fmt.Sprint(i)
		digest, size, err := v1.SHA256(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, oci.PayloadFile{Path: "docs/" + text, Digest: digest, Size: size, Open: openText(text)})
	}
	image, err := oci.PayloadImage(files)
	if err != nil {
		t.Fatal(err)
	}
	image.Ref = schema.ImageRef{Name: "payload", Tag: "1.0.0"}
	for _, m := range image.Manifests {
		if len(m.Data) > 4<<20 {
			t.Errorf("a manifest has %d bytes", len(m.Data))
		}
	}
	archive := fstest.MapFS{}
	for _, e := range layoutOf(t, image) {
		data := e.Data
		if e.Blob != nil {
			r, failure := e.Blob.Open(t.Context(), 0)
			if failure != nil {
				t.Fatal(failure)
			}
			if data, err = io.ReadAll(r); err != nil {
				t.Fatal(err)
			}
		}
		archive[e.Path] = &fstest.MapFile{Data: data}
	}
	store, err := oci.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	got := store.Image(image.Ref)
	if got == nil || got.Root.ArtifactType != oci.PayloadType || len(got.Blobs) != len(files)+1 {
		t.Fatalf("read again: %+v", got)
	}
	titles := map[string]bool{}
	for _, m := range got.Manifests[1:] {
		var part v1.Manifest
		if err := json.Unmarshal(m.Data, &part); err != nil {
			t.Fatal(err)
		}
		for _, layer := range part.Layers {
			titles[layer.Annotations["org.opencontainers.image.title"]] = true
		}
	}
	if len(titles) != len(files) {
		t.Errorf("%d files are listed, want %d", len(titles), len(files))
	}
}

func TestLegacyUnserved(t *testing.T) {
	got := fmt.Sprint(oci.LegacyUnserved(append(solution(t), artifacts(t)...)))
	if want := "[ui:1.0.0 my.plain_tool:1.0.0]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestRegistryConfig(t *testing.T) {
	images := append(solution(t), artifacts(t)...)
	for _, form := range []string{oci.Legacy, oci.Extended} {
		config, err := oci.RegistryConfig(images, form)
		if err != nil {
			t.Fatal(err)
		}
		golden(t, form+".inc.j2", config)
		rest := strings.NewReplacer("{{ repository }}", "", "{{ registry_root }}", "").Replace(string(config))
		for _, opening := range []string{"{{", "{%", "{#"} {
			if strings.Contains(rest, opening) {
				t.Errorf("%s form: %q is left for Jinja", form, opening)
			}
		}
	}
}

func TestNginxString(t *testing.T) {
	for _, s := range []string{"application/spdx+json", `a'b"c\d$e{{f}}g{%h;i` + "\n\x00", "é€😀"} {
		quoted := oci.NginxString(s)
		if strings.ContainsAny(quoted[1:len(quoted)-1], `'"${}%#;`) {
			t.Errorf("%s means something to nginx or Jinja", quoted)
		}
		var got string
		if err := json.Unmarshal([]byte(quoted), &got); err != nil || got != s {
			t.Errorf("%s is %q, want %q", quoted, got, s)
		}
	}
}
