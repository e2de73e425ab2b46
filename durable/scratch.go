package durable

import (
	"errors"
	"os"
)

// Scratch is a temporary file. Where the system allows it, it has no name, so that nothing stays when the process is killed.
type Scratch struct {
	*os.File
	named bool
}

// NewScratch makes a temporary file in a directory, which is made as well; "" is that of the system.
func NewScratch(dir string) (*Scratch, error) {
	if dir == "" {
		dir = os.TempDir()
	} else if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if f, err := openUnnamed(dir); err == nil {
		return &Scratch{f, false}, nil
	}
	f, err := os.CreateTemp(dir, ".solutionctl-*")
	if err != nil {
		return nil, err
	}
	return &Scratch{f, os.Remove(f.Name()) != nil}, nil // Windows keeps the name of an open file
}

// Close gives the space back.
func (s *Scratch) Close() error {
	err := s.File.Close()
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	if s.named {
		err = errors.Join(err, os.Remove(s.Name()))
	}
	return err
}
