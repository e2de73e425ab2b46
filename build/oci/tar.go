package oci

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/solutionctl/solutionctl/schema/report"
)

// Bounds on foreign tar files. A docker-archive has three entries per layer.
const (
	maxTarEntries = 100_000
	maxTarName    = 4096
	maxTarLinks   = 16 // links followed to reach one file
)

// tarFile is a tar file as a file system: its members in place, found through an index made in one pass over the
// headers. Only regular members and links to them can be opened; there are no directories.
type tarFile struct {
	r       io.ReaderAt
	members map[string]tarMember
}

type tarMember struct {
	offset, size int64
	link         string // path of the member that a link stands for
}

// indexTar reads the headers of an uncompressed tar and skips the content.
func indexTar(ctx context.Context, r io.ReaderAt, size int64) (*tarFile, error) {
	t := &tarFile{r: r, members: map[string]tarMember{}}
	section := io.NewSectionReader(r, 0, size) // a Seeker, so that the tar reader skips content without reading it
	tr := tar.NewReader(section)
	for n := 0; ; n++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		header, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return t, nil
		}
		if err != nil {
			return nil, report.Errorf(report.Corrupt, "not a complete tar file: %w", err)
		}
		if n == maxTarEntries {
			return nil, report.Errorf(report.Invalid, "tar file has more than %d entries", maxTarEntries)
		}
		offset, err := section.Seek(0, io.SeekCurrent) // the tar reader does not read ahead: here the content starts
		if err != nil {
			return nil, err
		}
		if err := t.add(header, offset, size); err != nil {
			return nil, err
		}
	}
}

// add indexes one member. A later member of the same name replaces an earlier one, as when a tar is extracted.
func (t *tarFile) add(header *tar.Header, offset, size int64) error {
	name, err := tarPath("", header.Name)
	if err != nil {
		return err
	}
	member := tarMember{offset: offset, size: header.Size}
	switch header.Typeflag {
	case tar.TypeReg:
		if isSparse(header) {
			return report.Errorf(report.Invalid, "tar member %q is sparse", name).WithHint("write the tar file without --sparse")
		}
		if header.Size > size-offset {
			return report.Errorf(report.Corrupt, "tar member %q is cut off", name)
		}
	case tar.TypeLink:
		member.link, err = tarPath("", header.Linkname)
	case tar.TypeSymlink:
		member.link, err = tarPath(path.Dir(name), header.Linkname)
	default:
		return nil // directories and the like hold nothing
	}
	t.members[name] = member
	return err
}

func isSparse(header *tar.Header) bool {
	for key := range header.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return true
		}
	}
	return false
}

// tarPath returns the clean path of a name that is relative to a directory of the tar. It refuses to leave the tar.
func tarPath(dir, name string) (string, error) {
	clean := path.Join(dir, name)
	if len(name) > maxTarName || strings.HasPrefix(name, "/") || clean != "." && !fs.ValidPath(clean) {
		return "", report.Errorf(report.Invalid, "tar member %.80q lies outside of the tar file or has no valid name", name)
	}
	if dir == "" && hasDotDot(name) {
		return "", report.Errorf(report.Invalid, `tar member %.80q has ".." in its name`, name)
	}
	return clean, nil
}

func hasDotDot(name string) bool {
	for element := range strings.SplitSeq(name, "/") {
		if element == ".." {
			return true
		}
	}
	return false
}

// find follows links to the member that holds the content of name.
func (t *tarFile) find(name string) (tarMember, error) {
	member, ok := t.members[name]
	for links := 0; ok && member.link != ""; links++ {
		if links == maxTarLinks {
			return member, report.Errorf(report.Invalid, "tar member %q: too many links, or a loop of them", name)
		}
		member, ok = t.members[member.link]
	}
	if !ok {
		return member, fs.ErrNotExist
	}
	return member, nil
}

// Open implements [fs.FS].
func (t *tarFile) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	member, err := t.find(name)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return &tarContent{io.NewSectionReader(t.r, member.offset, member.size), path.Base(name)}, nil
}

// tarContent is an open member; it is its own [fs.FileInfo].
type tarContent struct {
	*io.SectionReader
	name string
}

func (c *tarContent) Stat() (fs.FileInfo, error) { return c, nil }
func (c *tarContent) Close() error               { return nil }
func (c *tarContent) Name() string               { return c.name }
func (c *tarContent) Mode() fs.FileMode          { return 0o444 }
func (c *tarContent) ModTime() time.Time         { return time.Time{} }
func (c *tarContent) IsDir() bool                { return false }
func (c *tarContent) Sys() any                   { return nil }
