package sbom

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/schema"
)

// entry is a file of a layer; with link it is a hard link, and a name that ends with / is a directory.
type entry struct{ name, content, link string }

func layerOf(tb testing.TB, entries ...entry) []byte {
	tb.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		header := &tar.Header{Name: e.name, Size: int64(len(e.content)), Mode: 0o644}
		switch {
		case e.link != "":
			header.Typeflag, header.Linkname = tar.TypeLink, e.link
		case e.name[len(e.name)-1] == '/':
			header.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(header); err != nil {
			tb.Fatal(err)
		}
		if _, err := io.WriteString(w, e.content); err != nil {
			tb.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

func compress(tb testing.TB, plain []byte) []byte {
	tb.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(plain); err != nil {
		tb.Fatal(err)
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

func blobOf(mediaType types.MediaType, data []byte) oci.Blob {
	sum := sha256.Sum256(data)
	d := oci.Descriptor{MediaType: mediaType, Size: int64(len(data)), Digest: oci.Digest{Algorithm: "sha256", Hex: hex.EncodeToString(sum[:])}}
	return oci.Blob{Descriptor: d, Open: func(_ context.Context, offset int64) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(data[offset:])), nil
	}}
}

// imageOf makes an image of compressed layers.
func imageOf(tb testing.TB, name string, layers ...[]byte) *oci.Image {
	tb.Helper()
	config := v1.ConfigFile{OS: "linux", Architecture: "amd64", RootFS: v1.RootFS{Type: "layers"}}
	manifest := v1.Manifest{SchemaVersion: 2, MediaType: types.OCIManifestSchema1}
	image := &oci.Image{Ref: schema.ImageRef{Name: name, Tag: "1.0.0"}}
	for _, data := range layers {
		blob := blobOf(types.OCILayer, data)
		manifest.Layers = append(manifest.Layers, blob.Descriptor)
		config.RootFS.DiffIDs = append(config.RootFS.DiffIDs, blob.Digest)
		image.Blobs = append(image.Blobs, blob)
	}
	data := bytes.Replace(marshal(tb, config), []byte(`"0001-01-01T00:00:00Z"`), []byte(`"2026-03-04T05:06:07Z"`), 1)
	blob := blobOf(types.OCIConfigJSON, data)
	manifest.Config = blob.Descriptor
	image.Blobs = append(image.Blobs, blob)
	data = marshal(tb, manifest)
	image.Root = blobOf(types.OCIManifestSchema1, data).Descriptor
	image.Manifests = []oci.Manifest{{Descriptor: image.Root, Data: data}}
	return image
}

func marshal(tb testing.TB, value any) []byte {
	tb.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// jarOf makes a zip file of names and contents in turn.
func jarOf(tb testing.TB, files ...string) string {
	tb.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := 0; i < len(files); i += 2 {
		f, err := w.Create(files[i])
		if err != nil {
			tb.Fatal(err)
		}
		if _, err := io.WriteString(f, files[i+1]); err != nil {
			tb.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.String()
}

func scanImage(tb testing.TB, layers ...[]entry) schema.ImagePackages {
	tb.Helper()
	var data [][]byte
	for _, entries := range layers {
		data = append(data, compress(tb, layerOf(tb, entries...)))
	}
	list, err := listImages(tb.Context(), []*oci.Image{imageOf(tb, "app", data...)}, Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return list[0]
}
