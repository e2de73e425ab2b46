package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// The annotations and labels that the OCI image specification defines and we use.
const (
	annotationRefName = "org.opencontainers.image.ref.name"
	labelTitle        = "org.opencontainers.image.title"
	labelVersion      = "org.opencontainers.image.version"
)

// binDir is in the PATH of the images: the operator is started by its name alone.
const binDir = "usr/local/bin"

// created is the time of every file and image.
var created = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// writeLayout writes an image layout with one multi-platform image per program and lists them on out. The directory is
// complete or not there: it is built beside its place and moved.
func writeLayout(dir string, r release, executables []executable, out io.Writer) error {
	partial := dir + ".partial"
	if err := os.RemoveAll(partial); err != nil {
		return err
	}
	path, err := layout.Write(partial, empty.Index)
	if err != nil {
		return err
	}
	for _, p := range r.programs {
		index, err := index(p, executables, r.version)
		if err != nil {
			return fmt.Errorf("image %s: %w", p.name, err)
		}
		if err := path.AppendIndex(index, layout.WithAnnotations(map[string]string{annotationRefName: p.ref})); err != nil {
			return err
		}
		if err := list(out, p, index); err != nil {
			return err
		}
	}
	return replace(dir, partial)
}

// index returns the multi-platform image of one program.
func index(p program, executables []executable, version string) (v1.ImageIndex, error) {
	result := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, e := range executables {
		if e.program != p {
			continue
		}
		image, err := image(e, version)
		if err != nil {
			return nil, err
		}
		result = mutate.AppendManifests(result, mutate.IndexAddendum{
			Add:        image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: e.architecture}},
		})
	}
	return result, nil
}

// image returns the image of one executable: nothing but the file, started by a user without rights.
func image(e executable, version string) (v1.Image, error) {
	data, err := os.ReadFile(e.file)
	if err != nil {
		return nil, err
	}
	archive, err := tarFile(binDir, e.name, data)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive)), nil },
		tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(gzip.BestCompression), tarball.WithCompressedCaching)
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	base, err = mutate.ConfigFile(base, configFile(e, version))
	if err != nil {
		return nil, err
	}
	return mutate.Append(base, mutate.Addendum{
		Layer:   layer,
		History: v1.History{Created: v1.Time{Time: created}, CreatedBy: "go run ./image"},
	})
}

func configFile(e executable, version string) *v1.ConfigFile {
	return &v1.ConfigFile{
		OS: "linux", Architecture: e.architecture, Created: v1.Time{Time: created},
		RootFS: v1.RootFS{Type: "layers"},
		Config: v1.Config{
			User:       "65532:65532",
			Entrypoint: []string{"/" + binDir + "/" + e.name},
			Env:        []string{"PATH=/" + binDir},
			Labels:     map[string]string{labelTitle: e.name, labelVersion: version},
		},
	}
}

// tarFile returns an archive of one executable file and the directories above it; all belong to root.
func tarFile(dir, name string, data []byte) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for i, c := range dir + "/" {
		if c == '/' {
			if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir[:i] + "/", Mode: 0o755, ModTime: created}); err != nil {
				return nil, err
			}
		}
	}
	header := &tar.Header{Typeflag: tar.TypeReg, Name: dir + "/" + name, Mode: 0o755, Size: int64(len(data)), ModTime: created}
	if err := w.WriteHeader(header); err != nil {
		return nil, err
	}
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// list prints one line per platform of an image.
func list(out io.Writer, p program, index v1.ImageIndex) error {
	manifest, err := index.IndexManifest()
	if err != nil {
		return err
	}
	for _, m := range manifest.Manifests {
		image, err := index.Image(m.Digest)
		if err != nil {
			return err
		}
		content, err := image.Manifest()
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%-10s %-12s %6.1f MB  %s\n", p.ref, m.Platform, float64(content.Layers[0].Size)/1e6, m.Digest)
	}
	return nil
}

// replace moves a finished layout into place. It removes nothing that is not a layout.
func replace(dir, partial string) error {
	if _, err := os.Stat(dir); err == nil {
		if _, err := os.Stat(filepath.Join(dir, "oci-layout")); err != nil {
			return fmt.Errorf("%s exists and is not an image layout: choose another directory with -out", dir)
		}
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	return os.Rename(partial, dir)
}
