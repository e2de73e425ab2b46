// Package session logs users in to the console, by a link, a token or an identity provider, and knows the sessions of their browsers.
//
// A [Manager] has the handlers for logging in and out, and finds the [Session] of a request. Sessions of one user share an [Identity]:
// the tokens and the connection to the cluster with the rights of the user. A browser keeps a random name of its session and nothing
// else, or, where several replicas share keys, the session itself, sealed: see ADR 0016.
package session

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
	idle     = 8 * time.Hour  // a session ends after this time without use
	lifetime = 24 * time.Hour // and so is every session that is so old

	maxSessions = 1000 // of all users; one of the user with the most of them makes room
)

// Options describe how users log in.
type Options struct {
	// Connect reaches the cluster with a token, which is asked for before each request; nil stands for the user who runs the program.
	Connect func(token Token) (*cluster.Cluster, error)
	// ConnectAs reaches the cluster in the name of a user of the provider; nil sends the tokens of the user. admit is called before
	// each request.
	ConnectAs func(user string, groups []string, admit func(ctx context.Context) error) (*cluster.Cluster, error)
	Origin    string
	Links     bool
	Tokens    bool
	Provider  *Provider   // nil for none
	Keys      func() Keys // for sessions that replicas share; nil keeps sessions in this process
	// Works reports whether an identity has operations at work: it lasts until they have ended, although its user has logged out.
	Works  func(i *Identity) bool
	Base   string // path of the origin, without a slash at the end
	Secure bool   // browsers come by TLS
	Sink   report.Sink
	Now    func() time.Time
	// UserState and BrowserState create the state of a user, and of a session in one browser.
	UserState, BrowserState func() any
	// ShowLogin shows the page for logging in, from which a browser continues to a path. It shows problem unless that
	// is nil; status 0 means the status of the problem.
	ShowLogin func(w http.ResponseWriter, r *http.Request, status int, to string, problem error)
}

// Token gives the bearer token of a request.
type Token func(ctx context.Context) (string, error)

// Manager logs users in and out, and knows the sessions of their browsers. Its methods may be called by several goroutines at once.
type Manager struct {
	Options
	sessions *sessions
	own      Keys // of this process, for logins at the provider where replicas share none
}

// New returns a manager without sessions.
func New(o Options) *Manager {
	return &Manager{o, newSessions(o.Now, o.Works), newKeys()}
}

// SessionsOf lists the sessions of an identity.
func (m *Manager) SessionsOf(i *Identity) []*Session { return m.sessions.of(i) }

// LastSeen returns when a session was used last.
func (m *Manager) LastSeen(s *Session) time.Time { return m.sessions.lastSeen(s) }

// Expired reports whether a session is too old or was unused for too long, and ends it then.
func (m *Manager) Expired(s *Session) bool { return m.sessions.expired(s) }

// Way is how a user has logged in.
type Way string

// The ways to log in.
const (
	ByLink     Way = "link"
	byToken    Way = "token"
	byProvider Way = "provider"
)

// Identity is a user with the connection to the cluster that has this user's rights. Browsers of one user share it: some
// providers know one refresh token for a user, so that the next login makes that of the login before worthless.
type Identity struct {
	Key  string // identifies it: never a name that a user can choose
	User string // as the API server knows it
	Way  Way

	Cluster *cluster.Cluster
	State   any // the console's state of the user

	mu     sync.Mutex
	tokens *tokens // replaced by a new login; nil for the user who runs the program

	sessions  int  // guarded by sessions.mu
	loggedOut bool // at the end of its last session; guarded by sessions.mu
}

// Bearer returns the token of the last login.
func (i *Identity) Bearer(ctx context.Context) (string, error) {
	return i.current().bearer(ctx)
}

// Fresh returns a token of the last login for a request that takes long: it was renewed just now, where the provider does that.
func (i *Identity) Fresh(ctx context.Context) (string, error) {
	return i.current().fresh(ctx)
}

func (i *Identity) current() *tokens {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.tokens
}

// Session is a browser that is logged in.
type Session struct {
	*Identity
	Id            string
	Started, seen time.Time     // seen is guarded by sessions.mu
	Ended         chan struct{} // closed when it is over
	State         any           // the console's state of this browser
}

// sessions has the sessions of all browsers.
type sessions struct {
	now   func() time.Time
	works func(i *Identity) bool

	mu         sync.Mutex
	byID       map[string]*Session
	identities map[string]*Identity
	links      map[string]time.Time // until when links can be used, by their secret
	closed     map[string]closed
}

// closed has the sessions that ended although browsers may still have them: all of a name or an identity that began
// until then, and completed logins. An entry is removed when its sessions would have expired.
type closed struct {
	begun, until time.Time
	why          string // a session ended, see endedLogout; "" where unknown
}

func newSessions(now func() time.Time, works func(i *Identity) bool) *sessions {
	return &sessions{now: now, works: works, byID: map[string]*Session{}, identities: map[string]*Identity{}, links: map[string]time.Time{}, closed: map[string]closed{}}
}

// newLink returns the secret of a link that can be used once, for some time.
func (l *sessions) newLink(timeout time.Duration) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, secret := l.now(), rand.Text()
	maps.DeleteFunc(l.links, func(_ string, until time.Time) bool { return now.After(until) })
	l.links[secret] = now.Add(timeout)
	return secret
}

// useLink reports whether the link of a secret can be used, which is so once.
func (l *sessions) useLink(secret string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	until, known := l.links[secret]
	delete(l.links, secret)
	return known && !l.now().After(until)
}

// share returns the identity of a key, with these tokens from now on, and creates it with make if needed.
func (l *sessions) share(key string, t *tokens, make func() *Identity) *Identity {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := l.identities[key]
	if i == nil {
		i = make()
		i.Key = key
		l.identities[key] = i
	}
	i.loggedOut = false
	i.mu.Lock()
	i.tokens = t
	i.mu.Unlock()
	return i
}

// identity returns the identity of a key, nil where no user is logged in with it.
func (l *sessions) identity(key string) *Identity {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.identities[key]
}

// open begins a session. It always has a new name: a name that was in the browser before could be known to an attacker.
func (l *sessions) open(i *Identity, state any) *Session {
	return l.put(&Session{Identity: i, Id: rand.Text(), Started: l.now(), seen: l.now(), Ended: make(chan struct{}), State: state})
}

// put keeps a session, unless there is one of its name meanwhile, which it returns then.
func (l *sessions) put(s *Session) *Session {
	l.mu.Lock()
	defer l.mu.Unlock()
	if other := l.byID[s.Id]; other != nil {
		return other
	}
	for _, other := range l.byID {
		if why := l.over(other); why != "" {
			l.end(other, why)
		}
	}
	if len(l.byID) >= maxSessions {
		l.remove(l.displaced())
	}
	l.identities[s.Key] = s.Identity // its last session may have ended meanwhile
	l.byID[s.Id] = s
	s.sessions++
	return s
}

// displaced returns the session that makes room: of the user with the most sessions, the one that was not used for the longest. One user, with any
// number of tokens, so displaces no other. The caller holds l.mu.
func (l *sessions) displaced() (oldest *Session) {
	of, most := map[string]int{}, 0
	for _, s := range l.byID {
		of[s.User]++
		most = max(most, of[s.User])
	}
	for _, s := range l.byID {
		if of[s.User] == most && (oldest == nil || s.seen.Before(oldest.seen)) {
			oldest = s
		}
	}
	return oldest
}

// over returns the reason why a session has ended; "" while it is valid.
func (l *sessions) over(s *Session) string {
	now := l.now()
	switch {
	case now.Sub(s.Started) > lifetime:
		return endedLifetime
	case now.Sub(s.seen) > idle:
		return endedIdle
	}
	return ""
}

// end removes a session and remembers why. The caller holds l.mu.
func (l *sessions) end(s *Session, why string) {
	l.remove(s)
	l.forbid(s.Id, later(s.Started, l.now()).Add(lifetime), why)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// why returns the reason why a session of this name has ended; "" where that is not known here.
func (l *sessions) why(id string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed[id].why
}

// remove ends a session. The caller holds l.mu.
func (l *sessions) remove(s *Session) {
	if l.byID[s.Id] != s {
		return
	}
	delete(l.byID, s.Id)
	close(s.Ended)
	s.sessions--
	l.drop(s.Identity)
}

// drop forgets an identity without sessions and without operations at work, and reports whether it did. The caller holds l.mu.
func (l *sessions) drop(i *Identity) bool {
	if i.sessions > 0 || l.identities[i.Key] != i || l.works(i) {
		return false
	}
	delete(l.identities, i.Key)
	return true
}

// leave reports whether the tokens of an identity are to be revoked, whose user has logged out of a browser: neither another one nor an operation
// needs them. It is asked again when an operation has ended.
func (l *sessions) leave(i *Identity, loggedOut bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i.loggedOut = i.sessions == 0 && (i.loggedOut || loggedOut)
	dropped := l.drop(i) || loggedOut && l.identities[i.Key] == nil
	return dropped && i.loggedOut
}

// find returns the session of a browser, which was seen somewhere at that time; nil where there is none.
func (l *sessions) find(id string, seen time.Time) *Session {
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

// expired reports whether a session has expired, and ends it then.
func (l *sessions) expired(s *Session) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	why := l.over(s)
	if why != "" {
		l.end(s, why)
	}
	return why != ""
}

// close ends a session, also for browsers that keep it.
func (l *sessions) close(s *Session, why string) {
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

// forbid records an ended session. The caller holds l.mu.
func (l *sessions) forbid(name string, until time.Time, why string) {
	now := l.now()
	maps.DeleteFunc(l.closed, func(_ string, c closed) bool { return now.After(c.until) })
	l.closed[name] = closed{now, until, why}
}

// admits reports whether a session from a browser is accepted here.
func (l *sessions) admits(s *Session, key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range []string{s.Id, key} {
		if c, over := l.closed[name]; over && !s.Started.After(c.begun) {
			return false
		}
	}
	return l.over(s) == ""
}

// of lists the sessions of an identity.
func (l *sessions) of(i *Identity) []*Session {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []*Session
	for _, s := range l.byID {
		if s.Identity == i && l.over(s) == "" {
			list = append(list, s)
		}
	}
	return list
}

// lastSeen is when a session was used last.
func (l *sessions) lastSeen(s *Session) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return s.seen
}

// cookieName is the name of a cookie in browsers. With the prefix, a browser accepts one only with TLS, for this host and for all paths.
// Consoles on one host can differ by path, so their names differ too. Cookies are shared between ports: a console without TLS has a random
// host name below localhost.
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

// Session returns the session of the browser; nil where there is none. It fails when a session comes from another
// replica and the API server does not answer which user it belongs to.
func (m *Manager) Session(r *http.Request) (*Session, error) {
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
func (m *Manager) identify(ctx context.Context, w Way, key string, t *tokens) (*Identity, error) {
	i := &Identity{Way: w, tokens: t, State: m.UserState()}
	var bearer Token
	if t != nil {
		bearer = i.Bearer
	}
	var err error
	if w == byProvider && m.ConnectAs != nil {
		i.Cluster, err = m.impersonate(ctx, i)
	} else {
		i.Cluster, err = m.Connect(bearer)
	}
	if err != nil {
		return nil, err
	}
	if i.User, err = i.Cluster.WhoAmI(ctx); err != nil {
		return nil, err
	}
	if i.User == "system:anonymous" {
		return nil, report.Errorf(report.Unauthenticated, "the API server does not know who you are")
	}
	return m.sessions.share(key, t, func() *Identity { return i }), nil
}
