package console

import (
	"cmp"
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
func (m *Manager) NewLink() string {
	return m.Origin + "/start?once=" + url.QueryEscape(m.sessions.begin(login{way: byLink}, LinkPatience))
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

// endedReason is why the session of this browser is over, as the address of the page for logging in says; "" for any other text.
func endedReason(r *http.Request) string {
	switch ended := r.FormValue("ended"); ended {
	case endedExpired, endedRefused, endedIdle, endedLifetime, endedLogout, endedUnknown:
		return ended
	}
	return ""
}

// login shows the ways to log in.
func (m *Manager) login(w http.ResponseWriter, r *http.Request) {
	to := local(r.FormValue("to"))
	if s, _ := m.session(r); s != nil {
		m.lead(w, r, to)
		return
	}
	m.ShowLogin(w, r, http.StatusOK, to, nil)
}

// start lets in who has a link.
func (m *Manager) start(w http.ResponseWriter, r *http.Request) {
	if _, ok := m.sessions.finish(byLink, r.FormValue("once")); !ok {
		m.ShowLogin(w, r, http.StatusForbidden, "/", report.Errorf(report.Forbidden, "this link was used before, or is older than a minute"))
		return
	}
	i, err := m.identify(r.Context(), byLink, string(byLink), nil)
	if err != nil {
		m.ShowLogin(w, r, 0, "/", err)
		return
	}
	m.enter(w, r, i, "/")
}

// loginToken lets in who pastes a token that the API server knows.
func (m *Manager) loginToken(w http.ResponseWriter, r *http.Request) {
	to := local(r.PostFormValue("to"))
	token := strings.TrimSpace(r.PostFormValue("token"))
	// What cannot be in a header is no token; it must not reach the library, whose error would quote it.
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

// keyOfToken tells identities apart: two tokens of one user may have different rights, and what they show is never shared.
func keyOfToken(token string) string {
	return fmt.Sprintf("%s %x", byToken, sha256.Sum256([]byte(token)))
}

// enter begins a session in this browser. One that it has ends: nobody can slip a session of theirs under somebody's login.
func (m *Manager) enter(w http.ResponseWriter, r *http.Request, i *identity, to string) {
	m.dismiss(r)
	s := m.sessions.open(i, m.BrowserState())
	m.setCookie(w, loginCookie, "", http.SameSiteLaxMode, 0)
	m.giveSession(w, s)
	m.lead(w, r, to)
}

// dismiss ends the session of this browser, and returns it, nil where there was none.
func (m *Manager) dismiss(r *http.Request) *session {
	if k := m.opened(r); k != nil { // also one of which nothing is known here
		defer m.sessions.shut(k.ID, time.Unix(k.Started, 0).Add(lifetime))
	}
	s, _ := m.session(r)
	if s != nil {
		m.sessions.close(s, endedLogout)
	}
	return s
}

// logout ends the session of this browser, or with all=true those of all browsers of the user. When it was the last one the
// provider is told: what another replica, or somebody who has copied it, still keeps cannot be renewed any more.
func (m *Manager) logout(w http.ResponseWriter, r *http.Request) {
	all := r.PostFormValue("all") == "true"
	if s := m.dismiss(r); s != nil {
		if all {
			m.sessions.shut(s.key, m.Now().Add(lifetime))
			m.endAll(s.identity, endedLogout)
		}
		if m.sessions.identity(s.key) == nil {
			s.current().revoke(r.Context())
		}
	}
	m.setCookie(w, sessionCookie, "", http.SameSiteStrictMode, 0) // and nothing else: what else the browser has of this host is not ours
	http.Redirect(w, r, m.Base+"/login?ended="+endedLogout, http.StatusSeeOther)
}

func (m *Manager) endAll(i *identity, why string) {
	for _, s := range m.sessions.of(i) {
		m.sessions.close(s, why)
	}
}

// refuse ends all sessions of an identity whose token the API server does not accept any more, and returns why that is.
func (m *Manager) refuse(i *identity) (why string) {
	why = endedRefused
	if i.current().hasExpired(m.Now()) {
		why = endedExpired
	}
	m.endAll(i, why)
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
func (m *Manager) lead(w http.ResponseWriter, r *http.Request, to string) {
	if r.Header.Get("Sec-Fetch-Site") != "cross-site" {
		http.Redirect(w, r, m.Base+to, http.StatusSeeOther)
		return
	}
	w.Header().Set("Refresh", "0; url="+m.Base+to)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprintf(w, "<!doctype html>\n<html lang=\"en\"><title>solutionctl</title><p><a href=\"%s\">%s</a></p></html>\n",
		html.EscapeString(m.Base+to), html.EscapeString(page.Text("login.continue")))
}

// whyEnded tells for what reason the session of a browser has ended; "" for one that has none.
func (m *Manager) whyEnded(r *http.Request) string {
	id := m.cookie(r, sessionCookie)
	if id == "" {
		return ""
	}
	if k := m.opened(r); k != nil {
		id = k.ID
	}
	return cmp.Or(m.sessions.why(id), endedUnknown)
}

// maxTarget bounds the path to which a login leads: a browser keeps it until then.
const maxTarget = 1000

// local is a path of this console, with its query; anything else becomes its root. It keeps a link from leading people
// elsewhere once they are logged in.
func local(to string) string {
	if len(to) > maxTarget || !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") || strings.ContainsFunc(to, func(r rune) bool { return r <= ' ' || r == '\\' || r == 0x7f }) {
		return "/"
	}
	return to
}
