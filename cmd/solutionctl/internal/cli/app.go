// Package cli holds the shared parts of the commands of solutionctl: the process as they see it ([App]: streams,
// environment, clock, settings), groups and sections of commands, arguments and flags with their completion, questions, and
// how results and errors are printed.
//
// A command line is made of commands, passed to [App.Prepare] and run by [App.Execute], which returns the exit status.
package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"time"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/settings"
	"github.com/solutionctl/solutionctl/schema"
)

// App holds the process's streams, environment and clock, and the global flags. New sets the fields up to Version; those of the flags
// are set when a command's RunE is called.
type App struct {
	In          io.Reader
	Interactive bool // In is a terminal, so that a user can answer questions
	Out, Err    *console.Stream
	Getenv      func(string) string
	Now         func() time.Time
	Version     string // of this program

	Output   string // text or json
	progress string // a console.Mode
	config   string
	quiet    bool
	Verbose  bool
	Yes      bool

	Sink      console.Sink // where commands report progress
	Settings  *settings.Settings
	unhelpful error // instead of help
	started   bool  // a command's own code has been called: what fails now is no longer a wrong command line
}

// New returns the App of one process, before its command line is parsed.
func New(in io.Reader, out, err io.Writer, getenv func(string) string, now func() time.Time, version string) *App {
	return &App{
		In:          in,
		Interactive: console.IsTerminal(in),
		Out:         console.NewStream(out, getenv),
		Err:         console.NewStream(err, getenv),
		Getenv:      getenv,
		Now:         now,
		Version:     version,
	}
}

// EmitResult writes the result of a command to standard output: value under --output json or yaml, else what text
// prints. Progress ends here: bars must not be drawn across a result on the same terminal.
func (a *App) EmitResult(value any, text func(*console.Stream)) error {
	a.Sink.Close()
	if !a.ForMachines() {
		return a.Out.Print(text)
	}
	return a.EmitJSON(value)
}

// ForMachines reports whether the result is written for programs.
func (a *App) ForMachines() bool { return a.Output == "json" || a.Output == "yaml" }

// Emit writes the result of a command as [App.EmitResult] does, unless the command failed.
func Emit[T any](a *App, result T, err error, print func(*console.Stream, T)) error {
	if err != nil {
		return err
	}
	return a.EmitResult(result, func(w *console.Stream) { print(w, result) })
}

// EmitJSON writes a result as JSON, or under --output yaml as YAML.
func (a *App) EmitJSON(value any) error {
	var document bytes.Buffer
	encoder := json.NewEncoder(&document)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		return err
	}
	data := document.Bytes()
	if a.Output == "yaml" {
		var err error
		if data, err = schema.JSONToYAML(data); err != nil {
			return err
		}
	}
	return a.EmitText(string(data))
}

// EmitText writes a result that is a file for another program, byte for byte.
func (a *App) EmitText(text string) error {
	a.Sink.Close()
	_, err := io.WriteString(a.Out, text)
	return err
}
