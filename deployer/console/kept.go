package console

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/solutionctl/solutionctl/schema/report"
)

// resealing is how old what a browser keeps becomes: a session that is used elsewhere goes on from there.
const resealing = 5 * time.Minute

// kept is a session as a browser keeps it for replicas that did not begin it. Times are seconds since 1970.
type kept struct {
	ID      string `json:"i"`
	Way     way    `json:"w"`
	Started int64  `json:"s"`
	Seen    int64  `json:"t"`           // when it was sealed
	Subject string `json:"u,omitempty"` // at the provider
	Token   string `json:"d,omitempty"`
	Refresh string `json:"r,omitempty"`
	Until   int64  `json:"e,omitempty"` // of the token
}

// purpose is what a sealed text is for: this console, with these people, and nothing else.
func (c *Console) purpose(name string) string {
	parts := []string{"solutionctl", name, c.Origin}
	if p := c.Provider; p != nil {
		parts = append(parts, p.Issuer, p.ClientID)
	}
	return strings.Join(parts, "\x00")
}

// opened is what the browser keeps of its session; nil where there is nothing that this console has sealed.
func (c *Console) opened(r *http.Request) *kept {
	k := new(kept)
	if c.Keys == nil || !c.Keys().open(c.purpose(sessionCookie), c.cookie(r, sessionCookie), k) {
		return nil
	}
	return k
}

// value is what the browser gets to know of a session: its name, or all that another replica needs. What does not fit stays
// here: the token that can be renewed first, then everything but the name.
func (c *Console) value(s *session) (string, error) {
	if c.Keys == nil {
		return s.id, nil
	}
	k := kept{ID: s.id, Way: s.way, Started: s.started.Unix(), Seen: c.Now().Unix()}
	s.current().fill(&k)
	small := k
	small.Token = ""
	bare := small
	bare.Refresh = ""
	for _, one := range []kept{k, small, bare} {
		text, err := c.Keys().seal(c.purpose(sessionCookie), one)
		if err != nil || len(text) <= maxCookie {
			return text, err
		}
	}
	return "", report.Errorf(report.Invalid, "the session does not fit into a cookie") // a name of 2 KB at the provider
}

// giveSession puts a session into the browser.
func (c *Console) giveSession(w http.ResponseWriter, s *session) {
	text, err := c.value(s)
	if err != nil {
		c.Sink.Emit(report.Event{Step: "seal a session", State: report.Failed, Note: err.Error()})
		return
	}
	c.setCookie(w, sessionCookie, text, http.SameSiteStrictMode, lifetime-c.Now().Sub(s.started).Truncate(time.Minute))
}

// reseal brings what the browser keeps up to date.
func (c *Console) reseal(w http.ResponseWriter, r *http.Request, s *session) {
	old := c.opened(r)
	if old == nil {
		return
	}
	_, _ = s.bearer(r.Context()) // what is renewed now is not renewed after it was sealed; what goes wrong comes again
	now := kept{}
	s.current().fill(&now)
	if now.Until != old.Until || c.Now().Unix()-old.Seen >= int64(resealing/time.Second) {
		c.giveSession(w, s)
	}
}

// restore begins a session here that another replica has begun. Where the user has a session here they share its tokens, of
// which the newer ones count.
func (c *Console) restore(ctx context.Context, k *kept) (*session, error) {
	var t *tokens
	var key string
	switch {
	case k.Token == "" && k.Refresh == "": // it did not fit
		return nil, nil
	case k.Way == byToken && c.Tokens:
		t, key = &tokens{id: k.Token}, keyOfToken(k.Token)
	case k.Way == byProvider && c.Provider != nil:
		t = &tokens{console: c, subject: k.Subject}
		t.adopt(k)
		var err error
		if key, err = t.key(ctx); err != nil {
			return nil, err
		}
	default:
		return nil, nil
	}
	s := &session{id: k.ID, started: time.Unix(k.Started, 0), seen: time.Unix(k.Seen, 0), ended: make(chan struct{})}
	if !c.sessions.admits(s, key) {
		return nil, nil
	}
	s.identity = c.sessions.identity(key)
	if s.identity == nil {
		var err error
		if s.identity, err = c.identify(ctx, k.Way, key, t); err != nil {
			return nil, err
		}
	} else {
		s.current().adopt(k)
	}
	return c.sessions.put(s), nil
}
