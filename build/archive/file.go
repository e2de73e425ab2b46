package archive

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// OpenFile opens the archive in a file or directory. The file is opened once, so that the checked file is the one that
// is read.
func OpenFile(name string) (*Archive, io.Closer, error) {
	f, size, err := OpenImage(name)
	if err != nil {
		return nil, nil, err
	}
	var a *Archive
	if size < 0 {
		a, err = FromFS(oci.Directory(name))
	} else {
		a, err = Open(f, size)
	}
	if err != nil {
		return nil, nil, errors.Join(report.Errorf(report.CodeOf(err), "%s: %w", name, err), f.Close())
	}
	return a, f, nil
}

// Identify returns the manifest of the archive in a file or directory.
func Identify(name string) (*schema.Solution, error) {
	a, f, err := OpenFile(name)
	if err != nil {
		return nil, err
	}
	return a.Solution, f.Close()
}

// OpenImage opens a file or a disk, and returns its size, which is negative for a directory. It refuses anything else,
// as opening it may block.
func OpenImage(name string) (f *os.File, size int64, err error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, 0, report.Errorf(report.Failure, "%w", err)
	}
	if special := info.Mode() & (fs.ModeNamedPipe | fs.ModeSocket | fs.ModeCharDevice); special != 0 {
		return nil, 0, report.Errorf(report.Usage, "%s is neither a file nor a directory nor a disk", name)
	}
	if f, err = os.Open(name); err != nil {
		return nil, 0, report.Errorf(report.Failure, "%w", err)
	}
	if info, err = f.Stat(); err == nil && info.IsDir() {
		return f, -1, nil
	}
	if err == nil {
		size, err = f.Seek(0, io.SeekEnd) // a block device, such as a drive with a disc in it, has no size in its Stat
	}
	if err != nil {
		return nil, 0, errors.Join(report.Errorf(report.CodeOf(err), "%s: %w", name, err), f.Close())
	}
	return f, size, nil
}
