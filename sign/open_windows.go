package sign

import (
	"errors"
	"io/fs"
	"os"

	"github.com/solutionctl/solutionctl/schema/report"
)

// openNoFollow compares what was looked at with what was opened.
func openNoFollow(path string) (*os.File, error) {
	before, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if before.Mode()&(fs.ModeSymlink|fs.ModeIrregular) != 0 {
		return nil, refuseLink(path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	after, err := f.Stat()
	if err == nil && !os.SameFile(before, after) {
		err = report.Errorf(report.Corrupt, "%s was replaced while it was opened", path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
