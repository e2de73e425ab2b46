package oci_test

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/schema"
)

// layoutBuilder makes an OCI image layout whose bytes are the same on every run.
type layoutBuilder struct {
	files fstest.MapFS
	index v1.IndexManifest
}

func newLayout() *layoutBuilder {
	return &layoutBuilder{
		files: fstest.MapFS{"oci-layout": {Data: []byte(`{"imageLayoutVersion":"1.0.0"}`)}},
		index: v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex},
	}
}

func (l *layoutBuilder) blob(mediaType types.MediaType, data []byte) oci.Descriptor {
	digest, size, _ := v1.SHA256(bytes.NewReader(data))
	l.files["blobs/sha256/"+digest.Hex] = &fstest.MapFile{Data: data}
	return oci.Descriptor{MediaType: mediaType, Digest: digest, Size: size}
}

func (l *layoutBuilder) json(mediaType types.MediaType, v any) oci.Descriptor {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return l.blob(mediaType, data)
}

// image adds a manifest with one gzip layer per text.
func (l *layoutBuilder) image(platform string, layers ...string) oci.Descriptor {
	m := l.manifest(platform, layers...)
	d := l.json(m.MediaType, m)
	d.Platform = platformOf(platform)
	return d
}

func (l *layoutBuilder) manifest(platform string, layers ...string) v1.Manifest {
	m := v1.Manifest{SchemaVersion: 2, MediaType: types.OCIManifestSchema1}
	config := v1.ConfigFile{OS: "linux", Architecture: platformOf(platform).Architecture, RootFS: v1.RootFS{Type: "layers"}}
	for _, text := range layers {
		plain := layerTar(text)
		diffID, _, _ := v1.SHA256(bytes.NewReader(plain))
		config.RootFS.DiffIDs = append(config.RootFS.DiffIDs, diffID)
		m.Layers = append(m.Layers, l.blob(types.OCILayer, compressed(plain)))
	}
	m.Config = l.json(types.OCIConfigJSON, config)
	return m
}

func (l *layoutBuilder) multi(children ...oci.Descriptor) oci.Descriptor {
	return l.json(types.OCIImageIndex, v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: children})
}

// artifact adds a manifest about a subject, and lists it.
func (l *layoutBuilder) artifact(artifactType string, subject oci.Descriptor) {
	subject.Platform = nil
	d := l.json(types.OCIManifestSchema1, v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1, ArtifactType: artifactType, Subject: &subject,
		Config: l.blob(types.OCIEmptyJSON, []byte("{}")),
		Layers: []v1.Descriptor{l.blob("text/plain", []byte("about "+subject.Digest.String()))},
	})
	l.index.Manifests = append(l.index.Manifests, d)
}

func (l *layoutBuilder) tag(name string, d oci.Descriptor) {
	d.Annotations = map[string]string{"org.opencontainers.image.ref.name": name}
	l.index.Manifests = append(l.index.Manifests, d)
}

func (l *layoutBuilder) fs() fstest.MapFS {
	data, err := json.Marshal(l.index)
	if err != nil {
		panic(err)
	}
	l.files["index.json"] = &fstest.MapFile{Data: data}
	return l.files
}

func (l *layoutBuilder) dir(tb testing.TB) string {
	tb.Helper()
	dir := tb.TempDir()
	if err := os.CopyFS(dir, l.fs()); err != nil {
		tb.Fatal(err)
	}
	return dir
}

func platformOf(s string) *v1.Platform {
	p, err := v1.ParsePlatform(s)
	if err != nil {
		panic(err)
	}
	return p
}

// layerTar is a layer with one file.
func layerTar(text string) []byte {
	return tarOf(map[string][]byte{"file": []byte(text)})
}

func tarOf(files map[string][]byte) []byte {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(files[name]))})
		if _, err2 := w.Write(files[name]); err != nil || err2 != nil {
			panic(errors.Join(err, err2))
		}
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return buf.Bytes()
}

func compressed(plain []byte) []byte {
	var buf bytes.Buffer
	if err := oci.CompressLayer(&buf, bytes.NewReader(plain)); err != nil {
		panic(err)
	}
	return buf.Bytes()
}

// dockerSave has the form of docker before version 25: layers as plain tars, one of them behind a link.
func dockerSave(texts map[string][]string) map[string][]byte {
	files := map[string][]byte{}
	var entries []map[string]any
	for _, tag := range slices.Sorted(maps.Keys(texts)) {
		config := v1.ConfigFile{OS: "linux", Architecture: "amd64", RootFS: v1.RootFS{Type: "layers"}}
		var names []string
		for _, text := range texts[tag] {
			data := layerTar(text)
			diffID, _, _ := v1.SHA256(bytes.NewReader(data))
			config.RootFS.DiffIDs = append(config.RootFS.DiffIDs, diffID)
			names = append(names, diffID.Hex+"/layer.tar")
			files[diffID.Hex+"/layer.tar"] = data
		}
		data, _ := json.Marshal(config)
		digest, _, _ := v1.SHA256(bytes.NewReader(data))
		files[digest.Hex+".json"] = data
		entries = append(entries, map[string]any{"Config": digest.Hex + ".json", "RepoTags": []string{tag}, "Layers": names})
	}
	files["manifest.json"], _ = json.Marshal(entries)
	return files
}

func writeFile(t *testing.T, name string, data []byte) string {
	t.Helper()
	name = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func tarOfFS(t *testing.T, fsys fstest.MapFS) []byte {
	t.Helper()
	files := map[string][]byte{}
	for name, f := range fsys {
		files[name] = f.Data
	}
	return tarOf(files)
}

func newResolver(tb testing.TB, o oci.Options) *oci.Resolver {
	tb.Helper()
	r := oci.NewResolver(o)
	tb.Cleanup(func() {
		if err := r.Close(); err != nil {
			tb.Error(err)
		}
	})
	return r
}

var testRef = schema.ImageRef{Name: "operator", Tag: "1.0.0"}

func resolve(t *testing.T, o oci.Options, source string) *oci.Image {
	t.Helper()
	image, err := newResolver(t, o).Resolve(t.Context(), testRef, source)
	if err != nil {
		t.Fatal(err)
	}
	checkContent(t, image)
	return image
}

// checkContent reads every blob and verifies it and all manifests.
func checkContent(t *testing.T, image *oci.Image) {
	t.Helper()
	for _, m := range image.Manifests {
		if _, err := io.Copy(io.Discard, oci.VerifyReader(bytes.NewReader(m.Data), m.Descriptor)); err != nil {
			t.Errorf("manifest: %v", err)
		}
	}
	for _, b := range image.Blobs {
		readBlob(t, b)
	}
}

func readBlob(t *testing.T, b oci.Blob) []byte {
	t.Helper()
	r, err := b.Open(context.WithoutCancel(t.Context()), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	data, err := io.ReadAll(oci.VerifyReader(r, b.Descriptor))
	if err != nil {
		t.Fatal(err)
	}
	if half := b.Size / 2; half > 0 {
		r, err := b.Open(t.Context(), half)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = r.Close() }()
		if rest, err := io.ReadAll(r); err != nil || !bytes.Equal(rest, data[half:]) {
			t.Errorf("blob %s from %d: %d bytes, %v", b.Digest, half, len(rest), err)
		}
	}
	return data
}

// mapFS is a layout in its written form.
func mapFS(t *testing.T, entries []oci.Entry) fstest.MapFS {
	t.Helper()
	files := fstest.MapFS{}
	for _, e := range entries {
		data := e.Data
		if e.Blob != nil {
			data = readBlob(t, *e.Blob)
		}
		if files[e.Path] != nil || int64(len(data)) != e.Size {
			t.Errorf("%s occurs twice or has the wrong size", e.Path)
		}
		files[e.Path] = &fstest.MapFile{Data: data}
	}
	return files
}

type nopCloser struct{}

func (nopCloser) Close() error { return nil }

func openMap(fsys fs.FS) func(string) (fs.FS, io.Closer, error) {
	return func(string) (fs.FS, io.Closer, error) { return fsys, nopCloser{}, nil }
}

// needs skips a test on machines without a tool; on CI it must be there.
func needs(t *testing.T, tool, pkg string) string {
	t.Helper()
	path, err := exec.LookPath(tool)
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("needs %s: apt-get install %s", tool, pkg)
		}
		t.Skipf("needs %s: apt-get install %s", tool, pkg)
	}
	return path
}

func openText(text string) func(context.Context, int64) (io.ReadCloser, error) {
	return func(_ context.Context, offset int64) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader([]byte(text)[offset:])), nil
	}
}

// serve starts a server and returns its host.
func serve(tb testing.TB, handler http.HandlerFunc) string {
	tb.Helper()
	server := httptest.NewServer(handler)
	tb.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func file(data []byte) *fstest.MapFile { return &fstest.MapFile{Data: data} }

// manifestOf reads a manifest of the layout.
func manifestOf(t *testing.T, l *layoutBuilder, d oci.Descriptor) v1.Manifest {
	t.Helper()
	var m v1.Manifest
	if f := l.files["blobs/sha256/"+d.Digest.Hex]; f == nil || json.Unmarshal(f.Data, &m) != nil {
		t.Fatalf("there is no manifest %s", d.Digest)
	}
	return m
}
