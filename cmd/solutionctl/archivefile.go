package main

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/solutionctl/solutionctl/build/archive"
	"github.com/solutionctl/solutionctl/schema/report"
)

// openArchive opens the archive in a file or directory. The file is opened once: what was checked is what is read.
func openArchive(name string) (*archive.Archive, io.Closer, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, nil, report.Errorf(report.Failure, "%w", err)
	}
	a, err := readArchive(f, name)
	if err != nil {
		return nil, nil, errors.Join(report.Errorf(report.CodeOf(err), "%s: %w", name, err), f.Close())
	}
	return a, f, nil
}

func readArchive(f *os.File, name string) (*archive.Archive, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return archive.FromFS(os.DirFS(name))
	}
	size, err := f.Seek(0, io.SeekEnd) // a block device, such as a drive with a disc in it, has no size in its Stat
	if err != nil {
		return nil, err
	}
	return archive.Open(f, size)
}

// openSourceArchive opens an archive that images are taken from.
func openSourceArchive(name string) (fs.FS, io.Closer, error) { return openArchive(name) }
