package registry

import (
	"os"

	"golang.org/x/sys/unix"
)

// populate reads part of a file into the page cache, in the largest pages that its file system has. A kernel that cannot (before 5.14) leaves it to
// the sending, and so do errors: who sends these bytes gets them again. See madvise(2).
func populate(f *os.File, from, size int64) {
	mapped, err := unix.Mmap(int(f.Fd()), from, int(size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return
	}
	_ = unix.Madvise(mapped, unix.MADV_HUGEPAGE)
	_ = unix.Madvise(mapped, unix.MADV_POPULATE_READ)
	_ = unix.Munmap(mapped) // fails for no memory that was mapped
}
