package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

var (
	// ErrLink means that a path ends in a symbolic link.
	ErrLink = errors.New("it is a symbolic link")
	// ErrBusy means that another writer has a file.
	ErrBusy = errors.New("another process is writing it")
)

// WriteFile makes data the content of a file, which gets the permissions mode whether it was there or not.
func WriteFile(name string, data []byte, mode fs.FileMode) error {
	f, err := Create(name)
	if err != nil {
		return err
	}
	return f.finish(data, func() error { return f.Publish(mode) })
}

// WriteNewFile is [WriteFile] for what must not be there yet: else it fails with [fs.ErrExist], and the file is as it was.
func WriteNewFile(name string, data []byte, mode fs.FileMode) error {
	f, err := Create(name)
	if err != nil {
		return err
	}
	return f.finish(data, func() error { return f.PublishNew(mode) })
}

// File is the future content of a file. Until it is published, it has another name, only its owner can read it, and readers of the
// file find the old content. The caller sets owner and group before that.
//
// The other name is always .NAME.partial, so that the next writer reuses the file of a killed one. On Unix a second writer waits
// until the first one is finished, or fails with [ErrBusy].
type File struct {
	*os.File
	root    *os.Root // the directory
	ownRoot bool     // root is closed with the file
	name    string   // in root
	partial string   // in root; "" when there is no such file any more
}

// Create begins to write a file, whose directory must exist. It waits for another writer, so it is for small files.
func Create(name string) (*File, error) { return create(name, true) }

// TryCreate is [Create] for what takes long: it fails with [ErrBusy] when there is another writer.
func TryCreate(name string) (*File, error) { return create(name, false) }

func create(name string, wait bool) (*File, error) {
	f, err := continueAt(name, wait)
	if err != nil {
		return nil, err
	}
	return f.empty()
}

// Continue is [TryCreate] for a writer that recognizes its own bytes: the file has what an earlier writer left when it was killed or
// called [File.Keep].
func Continue(name string) (*File, error) { return continueAt(name, false) }

func continueAt(name string, wait bool) (*File, error) {
	root, err := os.OpenRoot(filepath.Dir(name))
	if err != nil {
		return nil, named(name, err)
	}
	f, err := continueIn(root, filepath.Base(name), wait)
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	f.ownRoot = true
	return f, nil
}

// CreateIn begins to write a file below a directory, and nothing that a symbolic link below it could name.
func CreateIn(root *os.Root, name string) (*File, error) {
	f, err := continueIn(root, name, true)
	if err != nil {
		return nil, err
	}
	return f.empty()
}

func continueIn(root *os.Root, name string, wait bool) (*File, error) {
	partial := Partial(name)
	f, err := openPartial(root, partial, wait)
	if err != nil {
		return nil, atPlace(root, name, err)
	}
	return &File{File: f, root: root, name: name, partial: partial}, nil
}

// empty drops what an earlier writer left.
func (f *File) empty() (*File, error) {
	if err := f.Truncate(0); err != nil {
		return nil, errors.Join(err, f.Discard())
	}
	return f, nil
}

// Keep closes unpublished content and leaves it to [Continue].
func (f *File) Keep() error {
	err := f.Sync()
	f.partial = ""
	return errors.Join(err, f.Discard())
}

// Partial is the name that a file has until it is published, and that a process which was killed leaves.
func Partial(name string) string {
	return filepath.Join(filepath.Dir(name), "."+filepath.Base(name)+".partial")
}

// atPlace is [named] for a file below a directory.
func atPlace(root *os.Root, name string, err error) error {
	return named(filepath.Join(root.Name(), name), err)
}

// named puts into an error the file that could not be written, in place of its directory, or of its other name, which has no directory.
func named(name string, err error) error {
	if opened, ok := errors.AsType[*fs.PathError](err); ok {
		return &fs.PathError{Op: "write", Path: name, Err: opened.Err}
	}
	if renamed, ok := errors.AsType[*os.LinkError](err); ok {
		return &fs.PathError{Op: "write", Path: name, Err: renamed.Err}
	}
	return err
}

// finish writes everything at once.
func (f *File) finish(data []byte, publish func() error) error {
	if _, err := f.Write(data); err != nil {
		return errors.Join(atPlace(f.root, f.name, err), f.Discard())
	}
	return publish()
}

// Publish closes the file and gives it its name and its permissions, in place of what had that name. After an error nothing
// of it is left, but when bringing the new name to the medium failed: then the content may be the old or the new one.
func (f *File) Publish(mode fs.FileMode) error {
	return f.PublishIf(mode, func() error { return nil })
}

// PublishIf is [File.Publish] with a check directly before the rename: an error of it leaves the old content.
func (f *File) PublishIf(mode fs.FileMode, check func() error) error {
	return f.publish(mode, func() error {
		if err := check(); err != nil {
			return err
		}
		return f.root.Rename(f.partial, f.name)
	})
}

// PublishNew is [File.Publish] for a name that must be free: else it fails with [fs.ErrExist].
func (f *File) PublishNew(mode fs.FileMode) error {
	return f.publish(mode, func() error {
		err := f.root.Link(f.partial, f.name)
		if err == nil || errors.Is(err, fs.ErrExist) {
			return errors.Join(err, f.root.Remove(f.partial))
		}
		// A file system without hard links.
		if _, missing := f.root.Lstat(f.name); !errors.Is(missing, fs.ErrNotExist) {
			return errors.Join(&fs.PathError{Op: "create", Path: f.name, Err: fs.ErrExist}, f.root.Remove(f.partial))
		}
		return f.root.Rename(f.partial, f.name)
	})
}

func (f *File) publish(mode fs.FileMode, name func() error) error {
	if err := errors.Join(f.Chmod(mode), f.Sync()); err != nil {
		return errors.Join(err, f.Discard())
	}
	if err := f.move(name); err != nil {
		return errors.Join(atPlace(f.root, f.name, err), f.Discard())
	}
	f.partial = ""
	return errors.Join(syncIn(f.root, filepath.Dir(f.name)), f.Discard())
}

// Discard deletes unpublished content, and does nothing after publication.
func (f *File) Discard() error {
	var err error
	if f.File != nil {
		err = f.close()
	}
	if f.partial != "" {
		if gone := f.root.Remove(f.partial); !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
		f.partial = ""
	}
	if f.ownRoot {
		f.ownRoot = false
		err = errors.Join(err, f.root.Close())
	}
	return err
}

func (f *File) close() error {
	err := f.Close()
	if errors.Is(err, fs.ErrClosed) {
		return nil
	}
	return err
}

// Rename gives a complete file or directory another name, in place of a file that has it. What is in it must be on the medium already.
func Rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	err := SyncDirectory(filepath.Dir(to))
	if filepath.Dir(from) != filepath.Dir(to) {
		err = errors.Join(err, SyncDirectory(filepath.Dir(from)))
	}
	return err
}

// Remove removes a file or an empty directory, if it is there.
func Remove(name string) error {
	err := os.Remove(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return SyncDirectory(filepath.Dir(name))
}

// MkdirAll makes a directory and those above it that are missing.
func MkdirAll(name string, mode fs.FileMode) error {
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		return nil
	case err == nil:
		return fmt.Errorf("%s is not a directory", name)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	parent := filepath.Dir(name)
	if err := MkdirAll(parent, mode); err != nil {
		return err
	}
	if err := os.Mkdir(name, mode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return SyncDirectory(parent)
}
