package store

import (
	"io"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// cloned reads a file that has just become a clone, and so has no page in memory. What its original has in memory is read from there, unless the
// original can have changed since: a lease makes the kernel report that it is opened for writing, or cut off, before that takes place
// (fcntl(2), "Leases").
type cloned struct {
	io.ReaderAt // the clone
	original    *os.File
	leased      atomic.Bool
}

// readCloned takes the lease and makes out a clone of in, in this order. It fails where in is nil, the file system cannot clone, or out is on
// another one. Call close when everything was read.
func readCloned(out, in *os.File) (*cloned, error) {
	if in == nil {
		return nil, os.ErrInvalid
	}
	c := &cloned{ReaderAt: out, original: in}
	_, err := unix.FcntlInt(in.Fd(), unix.F_SETLEASE, unix.F_RDLCK)
	c.leased.Store(err == nil) // fails where the file is open for writing, belongs to another user, or is on a system without leases
	if err = unix.IoctlFileClone(int(out.Fd()), int(in.Fd())); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

func (c *cloned) ReadAt(p []byte, offset int64) (int, error) {
	n := c.readOriginal(p, offset)
	if n == len(p) {
		return n, nil
	}
	rest, err := c.ReaderAt.ReadAt(p[n:], offset+int64(n))
	return n + rest, err
}

// readOriginal reads what is in memory, and returns 0 if it can have been changed when it was read. The first byte that is not in memory ends it:
// the kernel would read the original ahead (preadv2(2), RWF_NOWAIT), beside the clone.
func (c *cloned) readOriginal(p []byte, offset int64) int {
	if !c.leased.Load() {
		return 0
	}
	n, _ := unix.Preadv2(int(c.original.Fd()), [][]byte{p}, offset, unix.RWF_NOWAIT)
	if kind, err := unix.FcntlInt(c.original.Fd(), unix.F_GETLEASE, 0); err != nil || kind != unix.F_RDLCK {
		n = 0
	}
	if n < len(p) {
		c.close() // who wants to write waits for it
	}
	return max(n, 0)
}

// close gives the lease back.
func (c *cloned) close() {
	if c.leased.Swap(false) {
		_, _ = unix.FcntlInt(c.original.Fd(), unix.F_SETLEASE, unix.F_UNLCK) // otherwise it ends with the file
	}
}
