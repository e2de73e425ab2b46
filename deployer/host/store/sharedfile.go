package store

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"github.com/solutionctl/solutionctl/durable"
	"github.com/solutionctl/solutionctl/schema/report"
)

const (
	// maxShared bounds the files of the system that are read into memory.
	maxShared = 4 << 20
	// timeout bounds the wait for a concurrent change, which takes milliseconds.
	timeout = 10 * time.Second
)

// sharedFile is a small file of the system that others read and write too. It is replaced at once and never written in
// place, and keeps its owner and mode.
type sharedFile struct {
	path      string
	step      func(name string) error // nil: nothing to do
	elsewhere string                  // the remedy when the file cannot be changed
}

// current is a file as it was read.
type current struct {
	data []byte
	info fs.FileInfo // nil: there is none
}

func (f sharedFile) read() (current, error) {
	info, err := os.Lstat(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return current{}, nil
	case err != nil:
		return current{}, err
	case info.Mode()&fs.ModeSymlink != 0:
		target, broken := filepath.EvalSymlinks(f.path)
		if broken != nil {
			target = "a file that does not exist"
		}
		return current{}, report.Errorf(report.Refused, "%s is a symbolic link to %s, which a change would replace by a file", f.path, target).
			WithHint("put the file itself there, or %s", f.elsewhere)
	case !info.Mode().IsRegular():
		return current{}, report.Errorf(report.Usage, "%s is not a file", f.path)
	}
	data, err := readFile(f.path, maxShared)
	return current{data, info}, err
}

// lock makes the directory, if need be, and takes a lock on it, so that no other file is needed.
func (f sharedFile) lock(ctx context.Context) (unlock func() error, err error) {
	dir := filepath.Dir(f.path)
	if err = durable.MkdirAll(dir, 0o755); err != nil {
		return nil, f.explain(err)
	}
	lock := flock.New(dir, flock.SetFlag(os.O_RDONLY))
	waiting, stop := context.WithTimeout(ctx, timeout)
	defer stop()
	_, err = lock.TryLockContext(waiting, 20*time.Millisecond)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, context.DeadlineExceeded):
		return nil, report.Errorf(report.Locked, "another process is changing %s", f.path).WithHint("run the command again when it has finished")
	case err != nil:
		return nil, f.explain(err)
	}
	return lock.Close, nil
}

// check fails when the file could not be replaced.
func (f sharedFile) check() error {
	dir := filepath.Dir(f.path)
	if err := durable.MkdirAll(dir, 0o755); err != nil {
		return f.explain(err)
	}
	name := filepath.Join(dir, "."+filepath.Base(f.path)+".probe")
	probe, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return f.explain(err)
	}
	return f.explain(errors.Join(probe.Close(), removeIfThere(name)))
}

// replace writes the file unless it has changed since it was read. The last comparison is directly before the rename: only a change in between is lost.
func (f sharedFile) replace(before current, data []byte) error {
	return f.write(f.path, before, data, func() error {
		now, err := f.read()
		if err != nil {
			return err
		}
		if (now.info == nil) != (before.info == nil) || !bytes.Equal(now.data, before.data) {
			return report.Errorf(report.Conflict, "%s was changed by another process at the same moment", f.path).WithHint("run the command again")
		}
		return nil
	})
}

// write replaces a file atomically, with the owner and mode of the present one, unless check fails directly before.
func (f sharedFile) write(name string, like current, data []byte, check func() error) error {
	if err := f.at("create " + filepath.Base(name)); err != nil {
		return err
	}
	partial, err := durable.Create(name)
	if err != nil {
		return f.explain(err)
	}
	_, err = partial.Write(data)
	mode := fs.FileMode(0o644)
	if like.info != nil {
		mode = like.info.Mode().Perm()
		err = errors.Join(err, keepOwner(partial.File, like.info))
	}
	if err = errors.Join(err, f.at("publish "+filepath.Base(name))); err != nil {
		return f.explain(errors.Join(err, partial.Discard()))
	}
	return f.explain(partial.PublishIf(mode, check))
}

func (f sharedFile) at(step string) error {
	if f.step == nil {
		return nil
	}
	return f.step(step)
}

func (f sharedFile) explain(err error) error {
	switch {
	case errors.Is(err, syscall.EROFS):
		return report.As(report.Failure, err).WithHint("%s is on a read-only file system: make it writable, or %s", f.path, f.elsewhere)
	case errors.Is(err, fs.ErrPermission):
		return report.As(report.Failure, err).WithHint(
			"run the command as root; if you do, 'lsattr -d %s %s' shows whether one of them is immutable", f.path, filepath.Dir(f.path))
	default:
		return err
	}
}
