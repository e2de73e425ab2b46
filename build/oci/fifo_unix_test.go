//go:build unix

package oci_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/schema/report"
)

func fifo(t *testing.T, name string) string {
	t.Helper()
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestFIFO: a FIFO can be an archive that is being written. Waiting for it ends with the context, before and after the
// writer has begun.
func TestFIFO(t *testing.T) {
	for name, prepare := range map[string]func(t *testing.T, name string){
		"without a writer": func(*testing.T, string) {},
		"after a partial write": func(t *testing.T, name string) {
			t.Helper()
			w, err := os.OpenFile(name, os.O_RDWR, 0) // which does not wait for a reader
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = w.Close() })
			if _, err := w.WriteString("the beginning of an archive"); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			pipe := fifo(t, filepath.Join(t.TempDir(), "image.tar"))
			prepare(t, pipe)
			r := newResolver(t, oci.Options{WorkDir: t.TempDir()})
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() {
				_, err := r.Resolve(ctx, testRef, "docker-archive:"+pipe)
				ended <- err
			}()
			cancel()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("a whole archive", func(t *testing.T) {
		pipe := fifo(t, filepath.Join(t.TempDir(), "image.tar"))
		go func() {
			w, err := os.OpenFile(pipe, os.O_WRONLY, 0)
			if err == nil {
				_, err = w.Write(tarOf(dockerSave(map[string][]string{"a:1": {"one"}})))
				err = errors.Join(err, w.Close())
			}
			if err != nil {
				t.Error(err)
			}
		}()
		checkContent(t, resolve(t, oci.Options{WorkDir: t.TempDir()}, "docker-archive:"+pipe))
	})
}

// TestFIFOInDirectory: a FIFO in a directory is never opened.
func TestFIFOInDirectory(t *testing.T) {
	dir := t.TempDir()
	fifo(t, filepath.Join(dir, "index.json"))
	fifo(t, filepath.Join(dir, "manifest.json"))
	for _, source := range []string{"oci:", "dir:"} {
		_, err := newResolver(t, oci.Options{}).Resolve(t.Context(), testRef, source+dir)
		if err == nil {
			t.Errorf("%s: no error", source)
		}
	}
	_, err := oci.Open(oci.Directory(dir))
	if code := report.CodeOf(err); code == "" || err == nil {
		t.Errorf("got %v", err)
	}
}
