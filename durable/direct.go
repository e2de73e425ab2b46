package durable

import (
	"os"
	"sync"
	"sync/atomic"
)

// directUnit is a multiple of what file systems require of the offset and the length of a direct write, in bytes.
const directUnit = 4096

// Direct writes a large new file past the page cache where the file system can. That saves one of the times that each byte is handled, the writing
// overlaps with what else is done, and the cache keeps what it has. Elsewhere each write is followed by a request to start writing to the medium. The
// file is synced as any other.
type Direct struct {
	file     *os.File
	direct   atomic.Bool
	buffered func() error // makes all further writes go through the page cache; returns once they do
}

// NewDirect returns a writer of a file.
func NewDirect(f *os.File) *Direct {
	w := &Direct{file: f}
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
func (w *Direct) WriteAt(p []byte, offset int64) (int, error) {
	done := 0
	if aligned := len(p) &^ (directUnit - 1); w.direct.Load() && aligned > 0 && offset%directUnit == 0 {
		var err error
		if done, err = w.file.WriteAt(p[:aligned], offset); err == nil && done == len(p) {
			return done, nil
		}
		// The rest is the end of the file, or the file system does not write directly after all. Other errors come again.
	}
	if err := w.buffered(); err != nil {
		return done, err
	}
	n, err := w.file.WriteAt(p[done:], offset+int64(done))
	StartWriteback(w.file, offset+int64(done), int64(n))
	return done + n, err
}
