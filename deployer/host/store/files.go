package store

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/solutionctl/solutionctl/durable"
	"github.com/solutionctl/solutionctl/schema/report"
)

// readFile reads a file of bounded size.
func readFile(name string, limit int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, report.Errorf(report.Corrupt, "%s is larger than %d bytes", name, limit)
	}
	return data, nil
}

// writeShared replaces a file that the registry's group may read.
func writeShared(name string, data []byte) error {
	f, err := durable.Create(name)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, allowGroup(f.Name())); err != nil {
		return errors.Join(err, f.Discard())
	}
	return f.Publish(0o440)
}

func removeIfThere(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
