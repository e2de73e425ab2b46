//go:build unix

package build_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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

// TestLinkIsNotWritten has a symbolic link in the place of the file under construction: its target is neither written nor made.
func TestLinkIsNotWritten(t *testing.T) {
	plan := planOf(t, newProject(t, 512), build.Options{})
	dir := t.TempDir()
	victim, absent := filepath.Join(dir, "victim"), filepath.Join(dir, "absent")
	check(t, os.WriteFile(victim, []byte("content"), 0o600))
	for _, target := range []string{victim, absent} {
		path := filepath.Join(t.TempDir(), "demo.iso")
		check(t, os.Symlink(target, path+".partial"))
		if _, err := plan.Write(t.Context(), path, build.WriteOptions{}); err == nil || !strings.Contains(err.Error(), path+".partial is not a regular file") {
			t.Errorf("got %v, want the link refused", err)
		}
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("there is an archive: %v", err)
		}
	}
	data, err := os.ReadFile(victim)
	check(t, err)
	if _, err = os.Lstat(absent); string(data) != "content" || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file behind the link has %q, the other one: %v", data, err)
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
