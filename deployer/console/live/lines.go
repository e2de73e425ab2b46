package live

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/schema/report"
)

const (
	maxQueued = 1000     // lines that wait for a browser; the oldest ones make room
	maxSent   = 64 << 10 // bytes of one event, and with the pause between two of them, four times as much in a second
)

// Lines are lines of logs on their way to one browser. A browser that does not keep up misses lines, and learns how many.
type Lines struct {
	mu    sync.Mutex
	queue []line
	left  int           // lines that have made room
	begun bool          // the queue replaces the lines that the browser shows
	held  bool          // the queue grows until all logs have had time for their first lines
	stale error         // why there are no lines for now, until the browser learns of it
	over  bool          // the page has to be read again: there will be no more lines
	news  chan struct{} // closed with each change
}

// line is a line of a log with its time.
type line struct {
	at   time.Time
	text string
}

// NewLines returns an empty queue.
func NewLines() *Lines { return &Lines{news: make(chan struct{})} }

// Begin makes the following lines replace those that the browser shows. They wait for [Lines.Release].
func (l *Lines) Begin() { l.change(func() { l.queue, l.left, l.begun, l.held = nil, 0, true, true }) }

// Release sends the lines since [Lines.Begin] in the order of their times, and then those that follow.
func (l *Lines) Release() {
	l.change(func() {
		if l.held = false; l.begun {
			l.sort()
		}
	})
}

// Add appends a line.
func (l *Lines) Add(at time.Time, text string) {
	l.change(func() {
		l.queue = append(l.queue, line{at, text})
		switch {
		case l.held && len(l.queue) == 2*maxQueued:
			l.sort()
		case !l.held && len(l.queue) > maxQueued:
			l.queue = l.queue[1:]
			l.left++
		}
	})
}

// sort orders the first lines of all logs, and keeps the last ones.
func (l *Lines) sort() {
	slices.SortStableFunc(l.queue, func(a, b line) int { return a.at.Compare(b.at) })
	l.queue = slices.Clone(l.queue[max(0, len(l.queue)-maxQueued):])
}

// Interrupt reports why there are no more lines for now.
func (l *Lines) Interrupt(why error) { l.change(func() { l.stale = why }) }

// End makes the browser read the page again, for the last time.
func (l *Lines) End() { l.change(func() { l.held, l.over = false, true }) }

func (l *Lines) change(how func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	how()
	close(l.news)
	l.news = make(chan struct{})
}

// Follow is the [Follower] of the lines. Its events are "begin" with lines that replace those before, "lines" with those that follow them,
// "stale" and "end".
func (l *Lines) Follow(ctx context.Context, _ string) ([]Event, error) {
	for {
		events, news := l.take()
		if len(events) > 0 {
			return events, nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// take returns the next events, and a channel that is closed at the next change.
func (l *Lines) take() (events []Event, news <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stale != nil {
		events, l.stale = append(events, Event{Name: "stale", data: l.stale.Error()}), nil
	}
	if !l.held && (l.begun || len(l.queue) > 0) {
		name := "lines"
		if l.begun {
			name = "begin"
		}
		events, l.begun = append(events, Event{Name: name, data: l.text()}), false
	}
	if l.over && len(l.queue) == 0 {
		events = append(events, Event{Name: "end"})
	}
	return events, l.news
}

// text takes as many lines off the queue as one event can have.
func (l *Lines) text() string {
	var b strings.Builder
	if l.left > 0 {
		b.WriteString(page.Count("logs.skipped", l.left) + "\n")
		l.left = 0
	}
	n := 0
	for ; n < len(l.queue) && (n == 0 || b.Len()+len(l.queue[n].text) < maxSent); n++ {
		b.WriteString(cmp.Or(report.Clean(l.queue[n].text), " ") + "\n")
	}
	l.queue = l.queue[n:]
	return b.String()
}
