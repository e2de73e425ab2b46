package durable

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Allocate reserves the space of a file, so that it is missing before anything is copied. Where there is too little, the file keeps what it had, and
// nothing is taken from others.
func Allocate(f *os.File, size int64) error {
	var before unix.Stat_t
	if unix.Fstat(int(f.Fd()), &before) != nil {
		return nil // the writer finds out
	}
	err := checkSpace(f, size-before.Blocks*statBlock)
	if err == nil {
		if err = unix.Fallocate(int(f.Fd()), 0, 0, size); err != nil {
			// A quota, and blocks that only root can use, are found when all the rest is taken. A truncation gives back what is behind the end.
			err = errors.Join(err, f.Truncate(before.Size))
		}
	}
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EINTR) {
		return nil // some file systems find out while they write
	}
	if err != nil {
		return fmt.Errorf("reserve %d bytes for %s: %w", size, f.Name(), err)
	}
	return nil
}

// statBlock is the unit of the blocks of a file, in bytes: see stat(3type).
const statBlock = 512

// checkSpace compares what a file lacks with the free space. Some file systems allocate all of that before they fail.
func checkSpace(f *os.File, size int64) error {
	var system unix.Statfs_t
	if unix.Fstatfs(int(f.Fd()), &system) != nil {
		return nil // the reservation finds out
	}
	return compareSpace(&system, size)
}

// RequireSpace fails when the file system of a directory has less than a number of free bytes. The error is that of a full disk, with both numbers.
func RequireSpace(dir string, size int64) error {
	var system unix.Statfs_t
	if unix.Statfs(dir, &system) != nil {
		return nil // writing finds out
	}
	return compareSpace(&system, size)
}

func compareSpace(system *unix.Statfs_t, size int64) error {
	if system.Blocks == 0 {
		return nil // it does not count them
	}
	free := system.Bavail
	if os.Geteuid() == 0 {
		free = system.Bfree
	}
	if size > 0 && uint64(size)/uint64(system.Bsize) > free {
		return fmt.Errorf("%d bytes are needed, %d are free: %w", size, free*uint64(system.Bsize), unix.ENOSPC)
	}
	return nil
}
