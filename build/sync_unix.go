//go:build unix

package build

import (
	"errors"
	"os"
)

// syncDirectory makes a rename in the directory durable.
func syncDirectory(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
