package main

import (
	"encoding/json"
	"io"
	"time"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/settings"
)

// app holds the process's streams, environment and clock, and the global flags. newApp sets the fields up to version; those of the flags
// are set when a command's RunE is called.
type app struct {
	in          io.Reader
	interactive bool // in is a terminal, so that a user can answer questions
	out, err    *console.Stream
	getenv      func(string) string
	now         func() time.Time
	version     string // of this program

	output   string // text or json
	progress string // a console.Mode
	config   string
	quiet    bool
	verbose  bool
	yes      bool

	sink      console.Sink // where commands report progress
	settings  *settings.Settings
	unhelpful error // instead of help
	started   bool  // a command's own code has been called: what fails now is no longer a wrong command line
}

// newApp returns the app of one process, before its command line is parsed.
func newApp(in io.Reader, out, err io.Writer, getenv func(string) string, now func() time.Time, version string) *app {
	return &app{
		in:          in,
		interactive: console.IsTerminal(in),
		out:         console.NewStream(out, getenv),
		err:         console.NewStream(err, getenv),
		getenv:      getenv,
		now:         now,
		version:     version,
	}
}

// emitResult writes the result of a command to standard output: value as JSON under --output json, else what text
// prints. Progress ends here: bars must not be drawn across a result on the same terminal.
func (a *app) emitResult(value any, text func(*console.Stream) error) error {
	a.sink.Close()
	if a.output != "json" {
		return text(a.out.Text())
	}
	return a.emitJSON(value)
}

// emit writes what a command has found or done as emitResult does, unless that failed.
func emit[T any](a *app, result T, err error, print func(*console.Stream, T) error) error {
	if err != nil {
		return err
	}
	return a.emitResult(result, func(w *console.Stream) error { return print(w, result) })
}

// emitJSON writes a result as JSON.
func (a *app) emitJSON(value any) error {
	a.sink.Close()
	encoder := json.NewEncoder(a.out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}
