package store

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// counted counts the bytes that are read from a clone.
type counted struct {
	io.ReaderAt
	bytes int
}

func (c *counted) ReadAt(p []byte, offset int64) (int, error) {
	n, err := c.ReaderAt.ReadAt(p, offset)
	c.bytes += n
	return n, err
}

// TestCloned reads a clone whose original is in memory, has left it, or can be changed by another process meanwhile.
func TestCloned(t *testing.T) {
	const size = 1 << 20
	dir := xfs(t)
	data := make([]byte, size)
	_, _ = rand.Read(data) // never fails
	openWriter := func(t *testing.T, original *os.File) {
		t.Helper()
		f, err := os.OpenFile(original.Name(), os.O_WRONLY|unix.O_NONBLOCK, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
	}
	for _, test := range []struct {
		name          string
		before, while func(t *testing.T, original *os.File)
		want          int  // bytes that are read from the clone
		leased        bool // afterwards
	}{
		{name: "in memory", leased: true},
		{name: "not in memory", while: forget, want: size},
		{name: "open for writing before", before: openWriter, want: size},
		{name: "another process wants to write", want: size, while: func(t *testing.T, original *os.File) {
			t.Helper()
			if _, err := os.OpenFile(original.Name(), os.O_WRONLY|unix.O_NONBLOCK, 0); !errors.Is(err, syscall.EWOULDBLOCK) {
				t.Fatalf("the lease does not keep it waiting: %v", err)
			}
		}},
		{name: "another process cuts it off", want: size, while: func(t *testing.T, original *os.File) {
			t.Helper()
			done := make(chan error)
			go func() { done <- os.Truncate(original.Name(), 0) }()
			t.Cleanup(func() {
				if err := <-done; err != nil {
					t.Error(err)
				}
			})
			for kind := unix.F_RDLCK; kind == unix.F_RDLCK; {
				var err error
				if kind, err = unix.FcntlInt(original.Fd(), unix.F_GETLEASE, 0); err != nil {
					t.Fatal(err)
				}
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			original := filepath.Join(dir, "original")
			if err := os.WriteFile(original, data, 0o600); err != nil {
				t.Fatal(err)
			}
			in, err := os.Open(original)
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close() //nolint:errcheck // read only
			if test.before != nil {
				test.before(t, in)
			}
			out, err := os.Create(filepath.Join(dir, "clone"))
			if err != nil {
				t.Fatal(err)
			}
			defer out.Close() //nolint:errcheck // nothing was written
			clone, err := readCloned(out, in)
			if err != nil {
				t.Fatal(err)
			}
			defer clone.close()
			if test.while != nil {
				test.while(t, in)
			}
			count := &counted{ReaderAt: clone.ReaderAt}
			clone.ReaderAt = count
			got := make([]byte, size)
			if n, err := clone.ReadAt(got, 0); n != size || err != nil {
				t.Fatalf("%d bytes, %v", n, err)
			}
			if !bytes.Equal(got, data) {
				t.Error("other bytes")
			}
			if count.bytes != test.want {
				t.Errorf("%d bytes were read from the clone, want %d", count.bytes, test.want)
			}
			if clone.leased.Load() != test.leased {
				t.Errorf("the lease is held: %t", clone.leased.Load())
			}
		})
	}
}

// forget takes a file out of memory.
func forget(t *testing.T, f *os.File) {
	t.Helper()
	if err := errors.Join(f.Sync(), unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)); err != nil {
		t.Fatal(err)
	}
}
