//go:build unix

package store

import (
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// allowGroup lets the registry's group read a file, where the system has that group and lets us.
func allowGroup(path string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	group, err := user.LookupGroup(Group)
	if err != nil {
		return nil //nolint:nilerr // a host that serves nothing has no such group
	}
	id, err := strconv.Atoi(group.Gid)
	if err != nil {
		return err
	}
	return os.Chown(path, 0, id)
}

// keepOwner gives a file the owner of another one, if the process has permission.
func keepOwner(f *os.File, of os.FileInfo) error {
	owner, ok := of.Sys().(*syscall.Stat_t)
	if !ok || int(owner.Uid) == os.Geteuid() && int(owner.Gid) == os.Getegid() {
		return nil
	}
	return f.Chown(int(owner.Uid), int(owner.Gid))
}
