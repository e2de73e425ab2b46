// Image makes what solution.yaml takes from build: the container images, compiled statically and without a container engine, the
// packed charts, and the manifests of a release. The same source gives the same bytes. The image program of example-solution describes more
// about what it does.
//
//	go run ./image                   # 1.0.0
//	go run ./image -version 1.1.0    # files of releases/1.1.0 replace those of archive
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// created is the time of every file and image.
var created = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	version := flag.String("version", "1.0.0", "version of the programs")
	flag.Parse()
	if err := run(ctx, *version); err != nil {
		fmt.Fprintln(os.Stderr, "image: error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, version string) error {
	if err := os.RemoveAll("build"); err != nil {
		return err
	}
	if err := packCharts(); err != nil {
		return err
	}
	if err := copyArchive(version); err != nil {
		return err
	}
	images, err := layout.Write("build/images", empty.Index)
	if err != nil {
		return err
	}
	for _, program := range []string{"operator", "service"} {
		index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
		for _, architecture := range []string{"amd64", "arm64"} {
			image, err := build(ctx, program, architecture, version)
			if err != nil {
				return fmt.Errorf("%s for %s: %w", program, architecture, err)
			}
			index = mutate.AppendManifests(index, mutate.IndexAddendum{
				Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: architecture}},
			})
		}
		if err := images.AppendIndex(index, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": program})); err != nil {
			return err
		}
	}
	return nil
}

// build compiles a program and returns an image of nothing else, started by a user without rights.
func build(ctx context.Context, program, architecture, version string) (v1.Image, error) {
	name := "cloud-" + program
	file := filepath.Join("build", name+"-"+architecture)
	compile := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false",
		"-tags=release_"+strings.ReplaceAll(version, ".", "_"), "-ldflags=-s -w -buildid= -X main.version="+version, "-o", file, "./"+program)
	compile.Stderr = os.Stderr
	compile.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+architecture, "CGO_ENABLED=0", "GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=", "GOWORK=off")
	if err := compile.Run(); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	if err = add(w, name, 0o755, data); err != nil {
		return nil, err
	}
	if err = w.Close(); err != nil {
		return nil, err
	}
	blob, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(layer.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	base, err = mutate.ConfigFile(base, &v1.ConfigFile{
		OS: "linux", Architecture: architecture, Created: v1.Time{Time: created}, RootFS: v1.RootFS{Type: "layers"},
		Config: v1.Config{User: "65532:65532", Entrypoint: []string{"/" + name}, Env: []string{"PATH=/"}},
	})
	if err != nil {
		return nil, err
	}
	return mutate.Append(base, mutate.Addendum{Layer: blob, History: v1.History{Created: v1.Time{Time: created}}})
}

func add(w *tar.Writer, name string, mode int64, data []byte) error {
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(data)), ModTime: created}); err != nil {
		return err
	}
	_, err := w.Write(data)
	return err
}

// copyArchive copies the manifests of a release: those of the first one, except files that the release replaces.
func copyArchive(version string) error {
	for _, dir := range []string{filepath.Join("releases", version), "archive"} {
		err := fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			target := filepath.Join("build", "archive", name)
			if _, err = os.Stat(target); err == nil {
				return nil
			}
			data, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				return err
			}
			if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
				return err
			}
			return os.WriteFile(target, data, 0o644)
		})
		if err != nil && (dir == "archive" || !errors.Is(err, fs.ErrNotExist)) {
			return err
		}
	}
	return nil
}

// packCharts packs each directory of charts, as 'helm package' does.
func packCharts() error {
	charts, err := os.ReadDir("charts")
	if err != nil {
		return err
	}
	if err := os.MkdirAll("build/charts", 0o755); err != nil {
		return err
	}
	for _, chart := range charts {
		var packed bytes.Buffer
		compressed := gzip.NewWriter(&packed)
		w := tar.NewWriter(compressed)
		files := os.DirFS("charts")
		err := fs.WalkDir(files, chart.Name(), func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			data, err := fs.ReadFile(files, name)
			if err != nil {
				return err
			}
			return add(w, path.Clean(name), 0o644, data)
		})
		if err != nil {
			return fmt.Errorf("chart %s: %w", chart.Name(), err)
		}
		if err := w.Close(); err != nil {
			return err
		}
		if err := compressed.Close(); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join("build/charts", chart.Name()+".tgz"), packed.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}
