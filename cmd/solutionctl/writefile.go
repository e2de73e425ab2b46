package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/solutionctl/solutionctl/schema/report"
)

// writeNew writes a file that only the user can read. Nothing that is there is replaced.
func writeNew(path string, write func(io.Writer) error) error {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return cmp.Or(err, error(report.Errorf(report.Usage, "%s exists", path).WithHint("name another file")))
	}
	return writeFile(path, 0o600, write)
}

// writeFile writes a file or replaces it. It appears, complete and durable, when all of it was written.
func writeFile(path string, mode fs.FileMode, write func(io.Writer) error) error {
	partial, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // readable for its owner only
	if err != nil {
		return fmt.Errorf("write %s: %w", path, errors.Unwrap(err)) // why, but not the temporary name
	}
	buffered := bufio.NewWriter(partial)
	err = write(buffered)
	if err == nil {
		err = errors.Join(buffered.Flush(), partial.Chmod(mode), partial.Sync())
	}
	if err = errors.Join(err, partial.Close()); err == nil {
		err = os.Rename(partial.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(partial.Name()))
	}
	if err := syncDirectory(filepath.Dir(path)); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// syncDirectory makes a rename in the directory durable.
func syncDirectory(dir string) error {
	if runtime.GOOS == "windows" {
		return nil // it cannot sync directories
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
