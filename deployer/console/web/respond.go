package web

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/console/live"
	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/deployer/console/session"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Visit is a request of a user who is logged in.
type Visit struct {
	*http.Request
	*session.Session
	*UserState
	*BrowserState
	server *Server
	Frame  page.Frame
	// FrameFirst sends the frame of a page that takes long, with the title of this content, and sets finish, which sends the rest.
	// It is nil for programs.
	FrameFirst func(page.Content)
	begun      *page.Begun
}

// Handler answers a visit.
type Handler func(v *Visit) (*Answer, error)

// Answer is a document with its page, or a path of the console to continue with.
type Answer struct {
	Status   int // 0 is 200
	Document any
	Content  page.Content
	Plan     string // digest of the shown plan, for the request that applies it
	To       string // a path of the console; then there is nothing else
}

// Deployer returns the verbs with the rights of the user.
func (v *Visit) Deployer(sink report.Sink) *deployer.Deployer {
	return v.server.deployer(v.Identity, sink)
}

// deployer has the verbs with the rights of a user.
func (c *Server) deployer(i *session.Identity, sink report.Sink) *deployer.Deployer {
	return deployer.New(deployer.Config{
		Cluster: i.Cluster, Sink: sink, Now: c.Now, Version: c.Version, Identity: i.User + "@" + c.Host, LockWait: c.LockWait, Active: c.Active,
	})
}

// SignedIn calls next for users who are logged in, and leads others to the login page.
func (c *Server) SignedIn(next func(http.ResponseWriter, *Visit)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s, err := c.Sessions.Session(r)
		switch {
		case report.CodeOf(err) == report.Unauthenticated:
			c.turnAway(w, r, session.EndedRefused)
			return
		case err != nil && WantsJSON(r):
			c.WriteJSON(w, StatusOf(err), FailureOf(err))
			return
		case err != nil:
			c.showLogin(w, r, 0, session.LocalPath(r.URL.RequestURI()), err)
			return
		case s == nil:
			c.turnAway(w, r, c.Sessions.WhyEnded(r))
			return
		}
		c.Sessions.Reseal(w, r, s)
		v := &Visit{Request: r, Session: s, UserState: stateOf(s.Identity), BrowserState: s.State.(*BrowserState), server: c}
		v.Frame = page.Frame{
			Visitor: v.visitor.Load(), User: s.User, Cluster: s.Cluster.Server(), Version: c.Version, Now: c.Now(), Running: c.Operations.Running(s.Identity),
			LogOut: &page.Action{Label: page.Text("frame.logout"), URL: "/logout", Post: true},
		}
		next(w, v)
	})
}

// turnAway answers a user who is not logged in any more, or never was. A browser that has sent a form returns to it
// after login.
func (c *Server) turnAway(w http.ResponseWriter, r *http.Request, reason string) {
	read := r.Method == http.MethodGet || r.Method == http.MethodHead
	if WantsJSON(r) || !read && r.Method != http.MethodPost || strings.HasSuffix(r.URL.Path, "/events") {
		c.WriteJSON(w, http.StatusUnauthorized, FailureOf(report.Errorf(report.Unauthenticated, "you are not logged in")))
		return
	}
	back := r.URL.RequestURI()
	if !read {
		back = c.FormPage(r)
	}
	to := "/login?to=" + url.QueryEscape(back)
	if reason != "" {
		to += "&ended=" + reason
	}
	c.Sessions.Redirect(w, r, to)
}

// HandleRead answers with the result of a handler that changes nothing. It does not wait for an API server that does not answer.
func (c *Server) HandleRead(h Handler) http.Handler {
	return c.Handle(func(v *Visit) (*Answer, error) {
		feed, whole := c.Everything(v.Identity), v.Request
		ctx, stop := feed.Guard(v.Context())
		v.Request = v.WithContext(ctx)
		a, err := h(v)
		absent := stop()
		v.Request = whole
		if absent == nil && report.CodeOf(err) == report.Unavailable {
			absent = err
		}
		if absent == nil {
			return a, err
		}
		at, mark := feed.LastRead()
		if err == nil && a.Status < http.StatusBadRequest {
			v.Frame.Problem = nil // it has the same cause
			if v.Frame.Stale == nil && mark != "" {
				v.Frame.Stale = &page.Stale{Since: at, Why: absent.Error()}
			}
			return a, nil
		}
		if mark != "" {
			v.Frame.Feed = page.Query("/events", "seen", mark)
			v.Frame.Notices = append(v.Frame.Notices, page.Notice{Tone: page.ToneWarn, Text: page.Text("failure.lastread", page.UTC(at))})
		}
		return nil, absent
	})
}

// Handle answers with the result of a handler.
func (c *Server) Handle(h Handler) http.Handler {
	return c.SignedIn(func(w http.ResponseWriter, v *Visit) {
		ctx, cancel := context.WithTimeout(v.Context(), live.PageTimeout)
		defer cancel()
		v.Request = v.WithContext(ctx)
		if !WantsJSON(v.Request) {
			v.FrameFirst = func(early page.Content) { c.sendFrame(w, v, early) }
		}
		a, err := h(v)
		err = live.ExplainTimeout(err)
		switch {
		case err == nil && a.To != "":
			http.Redirect(w, v.Request, c.Login.Base+a.To, http.StatusSeeOther)
		case err == nil:
			c.Answer(w, v, a)
		case report.CodeOf(err) == report.Unauthenticated && v.Way != session.ByLink:
			why := c.Sessions.Refuse(v.Identity)
			if v.begun != nil { // the headers are sent: only the page can report it
				c.Answer(w, v, v.Failed(err))
				return
			}
			c.turnAway(w, v.Request, why)
		default:
			c.Answer(w, v, v.Failed(err))
		}
	})
}

// Failed returns the answer that shows an error. A login that is no longer accepted leads to the login page; that of the user who runs
// the program is renewed on the host.
func (v *Visit) Failed(err error) *Answer {
	p := page.ProblemOf(err)
	if p.Code == report.Unauthenticated {
		at := v.URL.RequestURI()
		if v.Method != http.MethodGet {
			at = v.server.FormPage(v.Request)
		}
		p.Hints = []string{page.Text("problem.login")}
		p.Remedies = []page.Action{{Label: page.Text("login.button"), URL: page.Query("/login", "to", at), Weight: page.WeightPrimary}}
		if v.Way == session.ByLink {
			p.Hints = []string{page.Text("failure.restart")}
			p.Remedies = []page.Action{{Label: page.Text("failure.again"), URL: at, Weight: page.WeightPrimary}}
		}
	}
	return &Answer{Status: StatusOf(err), Document: FailureOf(err), Content: &page.Failure{Problem: *p, Begun: v.begun.IsTitled()}}
}

// sendFrame sends the frame of a page whose content is still to come, and what is known of that.
func (c *Server) sendFrame(w http.ResponseWriter, v *Visit, early page.Content) {
	view := page.View{Frame: v.Frame, Content: early}
	if v.begun == nil {
		w.Header().Add("Vary", "Accept")
		c.nameCluster(v)
		view.Frame = v.Frame
		begun, err := c.Pages.Begin(w, v.Request, view)
		if err != nil {
			c.noPage(err) // the whole page comes later, or reports it
			return
		}
		v.begun = begun
		return
	}
	if err := v.begun.Preview(view); err != nil {
		c.noPage(err)
	}
}

// nameWait is how long the frame of a page waits for the name of the cluster.
const nameWait = time.Second

// nameCluster adds the name of the cluster to a frame that is sent before the cluster was read for the first time.
func (c *Server) nameCluster(v *Visit) {
	var known bool
	if v.Frame.Named, known = v.nameOfCluster(); known {
		return
	}
	ctx, cancel := context.WithTimeout(v.Context(), nameWait)
	defer cancel()
	if name, err := v.Deployer(nil).Records.NameOfCluster(ctx); err == nil { // otherwise the next page has it
		v.keepName(name)
		v.Frame.Named = name
	}
}

// Answer sends the document, the page, or the rest of a page whose frame was sent.
func (c *Server) Answer(w http.ResponseWriter, v *Visit, a *Answer) {
	if v.begun != nil {
		if err := v.begun.Finish(page.View{Frame: v.Frame, Content: a.Content}); err != nil {
			c.noPage(err)
			panic(http.ErrAbortHandler) // the browser must not take the sent part for the whole
		}
		return
	}
	v.Frame.Named, _ = v.nameOfCluster()
	status := a.Status
	if status == 0 {
		status = http.StatusOK
	}
	w.Header().Add("Vary", "Accept")
	if a.Plan != "" {
		w.Header().Set("Solutionctl-Plan", a.Plan)
	}
	if WantsJSON(v.Request) {
		c.WriteJSON(w, status, a.Document)
		return
	}
	c.render(w, v.Request, status, page.View{Frame: v.Frame, Content: a.Content})
}

// render writes a page. One that cannot be rendered is a mistake of the program, and nothing of it is shown.
func (c *Server) render(w http.ResponseWriter, r *http.Request, status int, v page.View) {
	if err := c.Pages.Respond(w, r, status, v); err != nil {
		c.noPage(err)
		http.Error(w, "this page cannot be shown; the console has written why", http.StatusInternalServerError)
	}
}

func (c *Server) noPage(err error) {
	c.Sink.Emit(report.Event{Step: "render a page", State: report.Failed, Note: err.Error()})
}

// WantsJSON reports whether a request is for the document instead of the page.
func WantsJSON(r *http.Request) bool {
	accept := r.Header.Get("Accept")
	return strings.Contains(accept, "application/json") && !strings.Contains(accept, "text/html")
}

// WriteJSON sends a document.
func (c *Server) WriteJSON(w http.ResponseWriter, status int, document any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	_ = encoder.Encode(document) // the client has gone
}

// Failure is an error as a document.
type Failure struct {
	report.CodeInfo
	Message  string          `json:"message"`
	Hints    []string        `json:"hints,omitempty"`
	Command  string          `json:"command,omitempty"`  // for the command line of the host, where the console has nothing in its place
	Remedies report.Remedies `json:"remedies,omitempty"` // the commands and options in the hints, as data
}

// FailureOf returns the document of an error, with the words of a page.
func FailureOf(err error) Failure {
	p := page.ProblemOf(err)
	return Failure{p.Code.Info(), p.Message, p.Hints, p.Command, report.RemediesOf(err)}
}

// statuses are the HTTP statuses of codes for which the exit status is too coarse.
var statuses = map[report.Code]int{
	report.Unauthenticated: http.StatusUnauthorized,
	report.Forbidden:       http.StatusForbidden,
	report.NotFound:        http.StatusNotFound,
	report.Unavailable:     http.StatusBadGateway,
	report.Timeout:         http.StatusGatewayTimeout,
	report.Failure:         http.StatusInternalServerError,
	report.Usage:           http.StatusBadRequest,
	report.Invalid:         http.StatusBadRequest,
	report.Conflict:        http.StatusConflict,
	report.Locked:          http.StatusConflict,
}

// StatusOf returns the HTTP status for an error; 422 for a refusal.
func StatusOf(err error) int {
	if status, ok := statuses[report.CodeOf(err)]; ok {
		return status
	}
	return http.StatusUnprocessableEntity
}

// Begin starts an operation of the user, and leads to its page.
func (c *Server) Begin(v *Visit, planned *schema.Operation, do live.Work) (*Answer, error) {
	op, err := c.Operations.Begin(v.Identity, planned, "", func(*live.Operation) live.Work { return do })
	if err != nil {
		return nil, err
	}
	return &Answer{To: page.URL("operations", op.ID)}, nil
}
