package live

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/solutionctl/solutionctl/schema/report"
)

const (
	heartbeat = 15 * time.Second       // proxies keep a silent connection for longer
	pause     = 250 * time.Millisecond // between two things that are sent to a browser
	writing   = 30 * time.Second       // for a browser that takes nothing; longer than a heartbeat
	leaving   = time.Second            // the same, when the stream ends
)

// Event is a server-sent event.
type Event struct {
	ID, Name, data string
}

// Follower waits for the events after the one with this id, "" for the first ones, until ctx ends. The last event is named "end".
type Follower func(ctx context.Context, id string) ([]Event, error)

// Stream sends events to one browser. Its fields end it, besides the browser.
type Stream struct {
	Context context.Context
	Ended   <-chan struct{} // closed when the session is over
	Expired func() bool     // reports whether the session is too old
}

// Send sends the events of next, until the browser, the session or the console ends, or after an event named "end".
func (s Stream) Send(w http.ResponseWriter, r *http.Request, next Follower) {
	ctx, cancel := context.WithCancel(r.Context())
	connection := http.NewResponseController(w)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	defer context.AfterFunc(s.Context, cancel)()
	watching.Go(func() {
		select {
		case <-s.Ended:
			cancel()
		case <-ctx.Done():
		}
		allow(connection, leaving) // a write can be waiting for the browser
	})
	send := func(text string) bool {
		allow(connection, writing)
		if ctx.Err() != nil {
			return false
		}
		_, err := io.WriteString(w, text)
		return err == nil && connection.Flush() == nil
	}
	if !send("") { // the browser learns at once that it is connected
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
		if ctx.Err() != nil || s.isOver() {
			return
		}
		text := Event{Name: "alive"}.String()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			text = Event{Name: "stale", data: err.Error()}.String()
		}
		if len(events) > 0 {
			var all strings.Builder
			for _, e := range events {
				all.WriteString(e.String())
			}
			text, id = all.String(), events[len(events)-1].ID
		}
		if !send(text) {
			return
		}
		if len(events) > 0 && events[len(events)-1].Name == "end" {
			return
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

// allow gives the browser some time to take what is sent to it.
func allow(connection *http.ResponseController, d time.Duration) {
	_ = connection.SetWriteDeadline(time.Now().Add(d)) //nolint:forbidigo // a deadline of the network is not a time that people read
}

// isOver reports whether the session has ended. It reads Ended itself: ctx ends a moment later.
func (s Stream) isOver() bool {
	select {
	case <-s.Ended:
		return true
	default:
		return s.Expired()
	}
}

// String formats an event. A line break in the data cannot begin another line of the stream.
func (e Event) String() string {
	var b strings.Builder
	if e.ID != "" {
		b.WriteString("id: " + e.ID + "\n")
	}
	b.WriteString("event: " + e.Name + "\n")
	for _, line := range strings.FieldsFunc(report.Clean(e.data), func(r rune) bool { return r == '\n' || r == '\r' }) {
		b.WriteString("data: " + line + "\n")
	}
	if e.data == "" {
		b.WriteString("data:\n")
	}
	return b.String() + "\n"
}

// Follow watches the cluster until leave is called. Next returns an event when a snapshot differs from the one that the browser shows.
func (f *Feed) Follow() (next Follower, leave func()) {
	f.watch()
	return func(ctx context.Context, seen string) ([]Event, error) {
		s, err := f.next(ctx, seen)
		if err != nil {
			return nil, err
		}
		if s.Stale != nil {
			return []Event{{ID: s.Mark(), Name: "stale", data: s.Stale.Sentence()}}, nil
		}
		return []Event{{ID: s.Mark(), Name: "changed"}}, nil
	}, f.leave
}

// Follow is the [Follower] of the steps of an operation.
func (o *Operation) Follow(ctx context.Context, id string) ([]Event, error) {
	seen, _ := strconv.Atoi(id) // an invalid number counts as 0
	for {
		last, news := o.progress()
		switch {
		case news == nil:
			return []Event{{ID: strconv.Itoa(last), Name: "end"}}, nil
		case last > seen:
			return []Event{{ID: strconv.Itoa(last), Name: "changed"}}, nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
