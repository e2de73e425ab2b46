package scaffold

import (
	"io/fs"

	"github.com/solutionctl/solutionctl/schema/report"
)

// plainFiles are the directories and regular files of a source. Anything else is refused before it is opened, because opening a FIFO waits
// for a writer.
type plainFiles struct {
	fs.FS
	source Source
}

// Open opens a directory, or a regular file of at most maxSource bytes.
func (p plainFiles) Open(name string) (fs.File, error) {
	info, err := fs.Stat(p.FS, name)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
	case !info.Mode().IsRegular():
		return nil, report.Errorf(report.Invalid, "%s is not a regular file", p.source.shown(name)).WithHint("remove it, or name only the files that belong to the source with --from")
	case info.Size() > maxSource:
		return nil, report.Errorf(report.Invalid, "%s is larger than %d MiB", p.source.shown(name), maxSource>>20).
			WithHint("remove it, or name only the files that belong to the source with --from")
	}
	return p.FS.Open(name)
}

// Stat describes a file without opening it.
func (p plainFiles) Stat(name string) (fs.FileInfo, error) { return fs.Stat(p.FS, name) }
