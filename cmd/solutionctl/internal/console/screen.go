package console

import (
	"fmt"
	"io"
	"strings"

	"golang.org/x/term"
)

// Screen shows a text that changes on a terminal, in the place of the one before.
type Screen struct {
	stream *Stream
	begun  bool
}

// NewScreen returns a screen on a stream that is a terminal. Nothing else may be written to it until the last text.
func NewScreen(s *Stream) *Screen { return &Screen{stream: s} }

// Draw shows what print writes: as many lines of it as the terminal has now. What print writes to is as wide as the terminal.
func (s *Screen) Draw(print func(*Stream) error) error {
	width, height, err := term.GetSize(descriptor(s.stream.Writer))
	if err != nil || height < 2 {
		width, height = s.stream.Width, 24
	}
	var b strings.Builder
	page := *s.stream
	page.Writer, page.Width = &b, width
	if err := print(page.Text()); err != nil {
		return err
	}
	return s.write(strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n"), height)
}

// The control sequences of ECMA-48 for what is redrawn.
const (
	clearScreen = "\x1b[2J"
	moveHome    = "\x1b[H"
	clearLine   = "\x1b[K" // from the cursor on
	clearBelow  = "\x1b[J"
)

// write draws lines from the top. The last row stays free, so that the cursor has a place.
func (s *Screen) write(lines []string, height int) error {
	if room := height - 1; len(lines) > room {
		lines = append(lines[:room-1:room-1], fmt.Sprintf("… and %d more lines", len(lines)-room+1))
	}
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
