package console

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/solutionctl/solutionctl/schema/report"
)

const (
	heartbeat = 15 * time.Second       // proxies keep a silent connection for longer
	pause     = 250 * time.Millisecond // between two things that are sent to a browser
)

// event is a server-sent event.
type event struct {
	id, name, data string
}

// follower returns what comes next on a stream after the event with this id, which is "" at first. It waits for it until ctx
// ends. The last one is named "end".
type follower func(ctx context.Context, id string) ([]event, error)

// stream is what ends a stream besides its browser.
type stream struct {
	Context context.Context
	Ended   <-chan struct{} // closed when the session is over
	Expired func() bool     // reports whether the session is too old
}

// send ends with the browser, the session, the console or the last event.
func (s stream) send(w http.ResponseWriter, r *http.Request, next follower) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.Context, cancel)()
	go func() {
		select {
		case <-s.Ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	connection := http.NewResponseController(w)
	_ = connection.SetWriteDeadline(time.Time{}) // a browser that has gone is found by the heartbeat
	if connection.Flush() != nil {               // it is told at once that it is connected
		return
	}
	id := r.Header.Get("Last-Event-ID")
	if id == "" {
		id = r.FormValue("seen")
	}
	for {
		waiting, stop := context.WithTimeout(ctx, heartbeat)
		events, err := next(waiting, id)
		stop()
		if ctx.Err() != nil || s.Expired() {
			return
		}
		text := ": still here\n\n"
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			text = event{name: "stale", data: err.Error()}.String()
		}
		if len(events) > 0 {
			var all strings.Builder
			for _, e := range events {
				all.WriteString(e.String())
			}
			text, id = all.String(), events[len(events)-1].id
		}
		if _, err := io.WriteString(w, text); err != nil || connection.Flush() != nil {
			return
		}
		if len(events) > 0 && events[len(events)-1].name == "end" {
			return
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

// String writes an event. What begins a line in the data cannot begin one of the stream.
func (e event) String() string {
	var b strings.Builder
	if e.id != "" {
		b.WriteString("id: " + e.id + "\n")
	}
	b.WriteString("event: " + e.name + "\n")
	for _, line := range strings.FieldsFunc(report.Clean(e.data), func(r rune) bool { return r == '\n' || r == '\r' }) {
		b.WriteString("data: " + line + "\n")
	}
	if e.data == "" {
		b.WriteString("data:\n")
	}
	return b.String() + "\n"
}

// follow tells a browser that what it shows has changed, until leave is called.
func (f *feed) follow() (next follower, leave func()) {
	f.watch()
	return func(ctx context.Context, seen string) ([]event, error) {
		s, err := f.next(ctx, seen)
		if err != nil {
			return nil, err
		}
		if s.stale != nil {
			return []event{{id: s.mark(), name: "stale", data: s.stale.Sentence()}}, nil
		}
		return []event{{id: s.mark(), name: "changed"}}, nil
	}, f.leave
}

// follow tells a browser the steps of an operation.
func (o *operation) follow(ctx context.Context, id string) ([]event, error) {
	seen, _ := strconv.Atoi(id) // what is no number has seen nothing
	for {
		last, news := o.progress()
		switch {
		case news == nil:
			return []event{{id: strconv.Itoa(last), name: "end"}}, nil
		case last > seen:
			return []event{{id: strconv.Itoa(last), name: "changed"}}, nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
