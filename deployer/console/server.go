package console

import (
	"context"
	"net/http"
	"time"

	"github.com/solutionctl/solutionctl/deployer/console/live"
	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/deployer/console/session"
	"github.com/solutionctl/solutionctl/schema/report"
)

// serverOptions describe what the pages of a console share.
type serverOptions struct {
	Context  context.Context // of everything that outlives a request
	Pages    *page.Pages
	Login    session.Options              // without what the server adds itself: states, and the page for logging in
	FormPage func(r *http.Request) string // returns the page with the form that a request has sent, for the way back after a login
	Version  string                       // of the program
	Host     string                       // shown to users who wait for a lock
	LockWait time.Duration
	Sink     report.Sink
	Now      func() time.Time
}

// Server is what the pages of a console share: who is logged in, operations at work, and how requests are answered.
type Server struct {
	serverOptions
	Sessions   *session.Manager
	Operations *live.Operations
}

// newServer returns a server without sessions. What it does beyond a request ends with the context of the options.
func newServer(o serverOptions) *Server {
	s := &Server{serverOptions: o}
	o.Login.ShowLogin = s.showLogin
	o.Login.UserState = func() any { return &userState{} }
	o.Login.BrowserState = func() any { return &browserState{} }
	s.Sessions = session.New(o.Login)
	s.Operations = live.NewOperations(o.Context, o.Now, func(owner *session.Identity) { stateOf(owner).feeds.Expire() })
	return s
}
