package registry

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"github.com/solutionctl/solutionctl/schema/report"
)

// file is the file of an archive. It stays open as long as a request reads from it.
type file struct {
	f      *os.File // nil: there is none
	self   string   // opens the same file again, with a position of its own, whatever has become of its name
	opened fs.FileInfo
	pieces []sync.Once // that are in the page cache, once they are done; see load

	mu     sync.Mutex
	users  int
	closed bool
}

// newFile takes a file that may be nil.
func newFile(f *os.File) (*file, error) {
	if f == nil {
		return &file{}, nil
	}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return &file{
		f: f, self: fmt.Sprintf("/proc/self/fd/%d", f.Fd()), opened: info, pieces: make([]sync.Once, (info.Size()+piece-1)/piece),
	}, nil
}

// check compares the open file with its first state, and with the file of its name.
func (f *file) check() error {
	if f.f == nil || !f.acquire() {
		return nil
	}
	defer f.release()
	if err := f.holds(f.opened.Size()); err != nil {
		return err
	}
	info, err := os.Stat(f.f.Name())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("its file was removed")
	case err == nil && !os.SameFile(info, f.opened):
		return errors.New("its file was replaced by another one")
	}
	return nil // the name does not matter for the open file
}

// holds fails when the file has become too short for content that ends there. A device has no size.
func (f *file) holds(end int64) error {
	if f.f == nil || !f.opened.Mode().IsRegular() {
		return nil
	}
	info, err := f.f.Stat()
	if err == nil && info.Size() < end {
		err = report.Errorf(report.Corrupt, "its file was cut off: it has %d bytes of %d", info.Size(), f.opened.Size())
	}
	return err
}

// acquire keeps the file open until release is called; it reports false when the file is closed already.
func (f *file) acquire() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return false
	}
	f.users++
	return true
}

func (f *file) release() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.users--; f.users == 0 && f.closed && f.f != nil {
		_ = f.f.Close() // nothing was written to it
	}
}

func (f *file) close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	f.closed = true
	if f.users > 0 || f.f == nil {
		return nil
	}
	return f.f.Close()
}

// load reads the pieces of the file with these bytes into the page cache, and waits for it. Each is read once: the kernel keeps it in large pages,
// and not in the small ones that many connections leave behind when all of them read it first, each of which costs time whenever it is sent.
func (f *file) load(from, size int64) {
	for i := from / piece; i*piece < from+size && i < int64(len(f.pieces)); i++ {
		f.pieces[i].Do(func() { populate(f.f, i*piece, min(piece, f.opened.Size()-i*piece)) })
	}
}

// loadAhead does the same beside what is being sent.
func (f *file) loadAhead(from, size int64) {
	if size > 0 && f.acquire() {
		go func() {
			defer f.release()
			f.load(from, size)
		}()
	}
}
