package tardiff

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"path"
	"strings"

	"github.com/solutionctl/solutionctl/schema/report"
)

// Tar is an uncompressed tar file.
type Tar struct {
	io.ReaderAt
	Size int64 // in bytes
}

// Bounds of a tar file.
const (
	maxFiles = 1 << 18
	maxName  = 4 << 10
)

// file is a regular file in a tar file: its content from At on.
type file struct {
	name     string
	at, size int64
}

// walk calls use for each entry that can be the source or the target of a comparison, in their order, and drop for the names of all others.
func (t Tar) walk(ctx context.Context, use func(file), drop func(name string)) error {
	section := io.NewSectionReader(t, 0, t.Size)
	r := tar.NewReader(section)
	for n := 0; ; n++ {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		header, err := r.Next()
		if errors.Is(err, io.EOF) && n > 0 {
			return nil
		}
		if err != nil || n == maxFiles {
			return notTar(err)
		}
		at, err := section.Seek(0, io.SeekCurrent) // a tar.Reader does not read ahead
		if err != nil {
			return err
		}
		f := file{cleanName(header.Name), at, header.Size}
		if isSource(header, f) && f.size <= t.Size-at {
			use(f)
		} else {
			drop(f.name)
		}
	}
}

func notTar(err error) error {
	switch {
	case err == nil:
		return report.Errorf(report.Invalid, "it has more than %d files", maxFiles)
	case errors.Is(err, io.EOF):
		return report.Errorf(report.Invalid, "it is not a tar file")
	}
	return report.Errorf(report.Invalid, "it is not a tar file: %w", err)
}

// isSource reports whether the content of an entry is its bytes in the tar file.
func isSource(h *tar.Header, f file) bool {
	for key := range h.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return false
		}
	}
	return h.Typeflag == tar.TypeReg && f.size > 0 && f.name != "" && len(f.name) <= maxName
}

// cleanName is the name of a file below the root of the tar file, "" for the root.
func cleanName(name string) string { return path.Clean("/" + name)[1:] }

// Names returns the files that a patch can read, with their sizes in bytes. It fails with [report.Invalid] when this is not a tar file.
func (t Tar) Names(ctx context.Context) (map[string]int64, error) {
	names := map[string]int64{}
	return names, t.walk(ctx, func(f file) { names[f.name] = f.size }, func(name string) { delete(names, name) })
}
