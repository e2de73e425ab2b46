package store

import (
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/solutionctl/solutionctl/schema/report"
)

// changing are file systems whose content can change without this host's kernel and root.
var changing = map[int64]string{
	unix.FUSE_SUPER_MAGIC: "FUSE", unix.NFS_SUPER_MAGIC: "NFS", unix.SMB_SUPER_MAGIC: "SMB", unix.SMB2_SUPER_MAGIC: "SMB",
	unix.CIFS_SUPER_MAGIC: "SMB", unix.V9FS_MAGIC: "9P", unix.CEPH_SUPER_MAGIC: "Ceph", unix.AFS_FS_MAGIC: "AFS",
}

// checkReadOnlyMedium refuses a file that could change after it was verified.
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
		if value, failure := unix.IoctlGetInt(int(f.Fd()), unix.BLKROGET); failure != nil || value == 0 {
			return refuse("the device can be written")
		}
		return nil
	}
	var system unix.Statfs_t
	if err = unix.Fstatfs(int(f.Fd()), &system); err != nil {
		return err
	}
	if kind := changing[system.Type]; kind != "" {
		return refuse("what a %s file system shows can change", kind)
	}
	readOnly, err := onReadOnlySystem(f)
	if err != nil {
		return err
	}
	if !readOnly {
		return refuse("its file system can be written")
	}
	return nil
}

// onReadOnlySystem reports whether the file system of a file is read-only in all its mounts. A single read-only mount,
// such as a bind mount, does not prevent writes through another one.
func onReadOnlySystem(f *os.File) (bool, error) {
	mount, err := mountOf(f)
	if err != nil {
		return false, err
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return false, err
	}
	for line := range strings.Lines(string(mounts)) {
		before, after, _ := strings.Cut(line, " - ")
		fields, options := strings.Fields(before), strings.Fields(after)
		if len(fields) > 0 && fields[0] == mount && len(options) == 3 {
			return slices.Contains(strings.Split(options[2], ","), "ro"), nil
		}
	}
	return false, nil
}

// mountOf returns the number under which /proc/self/mountinfo knows the mount of an open file.
func mountOf(f *os.File) (string, error) {
	info, err := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", f.Fd()))
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(info)) {
		if number, ok := strings.CutPrefix(line, "mnt_id:"); ok {
			return strings.TrimSpace(number), nil
		}
	}
	return "", fmt.Errorf("%s: the kernel does not show where it is mounted", f.Name())
}

// space returns how many bytes of the file system of a directory are free for this user, and how many it has.
func space(dir string) (free, total int64, err error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, 0, err
	}
	return int64(s.Bavail) * s.Bsize, int64(s.Blocks) * s.Bsize, nil //nolint:gosec // no file system has 2⁶³ bytes
}
