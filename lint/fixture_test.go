package lint_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"io/fs"
	"path"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/solutionctl/solutionctl/build/iso"
	"github.com/solutionctl/solutionctl/build/oci"
)

func check(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// testImage is an image to make: one small layer for each platform.
type testImage struct {
	ref        string
	platforms  []string
	entrypoint string
	searchPath string   // PATH, where it is not the default
	file       string   // the content of the layers in place of the entry point
	layers     [][]byte // instead of the one with the entry point
	diffIDs    string   // "none" or "wrong" ones
	url        string   // that the layers have
}

// blobs is a content-addressed store in the form of an OCI image layout.
type blobs struct {
	tb    testing.TB
	files fstest.MapFS
}

// add stores content and returns its descriptor.
func (b blobs) add(mediaType string, content any) map[string]any {
	b.tb.Helper()
	data, ok := content.([]byte)
	if !ok {
		var err error
		data, err = json.Marshal(content)
		check(b.tb, err)
	}
	sum := sha256.Sum256(data)
	name := hex.EncodeToString(sum[:])
	b.files["blobs/sha256/"+name] = &fstest.MapFile{Data: data}
	return map[string]any{"mediaType": mediaType, "digest": "sha256:" + name, "size": len(data)}
}

func (b blobs) image(i testImage) map[string]any {
	const oci = "application/vnd.oci.image."
	var children []any
	for _, platform := range i.platforms {
		system, architecture, _ := strings.Cut(platform, "/")
		layers, digests := []any{}, []any{}
		for _, data := range i.layersFor(b.tb, platform) {
			layer := b.add(oci+"layer.v1.tar+gzip", data)
			if i.url != "" {
				layer["urls"] = []string{i.url}
			}
			layers, digests = append(layers, layer), append(digests, i.diffIDsOf(b.tb, data)...)
		}
		config := b.add(oci+"config.v1+json", map[string]any{
			"os": system, "architecture": architecture, "config": map[string]any{"Entrypoint": []string{i.entrypoint}, "Env": i.env()},
			"rootfs": map[string]any{"type": "layers", "diff_ids": digests},
		})
		child := b.add(oci+"manifest.v1+json", map[string]any{
			"schemaVersion": 2, "mediaType": oci + "manifest.v1+json", "config": config, "layers": layers,
		})
		if len(i.platforms) == 1 {
			return child
		}
		child["platform"] = map[string]any{"os": system, "architecture": architecture}
		children = append(children, child)
	}
	return b.add(oci+"index.v1+json", map[string]any{"schemaVersion": 2, "mediaType": oci + "index.v1+json", "manifests": children})
}

// diffIDsOf returns the digest of the uncompressed layer, as a configuration has it.
func (i testImage) diffIDsOf(tb testing.TB, layer []byte) []any {
	tb.Helper()
	plain := layer
	if r, err := gzip.NewReader(bytes.NewReader(layer)); err == nil {
		plain, err = io.ReadAll(r)
		check(tb, err)
	}
	switch i.diffIDs {
	case "none":
		return nil
	case "wrong":
		plain = []byte("something else")
	}
	sum := sha256.Sum256(plain)
	return []any{"sha256:" + hex.EncodeToString(sum[:])}
}

// layoutOf is an OCI image layout with the images.
func layoutOf(tb testing.TB, images []testImage) fstest.MapFS {
	tb.Helper()
	b := blobs{tb, fstest.MapFS{}}
	index := []any{}
	for _, i := range images {
		d := b.image(i)
		d["annotations"] = map[string]string{"org.opencontainers.image.ref.name": i.ref}
		index = append(index, d)
	}
	data, err := json.Marshal(map[string]any{"schemaVersion": 2, "manifests": index})
	check(tb, err)
	b.files["index.json"] = &fstest.MapFile{Data: data}
	b.files["oci-layout"] = &fstest.MapFile{Data: []byte(`{"imageLayoutVersion":"1.0.0"}`)}
	return b.files
}

// addImages puts the images into an archive, in both views, with the configuration of the registry.
func addImages(tb testing.TB, archive fstest.MapFS, images []testImage) {
	tb.Helper()
	store, err := oci.Open(layoutOf(tb, images))
	check(tb, err)
	entries, err := oci.Layout(store.Images())
	check(tb, err)
	for _, entry := range entries {
		data := entry.Data
		if entry.Blob != nil {
			data = contentOf(tb, entry.Blob)
		}
		addMissing(archive, entry.Path, data)
	}
	config, err := oci.RegistryConfig(store.Images(), oci.Extended)
	check(tb, err)
	addMissing(archive, "registry-config.inc.j2", config)
}

func contentOf(tb testing.TB, blob *oci.Blob) []byte {
	tb.Helper()
	r, err := blob.Open(context.Background(), 0)
	check(tb, err)
	data, err := io.ReadAll(r)
	check(tb, err)
	check(tb, r.Close())
	return data
}

func addMissing(fsys fstest.MapFS, name string, data []byte) {
	if fsys[name] == nil {
		fsys[name] = &fstest.MapFile{Data: data}
	}
}

// imageOf writes an archive as an ISO image.
func imageOf(tb testing.TB, archive fstest.MapFS, volumeID string) []byte {
	tb.Helper()
	var files []iso.File
	check(tb, fs.WalkDir(archive, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data := archive[name].Data
		sum := sha256.Sum256(data)
		files = append(files, iso.File{
			Path: name, Size: int64(len(data)), Key: hex.EncodeToString(sum[:]),
			Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil },
		})
		return nil
	}))
	image, err := iso.Layout(files, iso.Options{VolumeID: volumeID, ModTime: time.Unix(1767225600, 0)})
	check(tb, err)
	var out bytes.Buffer
	_, err = image.WriteTo(&out)
	check(tb, err)
	return out.Bytes()
}

// copyFS reads a file system into memory.
func copyFS(tb testing.TB, fsys fs.FS) fstest.MapFS {
	tb.Helper()
	files := fstest.MapFS{}
	check(tb, fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(fsys, name)
		files[path.Clean(name)] = &fstest.MapFile{Data: data}
		return err
	}))
	return files
}
