package durable

import (
	"os"

	"golang.org/x/sys/unix"
)

// openUnnamed makes a file that never has a name. Not all file systems can.
func openUnnamed(dir string) (*os.File, error) {
	return os.OpenFile(dir, unix.O_TMPFILE|os.O_RDWR, 0o600)
}
