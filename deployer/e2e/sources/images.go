package sources

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path"
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// WriteImages writes an image layout with one image, which has nothing but a program, under many names.
func WriteImages(dir, program string, names []string) error {
	image, err := imageOf(program)
	if err != nil {
		return err
	}
	images, err := layout.Write(dir, empty.Index)
	for _, name := range names {
		if err != nil {
			break
		}
		err = images.AppendImage(image, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": name}))
	}
	return err
}

// imageOf returns an image that starts a program, which it has in its root directory.
func imageOf(program string) (v1.Image, error) {
	content, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}
	var files bytes.Buffer
	w := tar.NewWriter(&files)
	err = w.WriteHeader(&tar.Header{Name: path.Base(program), Mode: 0o755, Size: int64(len(content))})
	if err == nil {
		_, err = w.Write(content)
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files.Bytes())), nil })
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", runtime.GOARCH
	config.Config.Entrypoint, config.Config.Env = []string{"/" + path.Base(program)}, []string{"PATH=/"}
	return mutate.ConfigFile(image, config)
}
