package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/settings"
	"github.com/solutionctl/solutionctl/schema/report"
)

// app holds the process's streams, environment and clock, and the global flags. Its fields up to
// now are set by newApp, those of the flags are set when a command's RunE is called.
type app struct {
	in       io.Reader
	person   bool // somebody sits in front of in and can answer questions
	out, err *console.Stream
	getenv   func(string) string
	now      func() time.Time

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

func newApp(in io.Reader, out, err io.Writer, getenv func(string) string, now func() time.Time) *app {
	return &app{
		in:     in,
		person: console.IsTerminal(in),
		out:    console.NewStream(out, getenv),
		err:    console.NewStream(err, getenv),
		getenv: getenv,
		now:    now,
	}
}

// execute runs one command line and returns the exit status.
func (a *app) execute(ctx context.Context, root *cobra.Command, args []string) int {
	root.SetArgs(args)
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		err = a.unhelpful
	}
	if a.sink == nil {
		// The command line was wrong before the settings were read; they still say how to complain. What is wrong with
		// the settings themselves can wait.
		_ = a.setUp(cmd)
	}
	a.sink.Close()
	if err == nil {
		return 0
	}
	failure := a.classify(err, named(cmd))
	if failure.Code == report.Usage && failure.Hint == "" && len(report.Hints(err)) == 0 {
		failure.Hint = fmt.Sprintf("'%s --help' shows how to use it", cmd.CommandPath())
	}
	a.printError(failure)
	return failure.Code.ExitStatus()
}

// setUp applies the settings to the flags of cmd and makes the sink. There is a sink afterwards even if it fails.
func (a *app) setUp(cmd *cobra.Command) error {
	err := a.settings.Apply(cmd)
	mode := console.Mode(a.progress)
	if a.quiet {
		mode = console.None
	}
	a.sink = console.NewSink(mode, a.err, console.Options{Verbose: a.verbose, Now: a.now})
	return err
}

// named are the texts of a command line, which may be names of files.
func named(cmd *cobra.Command) []string {
	names := cmd.Flags().Args()
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if list, ok := f.Value.(pflag.SliceValue); ok {
			names = append(names, list.GetSlice()...)
		} else {
			names = append(names, f.Value.String())
		}
	})
	return names
}

// isMissing reports whether err says that one of these files is not there. That something else is missing is for the
// command to explain.
func isMissing(err error, names []string) bool {
	missing, ok := errors.AsType[*fs.PathError](err)
	if !ok || !errors.Is(missing, fs.ErrNotExist) && !errors.Is(missing, syscall.ENOTDIR) {
		return false
	}
	path, err := filepath.Abs(missing.Path)
	return err == nil && slices.ContainsFunc(names, func(name string) bool {
		absolute, err := filepath.Abs(name)
		return err == nil && name != "" && absolute == path
	})
}

// classify returns err with the code that decides the exit status. Errors from the operating system, from the context
// and from the parser of the command line come without one, and so do those of files that are not there.
func (a *app) classify(err error, names []string) *report.Error {
	code := report.CodeOf(err)
	vague := code == report.Failure || code == report.Unavailable
	switch {
	case vague && errors.Is(err, context.Canceled) && !a.verbose:
		// What had changed something would have said that it was interrupted.
		return report.Errorf(report.Cancelled, "interrupted; nothing was changed")
	case vague && errors.Is(err, context.Canceled):
		code = report.Cancelled
	case vague && errors.Is(err, syscall.ENOSPC):
		code = report.NoSpace
	case code == report.Failure && isMissing(err, names):
		code = report.NotFound
	case code == report.Failure && !a.started && !coded(err):
		code = report.Usage
	}
	return report.Errorf(code, "%w", err)
}

func coded(err error) bool {
	_, ok := errors.AsType[*report.Error](err)
	return ok
}

// errorLine is the last line of standard error under --progress json.
type errorLine struct {
	Type string `json:"type"`
	Time string `json:"time"`
	report.CodeInfo
	Message  string          `json:"message"`
	Hints    []string        `json:"hints,omitempty"`
	Remedies report.Remedies `json:"remedies,omitempty"` // the commands and options in the hints, as data
}

// printError tells the user what went wrong and what to do about it. That there are changes is a result, not an error.
func (a *app) printError(err *report.Error) {
	if console.Mode(a.progress) == console.JSON {
		console.WriteJSONLine(a.err, errorLine{
			Type: "error", Time: a.now().UTC().Format(time.RFC3339), CodeInfo: err.Code.Info(),
			Message: wording(err), Hints: report.Hints(err), Remedies: report.RemediesOf(err),
		})
		return
	}
	if err.Code == report.Changes && !a.verbose {
		return
	}
	print := func(style console.Style, kind, text string) {
		for line := range strings.Lines(text) {
			fmt.Fprintf(a.err, "solutionctl: %s %s\n", a.err.Paint(style, kind+":"), console.Clean(strings.TrimSuffix(line, "\n")))
		}
	}
	print(console.Red, "error", wording(err))
	for _, hint := range report.Hints(err) {
		print(console.Cyan, "hint", hint)
	}
	if a.verbose {
		print(console.Faint, "code", fmt.Sprintf("%s (exit status %d)", err.Code, err.Code.ExitStatus()))
	}
}

// wording is the text of an error without what only Go calls so. Where nothing else says that it was interrupted, this does: a text
// is never cut off before its cause.
func wording(err error) string {
	text := err.Error()
	if strings.Contains(text, "interrupted") {
		return strings.ReplaceAll(text, ": "+context.Canceled.Error(), "")
	}
	return strings.ReplaceAll(text, context.Canceled.Error(), "interrupted")
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
