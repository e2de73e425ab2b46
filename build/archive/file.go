package archive

import (
	"errors"
	"io"
	"os"

	"github.com/solutionctl/solutionctl/build/media"
	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// OpenFile opens the archive in a file or directory, or in parts; see [media.Open]. Each file is opened once, so that the
// checked file is the one that is read.
func OpenFile(name string, more ...string) (*Archive, io.Closer, error) {
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		a, err := FromFS(oci.Directory(name))
		if err != nil {
			return nil, nil, report.Errorf(report.CodeOf(err), "%s: %w", name, err)
		}
		return a, io.NopCloser(nil), nil
	}
	image, err := media.Open(name, more...)
	if err != nil {
		return nil, nil, err
	}
	a, err := Open(image, image.Size)
	if err != nil {
		return nil, nil, errors.Join(report.Errorf(report.CodeOf(err), "%s: %w", name, err), image.Close())
	}
	return a, image, nil
}

// Identify returns the manifest of the archive in a file or directory.
func Identify(name string) (*schema.Solution, error) {
	a, f, err := OpenFile(name)
	if err != nil {
		return nil, err
	}
	return a.Solution, f.Close()
}
