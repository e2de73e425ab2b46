package console

import (
	"io"
	"slices"
	"strings"

	"github.com/mattn/go-runewidth"
)

// WriteWrapped writes a text, breaking lines that are wider than the terminal at spaces. What follows is below the last column of the line.
// Lines with a prefix in keep, such as commands to copy, stay whole.
func (s *Stream) WriteWrapped(text string, keep ...string) error {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if s.Width <= 0 || runewidth.StringWidth(line) <= s.Width || hasPrefix(strings.TrimSpace(line), keep) {
			b.WriteString(line + "\n")
			continue
		}
		start := lastColumn(line, s.Width*2/3)
		indent := runewidth.StringWidth(line[:start])
		for i, part := range wrap(line[start:], s.Width-indent) {
			if i == 0 {
				b.WriteString(line[:start])
			} else {
				b.WriteString(strings.Repeat(" ", indent))
			}
			b.WriteString(part + "\n")
		}
	}
	_, err := io.WriteString(s, b.String())
	return err
}

func hasPrefix(line string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(line, prefix) })
}

// lastColumn is where the last column of a line begins, in its first limit bytes: behind its indentation, or behind two spaces.
func lastColumn(line string, limit int) int {
	start := len(line) - len(strings.TrimLeft(line, " "))
	if start >= limit {
		return 0
	}
	if i := strings.LastIndex(line[start:limit], "  "); i >= 0 {
		start += i + len("  ")
	}
	return start
}
