package durable

import (
	"errors"
	"io/fs"
	"os"
)

// NoFollow does nothing: Windows has no such flag of [os.OpenFile].
const NoFollow = 0

// OpenNoFollow opens a file for reading. When the path ends in a symbolic link it fails with [ErrLink]; what was looked at
// is compared with what was opened.
func OpenNoFollow(name string) (*os.File, error) {
	before, err := os.Lstat(name)
	if err != nil {
		return nil, err
	}
	if before.Mode()&(fs.ModeSymlink|fs.ModeIrregular) != 0 {
		return nil, &fs.PathError{Op: "open", Path: name, Err: ErrLink}
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	after, err := f.Stat()
	if err == nil && !os.SameFile(before, after) {
		err = &fs.PathError{Op: "open", Path: name, Err: errors.New("replaced while it was opened")}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// SyncDirectory does nothing: Windows orders changes of directories itself, and cannot sync them.
func SyncDirectory(string) error { return nil }

func syncIn(*os.Root, string) error { return nil }

func openPartial(root *os.Root, name string, _ bool) (*os.File, error) {
	return root.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
}

// move gives the file its name after closing it, as Windows wants it.
func (f *File) move(rename func() error) error {
	return errors.Join(f.close(), rename())
}
