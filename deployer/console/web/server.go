// Package web is what the pages of the console share. A [Handler] gets a [Visit], a request of a user who is logged in, and returns an
// [Answer]: a document with its page, or a path to go on with. The [Server] finds the session, answers as HTML or JSON, starts
// operations, and has the feeds from which pages show the cluster.
package web

import (
	"context"
	"net/http"
	"time"

	"github.com/solutionctl/solutionctl/deployer/console/live"
	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/deployer/console/session"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Options describe what the pages of a console share.
type Options struct {
	Context  context.Context // ends everything that outlives a request
	Pages    *page.Pages
	Login    session.Options              // without states and ShowLogin, which the server adds
	FormPage func(r *http.Request) string // returns the page with the form that a request has sent, for the way back after a login
	Version  string                       // of the program
	Host     string                       // shown to users who wait for a lock
	LockWait time.Duration
	Sink     report.Sink
	Now      func() time.Time
}

// Server is what the pages of a console share: who is logged in, operations at work, and how requests are answered.
type Server struct {
	Options
	Sessions   *session.Manager
	Operations *live.Operations
}

// New returns a server without sessions. What it does beyond a request ends with the context of the options.
func New(o Options) *Server {
	s := &Server{Options: o}
	o.Login.ShowLogin = s.showLogin
	o.Login.UserState = func() any { return &UserState{} }
	o.Login.BrowserState = func() any { return &BrowserState{} }
	s.Sessions = session.New(o.Login)
	s.Operations = live.NewOperations(o.Context, o.Now, func(owner *session.Identity) { stateOf(owner).Feeds.Expire() })
	return s
}
