package console

import (
	"net/http"
	"sync/atomic"

	"github.com/solutionctl/solutionctl/deployer/console/live"
)

const (
	maxStreams = 2000
	// maxPlainStreams is for how many pages a browser may keep a connection: by HTTP/1.1 it has six for one host, and needs some for what
	// people click.
	maxPlainStreams = 4
)

// stream sends a browser what a follower returns. Begin may refuse, and returns what ends the follower.
func (c *Console) stream(begin func(v *visit) (live.Follower, func(), error)) http.Handler {
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
		live.Stream{Context: c.ctx, Ended: v.Ended, Expired: func() bool { return c.sessions.Expired(v.Session) }}.Send(w, v.Request, next)
	})
}

// followStatus tells a browser that the cluster is no longer as it shows it.
func (c *Console) followStatus(v *visit) (live.Follower, func(), error) {
	f := c.everything(v.Identity)
	if environment := v.FormValue("environment"); environment != "" {
		f = c.environmentFeed(v.Identity, environment, v.FormValue("namespace"))
		if _, err := f.Read(v.Context(), nil); err != nil {
			return nil, nil, err
		}
	}
	next, leave := f.Follow()
	return next, leave, nil
}

// followOperation tells a browser the steps of an operation.
func (c *Console) followOperation(v *visit) (live.Follower, func(), error) {
	op := c.operations.Find(v.Identity, v.PathValue("id"))
	if op == nil {
		return nil, nil, noOperation()
	}
	return op.Follow, func() {}, nil
}
