package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/rogpeppe/go-internal/testscript"
)

// mkimage makes an image of one layer with the files of a directory, as docker save writes it.
func mkimage(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: mkimage FILE DIR")
	}
	var content bytes.Buffer
	w := tar.NewWriter(&content)
	ts.Check(errors.Join(w.AddFS(os.DirFS(ts.MkAbs(args[1]))), w.Close()))
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content.Bytes())), nil })
	ts.Check(err)
	image, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{OS: "linux", Architecture: "amd64", RootFS: v1.RootFS{Type: "layers"}, Config: v1.Config{Entrypoint: []string{"/program"}}})
	ts.Check(err)
	image, err = mutate.AppendLayers(image, layer)
	ts.Check(err)
	ref, err := name.NewTag("demo:1")
	ts.Check(err)
	ts.Check(tarball.WriteToFile(ts.MkAbs(args[0]), ref, image))
}
