package registry_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/solutionctl/solutionctl/deployer/host/registry"
)

// TestLoad pulls a large layer that is not in memory. Before anything is sent its first piece is in memory, unless less than a piece was asked for.
func TestLoad(t *testing.T) {
	p := newProject(t, "demo", "1.0.0")
	img := image(t, 1, 9<<20)
	p.add("operator:1.0.0", img)
	name := p.write()
	w := serve(t, registry.Options{}, open(t, name))
	layer := must(img.Layers())(t)[0]
	path := "/v2/demo-1.0.0/operator/blobs/" + digestOf(t, layer)
	want := must(io.ReadAll(must(layer.Compressed())(t)))(t)
	f := must(os.Open(name))(t)
	defer f.Close() //nolint:errcheck // read only
	var system unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &system); err != nil {
		t.Fatal(err)
	}
	if system.Type == unix.TMPFS_MAGIC {
		t.Skip("a file of this file system is always in memory")
	}
	start := int64(bytes.Index(must(os.ReadFile(name))(t), want[:4096]))
	for _, test := range []struct {
		name    string
		headers []string
		want    string
		loaded  int
	}{
		{"a small range", []string{"Range: bytes=0-70000"}, string(want[:70001]), 0},
		{"whole", nil, string(want), 8 << 20},
	} {
		t.Run(test.name, func(t *testing.T) {
			if err := errors.Join(f.Sync(), unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)); err != nil {
				t.Fatal(err)
			}
			s := newSpy()
			s.before = func() {
				s.before = nil
				n, _ := unix.Preadv2(int(f.Fd()), [][]byte{make([]byte, 8<<20)}, start, unix.RWF_NOWAIT)
				if max(n, 0) != test.loaded {
					t.Errorf("%d bytes are in memory, want %d", n, test.loaded)
				}
			}
			w.ServeHTTP(s, request(t.Context(), path, test.headers...))
			if s.Body.String() != test.want {
				t.Errorf("other content: %d bytes, want %d", s.Body.Len(), len(test.want))
			}
		})
	}
}
