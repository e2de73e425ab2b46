package build_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"testing"

	"github.com/solutionctl/solutionctl/build"
	"github.com/solutionctl/solutionctl/build/archive"
)

// TestPackages builds an archive with bills of materials: each is a compressed file, and an artifact that refers to its image. The images
// stay the same.
func TestPackages(t *testing.T) {
	dir := newProject(t, 4096)
	plain := planOf(t, dir, build.Options{})
	path := filepath.Join(t.TempDir(), "demo.iso")
	_, err := planOf(t, dir, build.Options{SBOM: "1.2.3"}).Write(t.Context(), path, build.WriteOptions{})
	check(t, err)
	data := readFile(t, path)
	a, err := archive.Open(bytes.NewReader(data), int64(len(data)))
	check(t, err)
	for i, image := range a.Images.Images() {
		if image.Root.Digest != plain.Images[i].Root.Digest {
			t.Errorf("image %s has another digest with a bill of materials", image.Ref)
		}
		file, err := fs.ReadFile(a, "sbom/"+image.Ref.Name+"/"+image.Ref.Tag+".spdx.json.gz")
		check(t, err)
		packed, err := gzip.NewReader(bytes.NewReader(file))
		check(t, err)
		unpacked, err := io.ReadAll(packed)
		check(t, err)
		var document struct{ SPDXVersion, Name string }
		check(t, json.Unmarshal(unpacked, &document))
		if document.SPDXVersion != "SPDX-2.3" || document.Name != "demo-1.0.0" {
			t.Errorf("%s: %+v", image.Ref, document)
		}
		referrer := image.Manifests[len(image.Manifests)-1]
		var manifest struct {
			ArtifactType    string
			Subject, Config struct{ Digest string }
			Layers          []struct{ Digest string }
		}
		check(t, json.Unmarshal(referrer.Data, &manifest))
		if manifest.ArtifactType != "application/spdx+json" || manifest.Subject.Digest != image.Root.Digest.String() || len(manifest.Layers) != 1 {
			t.Fatalf("%s: the artifact is %s", image.Ref, referrer.Data)
		}
		blob, err := fs.ReadFile(a, "blobs/sha256/"+manifest.Layers[0].Digest[len("sha256:"):])
		check(t, err)
		if !bytes.Equal(blob, unpacked) {
			t.Errorf("%s: the artifact and the file differ", image.Ref)
		}
	}
}

// TestStatements builds an archive with OpenVEX documents: each is an artifact that refers to the images which it is about. The images stay the
// same.
func TestStatements(t *testing.T) {
	dir := newProject(t, 4096)
	plain := planOf(t, dir, build.Options{})
	document := func(product string) string {
		return `{"@context": "https://openvex.dev/ns/v0.2.0", "statements": [{"vulnerability": {"name": "CVE-1"}, "status": "fixed", "products": [` + product + `]}]}`
	}
	documents := map[string]string{
		"vex/any.json":   document(`{"@id": "pkg:npm/lodash"}`),
		"vex/none.json":  document(``),
		"vex/other.json": document(`{"@id": "pkg:oci/other"}`),
		"vex/ui.json":    document(`{"@id": "pkg:oci/demo-ui", "subcomponents": [{"@id": "pkg:npm/lodash"}]}`),
	}
	writeFiles(t, dir, documents)
	path := filepath.Join(t.TempDir(), "demo.iso")
	_, err := planOf(t, dir, build.Options{}).Write(t.Context(), path, build.WriteOptions{})
	check(t, err)
	data := readFile(t, path)
	a, err := archive.Open(bytes.NewReader(data), int64(len(data)))
	check(t, err)
	want := map[string][]string{"demo-operator": {"any.json"}, "demo-ui": {"any.json", "ui.json"}}
	for i, image := range a.Images.Images() {
		if image.Root.Digest != plain.Images[i].Root.Digest {
			t.Errorf("image %s has another digest with statements", image.Ref)
		}
		var got []string
		for _, m := range image.Manifests {
			var manifest struct {
				ArtifactType string
				Subject      struct{ Digest string }
				Layers       []struct {
					Digest      string
					Annotations map[string]string
				}
			}
			check(t, json.Unmarshal(m.Data, &manifest))
			if manifest.ArtifactType != "application/vnd.openvex+json" || manifest.Subject.Digest != image.Root.Digest.String() {
				continue
			}
			name := manifest.Layers[0].Annotations["org.opencontainers.image.title"]
			blob, err := fs.ReadFile(a, "blobs/sha256/"+manifest.Layers[0].Digest[len("sha256:"):])
			check(t, err)
			if string(blob) != documents["vex/"+name] {
				t.Errorf("%s: %s is %q", image.Ref, name, blob)
			}
			got = append(got, name)
		}
		if slices.Sort(got); !slices.Equal(got, want[image.Ref.Name]) {
			t.Errorf("%s has the statements %q, want %q", image.Ref, got, want[image.Ref.Name])
		}
	}
}

// TestOwnPackages keeps a bill of materials that the project has.
func TestOwnPackages(t *testing.T) {
	dir := newProject(t, 4096)
	writeFiles(t, dir, map[string]string{"sbom/demo-ui/1.0.0.spdx.json.gz": "made by others"})
	path := filepath.Join(t.TempDir(), "demo.iso")
	_, err := planOf(t, dir, build.Options{SBOM: "1.2.3"}).Write(t.Context(), path, build.WriteOptions{})
	check(t, err)
	data := readFile(t, path)
	a, err := archive.Open(bytes.NewReader(data), int64(len(data)))
	check(t, err)
	for name, own := range map[string]bool{"demo-ui": true, "demo-operator": false} {
		file, err := fs.ReadFile(a, "sbom/"+name+"/1.0.0.spdx.json.gz")
		check(t, err)
		if (string(file) == "made by others") != own {
			t.Errorf("%s: %.20q", name, file)
		}
	}
}
