package console_test

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestAsk: each question takes one line and leaves the rest to the next.
func TestAsk(t *testing.T) {
	var out bytes.Buffer
	in := strings.NewReader("blue\r\n\nthe rest")
	for _, want := range []string{"blue", "", "the rest"} {
		if got, err := console.Ask(t.Context(), in, &console.Stream{Writer: &out}, "colour: "); err != nil || got != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	if _, err := console.Ask(t.Context(), in, &console.Stream{Writer: &out}, "colour: "); report.CodeOf(err) != report.Cancelled {
		t.Errorf("at the end of the input: %v", err)
	}
	if got, want := out.String(), strings.Repeat("colour: ", 4); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestAskIsInterrupted: Ctrl-C ends the context before the user has typed anything.
func TestAskIsInterrupted(t *testing.T) {
	in, typing := io.Pipe()
	defer func() { _ = typing.Close() }()
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	_, err := console.Ask(ctx, in, &console.Stream{Writer: io.Discard}, "colour: ")
	if report.CodeOf(err) != report.Cancelled {
		t.Errorf("got %v", err)
	}
}
