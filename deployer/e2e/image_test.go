package e2e_test

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/rogpeppe/go-internal/testscript"
)

// makeImage compiles a Go program and writes what 'docker save' writes of an image that has nothing else.
func (s *session) makeImage(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: make-image FILE PROGRAM SOURCE.go")
	}
	program := filepath.Join(ts.MkAbs("."), args[1])
	build := exec.Command("go", "build", "-o", program, ts.MkAbs(args[2]))
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GO111MODULE=off")
	if out, err := build.CombinedOutput(); err != nil {
		ts.Fatalf("%v\n%s", err, out)
	}
	content, err := os.ReadFile(program)
	ts.Check(err)
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	ts.Check(w.WriteHeader(&tar.Header{Name: args[1], Mode: 0o755, Size: int64(len(content))}))
	_, err = w.Write(content)
	ts.Check(err)
	ts.Check(w.Close())
	blob, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(layer.Bytes())), nil })
	ts.Check(err)
	image, err := mutate.AppendLayers(empty.Image, blob)
	ts.Check(err)
	file, err := image.ConfigFile()
	ts.Check(err)
	file = file.DeepCopy()
	file.OS, file.Architecture = "linux", runtime.GOARCH
	file.Config.Env, file.Config.User = []string{"PATH=/"}, "65532:65532"
	image, err = mutate.ConfigFile(image, file)
	ts.Check(err)
	reference, err := name.NewTag(args[1] + ":test")
	ts.Check(err)
	ts.Check(tarball.WriteToFile(ts.MkAbs(args[0]), reference, image))
}
