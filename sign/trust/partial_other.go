//go:build !unix

package trust

import (
	"errors"
	"os"
	"path/filepath"
)

// createPartial makes the file that is going to replace another one.
func createPartial(name string) (*os.File, error) {
	return os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
}

// publish gives a complete file its name.
func publish(f *os.File, name string) error {
	if err := f.Close(); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return os.Rename(f.Name(), name)
}
