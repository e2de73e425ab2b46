// Package console writes the tool's output for a terminal, a log or another program.
//
// A [Stream] is a writer that knows whether it is an interactive terminal. Results go to standard output through [Table],
// [PrintFinding] or a command's own text; progress goes to standard error through a [Sink] made by [NewSink]: bars on a
// terminal, lines elsewhere, JSON lines for programs.
//
// Text that comes from an archive, a registry or a cluster passes through [Clean] before it is written, so that a file name
// cannot move the cursor. Package console decides nothing: it never exits and knows no command.
package console

import (
	"cmp"
	"io"
	"strings"

	"golang.org/x/term"

	"github.com/solutionctl/solutionctl/schema/lazyregexp"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Stream is an output and what is known about its reader. The last three fields are zero for a file or a pipe.
type Stream struct {
	io.Writer
	TTY   bool // it is a terminal that understands cursor movements
	Width int  // columns; 0 means that lines may have any length
	Color bool // colours are welcome
}

// NewStream derives the properties from w and the environment: NO_COLOR, when it is not empty, forbids colours, and
// TERM=dumb means that the terminal can only print lines.
func NewStream(w io.Writer, getenv func(string) string) *Stream {
	s := &Stream{Writer: w}
	if !IsTerminal(w) {
		return s
	}
	if width, _, err := term.GetSize(descriptor(w)); err == nil {
		s.Width = width
	}
	s.TTY = getenv("TERM") != "dumb"
	s.Color = s.TTY && getenv("NO_COLOR") == ""
	return s
}

// IsTerminal reports whether a reader or writer is a terminal.
func IsTerminal(stream any) bool {
	return descriptor(stream) >= 0 && term.IsTerminal(descriptor(stream))
}

func descriptor(stream any) int {
	if file, ok := stream.(interface{ Fd() uintptr }); ok {
		return int(file.Fd())
	}
	return -1
}

// Style is a way to set a piece of text apart from its surroundings.
type Style string

// The styles. They are SGR parameters (ECMA-48, 8.3.117) of the eight basic colours, which every theme defines.
const (
	Bold   Style = "1"
	Faint  Style = "2"
	Red    Style = "31"
	Green  Style = "32"
	Yellow Style = "33"
	Cyan   Style = "36"
)

// Paint returns text in the given style, or text itself when the stream does not take colours.
func (s *Stream) Paint(style Style, text string) string {
	if !s.Color || text == "" {
		return text
	}
	return "\x1b[" + string(style) + "m" + text + "\x1b[0m"
}

// Clean is [report.Clean]: what a terminal might obey becomes visible.
func Clean(text string) string { return report.Clean(text) }

// Text returns the stream for the text of a result: everything written passes through [Clean], except the styles of
// [Stream.Paint]. Output for programs is written to the stream itself.
func (s *Stream) Text() *Stream {
	text := *s
	text.Writer = cleaner{s.Writer, s.Color}
	return &text
}

// Print passes print the stream for the text of a result, as Text returns it. It returns the first error, after which nothing is written:
// what prints need not look at errors.
func (s *Stream) Print(print func(*Stream)) error {
	text := s.Text()
	w := &untilError{Writer: text.Writer}
	text.Writer = w
	print(text)
	return w.err
}

// Fail makes the surrounding [Stream.Print] return an error: the text cannot be made.
func (s *Stream) Fail(err error) {
	if w, ok := s.Writer.(*untilError); ok {
		w.err = cmp.Or(w.err, err)
	}
}

// untilError writes until that fails once.
type untilError struct {
	io.Writer
	err error
}

func (w *untilError) Write(p []byte) (n int, err error) {
	if w.err == nil {
		n, w.err = w.Writer.Write(p)
	}
	return n, w.err
}

// cleaner takes whole texts, as the functions of fmt write them.
type cleaner struct {
	io.Writer
	styles bool
}

// painted matches what Paint puts around a text.
var painted = lazyregexp.New("\x1b\\[(?:0|1|2|31|32|33|36)m")

func (c cleaner) Write(p []byte) (int, error) {
	var b strings.Builder
	rest := string(p)
	for place := []int(nil); c.styles; rest = rest[place[1]:] {
		if place = painted.FindStringIndex(rest); place == nil {
			break
		}
		b.WriteString(Clean(rest[:place[0]]))
		b.WriteString(rest[place[0]:place[1]])
	}
	b.WriteString(Clean(rest))
	if _, err := io.WriteString(c.Writer, b.String()); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Line is Clean for text that must stay on one line.
func Line(text string) string {
	return strings.NewReplacer("\n", " ", "\t", " ").Replace(Clean(text))
}
