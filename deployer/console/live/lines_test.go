package live_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/deployer/console/live"
)

// sent returns the stream of lines until their end.
func sent(t *testing.T, l *live.Lines) string {
	t.Helper()
	w := httptest.NewRecorder()
	stream := live.Stream{Context: t.Context(), Ended: make(chan struct{}), Expired: func() bool { return false }}
	stream.Send(w, httptest.NewRequestWithContext(t.Context(), "GET", "/", nil), l.Follow)
	return w.Body.String()
}

// TestLines: the first lines of several logs come in the order of their times, the others as they come. A line cannot begin another event.
func TestLines(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	l := live.NewLines()
	l.Begin()
	l.Add(noon.Add(time.Second), "second")
	l.Add(noon, "first\x1b[2J\u202e")
	l.Release()
	l.Add(noon.Add(2*time.Second), "third\n\nevent: end\r\ndata: x")
	l.End()
	want := "event: begin\ndata: first\\u001b[2J\\u202e\ndata: second\ndata: third\ndata: event: end\\u000d\ndata: data: x\n\nevent: end\ndata:\n\n"
	if got := sent(t, l); got != want {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// TestLinesAreBounded: a browser that does not keep up gets the last lines and the number of the others, in events of a bounded size.
func TestLinesAreBounded(t *testing.T) {
	for name, test := range map[string]struct {
		held bool
	}{
		"the first lines": {true},
		"later lines":     {false},
	} {
		t.Run(name, func(t *testing.T) {
			l := live.NewLines()
			l.Begin()
			if !test.held {
				l.Release()
			}
			for i := range 5000 {
				l.Add(time.Unix(int64(i), 0), fmt.Sprintf("line %d ", i)+strings.Repeat("x", 200))
			}
			l.Release()
			l.End()
			text := sent(t, l)
			for e := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
				if len(e) > 80<<10 {
					t.Errorf("an event has %d bytes", len(e))
				}
			}
			if n := strings.Count(text, "data: line "); n != 1000 || !strings.Contains(text, "line 4999 ") || strings.Contains(text, "line 3999 ") {
				t.Errorf("%d lines, beginning with %.100s", n, text)
			}
			if skipped := strings.Contains(text, "4000 lines"); skipped == test.held {
				t.Errorf("skipped lines are reported: %t\n%.200s", skipped, text)
			}
		})
	}
}

// TestLinesEnd: an error is reported once, and lines that came before the end are sent.
func TestLinesEnd(t *testing.T) {
	l := live.NewLines()
	l.Begin()
	l.Interrupt(errors.New("the API server does not answer"))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if events, err := l.Follow(ctx, ""); len(events) != 1 || events[0].Name != "stale" || err != nil {
		t.Errorf("%v %v", events, err)
	}
	if events, err := l.Follow(ctx, ""); len(events) != 0 || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("once more: %v %v", events, err)
	}
	l.Add(time.Time{}, "last words")
	l.End()
	if got := sent(t, l); !strings.Contains(got, "data: last words\n\nevent: end") {
		t.Errorf("%q", got)
	}
}
