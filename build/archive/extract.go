package archive

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/solutionctl/solutionctl/schema/report"
)

// Extract writes a file or a directory of the archive, or all of it for ".", below dir, which it makes. It replaces no
// file, and leaves dir through no link that is there. A file that cannot be completed is removed; those before it stay.
func (a *Archive) Extract(ctx context.Context, name, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // a directory handle
	above := ""
	if parent := path.Dir(name); parent != "." {
		above = parent + "/"
	}
	return fs.WalkDir(a.FS, name, func(file string, entry fs.DirEntry, err error) error {
		target := filepath.FromSlash(strings.TrimPrefix(file, above))
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			return root.MkdirAll(target, 0o755)
		case !entry.Type().IsRegular():
			return report.Errorf(report.Invalid, "extract %s: it is not a regular file", file)
		}
		if err := a.extractFile(ctx, root, target, file); err != nil {
			return report.Errorf(report.CodeOf(err), "extract %s: %w", file, err)
		}
		return nil
	})
}

func (a *Archive) extractFile(ctx context.Context, root *os.Root, target, name string) error {
	source, err := a.Open(name)
	if err != nil {
		return err
	}
	defer source.Close() //nolint:errcheck // read only
	f, err := root.OpenFile(target, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return report.As(report.Failure, err).WithHint("extract into an empty directory")
	}
	if err != nil {
		return err
	}
	_, err = io.Copy(f, readerOf(ctx, source))
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, root.Remove(target))
	}
	return nil
}

// readerOf is r until ctx ends.
func readerOf(ctx context.Context, r io.Reader) io.Reader {
	return readerFunc(func(p []byte) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return r.Read(p)
	})
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
