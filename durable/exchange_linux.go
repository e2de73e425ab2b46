package durable

import (
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Exchange lets two names lead to what the other one led to, at once: a reader of either finds one of the two at any moment. Not
// every system and file system can.
func Exchange(a, b string) error {
	if err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE); err != nil {
		return fmt.Errorf("exchange %s and %s: %w", a, b, err)
	}
	return errors.Join(SyncDirectory(filepath.Dir(a)), SyncDirectory(filepath.Dir(b)))
}
