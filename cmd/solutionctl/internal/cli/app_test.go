package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/schema/report"
)

// newTestApp returns an app in an empty environment whose output is kept, and that output.
func newTestApp(t *testing.T, in string) (a *App, out, err *bytes.Buffer) {
	t.Helper()
	out, err = new(bytes.Buffer), new(bytes.Buffer)
	now := func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }
	return New(strings.NewReader(in), out, err, func(string) string { return "" }, now, "1.2.3"), out, err
}

func TestConfirm(t *testing.T) {
	for _, test := range []struct {
		name   string
		person bool
		yes    bool
		in     string
		want   report.Code
		asked  bool
	}{
		{name: "--yes", yes: true},
		{name: "no terminal", in: "y\n", want: report.Usage},
		{name: "y", person: true, in: "y\n", asked: true},
		{name: "YES without a line end", person: true, in: "YES", asked: true},
		{name: "no", person: true, in: "n\n", want: report.Cancelled, asked: true},
		{name: "enter", person: true, in: "\n", want: report.Cancelled, asked: true},
		{name: "end of input", person: true, want: report.Cancelled, asked: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			a, _, stderr := newTestApp(t, test.in)
			a.Interactive, a.Yes = test.person, test.yes
			if got := report.CodeOf(a.Confirm(t.Context(), report.Confirmation{Question: "delete environment blue"})); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if asked := stderr.String() == "delete environment blue [y/N] "; asked != test.asked {
				t.Errorf("asked: %q", stderr)
			}
		})
	}
}

func TestConfirmName(t *testing.T) {
	lists := []report.ConfirmationList{{Title: "This goes, too", Items: []string{"a", "b\x1b[2J"}}}
	const listed = "This goes, too:\n  a\n  b"
	for _, test := range []struct {
		name string
		c    report.Confirmation
		yes  bool
		in   string
		want report.Code
		says string
	}{
		{name: "nothing to ask"},
		{name: "the name", c: report.Confirmation{Question: "It goes", Name: "blue"}, in: "blue\n", says: "It goes. Type blue to continue: "},
		{name: "yes", c: report.Confirmation{Question: "It goes", Name: "blue"}, in: "yes\n", want: report.Cancelled, says: "It goes. "},
		{name: "another case", c: report.Confirmation{Question: "It goes", Name: "blue"}, in: "Blue\n", want: report.Cancelled},
		{name: "a list", c: report.Confirmation{Question: "It goes", Name: "blue", Lists: lists}, in: "blue\n", says: listed},
		{name: "a list with --yes", c: report.Confirmation{Question: "It goes", Name: "blue", Lists: lists}, yes: true, says: listed},
	} {
		t.Run(test.name, func(t *testing.T) {
			a, _, stderr := newTestApp(t, test.in)
			a.Interactive, a.Yes = true, test.yes
			if got := report.CodeOf(a.Confirm(t.Context(), test.c)); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if text := stderr.String(); !strings.HasPrefix(text, test.says) || strings.Contains(text, "\x1b") || text != "" && test.c.Question == "" {
				t.Errorf("said %q, want %q", text, test.says)
			}
		})
	}
}

func TestPrintError(t *testing.T) {
	failure := report.Errorf(report.Corrupt, "open x.iso: blob \x1b[2J:\nhave a, want b").WithHint("rebuild it")
	for _, test := range []struct {
		name    string
		options App
		color   bool
		err     *report.Error
		want    string
	}{
		{
			name: "text", err: failure,
			want: "solutionctl: error: open x.iso: blob \\u001b[2J:\nsolutionctl: error: have a, want b\nsolutionctl: hint: rebuild it\n",
		},
		{
			name: "verbose", err: report.Errorf(report.Usage, "no"), options: App{Verbose: true},
			want: "solutionctl: error: no\nsolutionctl: code: usage (exit status 2)\n",
		},
		{name: "color", err: report.Errorf(report.Usage, "no"), color: true, want: "solutionctl: \x1b[31merror:\x1b[0m no\n"},
		{name: "changes are no error", err: report.Errorf(report.Changes, "2 changes"), want: ""},
		{
			name: "JSON", err: failure, options: App{progress: "json"},
			want: `{"type":"error","time":"2026-01-02T03:04:05Z","code":"corrupt","exitStatus":5,` +
				`"meaning":"data is damaged: it does not have the digest, size or structure it must have",` +
				`"message":"open x.iso: blob \u001b[2J:\nhave a, want b","hints":["rebuild it"]}` + "\n",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			a, _, stderr := newTestApp(t, "")
			a.Verbose, a.progress, a.Err.Color = test.options.Verbose, test.options.progress, test.color
			a.printError(test.err)
			if got := stderr.String(); got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

// TestRunClosesTheSinkBeforeTheError runs a command that fails while a bar is on the screen.
func TestRunClosesTheSinkBeforeTheError(t *testing.T) {
	a, _, stderr := newTestApp(t, "")
	a.Err.TTY, a.Err.Width = true, 80
	status := a.Execute(t.Context(), func() *cobra.Command {
		root := NewGroup("solutionctl", "")
		a.Prepare(root, nil)
		work := &cobra.Command{Use: "work", RunE: func(*cobra.Command, []string) error {
			a.Sink.Emit(report.Event{Step: "pull", Name: "ui", State: report.Started})
			return io.ErrUnexpectedEOF
		}}
		root.AddCommand(work)
		a.watch(work)
		return root
	}(), []string{"work"})
	if status != 1 || !strings.HasSuffix(stderr.String(), "solutionctl: error: unexpected EOF\n") {
		t.Errorf("status %d, standard error %q", status, stderr)
	}
	before := stderr.String()
	a.Sink.Emit(report.Event{Step: "pull", Name: "ui", State: report.Done})
	a.Sink.Close()
	if got := stderr.String(); got != before {
		t.Errorf("the sink still writes: %q", got[len(before):])
	}
}

func TestEmitResult(t *testing.T) {
	a, out, _ := newTestApp(t, "")
	value := map[string]string{"name": "<ui>"}
	text := func(w *console.Stream) { fmt.Fprintln(w, "text") }
	for _, test := range []struct{ output, want string }{
		{"text", "text\n"},
		{"json", "{\n  \"name\": \"<ui>\"\n}\n"},
		{"yaml", "name: <ui>\n"},
	} {
		out.Reset()
		a.Output, a.Sink = test.output, console.NewSink(console.None, a.Err, console.Options{})
		if err := a.EmitResult(value, text); err != nil || out.String() != test.want {
			t.Errorf("%s: %v, %q", test.output, err, out)
		}
	}
}

// TestInterruptedInWords: after Ctrl-C the message describes the result, without Go's "context canceled".
func TestInterruptedInWords(t *testing.T) {
	for _, test := range []struct {
		name string
		err  error
		want string
	}{
		{"before anything", fmt.Errorf("Get \"https://api/v1\": %w", context.Canceled), "solutionctl: error: interrupted; nothing was changed\n"},
		{"bare", context.Canceled, "solutionctl: error: interrupted; nothing was changed\n"},
		{
			"in the middle", report.Errorf(report.Interrupted, "namespace a is being deleted: %w", context.Canceled).WithHint("run it again"),
			"solutionctl: error: namespace a is being deleted: interrupted\nsolutionctl: hint: run it again\n",
		},
		{
			"without another word", report.Errorf(report.Interrupted, "deploy shop 1.0.0: %w", context.Canceled).WithHint("run it again"),
			"solutionctl: error: deploy shop 1.0.0: interrupted\nsolutionctl: hint: run it again\n",
		},
		{"unanswered", report.Errorf(report.Cancelled, "no answer: %w", context.Canceled), "solutionctl: error: no answer: interrupted\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			a, _, stderr := newTestApp(t, "")
			root := NewGroup("solutionctl", "")
			a.Prepare(root, nil)
			root.AddCommand(&cobra.Command{Use: "fails", RunE: func(*cobra.Command, []string) error { return test.err }})
			if status := a.Execute(t.Context(), root, []string{"fails"}); status != 130 && status != 9 || stderr.String() != test.want {
				t.Errorf("status %d, %q", status, stderr)
			}
		})
	}
}
