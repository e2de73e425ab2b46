package oci_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// headers writes a tar of the given members; the content of each is its name.
func headers(t *testing.T, members ...tar.Header) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, h := range members {
		if h.Typeflag == 0 || h.Typeflag == tar.TypeReg {
			h.Size = int64(len(h.Name))
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			if _, err := io.WriteString(w, h.Name); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func TestTarMembers(t *testing.T) {
	long := strings.Repeat("long/", 60) + "name"
	fsys, err := oci.IndexTar(t.Context(), headers(t,
		tar.Header{Name: "./dir/", Typeflag: tar.TypeDir},
		tar.Header{Name: "./dir/plain"},
		tar.Header{Name: long, Format: tar.FormatPAX},
		tar.Header{Name: long + "-gnu", Format: tar.FormatGNU},
		tar.Header{Name: "a/link", Typeflag: tar.TypeSymlink, Linkname: "../dir/plain"},
		tar.Header{Name: "hard", Typeflag: tar.TypeLink, Linkname: "a/link"},
		tar.Header{Name: "dangling", Typeflag: tar.TypeSymlink, Linkname: "nowhere"},
		tar.Header{Name: "loop", Typeflag: tar.TypeSymlink, Linkname: "loop"},
		tar.Header{Name: "fifo", Typeflag: tar.TypeFifo},
	))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"dir/plain": "./dir/plain", long: long, long + "-gnu": long + "-gnu", "a/link": "./dir/plain", "hard": "./dir/plain",
	} {
		if got, readErr := fs.ReadFile(fsys, name); readErr != nil || string(got) != want {
			t.Errorf("%s is %q, %v; want %q", name, got, readErr, want)
		}
	}
	for _, name := range []string{"dangling", "fifo", "dir", "nowhere"} {
		if _, err = fsys.Open(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Open(%s) = %v", name, err)
		}
	}
	_, err = fsys.Open("loop")
	checkError(t, err, report.Invalid, "too many links", "")
	if _, err := fsys.Open("../x"); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("Open(../x) = %v", err)
	}
}

func TestTarRefused(t *testing.T) {
	whole := headers(t, tar.Header{Name: "a"}, tar.Header{Name: "b"})
	sparse := headers(t, tar.Header{Name: "s", PAXRecords: map[string]string{"SOLUTION.x": "y"}, Format: tar.FormatPAX})
	sparse = bytes.Replace(sparse, []byte("SOLUTION.x=y"), []byte("GNU.sparse.x"), 1) // a record that Go cannot write
	for _, test := range []struct {
		name    string
		data    []byte
		code    report.Code
		message string
	}{
		{"absolute", headers(t, tar.Header{Name: "/etc/passwd"}), report.Invalid, "lies outside"},
		{"dots", headers(t, tar.Header{Name: "a/../../x"}), report.Invalid, "lies outside"},
		{"inner dots", headers(t, tar.Header{Name: "a/../x"}), report.Invalid, `".." in its name`},
		{"link out", headers(t, tar.Header{Name: "l", Typeflag: tar.TypeSymlink, Linkname: "../../etc/passwd"}), report.Invalid, "lies outside"},
		{"absolute link", headers(t, tar.Header{Name: "l", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}), report.Invalid, "lies outside"},
		{"hard link out", headers(t, tar.Header{Name: "l", Typeflag: tar.TypeLink, Linkname: "../x"}), report.Invalid, "lies outside"},
		{"long name", headers(t, tar.Header{Name: strings.Repeat("x", 5000), Format: tar.FormatPAX}), report.Invalid, "no valid name"},
		{"cut off in a header", whole[:100], report.Corrupt, "not a complete tar file"},
		{"cut off in content", headers(t, tar.Header{Name: "abc"})[:513], report.Corrupt, "cut off"},
		{"no tar", []byte(strings.Repeat("no tar", 200)), report.Corrupt, "not a complete tar file"},
		{"broken extended header", sparse, report.Corrupt, "not a complete tar file"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := oci.IndexTar(t.Context(), test.data)
			checkError(t, err, test.code, test.message, "")
		})
	}
}

// Members of a tar are bounded by number, not only by size.
func TestTarBomb(t *testing.T) {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for i := range 100_001 {
		if err := w.WriteHeader(&tar.Header{Name: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	_, err := oci.IndexTar(t.Context(), buf.Bytes())
	checkError(t, err, report.Invalid, "more than 100000 entries", "")
}

func TestTarEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := oci.IndexTar(ctx, headers(t, tar.Header{Name: "a"})); !errors.Is(err, context.Canceled) {
		t.Errorf("IndexTar = %v", err)
	}
}

// countingReader counts the bytes read of a file.
type countingReader struct {
	io.ReaderAt
	n atomic.Int64
}

func (c *countingReader) ReadAt(p []byte, off int64) (int, error) {
	n, err := c.ReaderAt.ReadAt(p, off)
	c.n.Add(int64(n))
	return n, err
}

// Indexing skips the content between the headers.
func TestTarIsReadOnce(t *testing.T) {
	data := tarOf(map[string][]byte{"a": make([]byte, 10<<20), "b": make([]byte, 10<<20)})
	r := &countingReader{ReaderAt: bytes.NewReader(data)}
	fsys, err := oci.IndexTarAt(t.Context(), r, int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	if n := r.n.Load(); n > 4096 {
		t.Errorf("the index took %d bytes", n)
	}
	for _, name := range []string{"a", "b"} {
		if content, err := fs.ReadFile(fsys, name); err != nil || len(content) != 10<<20 {
			t.Errorf("%s: %d bytes, %v", name, len(content), err)
		}
	}
	if n := r.n.Load(); n > int64(len(data))+4096 {
		t.Errorf("%d bytes were read of %d", n, len(data))
	}
}

// Temporary files have no name, so that a killed process leaves none; the layers of a cache stay.
func TestSpoolIsRemoved(t *testing.T) {
	cache, work := t.TempDir(), t.TempDir()
	plain := tarOf(dockerSave(map[string][]string{"a:1": {"one"}}))
	r := oci.NewResolver(oci.Options{CacheDir: cache, WorkDir: work, Stdin: bytes.NewReader(plain)})
	for range 2 { // standard input can be read once only, but serves every image in it
		if _, err := r.Resolve(t.Context(), testRef, "docker-archive:-:a:1"); err != nil {
			t.Fatal(err)
		}
	}
	checkEmpty(t, work)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	checkEmpty(t, work)
	entries, err := os.ReadDir(cache)
	if err != nil || len(entries) != 1 || entries[0].Name() != "layers" {
		t.Errorf("the cache holds %v, %v", entries, err)
	}

	broken := oci.NewResolver(oci.Options{CacheDir: t.TempDir(), Stdin: io.MultiReader(bytes.NewReader(compressed(plain)[:200]))})
	_, err = broken.Resolve(t.Context(), testRef, "docker-archive:-")
	checkError(t, err, report.Corrupt, "read tar file", "")
	if err := broken.Close(); err != nil {
		t.Error(err)
	}
}

// checkEmpty fails when files have names where the system lets them go.
func checkEmpty(t *testing.T, dir string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		return
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("%s holds %v, %v", dir, entries, err)
	}
}

// TestLayersWithoutCache: layers that are compressed on their way into an archive leave nothing behind, whatever ends the
// process, and give their space back as soon as they are where they belong.
func TestLayersWithoutCache(t *testing.T) {
	archive := writeFile(t, "image.tar", tarOf(dockerSave(map[string][]string{"a:1": {"one", "two"}})))
	work := filepath.Join(t.TempDir(), "not", "there")
	r := oci.NewResolver(oci.Options{WorkDir: work})
	image, err := r.Resolve(t.Context(), testRef, "docker-archive:"+archive)
	if err != nil {
		t.Fatal(err)
	}
	checkEmpty(t, work)
	checkContent(t, image)
	kept := resolve(t, oci.Options{CacheDir: t.TempDir()}, "docker-archive:"+archive)
	if image.Root.Digest != kept.Root.Digest {
		t.Errorf("root is %s, with a cache %s", image.Root.Digest, kept.Root.Digest)
	}
	released := 0
	for _, b := range image.Blobs {
		if b.Release == nil {
			continue
		}
		released++
		b.Release()
		if content, err := b.Open(t.Context(), 0); err == nil {
			if _, err = io.ReadAll(content); err == nil {
				t.Errorf("%s can be read after it was released", b.Digest)
			}
		}
	}
	if released != 2 {
		t.Errorf("%d layers have a temporary copy, want 2", released)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// Many images share one tar file and one base layer: it is compressed once.
func TestSharedLayerIsCompressedOnce(t *testing.T) {
	texts := map[string][]string{}
	for i := range 8 {
		texts[fmt.Sprintf("image%d:1", i)] = []string{"base", fmt.Sprint(i)}
	}
	archive := writeFile(t, "all.tar", tarOf(dockerSave(texts)))
	var events report.Recorder
	r := newResolver(t, oci.Options{Sink: &events, Jobs: 4})
	errs := make(chan error)
	for i := range 8 {
		go func() {
			_, err := r.Resolve(t.Context(), schema.ImageRef{Name: "x", Tag: fmt.Sprint(i)}, fmt.Sprintf("docker-archive:%s:image%d:1", archive, i))
			errs <- err
		}()
	}
	for range 8 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	started := 0
	for _, e := range events.Events() {
		if e.State == report.Started {
			started++
		}
	}
	if started != 9 {
		t.Errorf("%d compressions of 9 different layers", started)
	}
}

func FuzzIndexTar(f *testing.F) {
	f.Add(tarOf(map[string][]byte{"a": []byte("b"), "c/d": nil}))
	f.Add(tarOf(dockerSave(map[string][]string{"a:1": {"x"}})))
	f.Fuzz(func(t *testing.T, data []byte) {
		fsys, err := oci.IndexTar(t.Context(), data)
		if err != nil {
			return
		}
		for _, name := range []string{"a", "c/d", "manifest.json", "index.json"} {
			content, err := fs.ReadFile(fsys, name)
			if err == nil && !bytes.Contains(data, content) {
				t.Errorf("%s holds bytes that are not in the tar", name)
			}
		}
	})
}
