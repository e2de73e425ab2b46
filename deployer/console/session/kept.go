package session

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/solutionctl/solutionctl/schema/report"
)

// resealing is the greatest age of a browser's copy: a session that moves to another replica continues from there.
const resealing = 5 * time.Minute

// kept is a session as a browser keeps it for replicas that did not begin it. Times are seconds since 1970.
type kept struct {
	ID      string `json:"i"`
	Way     Way    `json:"w"`
	Started int64  `json:"s"`
	Seen    int64  `json:"t"`           // when it was sealed
	Subject string `json:"u,omitempty"` // at the provider
	Token   string `json:"d,omitempty"`
	Refresh string `json:"r,omitempty"`
	Until   int64  `json:"e,omitempty"` // of the token
}

// purpose binds a sealed text to this console, its ways to log in, and a name.
func (m *Manager) purpose(name string) string {
	parts := []string{"solutionctl", name, m.Origin}
	if p := m.Provider; p != nil {
		parts = append(parts, p.Issuer, p.ClientID)
	}
	return strings.Join(parts, "\x00")
}

// opened returns the session in the browser's cookie; nil without one that this console has sealed.
func (m *Manager) opened(r *http.Request) *kept {
	k := new(kept)
	if m.Keys == nil || !m.Keys().open(m.purpose(sessionCookie), m.cookie(r, sessionCookie), k) {
		return nil
	}
	return k
}

// value is the cookie of a session: its name, or all that another replica needs. If it is too long, parts stay here:
// first the refresh token, then everything except the name.
func (m *Manager) value(s *Session) (string, error) {
	if m.Keys == nil {
		return s.Id, nil
	}
	k := kept{ID: s.Id, Way: s.Way, Started: s.Started.Unix(), Seen: m.Now().Unix()}
	s.current().fill(&k)
	small := k
	small.Token = ""
	bare := small
	bare.Refresh = ""
	for _, one := range []kept{k, small, bare} {
		text, err := m.Keys().seal(m.purpose(sessionCookie), one)
		if err != nil || len(text) <= maxCookie {
			return text, err
		}
	}
	return "", report.Errorf(report.Invalid, "the session does not fit into a cookie") // a name of 2 KB at the provider
}

// giveSession puts a session into the browser.
func (m *Manager) giveSession(w http.ResponseWriter, s *Session) {
	text, err := m.value(s)
	if err != nil {
		m.Sink.Emit(report.Event{Step: "seal a session", State: report.Failed, Note: err.Error()})
		return
	}
	m.setCookie(w, sessionCookie, text, http.SameSiteStrictMode, lifetime-m.Now().Sub(s.Started).Truncate(time.Minute))
}

// Reseal updates the sealed session that the browser keeps.
func (m *Manager) Reseal(w http.ResponseWriter, r *http.Request, s *Session) {
	old := m.opened(r)
	if old == nil {
		return
	}
	_, _ = s.Bearer(r.Context()) // a renewal now is part of the sealed session; an error comes again
	now := kept{}
	s.current().fill(&now)
	if now.Until != old.Until || m.Now().Unix()-old.Seen >= int64(resealing/time.Second) {
		m.giveSession(w, s)
	}
}

// restore begins a session here that another replica has begun. Where the user has a session here they share its tokens, of
// which the newer ones count.
func (m *Manager) restore(ctx context.Context, k *kept) (*Session, error) {
	var t *tokens
	var key string
	switch {
	case k.Token == "" && k.Refresh == "": // it did not fit
		return nil, nil
	case k.Way == byToken && m.Tokens:
		t, key = &tokens{id: k.Token}, keyOfToken(k.Token)
	case k.Way == byProvider && m.Provider != nil:
		t = &tokens{manager: m, subject: k.Subject}
		t.adopt(k)
		var err error
		if key, err = t.key(ctx); err != nil {
			return nil, err
		}
	default:
		return nil, nil
	}
	s := &Session{Id: k.ID, Started: time.Unix(k.Started, 0), seen: time.Unix(k.Seen, 0), Ended: make(chan struct{}), State: m.BrowserState()}
	if !m.sessions.admits(s, key) {
		return nil, nil
	}
	s.Identity = m.sessions.identity(key)
	if s.Identity == nil {
		var err error
		if s.Identity, err = m.identify(ctx, k.Way, key, t); err != nil {
			return nil, err
		}
	} else {
		s.current().adopt(k)
	}
	return m.sessions.put(s), nil
}
