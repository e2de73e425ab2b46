package oci

import (
	"errors"
	"os"
)

// scratch is a temporary file. Where the system allows it, it has no name any more, so that nothing stays when the process
// is killed.
type scratch struct {
	*os.File
	named bool
}

// newScratch makes a temporary file in a directory, which is made as well; "" is that of the system.
func newScratch(dir string) (*scratch, error) {
	if dir != "" {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
	}
	f, err := os.CreateTemp(dir, ".solutionctl-*")
	if err != nil {
		return nil, err
	}
	return &scratch{f, os.Remove(f.Name()) != nil}, nil // Windows keeps the name of an open file
}

// Close gives the space back.
func (s *scratch) Close() error {
	err := s.File.Close()
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	if s.named {
		err = errors.Join(err, os.Remove(s.Name()))
	}
	return err
}
