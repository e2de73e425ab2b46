//go:build unix

package authority

import (
	"errors"
	"os"
	"syscall"

	"github.com/solutionctl/solutionctl/schema/report"
)

// checkPrivate refuses a key that others can read.
func checkPrivate(name string) error {
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return report.Errorf(report.TrustStore, "%s can be read by others (mode %04o)", name, mode).
			WithHint("if no other user has read it: chmod 0600 %s. Otherwise remove it, and configure every node again", report.ShellFile(name))
	}
	return nil
}

// giveToOwner changes the owner of a file to that of its directory. Only root can do so, and only files of root need it.
func giveToOwner(f *os.File, dir string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	return f.Chown(int(owner.Uid), int(owner.Gid))
}

func isReadOnly(err error) bool { return errors.Is(err, syscall.EROFS) }
