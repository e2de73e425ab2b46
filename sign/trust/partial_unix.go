//go:build unix

package trust

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// createPartial opens the file that is going to replace another one. Its name is always the same, so that the next run takes
// over what one that was killed has left, and only one process at a time has it: it is locked until it is closed.
func createPartial(name string) (*os.File, error) {
	partial := filepath.Join(filepath.Dir(name), "."+filepath.Base(name)+".partial")
	for {
		f, err := os.OpenFile(partial, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
		if err != nil {
			return nil, err
		}
		ours, err := lockFile(f, partial)
		if err == nil && ours {
			err = f.Truncate(0)
		}
		if err == nil && ours {
			return f, nil
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
	}
}

// lockFile waits for the lock, and reports whether the file still has its name: who had the lock before may have given it
// another one.
func lockFile(f *os.File, name string) (bool, error) {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX)
		if errors.Is(err, unix.EINTR) {
			continue
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
	there, err := os.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(opened, there), err
}

// publish gives a complete file its name and then the lock back.
func publish(f *os.File, name string) error { return errors.Join(os.Rename(f.Name(), name), f.Close()) }
