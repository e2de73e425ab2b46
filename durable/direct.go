package durable

import (
	"os"
	"runtime"
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

// NewDirect returns a writer of a file. It has to be closed, which does not close the file.
//
// A write waits for the medium, and keeps a processor of the runtime until its monitor notices, up to ten milliseconds later. On a machine with two
// processors what computes beside the writing would lose a fifth of its time by that. Therefore the runtime has some more until Close.
func NewDirect(f *os.File) *Direct {
	w := &Direct{file: f}
	writing.add(1)
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

// Close ends the writing.
func (w *Direct) Close() { writing.add(-1) }

// writing counts the writers of this process, and gives the runtime processors for them.
var writing spare

// spare are processors of the runtime beside those of the machine.
type spare struct {
	mu      sync.Mutex
	writers int
	before  int // processors without any writer
}

// writes is the number of writes that wait at once, for which a machine with fewer processors than those and the computing gets more.
const writes = 2

func (s *spare) add(writers int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writers == 0 {
		s.before = runtime.GOMAXPROCS(0)
	}
	s.writers += writers
	switch {
	case s.before > writes: // enough for those that wait and for those that compute
	case s.writers > 0:
		runtime.GOMAXPROCS(s.before + writes)
	default:
		runtime.GOMAXPROCS(s.before)
	}
}
