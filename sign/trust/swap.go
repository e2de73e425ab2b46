package trust

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/solutionctl/solutionctl/durable"
	"github.com/solutionctl/solutionctl/schema/report"
)

// oldStore returns the name of a store while another one is put in its place.
func oldStore(dir string) string { return filepath.Clean(dir) + ".old" }

// checkReplaced refuses to continue with a store whose replacement was interrupted.
func checkReplaced(dir string) error {
	old := oldStore(dir)
	if _, err := os.Lstat(old); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return report.Errorf(report.TrustStore, "trust store: %s was being replaced, and is missing", dir).
		WithHint("put the former one back, then import again: mv %s %s", report.ShellFile(old), report.ShellFile(dir))
}

// restore restores the store after an interrupted replacement.
func restore(dir string) error {
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) || checkReplaced(dir) == nil {
		return nil
	}
	return durable.Rename(oldStore(dir), dir)
}

// swap puts the new directory in the place of the old one: at once where the system can. Elsewhere a crash in between leaves the
// old one beside it.
func swap(dir, next string) error {
	if err := durable.Exchange(dir, next); err == nil {
		return os.RemoveAll(next)
	}
	old := oldStore(dir)
	if err := os.RemoveAll(old); err != nil {
		return err
	}
	if err := durable.Rename(dir, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := durable.Rename(next, dir); err != nil {
		return errors.Join(err, os.Rename(old, dir))
	}
	return os.RemoveAll(old)
}
