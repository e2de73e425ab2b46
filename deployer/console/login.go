package console

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/schema/report"
)

// LinkPatience is for how long a link of [Console.NewLink] may be followed.
const LinkPatience = time.Minute

// NewLink returns a link that lets in whoever follows it first, with the rights of whoever runs the program.
func (c *Console) NewLink() string {
	return c.Origin + "/start?once=" + url.QueryEscape(c.sessions.begin(login{way: byLink}, LinkPatience))
}

// Why a session is over, as parameter "ended" of the page for logging in.
const (
	endedExpired  = "expired"  // the token has
	endedRefused  = "refused"  // the API server no longer accepts the token
	endedIdle     = "idle"     // nobody has used it
	endedLifetime = "lifetime" // a day has passed
	endedLogout   = "logout"
	endedUnknown  = "unknown" // to this process
)

// login shows the ways to log in.
func (c *Console) login(w http.ResponseWriter, r *http.Request) {
	to := local(r.FormValue("to"))
	if s, _ := c.session(r); s != nil {
		c.lead(w, r, to)
		return
	}
	c.showLogin(w, r, http.StatusOK, to, nil)
}

func (c *Console) showLogin(w http.ResponseWriter, r *http.Request, status int, to string, problem *page.Problem) {
	content := &page.Login{}
	switch ended := r.FormValue("ended"); ended { // never the text of somebody else
	case endedExpired, endedRefused, endedIdle, endedLifetime, endedLogout, endedUnknown:
		content.Ended = page.Text("login.ended." + ended)
	}
	if c.Provider != nil {
		content.Organisation = &page.Action{Label: page.Text("login.organisation"), URL: page.Query("/auth/start", "to", to), Weight: page.WeightPrimary}
	}
	if c.Tokens {
		content.Token = &page.Action{Label: page.Text("login.button"), URL: "/login/token", Post: true, Fields: []page.Hidden{{Name: "to", Value: to}}, Weight: page.WeightPrimary}
	}
	if c.Links {
		content.Local = page.Text("login.link")
	}
	c.render(w, r, status, page.View{Frame: page.Frame{Version: c.Version, Now: c.Now(), Problem: problem}, Content: content})
}

// start lets in who has a link.
func (c *Console) start(w http.ResponseWriter, r *http.Request) {
	if _, ok := c.sessions.finish(byLink, r.FormValue("once")); !ok {
		c.showLogin(w, r, http.StatusForbidden, "/", page.ProblemOf(report.Errorf(report.Forbidden, "this link was used before, or is older than a minute")))
		return
	}
	i, err := c.identify(r.Context(), byLink, string(byLink), nil)
	if err != nil {
		c.showLogin(w, r, statusOf(err), "/", page.ProblemOf(err))
		return
	}
	c.enter(w, r, i, "/")
}

// loginToken lets in who pastes a token that the API server knows.
func (c *Console) loginToken(w http.ResponseWriter, r *http.Request) {
	to := local(r.PostFormValue("to"))
	token := strings.TrimSpace(r.PostFormValue("token"))
	// What cannot be in a header is no token; it must not reach the library, whose error would quote it.
	if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		c.showLogin(w, r, http.StatusUnauthorized, to, page.ProblemOf(report.Errorf(report.Unauthenticated, "this is not a token")))
		return
	}
	i, err := c.identify(r.Context(), byToken, keyOfToken(token), &tokens{id: token})
	if err != nil {
		c.showLogin(w, r, statusOf(err), to, page.ProblemOf(err))
		return
	}
	c.enter(w, r, i, to)
}

// keyOfToken tells identities apart: two tokens of one user may have different rights, and what they show is never shared.
func keyOfToken(token string) string {
	return fmt.Sprintf("%s %x", byToken, sha256.Sum256([]byte(token)))
}

// enter begins a session in this browser. One that it has ends: nobody can slip a session of theirs under somebody's login.
func (c *Console) enter(w http.ResponseWriter, r *http.Request, i *identity, to string) {
	c.dismiss(r)
	s := c.sessions.open(i)
	c.setCookie(w, loginCookie, "", http.SameSiteLaxMode, 0)
	c.giveSession(w, s)
	c.lead(w, r, to)
}

// dismiss ends the session of this browser, and returns it, nil where there was none.
func (c *Console) dismiss(r *http.Request) *session {
	if k := c.opened(r); k != nil { // also one of which nothing is known here
		defer c.sessions.shut(k.ID, time.Unix(k.Started, 0).Add(lifetime))
	}
	s, _ := c.session(r)
	if s != nil {
		c.sessions.close(s, endedLogout)
	}
	return s
}

// logout ends the session of this browser, or with all=true those of all browsers of the user. When it was the last one the
// provider is told: what another replica, or somebody who has copied it, still keeps cannot be renewed any more.
func (c *Console) logout(w http.ResponseWriter, r *http.Request) {
	all := r.PostFormValue("all") == "true"
	if s := c.dismiss(r); s != nil {
		if all {
			c.sessions.shut(s.key, c.Now().Add(lifetime))
			c.endAll(s.identity, endedLogout)
		}
		if c.sessions.identity(s.key) == nil {
			s.current().revoke(r.Context())
		}
	}
	c.setCookie(w, sessionCookie, "", http.SameSiteStrictMode, 0) // and nothing else: what else the browser has of this host is not ours
	http.Redirect(w, r, c.base+"/login?ended="+endedLogout, http.StatusSeeOther)
}

func (c *Console) endAll(i *identity, why string) {
	for _, s := range c.sessions.of(i) {
		c.sessions.close(s, why)
	}
}

// refuse ends all sessions of an identity whose token the API server does not accept any more, and returns why that is.
func (c *Console) refuse(i *identity) (why string) {
	why = endedRefused
	if i.current().hasExpired(c.Now()) {
		why = endedExpired
	}
	c.endAll(i, why)
	return why
}

// hasExpired tells whether a token says of itself that its time is over. Nothing but words depends on it: nobody has checked the token.
func (t *tokens) hasExpired(now time.Time) bool {
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	var claims struct {
		Expires float64 `json:"exp"`
	}
	parts := strings.Split(t.id, ".")
	if len(parts) != 3 {
		return false
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	return err == nil && json.Unmarshal(text, &claims) == nil && claims.Expires > 0 && float64(now.Unix()) >= claims.Expires
}

// lead sends a browser to a path of the console. A browser that comes from another site gets a page that leads on: after a
// redirect it would still count as coming from there, and keep the cookie of the session to itself.
func (c *Console) lead(w http.ResponseWriter, r *http.Request, to string) {
	if r.Header.Get("Sec-Fetch-Site") != "cross-site" {
		http.Redirect(w, r, c.base+to, http.StatusSeeOther)
		return
	}
	w.Header().Set("Refresh", "0; url="+c.base+to)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprintf(w, "<!doctype html>\n<html lang=\"en\"><title>solutionctl</title><p><a href=\"%s\">%s</a></p></html>\n",
		html.EscapeString(c.base+to), html.EscapeString(page.Text("login.continue")))
}
