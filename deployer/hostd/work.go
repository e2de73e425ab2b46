package hostd

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/solutionctl/solutionctl/schema/report"
)

const (
	maxWork  = 4                // things at work at a time
	maxEach  = 2                // of one person
	maxTime  = 2 * time.Hour    // that one may take
	maxSteps = 200              // of one that are kept
	kept     = 10 * time.Minute // for who wants to know how one has ended
	maxKept  = 64
)

// work is a request in progress. It continues when no client follows it.
type work struct {
	user, id string

	mu     sync.Mutex
	events []report.Event // the last one of each step
	count  int
	result *answer // nil while it is at work
	ended  time.Time
	news   chan struct{} // closed with each event, and at the end
}

// Emit keeps the last event of each step.
func (w *work) Emit(e report.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.IndexFunc(w.events, func(s report.Event) bool { return s.Step == e.Step && s.Name == e.Name })
	switch {
	case i >= 0:
		w.events = slices.Delete(w.events, i, i+1)
	case len(w.events) == maxSteps:
		w.events = slices.Delete(w.events, 0, 1)
	}
	w.events = append(w.events, e)
	w.count++
	w.notify()
}

func (w *work) end(result *answer, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	result.Done = true
	w.result, w.ended = result, now
	w.notify()
}

// notify wakes the waiting clients. The caller holds w.mu.
func (w *work) notify() {
	close(w.news)
	w.news = make(chan struct{})
}

// after returns the events after the first ones, and a channel that is closed when there are more; nil at the end.
func (w *work) after(seen int) (events []report.Event, count int, result *answer, news <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.result == nil {
		news = w.news
	}
	fresh := min(w.count-seen, len(w.events))
	return slices.Clone(w.events[len(w.events)-fresh:]), w.count, w.result, news
}

func (w *work) finished() (time.Time, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ended, w.result != nil
}

// works has the work of a server.
type works struct {
	ctx  context.Context
	now  func() time.Time
	done sync.WaitGroup

	mu   sync.Mutex
	list []*work
}

// begin starts something of a user.
func (l *works) begin(user, id string, do func(ctx context.Context, sink report.Sink) *answer) (*work, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dropEnded()
	running, own := 0, 0
	for _, w := range l.list {
		if w.user == user && w.id == id {
			return nil, report.Errorf(report.Conflict, "this was begun before")
		}
		if _, over := w.finished(); !over {
			running++
			if w.user == user {
				own++
			}
		}
	}
	if running >= maxWork || own >= maxEach || l.ctx.Err() != nil {
		return nil, report.Errorf(report.Unavailable, "%s at work on this host", report.Count(running, "archive")).WithHint("wait until one of them is done")
	}
	w := &work{user: user, id: id, news: make(chan struct{})}
	l.list = append(l.list, w)
	l.done.Go(func() {
		ctx, cancel := context.WithTimeout(l.ctx, maxTime)
		defer cancel()
		w.end(do(ctx, w), l.now())
	})
	return w, nil
}

// dropEnded removes work that ended long ago. The caller holds l.mu.
func (l *works) dropEnded() {
	now, ended := l.now(), 0
	for _, w := range slices.Backward(l.list) { // the newest first
		if at, over := w.finished(); over {
			if ended++; ended > maxKept || now.Sub(at) > kept {
				l.list = slices.DeleteFunc(l.list, func(other *work) bool { return other == w })
			}
		}
	}
}

func (l *works) find(user, id string) *work {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.list {
		if w.user == user && w.id == id {
			return w
		}
	}
	return nil
}
