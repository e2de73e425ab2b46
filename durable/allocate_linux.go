package durable

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Allocate reserves the space of a file, so that it is missing before anything is copied. What the file system does not have is not
// taken from others either.
func Allocate(f *os.File, size int64) error {
	err := checkSpace(f, size)
	if err == nil {
		err = unix.Fallocate(int(f.Fd()), 0, 0, size)
	}
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EINTR) {
		return nil // some file systems find out while they write
	}
	if err != nil {
		return fmt.Errorf("reserve %d bytes for %s: %w", size, f.Name(), err)
	}
	return nil
}

// checkSpace compares what a file lacks with the free space. Some file systems allocate all of that before they fail.
func checkSpace(f *os.File, size int64) error {
	var file unix.Stat_t
	var system unix.Statfs_t
	if errors.Join(unix.Fstat(int(f.Fd()), &file), unix.Fstatfs(int(f.Fd()), &system)) != nil {
		return nil // the reservation finds out
	}
	const statBlock = 512
	return compareSpace(&system, size-file.Blocks*statBlock)
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
	if size > 0 && uint64(size)/uint64(system.Bsize) > system.Bfree {
		return fmt.Errorf("%d bytes are needed, %d are free: %w", size, system.Bfree*uint64(system.Bsize), unix.ENOSPC)
	}
	return nil
}
