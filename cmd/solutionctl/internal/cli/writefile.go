package cli

import (
	"bufio"
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/solutionctl/solutionctl/durable"
	"github.com/solutionctl/solutionctl/schema/report"
)

// WriteNew writes a file that only the user can read. Nothing that is there is replaced.
func WriteNew(path string, write func(io.Writer) error) error {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return cmp.Or(err, error(report.Errorf(report.Usage, "%s exists", path).WithHint("name another file")))
	}
	return writeFile(path, 0o600, write)
}

// writeFile writes a file or replaces it. It appears, complete and durable, when all of it was written.
func writeFile(path string, mode fs.FileMode, write func(io.Writer) error) error {
	f, err := durable.Create(path)
	if err != nil {
		return err
	}
	buffered := bufio.NewWriter(f)
	err = write(buffered)
	if err = errors.Join(err, buffered.Flush()); err != nil {
		return errors.Join(err, f.Discard())
	}
	return f.Publish(mode)
}
