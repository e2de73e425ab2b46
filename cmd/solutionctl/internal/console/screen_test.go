package console_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
)

// TestScreen draws one text over the other: each line is cleared behind its text, and what is below the last one, too.
func TestScreen(t *testing.T) {
	var out strings.Builder
	screen := console.NewScreen(&console.Stream{Writer: &out, TTY: true, Width: 80})
	draw := func(text string) string {
		t.Helper()
		out.Reset()
		if err := screen.Draw(func(w *console.Stream) { fmt.Fprint(w, text) }); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	if got, want := draw("a\nb\x1b[2Jc\n"), "\x1b[2J\x1b[Ha\x1b[K\nb\\u001b[2Jc\x1b[K\n\x1b[J"; got != want {
		t.Errorf("first: %q, want %q", got, want)
	}
	if got, want := draw("a\n"), "\x1b[Ha\x1b[K\n\x1b[J"; got != want {
		t.Errorf("second: %q, want %q", got, want)
	}
	got := draw(strings.Repeat("x\n", 30))
	if n := strings.Count(got, "\n"); n != 23 || !strings.Contains(got, "… and 8 more lines") {
		t.Errorf("a text that is longer than the terminal: %d lines: %q", n, got)
	}
	got = draw(strings.Repeat(strings.Repeat("y", 100)+"\n", 12))
	if n := strings.Count(got, "\n"); n != 12 || !strings.Contains(got, "… and 1 more line") {
		t.Errorf("lines of two rows: %d lines: %q", n, got)
	}
}
