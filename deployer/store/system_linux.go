package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/solutionctl/solutionctl/schema/report"
)

// reflink makes out share the blocks of in. It fails where the file system cannot, or where they are on two.
func reflink(out, in *os.File) error { return unix.IoctlFileClone(int(out.Fd()), int(in.Fd())) }

// allocate reserves the space of a file, so that it is missing before anything was copied.
func allocate(f *os.File, size int64) error {
	err := unix.Fallocate(int(f.Fd()), 0, 0, size)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EINTR) {
		return nil // some file systems find out while they write
	}
	if err != nil {
		return fmt.Errorf("reserve %d bytes for %s: %w", size, f.Name(), err)
	}
	return nil
}

// startWriteback asks the kernel to begin to write a range to the medium.
func startWriteback(f *os.File, offset, size int64) {
	// A hint: what fails here fails again, and is noticed, in the final sync.
	_ = unix.SyncFileRange(int(f.Fd()), offset, size, unix.SYNC_FILE_RANGE_WRITE)
}

// changing are file systems whose content somebody other than this host's kernel and root decides.
var changing = map[int64]string{
	unix.FUSE_SUPER_MAGIC: "FUSE", unix.NFS_SUPER_MAGIC: "NFS", unix.SMB_SUPER_MAGIC: "SMB", unix.SMB2_SUPER_MAGIC: "SMB",
	unix.CIFS_SUPER_MAGIC: "SMB", unix.V9FS_MAGIC: "9P", unix.CEPH_SUPER_MAGIC: "Ceph", unix.AFS_FS_MAGIC: "AFS",
}

// checkReadOnlyMedium refuses what anybody could change after it was verified.
func checkReadOnlyMedium(f *os.File, path string) error {
	refuse := func(format string, args ...any) error {
		return report.Errorf(report.Refused, "%s cannot be used in place: %s", path, fmt.Sprintf(format, args...)).
			WithHint("import it without --in-place, which copies it")
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok || owner.Uid != 0:
		return refuse("it does not belong to root")
	case info.Mode()&fs.ModeDevice != 0:
		if readOnly, err := unix.IoctlGetInt(int(f.Fd()), unix.BLKROGET); err != nil || readOnly == 0 {
			return refuse("the device can be written")
		}
		return nil
	}
	var system unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &system); err != nil {
		return err
	}
	if kind := changing[int64(system.Type)]; kind != "" {
		return refuse("what a %s file system shows can change", kind)
	}
	if system.Flags&unix.ST_RDONLY == 0 {
		return refuse("its file system is not mounted read-only")
	}
	return nil
}
