package console

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/schema/report"
)

const (
	idle     = 8 * time.Hour  // a session that nobody uses for so long is over
	lifetime = 24 * time.Hour // and so is every session that is so old

	maxSessions = 1000 // of all users; the one that was not used for the longest makes room
	maxLogins   = 1000 // that were begun
)

// managerOptions describe how users log in.
type managerOptions struct {
	// Connect reaches the cluster with a token, which is asked for before each request; nil stands for whoever runs the program.
	Connect func(token Token) (*cluster.Cluster, error)
	// ConnectAs reaches the cluster in the name of a user of the provider; nil sends the tokens of the user. admit is called before
	// each request.
	ConnectAs func(user string, groups []string, admit func(ctx context.Context) error) (*cluster.Cluster, error)
	Origin    string
	Links     bool
	Tokens    bool
	Provider  *Provider   // nil for none
	Keys      func() Keys // for sessions that replicas share; nil keeps sessions in this process
	Base      string      // path of the origin, without a slash at the end
	Secure    bool        // browsers come by TLS
	Sink      report.Sink
	Now       func() time.Time
	// UserState and BrowserState make what the console keeps of a user, and of a session of one browser.
	UserState, BrowserState func() any
	// ShowLogin shows the page for logging in, from which a browser goes on to a path. A problem that is not nil is shown; the status 0
	// is that of the problem.
	ShowLogin func(w http.ResponseWriter, r *http.Request, status int, to string, problem error)
}

// Token gives the bearer token of a request.
type Token func(ctx context.Context) (string, error)

// Manager logs users in and out, and knows the sessions of their browsers. Its methods may be called by several goroutines at once.
type Manager struct {
	managerOptions
	sessions *sessions
}

// newManager returns a manager without sessions.
func newManager(o managerOptions) *Manager { return &Manager{o, newSessions(o.Now)} }

// SessionsOf lists the sessions of an identity.
func (m *Manager) SessionsOf(i *identity) []*session { return m.sessions.of(i) }

// LastSeen returns when a session was used last.
func (m *Manager) LastSeen(s *session) time.Time { return m.sessions.lastSeen(s) }

// Expired reports whether a session is too old or was unused for too long, and ends it then.
func (m *Manager) Expired(s *session) bool { return m.sessions.expired(s) }

// way is how a user has logged in.
type way string

const (
	byLink     way = "link"
	byToken    way = "token"
	byProvider way = "provider"
)

// identity is a user with the connection to the cluster that has this user's rights. Browsers of one user share it: some
// providers know one refresh token for a user, so that the next login makes that of the login before worthless.
type identity struct {
	key  string // what tells it from others: never a name that somebody can choose
	user string // as the API server knows it
	way  way

	cluster *cluster.Cluster
	state   any // what the console keeps of the user

	mu     sync.Mutex
	tokens *tokens // replaced by a new login; nil for whoever runs the program

	sessions int // guarded by sessions.mu
}

// bearer gives the token of the login that came last.
func (i *identity) bearer(ctx context.Context) (string, error) {
	return i.current().bearer(ctx)
}

func (i *identity) current() *tokens {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.tokens
}

// session is a browser that is logged in.
type session struct {
	*identity
	id            string
	started, seen time.Time     // seen is guarded by sessions.mu
	ended         chan struct{} // closed when it is over
	state         any           // what the console keeps of this browser
}

// sessions are those of all browsers.
type sessions struct {
	now func() time.Time

	mu         sync.Mutex
	byID       map[string]*session
	identities map[string]*identity
	logins     map[string]login // that were begun, by what the browser has of them
	closed     map[string]closed
}

// closed says that sessions are over that a browser may keep nevertheless: those of a name or of an identity that were begun
// until then, and logins that were finished. It is forgotten when they would be over by themselves.
type closed struct {
	begun, until time.Time
	why          string // a session is over, see endedLogout; "" where nobody asks
}

// login is a login that was begun.
type login struct {
	way             way // one that was begun in one way is not finished in another
	until           time.Time
	verifier, nonce string
	to              string
}

func newSessions(now func() time.Time) *sessions {
	return &sessions{now: now, byID: map[string]*session{}, identities: map[string]*identity{}, logins: map[string]login{}, closed: map[string]closed{}}
}

// begin keeps a login for some time and returns its secret.
func (l *sessions) begin(one login, patience time.Duration) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, oldest := l.now(), ""
	for secret, other := range l.logins {
		if now.After(other.until) {
			delete(l.logins, secret)
		} else if oldest == "" || other.until.Before(l.logins[oldest].until) {
			oldest = secret
		}
	}
	if len(l.logins) >= maxLogins {
		delete(l.logins, oldest)
	}
	one.until = now.Add(patience)
	secret := rand.Text()
	l.logins[secret] = one
	return secret
}

// finish returns a login that was begun in this way, once.
func (l *sessions) finish(w way, secret string) (login, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	one, known := l.logins[secret]
	if !known || one.way != w {
		return login{}, false
	}
	delete(l.logins, secret)
	return one, !l.now().After(one.until)
}

// share returns the identity of a key, with these tokens from now on. A new one is what make makes.
func (l *sessions) share(key string, t *tokens, make func() *identity) *identity {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := l.identities[key]
	if i == nil {
		i = make()
		i.key = key
		l.identities[key] = i
	}
	i.mu.Lock()
	i.tokens = t
	i.mu.Unlock()
	return i
}

// identity returns the one of a key, nil where nobody is logged in with it.
func (l *sessions) identity(key string) *identity {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.identities[key]
}

// open begins a session. It always has a new name: one that was in the browser before may be known to somebody else.
func (l *sessions) open(i *identity, state any) *session {
	return l.put(&session{identity: i, id: rand.Text(), started: l.now(), seen: l.now(), ended: make(chan struct{}), state: state})
}

// put keeps a session, unless there is one of its name meanwhile, which it returns then.
func (l *sessions) put(s *session) *session {
	l.mu.Lock()
	defer l.mu.Unlock()
	if other := l.byID[s.id]; other != nil {
		return other
	}
	var oldest *session
	for _, other := range l.byID {
		switch {
		case l.over(other) != "":
			l.end(other, l.over(other))
		case oldest == nil || other.seen.Before(oldest.seen):
			oldest = other
		}
	}
	if len(l.byID) >= maxSessions {
		l.remove(oldest)
	}
	l.identities[s.key] = s.identity // its last session may have ended meanwhile
	l.byID[s.id] = s
	s.sessions++
	return s
}

// over tells why nobody may use a session any more; "" where somebody may.
func (l *sessions) over(s *session) string {
	now := l.now()
	switch {
	case now.Sub(s.started) > lifetime:
		return endedLifetime
	case now.Sub(s.seen) > idle:
		return endedIdle
	}
	return ""
}

// end removes a session and remembers why. The caller holds l.mu.
func (l *sessions) end(s *session, why string) {
	l.remove(s)
	l.forbid(s.id, later(s.started, l.now()).Add(lifetime), why)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// why tells for what reason a session of this name has ended; "" where that is not known here.
func (l *sessions) why(id string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed[id].why
}

// remove ends a session. The caller holds l.mu.
func (l *sessions) remove(s *session) {
	if l.byID[s.id] != s {
		return
	}
	delete(l.byID, s.id)
	close(s.ended)
	if s.sessions--; s.sessions == 0 {
		delete(l.identities, s.key)
	}
}

// find returns the session of a browser, which was seen somewhere at that time; nil where there is none.
func (l *sessions) find(id string, seen time.Time) *session {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.byID[id]
	if s == nil {
		return nil
	}
	if seen.After(s.seen) {
		s.seen = seen
	}
	if why := l.over(s); why != "" {
		l.end(s, why)
		return nil
	}
	s.seen = l.now()
	return s
}

// expired tells whether the time of a session has come, and ends it then.
func (l *sessions) expired(s *session) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	why := l.over(s)
	if why != "" {
		l.end(s, why)
	}
	return why != ""
}

// close ends a session, also for browsers that keep it.
func (l *sessions) close(s *session, why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end(s, why)
}

// shut ends all sessions of a name or of the key of an identity that have begun until now, also those of which nothing is
// known here. It reports whether that is new.
func (l *sessions) shut(name string, until time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, before := l.closed[name]
	l.forbid(name, until, l.closed[name].why)
	return !before
}

// forbid remembers what is over. The caller holds l.mu.
func (l *sessions) forbid(name string, until time.Time, why string) {
	now := l.now()
	maps.DeleteFunc(l.closed, func(_ string, c closed) bool { return now.After(c.until) })
	l.closed[name] = closed{now, until, why}
}

// admits tells whether a session that somebody keeps may go on here.
func (l *sessions) admits(s *session, key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range []string{s.id, key} {
		if c, over := l.closed[name]; over && !s.started.After(c.begun) {
			return false
		}
	}
	return l.over(s) == ""
}

// of lists the sessions of an identity.
func (l *sessions) of(i *identity) []*session {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []*session
	for _, s := range l.byID {
		if s.identity == i && l.over(s) == "" {
			list = append(list, s)
		}
	}
	return list
}

// lastSeen is when a session was used last.
func (l *sessions) lastSeen(s *session) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return s.seen
}

// Names of cookies. With the prefix a browser takes one only by TLS, for this very host and for all of its paths. Without TLS
// there is a name of the host that nobody else has: cookies know no ports.
// Consoles of one host have paths, which such a cookie does not know: their names differ.
func (m *Manager) cookieName(name string) string {
	if m.Secure {
		name = "__Host-" + name
	}
	if m.Base != "" {
		name += fmt.Sprintf("-%.4x", sha256.Sum256([]byte(m.Base)))
	}
	return name
}

const (
	sessionCookie = "solutionctl"
	loginCookie   = "solutionctl-login"
)

// setCookie puts a cookie into the browser; an empty value takes it away. No script can read it.
func (m *Manager) setCookie(w http.ResponseWriter, name, value string, site http.SameSite, age time.Duration) {
	if value == "" {
		age = -time.Second
	}
	http.SetCookie(w, &http.Cookie{
		Name: m.cookieName(name), Value: value, Path: "/", Secure: m.Secure, HttpOnly: true, SameSite: site, MaxAge: int(age.Seconds()),
	})
}

// cookie returns the value of a cookie, "" without one.
func (m *Manager) cookie(r *http.Request, name string) string {
	found, err := r.Cookie(m.cookieName(name))
	if err != nil {
		return ""
	}
	return found.Value
}

// session returns that of the browser; nil where there is none. It fails when the API server has to be asked who somebody is
// who comes from another replica, and does not say so.
func (m *Manager) session(r *http.Request) (*session, error) {
	if m.Keys == nil {
		return m.sessions.find(m.cookie(r, sessionCookie), time.Time{}), nil
	}
	k := m.opened(r)
	if k == nil {
		return nil, nil
	}
	if s := m.sessions.find(k.ID, time.Unix(k.Seen, 0)); s != nil {
		s.current().adopt(k)
		return s, nil
	}
	return m.restore(r.Context(), k)
}

// identify makes an identity with a connection of its own. The name is the one by which the API server knows it.
func (m *Manager) identify(ctx context.Context, w way, key string, t *tokens) (*identity, error) {
	i := &identity{way: w, tokens: t, state: m.UserState()}
	var bearer Token
	if t != nil {
		bearer = i.bearer
	}
	var err error
	if w == byProvider && m.ConnectAs != nil {
		i.cluster, err = m.impersonate(ctx, i)
	} else {
		i.cluster, err = m.Connect(bearer)
	}
	if err != nil {
		return nil, err
	}
	if i.user, err = i.cluster.WhoAmI(ctx); err != nil {
		return nil, err
	}
	if i.user == "system:anonymous" {
		return nil, report.Errorf(report.Unauthenticated, "the API server does not know who you are")
	}
	return m.sessions.share(key, t, func() *identity { return i }), nil
}
