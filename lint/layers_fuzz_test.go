package lint

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/build/oci"
)

// blobOf makes a layer of what write writes, again each time it is read.
func blobOf(tb testing.TB, write func(io.Writer) error) oci.Blob {
	tb.Helper()
	hash, size := sha256.New(), countingWriter(0)
	if err := write(io.MultiWriter(hash, &size)); err != nil {
		tb.Fatal(err)
	}
	blob := oci.Blob{Descriptor: oci.Descriptor{Size: int64(size), Digest: oci.Digest{Algorithm: "sha256", Hex: hex.EncodeToString(hash.Sum(nil))}}}
	blob.Open = func(context.Context, int64) (io.ReadCloser, error) {
		r, w := io.Pipe()
		go func() { _ = w.CloseWithError(write(w)) }() // it ends when the reader is closed
		return r, nil
	}
	return blob
}

// countingWriter counts bytes.
type countingWriter int64

// Write counts the bytes of p.
func (c *countingWriter) Write(p []byte) (int, error) {
	*c += countingWriter(len(p))
	return len(p), nil
}

// TestLongPaths refuses layers with paths or targets of links that cannot be unpacked, or that take too much memory.
func TestLongPaths(t *testing.T) {
	links := func(entries, length int, target string) func(io.Writer) error {
		return func(w io.Writer) error {
			archive := tar.NewWriter(w)
			for i := range entries {
				if err := archive.WriteHeader(&tar.Header{Name: fmt.Sprintf("%0*d", length, i), Typeflag: tar.TypeSymlink, Linkname: target}); err != nil {
					return err
				}
			}
			return archive.Close()
		}
	}
	for _, test := range []struct {
		name  string
		write func(io.Writer) error
		want  string
	}{
		{"paths", links(100, 1<<19, "x"), "a path has more than 4096 bytes"},
		{"targets", links(100, 10, strings.Repeat("x", 1<<19)), "a path has more than 4096 bytes"},
		{"PATH", links(1, 10, "x"), "…, has the executable demo"},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := variant{layers: []oci.Blob{blobOf(t, test.write)}}
			v.config.Config.Env = []string{"PATH=" + strings.Repeat("/a", 1<<20)}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			got := v.search(t.Context(), "demo")
			runtime.ReadMemStats(&after)
			if !strings.Contains(got, test.want) {
				t.Errorf("got %.300q, want %q", got, test.want)
			}
			if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 64<<20 {
				t.Errorf("it allocated %d MiB", allocated>>20)
			}
		})
	}
}

// TestDeepPaths: files so deep are in no directory of PATH, and what hides them is not looked for.
func TestDeepPaths(t *testing.T) {
	deep := strings.Repeat("d/", maxPathDepth+1)
	var packed bytes.Buffer
	archive := tar.NewWriter(&packed)
	for _, name := range []string{deep + "demo", deep + ".wh.demo", "bin/demo"} {
		if err := archive.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o755}); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	write := func(w io.Writer) error { _, err := w.Write(packed.Bytes()); return err }
	files, paths := map[string]layerFile{}, 0
	if err := addLayer(t.Context(), files, &paths, blobOf(t, write), "demo"); err != nil || len(files) != 1 {
		t.Errorf("%v, %d files, want bin/demo", err, len(files))
	}
	paths = maxLayerPaths - paths + 1
	if err := addLayer(t.Context(), files, &paths, blobOf(t, write), "demo"); err == nil || !strings.Contains(err.Error(), "paths of more than") {
		t.Errorf("got %v, want a refusal of so many bytes of paths", err)
	}
}

// FuzzLayer offers any bytes as a layer: they are read within bounds, or refused.
func FuzzLayer(f *testing.F) {
	f.Add([]byte("\x28\xb5\x2f\xfd"))
	f.Add([]byte("\x1f\x8b\x08\x00"))
	var packed bytes.Buffer
	archive := tar.NewWriter(&packed)
	for _, header := range []tar.Header{{Name: "usr/bin/.wh.demo-operator"}, {Name: "bin", Typeflag: tar.TypeSymlink, Linkname: "usr/bin"}, {Name: "usr/bin/demo-operator", Mode: 0o755}} {
		if err := archive.WriteHeader(&header); err != nil {
			f.Fatal(err)
		}
	}
	f.Add(packed.Bytes())
	f.Fuzz(func(t *testing.T, layer []byte) {
		blob := blobOf(t, func(w io.Writer) error { _, err := w.Write(layer); return err })
		v := variant{layers: []oci.Blob{blob, blob}}
		v.config.Architecture = "amd64"
		once, twice := v.search(t.Context(), "demo-operator"), v.search(t.Context(), "demo-operator")
		if once != twice {
			t.Errorf("got %q, then %q", once, twice)
		}
	})
}
