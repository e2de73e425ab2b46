package console

import (
	"time"

	"github.com/solutionctl/solutionctl/schema/report"
)

// Bytes is [report.Bytes].
func Bytes(n int64) string { return report.Bytes(n) }

// Duration is [report.Duration].
func Duration(d time.Duration) string { return report.Duration(d) }
