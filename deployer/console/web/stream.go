package web

import (
	"net/http"
	"sync/atomic"

	"github.com/solutionctl/solutionctl/deployer/console/live"
)

const (
	maxStreams = 2000
	// maxPlainStreams is the number of pages of a browser that keep a connection: with HTTP/1.1 it has six for one
	// host, and users also need some for their clicks.
	maxPlainStreams = 4
)

// Stream sends a browser the events of a follower. Begin may refuse; it returns the function that ends the follower.
func (c *Server) Stream(begin func(v *Visit) (live.Follower, func(), error)) http.Handler {
	var open atomic.Int64
	return c.SignedIn(func(w http.ResponseWriter, v *Visit) {
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
			c.WriteJSON(w, StatusOf(err), FailureOf(err))
			return
		}
		defer end()
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("X-Accel-Buffering", "no")
		live.Stream{Context: c.Context, Ended: v.Ended, Expired: func() bool { return c.Sessions.Expired(v.Session) }}.Send(w, v.Request, next)
	})
}
