// Package web has the common parts of the console's pages. A [Handler] gets a [Visit], a request of a user who is
// logged in, and returns an [Answer]: a document with its page, or a path to continue with. The [Server] finds the
// session, answers as HTML or JSON, starts operations, and has the feeds with the state of the cluster.
package web

import (
	"context"
	"net/http"
	"time"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/console/live"
	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/deployer/console/session"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Options are the common options of the pages of a console.
type Options struct {
	Context  context.Context // ends everything that outlives a request
	Pages    *page.Pages
	Login    session.Options              // without states and ShowLogin, which the server adds
	FormPage func(r *http.Request) string // returns the page with the form that a request has sent, for the way back after a login
	Version  string                       // of the program
	Host     string                       // shown to users who wait for a lock
	LockWait time.Duration
	Active   deployer.ActiveVersions // on this host; may be nil
	Sink     report.Sink
	Now      func() time.Time
	After    func(time.Duration) <-chan time.Time // reports that a time has passed on the clock of Now
}

// Server has the common state of a console's pages: sessions, operations in progress, and how requests are answered.
type Server struct {
	Options
	Sessions   *session.Manager
	Operations *live.Operations
	streams    streams
}

// New returns a server without sessions. Its background work ends with the context of the options.
func New(o Options) *Server {
	s := &Server{Options: o}
	o.Login.ShowLogin = s.showLogin
	o.Login.UserState = func() any { return &UserState{} }
	o.Login.BrowserState = func() any { return &BrowserState{} }
	o.Login.Works = func(i *session.Identity) bool { return s.Operations.Running(i) > 0 }
	s.Sessions = session.New(o.Login)
	s.Operations = live.NewOperations(o.Context, o.Now, func(owner *session.Identity) {
		stateOf(owner).Feeds.Expire()
		s.Sessions.EndWork(o.Context, owner)
	})
	return s
}
