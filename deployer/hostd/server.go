package hostd

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"slices"
	"time"

	"github.com/solutionctl/solutionctl/deployer/host"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

const (
	maxConnections = 64
	maxReading     = 8 // requests that are being read, each with maxRequest in memory
	readTime       = 10 * time.Second
	writeTime      = 10 * time.Second // for one line
	heartbeat      = 20 * time.Second // an empty line, by which a client that has gone is found
)

// Server is a desk on a Unix socket.
type Server struct {
	Desk *Desk
	// Peers are the ids of the users whose programs can connect; others are refused. Without any, all are.
	Peers []uint32
	Sink  report.Sink // receives refusals, and what was done for which user
	Now   func() time.Time
}

// Serve answers until ctx ends, and then waits for the work in progress, which is interrupted. It closes the listener.
func (s *Server) Serve(ctx context.Context, l *net.UnixListener) error {
	all := &works{ctx: ctx, now: s.Now}
	defer all.done.Wait()
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	reading, open := make(chan struct{}, maxReading), make(chan struct{}, maxConnections)
	for {
		c, err := l.AcceptUnix()
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		case err != nil: // out of descriptors, say: connections that end release some
			s.Sink.Emit(report.Event{Step: "accept", State: report.Warning, Note: err.Error()})
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
			continue
		}
		select {
		case open <- struct{}{}:
		default:
			_ = c.Close()
			continue
		}
		all.done.Go(func() {
			defer func() { _ = c.Close(); <-open }()
			s.serve(ctx, c, all, reading)
		})
	}
}

// serve answers one connection.
func (s *Server) serve(ctx context.Context, c *net.UnixConn, all *works, reading chan struct{}) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	uid, err := peer(c)
	if err == nil && !slices.Contains(s.Peers, uid) {
		err = report.Errorf(report.Forbidden, "user %d is not allowed to use this program", uid)
	}
	if err != nil {
		s.Sink.Emit(report.Event{Step: "turn away", State: report.Warning, Note: err.Error()})
		send(c, &answer{Done: true, Error: failureOf(err)})
		return
	}
	reading <- struct{}{}
	r, file, err := receive(c)
	<-reading
	if err != nil {
		send(c, &answer{Done: true, Error: failureOf(err)})
		return
	}
	w, err := s.begin(ctx, all, r, file)
	if err != nil {
		send(c, &answer{Done: true, Error: failureOf(err)})
		return
	}
	follow(ctx, c, w)
}

// receive reads a request and its file, which is nil where none came.
func receive(c *net.UnixConn) (_ *request, file *os.File, err error) {
	_ = c.SetReadDeadline(time.Now().Add(readTime)) //nolint:forbidigo // a deadline of the network is not a time that people read
	data, file, err := readAll(c, maxRequest)
	if err != nil {
		return nil, nil, err
	}
	r, err := parseRequest(data)
	if err == nil && r.File != (file != nil) {
		err = report.Errorf(report.Usage, "the request and what came with it do not agree on a file")
	}
	if err != nil && file != nil {
		err = errors.Join(err, file.Close())
	}
	return r, file, err
}

// begin starts the requested work, or finds the same work in progress. The file is closed at the end.
func (s *Server) begin(ctx context.Context, all *works, r *request, file *os.File) (w *work, err error) {
	defer func() {
		if err != nil && file != nil {
			_ = file.Close() // opened for reading
		}
	}()
	c, err := s.Desk.Connect(r.Token)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	user, err := c.WhoAmI(ctx)
	switch {
	case err != nil:
		return nil, err
	case user == "" || user == "system:anonymous":
		return nil, report.Errorf(report.Unauthenticated, "the API server does not accept these credentials")
	case r.Verb == verbEvents:
		if w = all.find(user, r.ID); w == nil || file != nil {
			return nil, report.Errorf(report.NotFound, "no import has this name, or it ended long ago")
		}
		return w, nil
	}
	do := s.verb(r, file)
	if do == nil {
		return nil, report.Errorf(report.Usage, "there is no verb %.20q", r.Verb)
	}
	return all.begin(user, r.ID, func(ctx context.Context, sink report.Sink) *answer {
		if file != nil {
			defer file.Close() //nolint:errcheck // opened for reading
		}
		a, err := do(ctx, sink)
		a.Error = failureOf(err)
		done := report.Event{Step: r.Verb, Name: a.subject(r), State: report.Done, Note: user}
		if err != nil {
			done.State, done.Note = report.Failed, user+": "+err.Error()
		}
		s.Sink.Emit(done)
		return a
	})
}

// verb returns the function for a request; nil for an unknown verb.
func (s *Server) verb(r *request, file *os.File) func(context.Context, report.Sink) (*answer, error) {
	a := Archive{Name: r.Name, File: file, Bundles: r.Bundles, Expect: r.Expect}
	switch {
	case r.Verb == verbExamine:
		return func(ctx context.Context, sink report.Sink) (*answer, error) {
			e, err := s.Desk.Examine(ctx, r.Token, a, sink)
			return &answer{Examination: e}, err
		}
	case r.Verb == verbImport:
		return func(ctx context.Context, sink report.Sink) (*answer, error) {
			done, err := s.Desk.Import(ctx, r.Token, a, sink)
			return &answer{Imported: done}, err
		}
	case r.Verb == verbUnimport && r.Version != nil && file == nil:
		return func(ctx context.Context, sink report.Sink) (*answer, error) {
			done, err := s.Desk.Unimport(ctx, r.Token, *r.Version, sink)
			return &answer{Unimported: done}, err
		}
	case r.Verb == verbFacts && r.Version != nil && file == nil:
		return func(ctx context.Context, sink report.Sink) (*answer, error) {
			f, err := s.Desk.Facts(ctx, r.Token, *r.Version, sink)
			return &answer{Facts: f}, err
		}
	}
	return nil
}

// subject is the archive of an answer, for the log.
func (a *answer) subject(r *request) string {
	name := func(e *host.Examination, i *schema.ImportReport) string {
		switch {
		case e != nil && e.Solution != "":
			return e.Solution + "-" + e.Version
		case i != nil && len(i.Archives) > 0:
			return i.Archives[0].Solution + "-" + i.Archives[0].Version
		case r.Version != nil:
			return r.Version.Solution + "-" + r.Version.Version
		}
		return r.Name
	}
	return report.Clean(name(a.Examination, a.Imported))
}

// follow sends the steps of a work until it has ended or the client has gone.
func follow(ctx context.Context, c *net.UnixConn, w *work) {
	seen := 0
	for {
		events, count, result, news := w.after(seen)
		seen = count
		for _, e := range events {
			if !send(c, &answer{Event: &e}) {
				return
			}
		}
		if result != nil {
			send(c, result)
			return
		}
		select {
		case <-news:
		case <-time.After(heartbeat):
			if !write(c, []byte("\n")) {
				return
			}
		case <-ctx.Done():
			// Work in progress ends now, too; its result is worth a moment.
			if _, _, result, _ = w.after(seen); result == nil {
				<-news
			}
		}
	}
}

// send writes a line. It reports whether the client is still there.
func send(c *net.UnixConn, a *answer) bool {
	line, err := json.Marshal(a)
	return err == nil && write(c, append(line, '\n'))
}

func write(c *net.UnixConn, line []byte) bool {
	_ = c.SetWriteDeadline(time.Now().Add(writeTime)) //nolint:forbidigo // a deadline of the network is not a time that people read
	_, err := c.Write(line)
	return err == nil
}
