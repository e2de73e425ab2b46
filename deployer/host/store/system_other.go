//go:build !linux

package store

import (
	"errors"
	"io"
	"os"

	"github.com/solutionctl/solutionctl/schema/report"
)

type cloned struct{ io.ReaderAt }

func readCloned(*os.File, *os.File) (*cloned, error) { return nil, errors.ErrUnsupported }

func (*cloned) close() {}

func space(string) (free, total int64, err error) { return 0, 0, errors.ErrUnsupported }

func checkReadOnlyMedium(_ *os.File, path string) error {
	return report.Errorf(report.Refused, "%s: archives are used in place on Linux only", path)
}
