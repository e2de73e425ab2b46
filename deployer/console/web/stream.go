package web

import (
	"net/http"
	"sync"

	"github.com/solutionctl/solutionctl/deployer/console/live"
)

const (
	maxStreams     = 2000 // of all users
	maxUserStreams = 200  // of one of them
	// maxPlainStreams is the number of pages of a browser that keep a connection: with HTTP/1.1 it has six for one
	// host, and users also need some for their clicks.
	maxPlainStreams = 4
)

// Stream sends a browser the events of a follower. Begin may refuse; it returns the function that ends the follower.
func (c *Server) Stream(begin func(v *Visit) (live.Follower, func(), error)) http.Handler {
	return c.SignedIn(func(w http.ResponseWriter, v *Visit) {
		if !c.streams.open(v.User) {
			http.Error(w, "too many pages are open", http.StatusServiceUnavailable)
			return
		}
		defer c.streams.close(v.User)
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

// streams counts the streams that are open.
type streams struct {
	mu  sync.Mutex
	all int
	of  map[string]int // by user
}

// open counts one more stream, and reports whether there is room for it.
func (s *streams) open(user string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all >= maxStreams || s.of[user] >= maxUserStreams {
		return false
	}
	if s.of == nil {
		s.of = map[string]int{}
	}
	s.all++
	s.of[user]++
	return true
}

func (s *streams) close(user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all--
	if s.of[user]--; s.of[user] == 0 {
		delete(s.of, user)
	}
}
