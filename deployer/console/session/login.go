package session

import (
	"cmp"
	"context"
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

// LinkLifetime is for how long a link of [Manager.NewLink] can be used.
const LinkLifetime = time.Minute

// NewLink returns a link that logs in the user who follows it first, with the rights of the user who runs the program.
func (m *Manager) NewLink() string {
	return m.Origin + "/start?once=" + url.QueryEscape(m.sessions.newLink(LinkLifetime))
}

// Why a session is over, as parameter "ended" of the page for logging in.
const (
	endedExpired  = "expired"  // the token has
	EndedRefused  = "refused"  // the API server no longer accepts the token
	endedIdle     = "idle"     // unused for too long
	endedLifetime = "lifetime" // a day has passed
	endedLogout   = "logout"
	endedUnknown  = "unknown" // to this process
)

// EndedReason returns why the session of a browser ended, from the address of the login page; "" for any other text.
func EndedReason(r *http.Request) string {
	switch ended := r.FormValue("ended"); ended {
	case endedExpired, EndedRefused, endedIdle, endedLifetime, endedLogout, endedUnknown:
		return ended
	}
	return ""
}

// Login shows the ways to log in.
func (m *Manager) Login(w http.ResponseWriter, r *http.Request) {
	to := LocalPath(r.FormValue("to"))
	if s, _ := m.Session(r); s != nil {
		m.Redirect(w, r, to)
		return
	}
	m.ShowLogin(w, r, http.StatusOK, to, nil)
}

// Start logs in the user of a link.
func (m *Manager) Start(w http.ResponseWriter, r *http.Request) {
	if !m.sessions.useLink(r.FormValue("once")) {
		m.ShowLogin(w, r, http.StatusForbidden, "/", report.Errorf(report.Forbidden, "this link was used before, or is older than a minute"))
		return
	}
	i, err := m.identify(r.Context(), ByLink, string(ByLink), nil)
	if err != nil {
		m.ShowLogin(w, r, 0, "/", err)
		return
	}
	m.enter(w, r, i, "/")
}

// LoginToken logs in the user of a pasted token, if the API server accepts it.
func (m *Manager) LoginToken(w http.ResponseWriter, r *http.Request) {
	to := LocalPath(r.PostFormValue("to"))
	token := strings.TrimSpace(r.PostFormValue("token"))
	// A text that cannot be in a header is not a token. The library's error would quote it.
	if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		m.ShowLogin(w, r, http.StatusUnauthorized, to, report.Errorf(report.Unauthenticated, "this is not a token"))
		return
	}
	i, err := m.identify(r.Context(), byToken, keyOfToken(token), &tokens{id: token})
	if err != nil {
		m.ShowLogin(w, r, 0, to, err)
		return
	}
	m.enter(w, r, i, to)
}

// keyOfToken identifies an identity: two tokens of one user may have different permissions, so they never share a
// state.
func keyOfToken(token string) string {
	return fmt.Sprintf("%s %x", byToken, sha256.Sum256([]byte(token)))
}

// enter begins a session in this browser and ends its earlier one, so that an attacker cannot plant a session of their
// own.
func (m *Manager) enter(w http.ResponseWriter, r *http.Request, i *Identity, to string) {
	m.dismiss(r)
	s := m.sessions.open(i, m.BrowserState())
	m.setCookie(w, loginCookie, "", http.SameSiteLaxMode, 0)
	m.giveSession(w, s)
	m.Redirect(w, r, to)
}

// dismiss ends the session of this browser, and returns it, nil where there was none.
func (m *Manager) dismiss(r *http.Request) *Session {
	if k := m.opened(r); k != nil { // also one of which nothing is known here
		defer m.sessions.shut(k.ID, time.Unix(k.Started, 0).Add(lifetime))
	}
	s, _ := m.Session(r)
	if s != nil {
		m.sessions.close(s, endedLogout)
	}
	return s
}

// Logout ends the session of this browser, or with all=true those of all browsers of the user. When it was the last one, and
// no operation is at work, the tokens are revoked at the provider, so that copies in other replicas cannot be renewed.
func (m *Manager) Logout(w http.ResponseWriter, r *http.Request) {
	all := r.PostFormValue("all") == "true"
	if s := m.dismiss(r); s != nil {
		if all {
			m.sessions.shut(s.Key, m.Now().Add(lifetime))
			m.endAll(s.Identity, endedLogout)
		}
		m.leave(r.Context(), s.Identity, true)
	}
	m.setCookie(w, sessionCookie, "", http.SameSiteStrictMode, 0) // and nothing else: other data of this host does not belong to the console
	http.Redirect(w, r, m.Base+"/login?ended="+endedLogout, http.StatusSeeOther)
}

// leave revokes the tokens of an identity whose user has logged out of the last browser, unless operations need them.
func (m *Manager) leave(ctx context.Context, i *Identity, loggedOut bool) {
	if m.sessions.leave(i, loggedOut) {
		i.current().revoke(ctx)
	}
}

// EndWork is called when an operation of an identity has ended.
func (m *Manager) EndWork(ctx context.Context, i *Identity) { m.leave(ctx, i, false) }

func (m *Manager) endAll(i *Identity, why string) {
	for _, s := range m.sessions.of(i) {
		m.sessions.close(s, why)
	}
}

// Refuse ends all sessions of an identity whose token the API server no longer accepts, and returns the reason.
func (m *Manager) Refuse(i *Identity) (why string) {
	why = EndedRefused
	if i.current().hasExpired(m.Now()) {
		why = endedExpired
	}
	m.endAll(i, why)
	return why
}

// hasExpired reports whether a token's own expiry has passed. It only selects a message, because the token is not
// verified.
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

// Redirect sends a browser to a path of the console. A browser that comes from another site gets a page that leads on: after a
// redirect it would still count as coming from there, and keep the cookie of the session to itself.
func (m *Manager) Redirect(w http.ResponseWriter, r *http.Request, to string) {
	if r.Header.Get("Sec-Fetch-Site") != "cross-site" {
		http.Redirect(w, r, m.Base+to, http.StatusSeeOther)
		return
	}
	w.Header().Set("Refresh", "0; url="+m.Base+to)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprintf(w, "<!doctype html>\n<html lang=\"en\"><title>solutionctl</title><p><a href=\"%s\">%s</a></p></html>\n",
		html.EscapeString(m.Base+to), html.EscapeString(page.Text("login.continue")))
}

// WhyEnded returns why the session of a browser has ended; "" for a browser without one.
func (m *Manager) WhyEnded(r *http.Request) string {
	id := m.cookie(r, sessionCookie)
	if id == "" {
		return ""
	}
	if k := m.opened(r); k != nil {
		id = k.ID
	}
	return cmp.Or(m.sessions.why(id), endedUnknown)
}

// MaxPath bounds the path to which a login leads: a browser keeps it until then.
const MaxPath = 1000

// LocalPath returns to if it is a path of this console, with its query, and else the root: no link leads a user to another site
// after logging in.
func LocalPath(to string) string {
	if len(to) > MaxPath || !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") || strings.ContainsFunc(to, func(r rune) bool { return r <= ' ' || r == '\\' || r == 0x7f }) {
		return "/"
	}
	return to
}
