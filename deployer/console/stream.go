package console

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/solutionctl/solutionctl/schema/report"
)

const (
	heartbeat  = 15 * time.Second       // proxies keep a silent connection for longer
	pause      = 250 * time.Millisecond // between two things that are sent to a browser
	maxStreams = 2000
	// maxPlainStreams is for how many pages a browser may keep a connection: by HTTP/1.1 it has six for one host, and needs some for what
	// people click.
	maxPlainStreams = 4
)

// event is a server-sent event.
type event struct {
	id, name, data string
}

// follower returns what comes next on a stream after the event with this id, which is "" at first. It waits for it until ctx
// ends. The last one is named "end".
type follower func(ctx context.Context, id string) ([]event, error)

// stream sends a browser what a follower returns. Begin may refuse, and returns what ends the follower.
func (c *Console) stream(begin func(v *visit) (follower, func(), error)) http.Handler {
	var open atomic.Int64
	return c.signedIn(func(w http.ResponseWriter, v *visit) {
		defer open.Add(-1)
		if open.Add(1) > maxStreams {
			http.Error(w, "too many pages are open", http.StatusServiceUnavailable)
			return
		}
		defer v.streams.Add(-1)
		if v.streams.Add(1) > maxPlainStreams && v.ProtoMajor == 1 {
			w.WriteHeader(http.StatusNoContent) // the browser closes the stream, and its page asks now and then
			return
		}
		next, end, err := begin(v)
		if err != nil {
			c.writeJSON(w, statusOf(err), failureOf(err))
			return
		}
		defer end()
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("X-Accel-Buffering", "no")
		c.send(w, v, next)
	})
}

// send ends with the browser, the session, the console or the last event.
func (c *Console) send(w http.ResponseWriter, v *visit, next follower) {
	ctx, cancel := context.WithCancel(v.Context())
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	go func() {
		select {
		case <-v.Ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	connection := http.NewResponseController(w)
	_ = connection.SetWriteDeadline(time.Time{}) // a browser that has gone is found by the heartbeat
	if connection.Flush() != nil {               // it is told at once that it is connected
		return
	}
	id := v.Header.Get("Last-Event-ID")
	if id == "" {
		id = v.FormValue("seen")
	}
	for {
		waiting, stop := context.WithTimeout(ctx, heartbeat)
		events, err := next(waiting, id)
		stop()
		if ctx.Err() != nil || c.sessions.Expired(v.Session) {
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

// followStatus tells a browser that the cluster is no longer as it shows it.
func (c *Console) followStatus(v *visit) (follower, func(), error) {
	f := c.everything(v.Identity)
	if environment := v.FormValue("environment"); environment != "" {
		f = c.environmentFeed(v.Identity, environment, v.FormValue("namespace"))
		if _, err := c.look(v.Context(), f, nil); err != nil {
			return nil, nil, err
		}
	}
	c.watch(f)
	return func(ctx context.Context, seen string) ([]event, error) {
		s, err := f.next(ctx, seen)
		if err != nil {
			return nil, err
		}
		if s.stale != nil {
			return []event{{id: s.mark(), name: "stale", data: s.stale.Sentence()}}, nil
		}
		return []event{{id: s.mark(), name: "changed"}}, nil
	}, f.leave, nil
}

// followOperation tells a browser the steps of an operation.
func (c *Console) followOperation(v *visit) (follower, func(), error) {
	op := c.operations.find(v.Identity, v.PathValue("id"))
	if op == nil {
		return nil, nil, noOperation()
	}
	return func(ctx context.Context, id string) ([]event, error) {
		seen, _ := strconv.Atoi(id) // what is no number has seen nothing
		for {
			last, news := op.progress()
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
	}, func() {}, nil
}
