package console

import (
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/solutionctl/solutionctl/schema/report"
)

// TextWidth is the number of columns that text takes.
func TextWidth(text string) int { return runewidth.StringWidth(text) }

// BarLine is barLine, for tests of single lines.
func BarLine(e report.Event, elapsed time.Duration, width int) string {
	return barLine(e, elapsed, width)
}
