package upload

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

const noFollow = unix.O_NOFOLLOW

// only reports whether this process has the only lock of the file for writing. It is released when the process ends.
func only(f *os.File) bool {
	return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil //nolint:gosec // a descriptor is a small number
}

// space returns how many bytes of the file system of a directory are free for this user.
func space(dir string) (int64, error) {
	var s unix.Statfs_t
	err := unix.Statfs(dir, &s)
	return int64(s.Bavail) * s.Bsize, err //nolint:gosec // no file system has 2⁶³ bytes
}

// mine reports whether a file belongs to the user of this program.
func mine(info fs.FileInfo) bool {
	system, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(system.Uid) == os.Geteuid()
}
