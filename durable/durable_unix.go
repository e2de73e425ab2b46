//go:build unix

package durable

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// NoFollow is the flag of [os.OpenFile] that refuses a path which ends in a symbolic link, with [syscall.ELOOP].
const NoFollow = unix.O_NOFOLLOW

// OpenNoFollow opens a file for reading. When the path ends in a symbolic link, which could point elsewhere the next
// moment, it fails with [ErrLink]; a FIFO without a writer is opened at once.
func OpenNoFollow(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, unix.ELOOP) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: ErrLink}
	}
	return f, err
}

// SyncDirectory makes what was created, renamed and removed in a directory durable.
func SyncDirectory(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func syncIn(root *os.Root, name string) error {
	d, err := root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// openPartial opens the file with the lock on it, and with what another writer has left in it.
func openPartial(root *os.Root, name string, wait bool) (*os.File, error) {
	for {
		f, err := root.OpenFile(name, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
		if err != nil {
			return nil, err
		}
		ours, err := lock(f, root, name, wait)
		if err == nil && ours {
			err = f.Chmod(0o600)
		}
		if err == nil && ours {
			return f, nil
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
	}
}

// lock takes the lock, and reports whether the file still has its name: who had the lock before may have given it
// another one.
func lock(f *os.File, root *os.Root, name string, wait bool) (bool, error) {
	how := unix.LOCK_EX
	if !wait {
		how |= unix.LOCK_NB
	}
	for {
		err := unix.Flock(int(f.Fd()), how)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = &fs.PathError{Op: "open", Path: name, Err: ErrBusy}
		}
		if err != nil {
			return false, err
		}
		break
	}
	opened, err := f.Stat()
	if err != nil {
		return false, err
	}
	there, err := root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil && !there.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: name, Err: ErrLink} // in a directory opened as root, links below it are followed
	}
	return err == nil && os.SameFile(opened, there), err
}

// move gives the file its name. It stays open, and so locked, until it has it.
func (f *File) move(rename func() error) error { return rename() }
