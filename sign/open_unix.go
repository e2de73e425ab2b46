//go:build unix

package sign

import (
	"errors"
	"os"
	"syscall"
)

// openNoFollow does not wait for the writer of a FIFO.
func openNoFollow(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ELOOP) {
		return nil, refuseLink(path)
	}
	return f, err
}
