package console

import (
	"io"
	"strings"

	"github.com/mattn/go-runewidth"
	"golang.org/x/term"

	"github.com/solutionctl/solutionctl/schema/lazyregexp"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Screen shows a text that changes on a terminal, in the place of the one before.
type Screen struct {
	stream *Stream
	begun  bool
}

// NewScreen returns a screen on a stream that is a terminal. Nothing else may be written to it until the last text.
func NewScreen(s *Stream) *Screen { return &Screen{stream: s} }

// Draw shows what print writes: as many lines of it as the terminal has now. What print writes to is as wide as the terminal.
func (s *Screen) Draw(print func(*Stream)) error {
	width, height, err := term.GetSize(descriptor(s.stream.Writer))
	if err != nil || height < 2 {
		width, height = s.stream.Width, 24
	}
	var b strings.Builder
	page := *s.stream
	page.Writer, page.Width = &b, width
	if err := page.Print(print); err != nil {
		return err
	}
	return s.write(fit(strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n"), width, height-1))
}

// The control sequences of ECMA-48 for what is redrawn.
const (
	clearScreen = "\x1b[2J"
	moveHome    = "\x1b[H"
	clearLine   = "\x1b[K" // from the cursor on
	clearBelow  = "\x1b[J"
)

// colours are the control sequences of [Stream.Paint], which take no place.
var colours = lazyregexp.New(`\x1b\[[0-9;]*m`)

// fit returns the lines that have room in so many rows, with a last line about the others. The terminal breaks long lines.
func fit(lines []string, width, room int) []string {
	rows, kept := 0, 0 // kept are the lines beside which the last line has room
	for i, line := range lines {
		rows += max(1, (runewidth.StringWidth(colours.ReplaceAllString(line, ""))+width-1)/width)
		if rows > room {
			return append(lines[:kept:kept], "… and "+report.Count(len(lines)-kept, "more line"))
		}
		if rows < room {
			kept = i + 1
		}
	}
	return lines
}

// write draws lines from the top. The last row stays free, so that the cursor has a place.
func (s *Screen) write(lines []string) error {
	var b strings.Builder
	if !s.begun {
		b.WriteString(clearScreen)
	}
	s.begun = true
	b.WriteString(moveHome)
	for _, line := range lines {
		b.WriteString(line + clearLine + "\n")
	}
	b.WriteString(clearBelow)
	_, err := io.WriteString(s.stream.Writer, b.String())
	return err
}
