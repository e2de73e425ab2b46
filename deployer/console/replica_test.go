package console_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/solutionctl/solutionctl/deployer/cluster/clustertest"
	"github.com/solutionctl/solutionctl/deployer/console"
	"github.com/solutionctl/solutionctl/deployer/console/session"
	"github.com/solutionctl/solutionctl/schema/report"
)

// fleet is a console with several replicas behind one address.
type fleet struct {
	*bench
	replicas []*console.Console
	at       atomic.Int64 // which one answers
}

// keys returns keys from files that have these bytes, repeated.
func keys(t *testing.T, of ...byte) session.Keys {
	t.Helper()
	var file strings.Builder
	for _, b := range of {
		file.WriteString(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{b}, 32)) + "\n")
	}
	k, err := session.ParseKeys([]byte(file.String()))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// fleetOf starts a replica for each key ring.
func fleetOf(t *testing.T, change func(*console.Options), rings ...session.Keys) *fleet {
	t.Helper()
	f := &fleet{}
	var o console.Options
	f.bench = start(t, func(p *console.Options) {
		p.Keys = func() session.Keys { return rings[0] }
		if change != nil {
			change(p)
		}
		o = *p
	})
	f.replicas = []*console.Console{f.Console}
	for _, ring := range rings[1:] {
		o.Keys = func() session.Keys { return ring }
		if o.Provider != nil { // replicas do not share this knowledge
			o.Provider = &session.Provider{Issuer: o.Provider.Issuer, ClientID: o.Provider.ClientID, ClientSecret: o.Provider.ClientSecret, CA: o.Provider.CA}
		}
		c, err := console.New(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		f.replicas = append(f.replicas, c)
	}
	f.server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { f.replicas[f.at.Load()].ServeHTTP(w, r) })
	return f
}

// from is a browser with a stolen cookie.
func (f *fleet) from(t *testing.T, session string) *browser {
	t.Helper()
	c := f.browser(t)
	at, err := url.Parse(f.server.URL)
	if err != nil {
		t.Fatal(err)
	}
	c.Jar.SetCookies(at, []*http.Cookie{{Name: "solutionctl", Value: session, Path: "/"}})
	return c
}

// logged fails unless a browser is logged in, or is not.
func (b *browser) logged(in bool) {
	b.Helper()
	if a := b.get("/"); (a.StatusCode == http.StatusOK) != in || !in && !strings.HasPrefix(a.Header.Get("Location"), "/login?") {
		b.Errorf("logged in is not %v: %d to %s\n%s", in, a.StatusCode, a.Header.Get("Location"), a.body)
	}
}

func TestReplicas(t *testing.T) {
	f := fleetOf(t, nil, keys(t, 1), keys(t, 1), keys(t, 2, 1), keys(t, 2))
	c := f.with(t, "a-secret-token")
	cookie := c.sessionCookie()
	if raw, err := base64.RawURLEncoding.DecodeString(cookie); err != nil || len(cookie) > 4000 || bytes.Contains(raw, []byte("secret")) {
		t.Errorf("the browser keeps %q", cookie)
	}
	for replica, knows := range []bool{true, true, true, false} {
		f.at.Store(int64(replica))
		f.from(t, cookie).logged(knows)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, token := range f.sent {
		if token != "a-secret-token" {
			t.Errorf("a request was sent with credentials %q", token)
		}
	}
}

// TestSealed: modified sessions are refused.
func TestSealed(t *testing.T) {
	f := fleetOf(t, nil, keys(t, 1), keys(t, 1))
	elsewhere := fleetOf(t, nil, keys(t, 1))
	cookie := f.with(t, "mine").sessionCookie()
	f.at.Store(1)
	flip := func(i int) string {
		raw, err := base64.RawURLEncoding.DecodeString(cookie)
		if err != nil {
			t.Fatal(err)
		}
		raw[(i+len(raw))%len(raw)] ^= 1
		return base64.RawURLEncoding.EncodeToString(raw)
	}
	for name, forged := range map[string]string{
		"nonce": flip(0), "content": flip(20), "tag": flip(-1), "cut": cookie[:len(cookie)-4], "longer": cookie + "AAAA", "other alphabet": "+" + cookie[1:],
		"text": `{"i":"a","w":"token","d":"mine"}`, "base64": base64.RawURLEncoding.EncodeToString([]byte(`{"i":"a","w":"token","d":"mine"}`)),
		"empty": "", "another console's": elsewhere.with(t, "mine").sessionCookie(),
	} {
		t.Run(name, func(t *testing.T) { f.from(t, forged).logged(false) })
	}
	f.from(t, cookie).logged(true)
}

// TestSealedEnds: a sealed session ends like one without keys.
func TestSealedEnds(t *testing.T) {
	f := fleetOf(t, nil, keys(t, 1), keys(t, 1))
	c := f.with(t, "mine")
	old := c.sessionCookie()
	for i := range 3 { // it continues wherever it is used
		f.clock.advance(7 * time.Hour)
		f.at.Store(int64((i + 1) % 2))
		c.logged(true)
		if c.sessionCookie() == old {
			t.Error("the browser keeps when it was seen long ago")
		}
	}
	f.at.Store(1)
	f.clock.advance(4 * time.Hour)
	c.logged(false)

	c = f.with(t, "mine")
	f.at.Store(0)
	f.clock.advance(9 * time.Hour)
	c.logged(false)
}

// TestSealedLogout: after a logout at one replica, a copy of the session is refused there, however it is renewed.
func TestSealedLogout(t *testing.T) {
	f := fleetOf(t, nil, keys(t, 1), keys(t, 1))
	c, same := f.with(t, "mine"), f.with(t, "mine")
	stolen, kept := c.sessionCookie(), same.sessionCookie()
	f.at.Store(1) // which knows nothing of them
	c.leads(c.post("/logout"), "/login?ended=logout")
	f.from(t, stolen).logged(false)
	thief := f.from(t, stolen)
	f.at.Store(0)
	f.clock.advance(10 * time.Minute)
	thief.get("/") // perhaps it is sealed again here
	f.at.Store(1)
	thief.logged(false)

	f.from(t, kept).logged(true)
	same.leads(same.post("/logout", "all", "true"), "/login?ended=logout")
	f.from(t, kept).logged(false)
	f.clock.advance(time.Second)
	f.with(t, "mine").logged(true) // who logs in again is in
}

func TestSealedFixation(t *testing.T) {
	f := fleetOf(t, nil, keys(t, 1), keys(t, 1))
	planted := f.with(t, "attackers").sessionCookie()
	f.at.Store(1)
	c := f.from(t, planted)
	c.leads(c.post("/login/token", "token", "mine"), "/")
	if c.sessionCookie() == planted {
		t.Error("the login keeps a session that was there before")
	}
	f.from(t, planted).logged(false) // it has ended, and its owner is in another browser
}

// TestSealedIsTooLarge: a token that no cookie takes works where it was given.
func TestSealedIsTooLarge(t *testing.T) {
	f := fleetOf(t, nil, keys(t, 1), keys(t, 1))
	var long strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&long, "%x", i*i*7919)
	}
	c := f.with(t, long.String())
	if cookie := c.sessionCookie(); len(cookie) > 4000 {
		t.Errorf("a cookie of %d bytes", len(cookie))
	}
	c.logged(true)
	f.at.Store(1)
	c.logged(false)
	f.at.Store(0)
	c.logged(true)
}

// TestRestoreWithoutCluster: an API server that does not answer ends no session.
func TestRestoreWithoutCluster(t *testing.T) {
	f := fleetOf(t, nil, keys(t, 1), keys(t, 1))
	c := f.with(t, "mine")
	f.at.Store(1)
	answers := f.api.Answer
	f.api.Answer = func(w http.ResponseWriter, _ *http.Request) bool {
		clustertest.Fail(w, apierrors.NewServiceUnavailable("later"))
		return true
	}
	if a := c.get("/"); a.StatusCode < 500 || c.sessionCookie() == "" {
		t.Errorf("%d\n%s", a.StatusCode, a.body)
	}
	f.api.Answer = answers
	c.logged(true)
	f.deny("mine")
	f.at.Store(0)
	f.clock.advance(2 * time.Second)
	c.leads(c.get("/"), "/login?to=%2F&ended=refused")
}

func fleetWithProvider(t *testing.T) (*fleet, *provider) {
	t.Helper()
	c := &clock{}
	p := startProvider(t, c.now)
	p.rotate = true
	f := fleetOf(t, func(o *console.Options) {
		o.Provider, o.Now = p.client(), c.now
	}, keys(t, 1), keys(t, 1))
	f.clock = c
	return f, p
}

// TestProviderLeadsElsewhere begins a login at one replica and ends it at another.
func TestProviderLeadsElsewhere(t *testing.T) {
	f, p := fleetWithProvider(t)
	c := f.browser(t)
	back := p.visit(c.get("/auth/start?to=%2Fhistory"))
	at, _ := url.Parse(f.server.URL)
	begun := c.Jar.Cookies(at)
	if len(begun) != 1 || strings.Contains(begun[0].Value, "history") {
		t.Fatalf("the browser keeps %v", begun)
	}
	f.at.Store(1)
	f.browser(t).get(back) // another browser uses the stolen link
	f.from(t, begun[0].Value).logged(false)
	c.leads(c.get(back), "/history")
	c.logged(true)
	c.Jar.SetCookies(at, begun)
	if a := c.get(back); a.StatusCode != http.StatusForbidden {
		t.Errorf("a login is finished twice: %d", a.StatusCode)
	}

	late := f.browser(t)
	back = p.visit(late.get("/auth/start"))
	f.clock.advance(11 * time.Minute)
	if a := late.get(back); a.StatusCode != http.StatusForbidden || late.sessionCookie() != "" {
		t.Errorf("a login takes as long as somebody likes: %d", a.StatusCode)
	}
}

// TestProviderRenewsAnywhere: tokens that can be renewed only once are renewed by one replica, and the others get the
// new ones.
func TestProviderRenewsAnywhere(t *testing.T) {
	f, p := fleetWithProvider(t)
	c := f.browser(t)
	c.leads(c.get(p.visit(c.get("/auth/start"))), "/")
	for i := range 6 {
		f.clock.advance(10 * time.Minute)
		f.at.Store(int64(i / 2 % 2))
		c.logged(true)
		f.at.Store(int64((i/2 + 1) % 2))
		c.logged(true)
	}
	if p.refreshes != 6 {
		t.Errorf("%d renewals, want 6", p.refreshes)
	}
}

// TestProviderIsNotified: after a logout, copied tokens cannot be renewed any more.
func TestProviderIsNotified(t *testing.T) {
	f, p := fleetWithProvider(t)
	c, other := f.browser(t), f.browser(t)
	c.leads(c.get(p.visit(c.get("/auth/start"))), "/")
	p.rotate = false
	other.leads(other.get(p.visit(other.get("/auth/start"))), "/")
	thief := f.from(t, c.sessionCookie())
	c.leads(c.post("/logout"), "/login?ended=logout")
	if len(p.revoked) > 0 {
		t.Errorf("another browser of the user has lost its login: %q", p.revoked)
	}
	other.leads(other.post("/logout"), "/login?ended=logout")
	if len(p.revoked) != 1 || p.revoked[0] != "again" {
		t.Errorf("the provider was told %q", p.revoked)
	}
	f.at.Store(1)
	f.clock.advance(11 * time.Minute)
	thief.logged(false)
}

func TestParseKeys(t *testing.T) {
	good := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32))
	for _, test := range []struct {
		file string
		keys int // 0: it is refused
	}{
		{good, 1},
		{"# the new one\n" + good + "\n\n  " + good + "\r\n", 2},
		{"", 0},
		{"# nothing\n", 0},
		{good[:20], 0},
		{base64.StdEncoding.EncodeToString(make([]byte, 16)), 0},
		{"secret words", 0},
		{strings.Repeat(good+"\n", 17), 0},
	} {
		k, err := session.ParseKeys([]byte(test.file))
		if len(k) != test.keys || (err == nil) != (test.keys > 0) {
			t.Errorf("%q: %d keys, %v", test.file, len(k), err)
		}
		if err != nil && (report.CodeOf(err) != report.Invalid || strings.Contains(err.Error(), "secret words")) {
			t.Errorf("%q: %v", test.file, err)
		}
	}
}

// TestBelow is a console below a path, as an Ingress has it.
func TestBelow(t *testing.T) {
	b := start(t, func(o *console.Options) { o.Origin += "/below" })
	c := b.browser(t)
	c.leads(c.get("/below"), "/below/")
	c.leads(c.get("/below/"), "/below/login?to=%2F")
	c.leads(c.get("/below/history?a=b"), "/below/login?to=%2Fhistory%3Fa%3Db")
	for _, path := range []string{
		"/", "/login", "/belowX", "/below.example", "/below//evil.example", "/below/../login", "/below/./login", "/below//", "/below/%2e%2e/login", "/auth/callback",
	} {
		if a := c.get(path); a.StatusCode != http.StatusNotFound || a.Header.Get("Location") != "" {
			t.Errorf("%s: %d to %q", path, a.StatusCode, a.Header.Get("Location"))
		}
	}
	c.leads(c.post("/below/login/token", "token", "mine", "to", "/history"), "/below/history")
	a := c.get("/below/")
	if a.StatusCode != http.StatusOK || strings.Contains(strings.ReplaceAll(a.body, `="/below/`, ""), `="/`) {
		t.Errorf("%d: a link leads beside the console\n%s", a.StatusCode, a.body)
	}
	at, _ := url.Parse(b.server.URL)
	for _, cookie := range c.Jar.Cookies(at) {
		if cookie.Name == "solutionctl" {
			t.Error("a console at the root of this host has the same cookie")
		}
	}
	c.leads(c.post("/below/logout"), "/below/login?ended=logout")
}

// TestHealth: who supervises the program knows its address and not its name, and learns nothing else.
func TestHealth(t *testing.T) {
	b := start(t, func(o *console.Options) { o.Origin = "https://console.example/below" })
	c := b.browser(t)
	if a := c.get("/healthz"); a.StatusCode != http.StatusNoContent || a.body != "" {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if a := c.get("/below/"); a.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("%d", a.StatusCode)
	}
	if sent := b.api.Requests(); len(sent) > 0 {
		t.Errorf("the API server was asked: %q", sent)
	}
}
