package console

import (
	"time"

	"github.com/mattn/go-runewidth"
)

// TextWidth is the number of columns that text takes.
func TextWidth(text string) int { return runewidth.StringWidth(text) }

// BarLine is barLine, for tests of single lines.
func BarLine(label string, done, total int64, elapsed time.Duration, width int) string {
	return barLine(label, done, total, elapsed, width)
}
