package sign

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/solutionctl/solutionctl/durable"
	"github.com/solutionctl/solutionctl/schema/report"
)

// File is an opened archive.
type File struct {
	*os.File
	// Size is the size of a regular file. That of a device is an upper bound: a disc is padded at its end. It is 0
	// where the system does not provide it.
	Size   int64
	Device bool

	opened fs.FileInfo
}

// Open opens an archive: a regular file or a block device. The last component of the path must not be a symbolic
// link, because a link can point elsewhere the next moment; nothing else is opened, so a FIFO cannot block.
func Open(path string) (*File, error) {
	f, err := openNoFollow(path)
	if err != nil {
		return nil, err
	}
	opened, err := Opened(f, path)
	if err != nil {
		return nil, closing(f, err)
	}
	return opened, nil
}

// Opened is an archive that was opened already, which messages call by a name.
func Opened(f *os.File, name string) (*File, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	opened := &File{File: f, Size: info.Size(), opened: info}
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return opened, nil
	case mode&fs.ModeDevice != 0 && mode&fs.ModeCharDevice == 0:
		opened.Device = true
		if opened.Size, err = f.Seek(0, 2); err != nil {
			return nil, err
		}
		return opened, nil
	default:
		return nil, report.Errorf(report.Invalid, "%s is %s, want a file or a block device", name, kind(mode))
	}
}

func openNoFollow(path string) (*os.File, error) {
	f, err := durable.OpenNoFollow(path)
	if errors.Is(err, durable.ErrLink) {
		return nil, refuseLink(path)
	}
	return f, err
}

func closing(f *os.File, err error) error {
	_ = f.Close() // the first error is the important one
	return err
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

func refuseLink(path string) error {
	e := report.Errorf(report.Invalid, "%s is a symbolic link", path)
	if target, err := os.Readlink(path); err == nil {
		return e.WithHint("name the file that it points to: %s", target)
	}
	return e
}

// Unchanged fails when a regular file was written since it was opened. It notices accidents, such as a copy that is
// still running; the reader that [Verify] returns notices every change.
func (f *File) Unchanged() error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !f.Device && (info.Size() != f.opened.Size() || !info.ModTime().Equal(f.opened.ModTime())) {
		return report.Errorf(report.Corrupt, "the file was written while it was read").
			WithHint("wait until it is copied completely, then verify it again")
	}
	return nil
}
