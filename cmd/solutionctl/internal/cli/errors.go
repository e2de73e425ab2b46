package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/schema/report"
)

// isMissing reports whether err means that one of these files does not exist. The command itself explains other missing
// files.
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
func (a *App) classify(err error, names []string) *report.Error {
	code := report.CodeOf(err)
	vague := code == report.Failure || code == report.Unavailable
	switch {
	case vague && errors.Is(err, context.Canceled) && !a.Verbose:
		// An operation that had changed something would have reported the interruption itself.
		return report.Errorf(report.Cancelled, "interrupted; nothing was changed")
	case vague && errors.Is(err, context.Canceled):
		code = report.Cancelled
	case vague && (errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)):
		code = report.NoSpace
	case code == report.Failure && isMissing(err, names):
		code = report.NotFound
	case code == report.Failure && !a.started && !coded(err):
		code = report.Usage
	}
	coded := report.As(code, err)
	if len(report.Hints(err)) == 0 {
		coded.Hint = systemHint(err)
	}
	return coded
}

// systemHint is the hint for what the operating system refused, where the command has none of its own.
func systemHint(err error) string {
	of, ok := errors.AsType[*fs.PathError](err)
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "free some space, or write to another file system"
	case errors.Is(err, syscall.EROFS):
		return "the file system can only be read: write to another directory"
	case ok && errors.Is(err, fs.ErrPermission):
		return fmt.Sprintf("change the permissions of %s or of its directory, or run the command as a user who has them", of.Path)
	case ok && errors.Is(err, syscall.EISDIR):
		return fmt.Sprintf("%s is a directory: name a file", of.Path)
	}
	return ""
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

// printError shows the user the error and its hints. [report.Changes] is a result, not an error, so it is not shown.
func (a *App) printError(err *report.Error) {
	if console.Mode(a.progress) == console.JSON {
		console.WriteJSONLine(a.Err, errorLine{
			Type: "error", Time: a.Now().UTC().Format(time.RFC3339), CodeInfo: err.Code.Info(),
			Message: wording(err), Hints: report.Hints(err), Remedies: report.RemediesOf(err),
		})
		return
	}
	if err.Code == report.Changes && !a.Verbose {
		return
	}
	print := func(style console.Style, kind, text string) {
		for line := range strings.Lines(text) {
			fmt.Fprintf(a.Err, "solutionctl: %s %s\n", a.Err.Paint(style, kind+":"), console.Clean(strings.TrimSuffix(line, "\n")))
		}
	}
	print(console.Red, "error", wording(err))
	for _, hint := range report.Hints(err) {
		print(console.Cyan, "hint", hint)
	}
	if a.Verbose {
		print(console.Faint, "code", fmt.Sprintf("%s (exit status %d)", err.Code, err.Code.ExitStatus()))
	}
}

// PrintFailure shows the user an error after which the command continues.
func (a *App) PrintFailure(err error) {
	a.Sink.Close()
	a.printError(a.classify(err, nil))
}

// wording returns the text of an error without Go's "context canceled". The word "interrupted" replaces it unless the text
// has it already, so that the cause is never lost.
func wording(err error) string {
	text := err.Error()
	if strings.Contains(text, "interrupted") {
		return strings.ReplaceAll(text, ": "+context.Canceled.Error(), "")
	}
	return strings.ReplaceAll(text, context.Canceled.Error(), "interrupted")
}
