//go:build !linux

package store

import (
	"errors"
	"os"

	"github.com/solutionctl/solutionctl/schema/report"
)

func reflink(*os.File, *os.File) error { return errors.ErrUnsupported }

func space(string) (free, total int64, err error) { return 0, 0, errors.ErrUnsupported }

func checkReadOnlyMedium(_ *os.File, path string) error {
	return report.Errorf(report.Refused, "%s: archives are used in place on Linux only", path)
}
