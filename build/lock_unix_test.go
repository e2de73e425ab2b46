//go:build unix

package build_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/solutionctl/solutionctl/build"
)

// TestLockedUntilPublished checks that no other process can lock a finished archive that does not have its name yet: it
// would write into it.
func TestLockedUntilPublished(t *testing.T) {
	plan := planOf(t, newProject(t, 512), build.Options{})
	for range 50 {
		path := filepath.Join(t.TempDir(), "demo.iso")
		found := make(chan error, 1)
		_, err := plan.Write(t.Context(), path, build.WriteOptions{Follow: func(io.ReaderAt, int64) (build.Follower, error) {
			go func() { found <- lockFinished(path + ".partial") }()
			return nil, nil
		}})
		check(t, err)
		check(t, <-found)
	}
}

// lockFinished tries to lock a partial file for as long as it has its name.
func lockFinished(name string) error {
	for {
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if _, missing := os.Lstat(name); err == nil && missing == nil {
			return errors.Join(errors.New("another process has locked the finished archive"), f.Close())
		}
		if err = f.Close(); err != nil {
			return err
		}
	}
}
