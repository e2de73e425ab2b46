package durable

import (
	"os"

	"golang.org/x/sys/unix"
)

// setDirect lets writes of a file bypass the page cache, or no longer. It fails where the file system cannot.
func setDirect(f *os.File, direct bool) error {
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	if err != nil {
		return err
	}
	flags &^= unix.O_DIRECT
	if direct {
		flags |= unix.O_DIRECT
	}
	_, err = unix.FcntlInt(f.Fd(), unix.F_SETFL, flags)
	return err
}
