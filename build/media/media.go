// Package media opens archives where they lie: a file, a disk with an image on it, or parts of an archive that may be on several
// media.
//
// [Open] returns one run of bytes for each of them, so that a reader does not notice the difference. Files are opened once,
// so that the checked bytes are read. Parts are named X.iso.001, X.iso.002 and so on; [Split] makes them, and joined one after
// another they are the archive.
package media

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/durable"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Image is an opened archive. It may be read by several goroutines at once.
type Image struct {
	// Size is the size in bytes. That of a device is an upper bound: a disc is padded at its end. It is 0 where the system does
	// not provide it.
	Size   int64
	Device bool
	Parts  []Part // in their order; one for an archive that is not divided

	runs Runs // the contents of more than one part
}

// Part is one of the files of an archive.
type Part struct {
	Name string // by which it was found
	At   int64  // the place of its first byte in the archive
	Size int64

	file   *os.File
	opened fs.FileInfo
}

// Open opens an archive by the name of its file, of a disk, or of one of its parts. The other parts are looked for beside that one,
// and among more: files, and directories that have some of them. Of the names in more, those of other archives are ignored.
func Open(name string, more ...string) (*Image, error) {
	return open(name, more, func(name string) (*os.File, error) {
		if err := RefuseRegistry(name); err != nil {
			return nil, err
		}
		info, err := os.Stat(name)
		if err != nil {
			return nil, report.Errorf(report.Failure, "%w", err)
		}
		if special := info.Mode() & (fs.ModeNamedPipe | fs.ModeSocket | fs.ModeCharDevice); special != 0 {
			return nil, report.Errorf(report.Usage, "%s is neither a file nor a directory nor a disk", name)
		}
		f, err := os.Open(name)
		if err != nil {
			return nil, report.Errorf(report.Failure, "%w", err)
		}
		return f, nil
	})
}

// OpenNoFollow is [Open] for an archive whose signature counts. The last component of a path must not be a symbolic link,
// because a link can point elsewhere the next moment; a FIFO cannot block.
func OpenNoFollow(name string, more ...string) (*Image, error) { return open(name, more, openNoFollow) }

// OpenFile is [OpenNoFollow] for one file, even when it is a part of an archive.
func OpenFile(name string) (*Image, error) {
	f, err := openNoFollow(name)
	if err != nil {
		return nil, err
	}
	return opened(f, name)
}

func open(name string, more []string, openOne func(string) (*os.File, error)) (*Image, error) {
	if base, _, ok := PartOf(name); ok {
		return openParts(base, append([]string{name}, more...), openOne)
	}
	f, err := openOne(name)
	if err != nil {
		return nil, Missing(name, err)
	}
	return opened(f, name)
}

// Missing is the error for an archive that is not there. Other errors stay as they are.
func Missing(name string, err error) error {
	var reason *fs.PathError
	if !errors.Is(err, fs.ErrNotExist) || !errors.As(err, &reason) {
		return err
	}
	return report.Errorf(report.NotFound, "%s: %w", name, reason.Err).WithHint("name the file or the disk with the archive")
}

func opened(f *os.File, name string) (*Image, error) {
	i, err := Opened(f, name)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return i, nil
}

// Opened is an archive in one file that is open already, which messages call by a name.
func Opened(f *os.File, name string) (*Image, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	i := &Image{Size: info.Size()}
	switch mode := info.Mode(); {
	case mode.IsRegular():
	case mode&fs.ModeDevice != 0 && mode&fs.ModeCharDevice == 0:
		i.Device = true
		if i.Size, err = f.Seek(0, io.SeekEnd); err != nil { // a drive with a disc in it has no size in its Stat
			return nil, err
		}
	default:
		return nil, report.Errorf(report.Invalid, "%s is %s, want a file or a block device", name, kind(mode))
	}
	i.Parts = []Part{{Name: name, Size: i.Size, file: f, opened: info}}
	return i, nil
}

func openNoFollow(name string) (*os.File, error) {
	if err := RefuseRegistry(name); err != nil {
		return nil, err
	}
	f, err := durable.OpenNoFollow(name)
	if !errors.Is(err, durable.ErrLink) {
		return f, err
	}
	return nil, RefuseLink(name)
}

// RefuseRegistry is the error for an archive in a registry in the place of a file.
func RefuseRegistry(name string) error {
	if !strings.HasPrefix(name, "oci://") {
		return nil
	}
	return report.Errorf(report.Usage, "%s is in a registry, and a file is needed", name).WithHint("get it first: solutionctl pull %s", report.ShellFile(name))
}

// RefuseLink is the error for a symbolic link in the place of a file.
func RefuseLink(name string) error {
	refusal := report.Errorf(report.Invalid, "%s is a symbolic link", name)
	if target, err := os.Readlink(name); err == nil {
		return refusal.WithHint("name the file that it points to: %s", target)
	}
	return refusal
}

func kind(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a directory"
	case mode&fs.ModeNamedPipe != 0:
		return "a FIFO"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeSymlink != 0:
		return "a symbolic link"
	default:
		return fmt.Sprintf("not a file (%v)", mode.Type())
	}
}

// File is the one file of the archive; nil when it is in several parts.
func (i *Image) File() *os.File {
	if len(i.Parts) > 1 {
		return nil
	}
	return i.Parts[0].file
}

// ReadAt implements [io.ReaderAt].
func (i *Image) ReadAt(p []byte, offset int64) (int, error) {
	if len(i.Parts) == 1 {
		return i.Parts[0].file.ReadAt(p, offset)
	}
	return i.runs.ReadAt(p, offset)
}

// Close closes the files.
func (i *Image) Close() error {
	var failures []error
	for _, part := range i.Parts {
		failures = append(failures, part.file.Close())
	}
	return errors.Join(failures...)
}

// Unchanged fails when a regular file was written since it was opened. It notices accidents, such as a copy that is still
// running; a reader that knows the digests notices every change.
func (i *Image) Unchanged() error {
	for _, part := range i.Parts {
		info, err := part.file.Stat()
		if err != nil {
			return err
		}
		if !i.Device && (info.Size() != part.opened.Size() || !info.ModTime().Equal(part.opened.ModTime())) {
			return report.Errorf(report.Corrupt, "the file was written while it was read").
				WithHint("wait until it is copied completely, then verify it again")
		}
	}
	return nil
}

// Content reads one part.
func (p Part) Content() io.ReaderAt { return p.file }

// Place returns the part that has a byte of the archive.
func (i *Image) Place(offset int64) Part {
	at, ok := slices.BinarySearchFunc(i.Parts, offset, func(p Part, offset int64) int {
		switch {
		case p.At > offset:
			return 1
		case p.At+p.Size <= offset:
			return -1
		}
		return 0
	})
	if !ok {
		at = len(i.Parts) - 1
	}
	return i.Parts[at]
}
