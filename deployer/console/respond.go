package console

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/console/live"
	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/deployer/console/session"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// visit is a request of somebody who is logged in.
type visit struct {
	*http.Request
	*session.Session
	*userState
	*browserState
	server *Server
	frame  page.Frame
	// frameFirst sends the frame of a page that takes long, with the title of this content, and sets finish, which sends the rest.
	// It is nil for programs.
	frameFirst func(page.Content)
	finish     func(page.View) error
}

// handler answers a visit.
type handler func(v *visit) (*answer, error)

// answer is a page with its document, or where to go on.
type answer struct {
	status   int // 0 is 200
	document any
	content  page.Content
	plan     string // digest of the plan that is shown, for whoever carries it out
	to       string // a path of the console; then there is nothing else
}

// deployer has the verbs with the rights of the user.
func (v *visit) deployer(sink report.Sink) *deployer.Deployer {
	return v.server.deployer(v.Identity, sink)
}

// deployer has the verbs with the rights of a user.
func (c *Server) deployer(i *session.Identity, sink report.Sink) *deployer.Deployer {
	return deployer.New(deployer.Config{
		Cluster: i.Cluster, Sink: sink, Now: c.Now, Version: c.Version, Identity: i.User + "@" + c.Host, LockWait: c.LockWait,
	})
}

// signedIn lets in who is logged in, and shows others how to.
func (c *Server) signedIn(next func(http.ResponseWriter, *visit)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s, err := c.Sessions.Session(r)
		switch {
		case report.CodeOf(err) == report.Unauthenticated:
			c.turnAway(w, r, session.EndedRefused)
			return
		case err != nil && wantsJSON(r):
			c.writeJSON(w, statusOf(err), failureOf(err))
			return
		case err != nil:
			c.showLogin(w, r, 0, session.LocalPath(r.URL.RequestURI()), err)
			return
		case s == nil:
			c.turnAway(w, r, c.Sessions.WhyEnded(r))
			return
		}
		c.Sessions.Reseal(w, r, s)
		v := &visit{Request: r, Session: s, userState: stateOf(s.Identity), browserState: s.State.(*browserState), server: c}
		v.frame = page.Frame{
			Visitor: v.visitor.Load(), User: s.User, Cluster: s.Cluster.Server(), Version: c.Version, Now: c.Now(), Running: c.Operations.Running(s.Identity),
			LogOut: &page.Action{Label: page.Text("frame.logout"), URL: "/logout", Post: true},
		}
		next(w, v)
	})
}

// turnAway answers somebody who is not logged in, perhaps not any more. A browser that has sent a form is led back to it.
func (c *Server) turnAway(w http.ResponseWriter, r *http.Request, reason string) {
	read := r.Method == http.MethodGet || r.Method == http.MethodHead
	if wantsJSON(r) || !read && r.Method != http.MethodPost || strings.HasSuffix(r.URL.Path, "/events") {
		c.writeJSON(w, http.StatusUnauthorized, failureOf(report.Errorf(report.Unauthenticated, "nobody is logged in")))
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
	c.Sessions.Lead(w, r, to)
}

// handle answers with what a handler returns.
func (c *Server) handle(h handler) http.Handler {
	return c.signedIn(func(w http.ResponseWriter, v *visit) {
		ctx, cancel := context.WithTimeout(v.Context(), live.PageTimeout)
		defer cancel()
		v.Request = v.WithContext(ctx)
		if !wantsJSON(v.Request) {
			v.frameFirst = func(early page.Content) { c.sendFrame(w, v, early) }
		}
		a, err := h(v)
		err = live.ExplainTimeout(err)
		switch {
		case err == nil && a.to != "":
			http.Redirect(w, v.Request, c.Login.Base+a.to, http.StatusSeeOther)
		case err == nil:
			c.answer(w, v, a)
		case report.CodeOf(err) == report.Unauthenticated && v.Way != session.ByLink:
			why := c.Sessions.Refuse(v.Identity)
			if v.finish != nil { // it is too late to lead anywhere: the page tells
				c.answer(w, v, v.failed(err))
				return
			}
			c.turnAway(w, v.Request, why)
		default:
			c.answer(w, v, v.failed(err))
		}
	})
}

// failed is the answer that tells of an error. A login that is not accepted leads to the page for logging in; that of the person who has
// started the console is renewed on the host.
func (v *visit) failed(err error) *answer {
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
	return &answer{status: statusOf(err), document: failureOf(err), content: &page.Failure{Problem: *p, Begun: v.finish != nil}}
}

// sendFrame sends the frame of a page whose content is still to come.
func (c *Server) sendFrame(w http.ResponseWriter, v *visit, early page.Content) {
	w.Header().Add("Vary", "Accept")
	finish, err := c.Pages.Begin(w, v.Request, page.View{Frame: v.frame, Content: early})
	if err != nil {
		c.noPage(err) // the whole page comes later, or tells
		return
	}
	v.finish = finish
}

// answer sends the document, the page, or what is left of a page whose frame was sent.
func (c *Server) answer(w http.ResponseWriter, v *visit, a *answer) {
	if v.finish != nil {
		if err := v.finish(page.View{Frame: v.frame, Content: a.content}); err != nil {
			c.noPage(err)
			panic(http.ErrAbortHandler) // the browser must not take what it has for the whole
		}
		return
	}
	status := a.status
	if status == 0 {
		status = http.StatusOK
	}
	w.Header().Add("Vary", "Accept")
	if a.plan != "" {
		w.Header().Set("Solutionctl-Plan", a.plan)
	}
	if wantsJSON(v.Request) {
		c.writeJSON(w, status, a.document)
		return
	}
	c.render(w, v.Request, status, page.View{Frame: v.frame, Content: a.content})
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

// wantsJSON tells whether a program asks, rather than a browser for a person.
func wantsJSON(r *http.Request) bool {
	accept := r.Header.Get("Accept")
	return strings.Contains(accept, "application/json") && !strings.Contains(accept, "text/html")
}

func (c *Server) writeJSON(w http.ResponseWriter, status int, document any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	_ = encoder.Encode(document) // whoever asked has gone
}

// failure is an error as a document.
type failure struct {
	report.CodeInfo
	Message  string          `json:"message"`
	Hints    []string        `json:"hints,omitempty"`
	Remedies report.Remedies `json:"remedies,omitempty"` // the commands and options in the hints, as data
}

func failureOf(err error) failure {
	return failure{report.CodeOf(err).Info(), err.Error(), report.Hints(err), report.RemediesOf(err)}
}

// statuses are those of HTTP for codes whose exit status does not say it.
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

// statusOf is the status of HTTP for an error; what was refused is 422.
func statusOf(err error) int {
	if status, ok := statuses[report.CodeOf(err)]; ok {
		return status
	}
	return http.StatusUnprocessableEntity
}

// begin starts an operation of the user and leads to its page.
func (c *Server) begin(v *visit, planned *schema.Operation, do live.Work) (*answer, error) {
	op, err := c.Operations.Begin(v.Identity, planned, "", func(*live.Operation) live.Work { return do })
	if err != nil {
		return nil, err
	}
	return &answer{to: page.URL("operations", op.ID)}, nil
}
