package e2e_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"debug/elf"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/solutionctl/solutionctl/build/archive"
	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/schema"
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

// maxLayer is how many bytes the layer with solutionctl may have.
const maxLayer = 24 << 20

// programs returns the machine of the only file in each image of solutionctl in an archive, by platform.
func programs(t *testing.T, file string) map[string]elf.Machine {
	t.Helper()
	a, closer, err := archive.OpenFile(file)
	if err != nil {
		t.Fatal(err)
	}
	defer closer.Close() //nolint:errcheck // a file that was only read
	machines := map[string]elf.Machine{}
	for _, platform := range a.Images.Images()[0].Platforms() {
		image, err := a.Images.Find(t.Context(), schema.ProgramImage, []schema.Platform{platform})
		if err != nil {
			t.Fatal(err)
		}
		layer := image.Blobs[len(image.Blobs)-1]
		t.Logf("%s: the layer has %d bytes", platform, layer.Size)
		if len(image.Blobs) != 2 || layer.Size > maxLayer {
			t.Errorf("%s: %d blobs, and a layer of %d bytes", platform, len(image.Blobs), layer.Size)
		}
		machines[platform.String()] = machineOf(t, layer)
	}
	return machines
}

// machineOf returns the machine of the first file of a layer. It has to be a program that needs no other file.
func machineOf(t *testing.T, layer oci.Blob) elf.Machine {
	t.Helper()
	r, err := layer.Open(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close() //nolint:errcheck // it was only read
	packed, err := gzip.NewReader(r)
	if err != nil {
		t.Fatal(err)
	}
	files := tar.NewReader(packed)
	if _, err = files.Next(); err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(files)
	if err != nil {
		t.Fatal(err)
	}
	program, err := elf.NewFile(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(program.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		t.Error("the program needs a dynamic linker")
	}
	return program.Machine
}
