package store

import (
	"os"
	"sync"
	"sync/atomic"

	"github.com/solutionctl/solutionctl/durable"
)

// directUnit is a multiple of what file systems require of the offset and the length of a direct write, in bytes.
const directUnit = 4096

// writer writes an archive past the page cache where the file system can. That saves one of the three times that an import
// handles each byte, and leaves the cache to the images that are served. Elsewhere each write is followed by a request to start
// writing to the medium, so that the sync at the end finds little to do.
type writer struct {
	*os.File
	step     func(string) error
	direct   atomic.Bool
	buffered func() error // makes all further writes go through the page cache; returns once they do
}

func newWriter(f *os.File, step func(string) error) *writer {
	w := &writer{File: f, step: step}
	w.direct.Store(setDirect(f, true) == nil)
	w.buffered = sync.OnceValue(func() error {
		if !w.direct.Swap(false) {
			return nil
		}
		return setDirect(f, false)
	})
	return w
}

// WriteAt may be called by several goroutines at once.
func (w *writer) WriteAt(p []byte, offset int64) (int, error) {
	if err := w.step("write"); err != nil {
		return 0, err
	}
	done := 0
	if aligned := len(p) &^ (directUnit - 1); w.direct.Load() && aligned > 0 && offset%directUnit == 0 {
		var err error
		if done, err = w.File.WriteAt(p[:aligned], offset); err == nil && done == len(p) {
			return done, nil
		}
		// The rest is the end of the file, or the file system does not write directly after all. Other errors come again.
	}
	if err := w.buffered(); err != nil {
		return done, err
	}
	n, err := w.File.WriteAt(p[done:], offset+int64(done))
	durable.StartWriteback(w.File, offset+int64(done), int64(n))
	return done + n, err
}
