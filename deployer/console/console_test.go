package console_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"maps"
	"math/big"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/cluster/clustertest"
	"github.com/solutionctl/solutionctl/deployer/console"
	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/deployer/console/session"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/host/service"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// bench is a console before an API server in memory.
type bench struct {
	*console.Console
	api    *clustertest.Server
	server *httptest.Server
	clock  *clock
	end    context.CancelFunc

	mu     sync.Mutex
	denied map[string]bool // tokens that the API server does not know
	sent   []string        // the credentials that it got
}

// clock goes as the real one, from another time on.
type clock struct {
	mu    sync.Mutex
	ahead time.Duration
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.ahead)
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += d
}

func start(t *testing.T, change func(*console.Options)) *bench {
	t.Helper()
	return startOn(t, clustertest.Start(t), change)
}

func startOn(t *testing.T, api *clustertest.Server, change func(*console.Options)) *bench {
	t.Helper()
	b := &bench{api: api, clock: &clock{}, denied: map[string]bool{"bad": true}}
	b.api.Answer = b.authenticate
	kubeconfig := b.api.Kubeconfig(t)
	b.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { b.ServeHTTP(w, r) }))
	t.Cleanup(b.server.Close)
	o := console.Options{
		Connect: func(token session.Token) (*cluster.Cluster, error) {
			return cluster.Connect(cluster.Options{Kubeconfig: kubeconfig, Token: token, Now: b.clock.now, Retry: -1})
		},
		Origin: b.server.URL, Links: true, Tokens: true, Exports: t.TempDir(), Version: "1.0.0-test", Host: "here", Now: b.clock.now,
	}
	if change != nil {
		change(&o)
	}
	ctx, end := context.WithCancel(t.Context())
	b.end = end
	var err error
	if b.Console, err = console.New(ctx, o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { end(); b.Wait() })
	return b
}

// authenticate answers as an API server does to a token that it does not know.
func (b *bench) authenticate(w http.ResponseWriter, r *http.Request) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	b.sent = append(b.sent, token)
	if b.denied[token] {
		clustertest.Fail(w, apierrors.NewUnauthorized("Unauthorized"))
		return true
	}
	return false
}

func (b *bench) deny(token string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.denied[token] = true
}

// browser is a client with cookies that does not follow redirects.
type browser struct {
	*testing.T
	*http.Client
	bench  *bench
	header http.Header
}

func (b *bench) browser(t *testing.T) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return &browser{T: t, Client: c, bench: b, header: http.Header{"Accept": {"text/html"}}}
}

// answer is a response.
type answer struct {
	*http.Response
	body string
}

// begin sends a request, and returns the response with its body still to be read.
func (b *browser) begin(method, path string, form url.Values) *http.Response {
	b.Helper()
	target := path
	if !strings.HasPrefix(path, "http") {
		target = b.bench.server.URL + path
	}
	r, err := http.NewRequestWithContext(b.Context(), method, target, strings.NewReader(form.Encode()))
	if err != nil {
		b.Fatal(err)
	}
	maps.Copy(r.Header, b.header)
	if host := b.header.Get("Host"); host != "" {
		r.Host = host
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	response, err := b.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	return response
}

func (b *browser) do(method, path string, form url.Values) answer {
	b.Helper()
	response := b.begin(method, path, form)
	defer response.Body.Close() //nolint:errcheck // it was read
	body, err := io.ReadAll(response.Body)
	if err != nil {
		b.Fatal(err)
	}
	return answer{response, string(body)}
}

func (b *browser) get(path string) answer { b.Helper(); return b.do(http.MethodGet, path, nil) }

func (b *browser) post(path string, fields ...string) answer {
	b.Helper()
	form := url.Values{}
	for i := 0; i < len(fields); i += 2 {
		form.Add(fields[i], fields[i+1])
	}
	return b.do(http.MethodPost, path, form)
}

// json reads a page as a document.
func (b *browser) json(path string, into any) answer {
	b.Helper()
	old := b.header
	b.header = http.Header{"Accept": {"application/json"}}
	a := b.get(path)
	b.header = old
	if err := json.Unmarshal([]byte(a.body), into); err != nil {
		b.Fatalf("%s: %v\n%s", path, err, a.body)
	}
	return a
}

// leads fails unless an answer leads to a path.
func (b *browser) leads(a answer, to string) {
	b.Helper()
	if a.StatusCode != http.StatusSeeOther || a.Header.Get("Location") != to {
		b.Fatalf("status %d to %q, want 303 to %q\n%s", a.StatusCode, a.Header.Get("Location"), to, a.body)
	}
}

// in is a browser that is logged in with a link.
func (b *bench) in(t *testing.T) *browser {
	t.Helper()
	c := b.browser(t)
	c.leads(c.get(b.NewLink()), "/")
	return c
}

// with is a browser that is logged in with a token.
func (b *bench) with(t *testing.T, token string) *browser {
	t.Helper()
	c := b.browser(t)
	c.leads(c.post("/login/token", "token", token), "/")
	return c
}

func (b *browser) sessionCookie() string {
	at, _ := url.Parse(b.bench.server.URL)
	for _, c := range b.Jar.Cookies(at) {
		if c.Name == "solutionctl" {
			return c.Value
		}
	}
	return ""
}

func TestLink(t *testing.T) {
	b := start(t, nil)
	link := b.NewLink()
	c := b.browser(t)
	c.leads(c.get(link), "/")
	if a := c.get("/"); a.StatusCode != http.StatusOK {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	other := b.browser(t)
	if a := other.get(link); a.StatusCode != http.StatusForbidden || other.sessionCookie() != "" {
		t.Errorf("a link works twice: %d", a.StatusCode)
	}
	late := b.NewLink()
	b.clock.advance(session.LinkLifetime + time.Second)
	if a := other.get(late); a.StatusCode != http.StatusForbidden || other.sessionCookie() != "" {
		t.Errorf("a link works after its time: %d", a.StatusCode)
	}
	if a := other.get("/start?once="); a.StatusCode != http.StatusForbidden {
		t.Errorf("no link at all: %d", a.StatusCode)
	}
}

func TestWithoutSession(t *testing.T) {
	b := start(t, nil)
	c := b.browser(t)
	for path, to := range map[string]string{
		"/": "/login?to=%2F", "/environments/x?a=b": "/login?to=%2Fenvironments%2Fx%3Fa%3Db", "/nonsense": "/login?to=%2Fnonsense",
	} {
		c.leads(c.get(path), to)
	}
	for _, path := range []string{"/environments", "/operations/resume", "/solutions/a/plan/activate"} {
		if a := c.post(path); a.StatusCode != http.StatusSeeOther || !strings.HasPrefix(a.Header.Get("Location"), "/login?to=") {
			t.Errorf("POST %s: %d %s", path, a.StatusCode, a.Header.Get("Location"))
		}
	}
	var f struct{ Code report.Code }
	if a := c.json("/", &f); a.StatusCode != http.StatusUnauthorized || f.Code != report.Unauthenticated {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if a := c.get("/events"); a.StatusCode != http.StatusUnauthorized {
		t.Errorf("events: %d", a.StatusCode)
	}
	if sent := b.api.Requests(); len(sent) > 0 {
		t.Errorf("the API server was asked for somebody who is not logged in: %q", sent)
	}
}

func TestToken(t *testing.T) {
	b := start(t, nil)
	c := b.browser(t)
	for _, token := range []string{"bad", "", "two words", "tok\r\nen: x", strings.Repeat("é", 3)} {
		a := c.post("/login/token", "token", token)
		if a.StatusCode != http.StatusUnauthorized || c.sessionCookie() != "" {
			t.Errorf("token %q: %d", token, a.StatusCode)
		}
		if token != "" && strings.Contains(a.body, `"`+token+`"`) {
			t.Errorf("the page shows token %q", token)
		}
	}
	c.leads(c.post("/login/token", "token", " good-token\n", "to", "/history"), "/history")
	b.mu.Lock()
	b.sent = nil
	b.mu.Unlock()
	if a := c.get("/"); a.StatusCode != http.StatusOK || strings.Contains(a.body, "good-token") {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.sent) == 0 {
		t.Error("nothing was asked")
	}
	for _, token := range b.sent {
		if token != "good-token" {
			t.Errorf("a request was sent with credentials %q", token)
		}
	}
}

func TestTokenExpires(t *testing.T) {
	b := start(t, nil)
	c, other := b.with(t, "mine"), b.with(t, "other")
	b.deny("mine")
	b.clock.advance(2 * time.Second) // the earlier snapshot is too old to be shown
	c.leads(c.get("/"), "/login?to=%2F&ended=refused")
	c.leads(c.get("/history"), "/login?to=%2Fhistory&ended=refused") // the session is over, not only this page
	if a := other.get("/"); a.StatusCode != http.StatusOK {
		t.Errorf("the session of somebody else: %d", a.StatusCode)
	}
}

func TestSessionFixation(t *testing.T) {
	b := start(t, nil)
	c := b.browser(t)
	at, _ := url.Parse(b.server.URL)
	c.Jar.SetCookies(at, []*http.Cookie{{Name: "solutionctl", Value: "chosen-by-somebody-else", Path: "/"}})
	c.leads(c.get(b.NewLink()), "/")
	first := c.sessionCookie()
	if first == "" || first == "chosen-by-somebody-else" {
		t.Fatalf("session %q", first)
	}
	c.leads(c.get(b.NewLink()), "/")
	if c.sessionCookie() == first {
		t.Error("a second login keeps the name of the session")
	}
	thief := b.browser(t)
	thief.Jar.SetCookies(at, []*http.Cookie{{Name: "solutionctl", Value: first, Path: "/"}})
	thief.leads(thief.get("/"), "/login?to=%2F&ended=logout")
}

func TestLogout(t *testing.T) {
	b := start(t, nil)
	c, same, other := b.with(t, "mine"), b.with(t, "mine"), b.with(t, "other")
	stolen := c.sessionCookie()
	a := c.post("/logout")
	c.leads(a, "/login?ended=logout")
	if c.sessionCookie() != "" {
		t.Errorf("the browser keeps the session: %v", a.Header)
	}
	if a.Header.Get("Clear-Site-Data") != "" || len(a.Cookies()) != 1 {
		t.Errorf("it loses what is of others on this host: %v", a.Header)
	}
	at, _ := url.Parse(b.server.URL)
	c.Jar.SetCookies(at, []*http.Cookie{{Name: "solutionctl", Value: stolen, Path: "/"}})
	c.leads(c.get("/"), "/login?to=%2F&ended=logout")
	if a := same.get("/"); a.StatusCode != http.StatusOK {
		t.Errorf("another browser of the user: %d", a.StatusCode)
	}
	same.leads(same.post("/logout", "all", "true"), "/login?ended=logout")
	if a := other.get("/"); a.StatusCode != http.StatusOK {
		t.Errorf("somebody else: %d", a.StatusCode)
	}
}

func TestSessionEnds(t *testing.T) {
	b := start(t, nil)
	c := b.in(t)
	for range 4 { // used all the time, and over nevertheless
		b.clock.advance(7 * time.Hour)
		if a := c.get("/login"); a.StatusCode != http.StatusSeeOther && b.clock.ahead < 24*time.Hour {
			t.Fatalf("after %v: %d", b.clock.ahead, a.StatusCode)
		}
	}
	c.leads(c.get("/"), "/login?to=%2F&ended=lifetime")
	c = b.in(t)
	b.clock.advance(9 * time.Hour)
	c.leads(c.get("/"), "/login?to=%2F&ended=idle")
}

func TestHeaders(t *testing.T) {
	b := start(t, nil)
	in, out := b.in(t), b.browser(t)
	for name, a := range map[string]answer{
		"page": in.get("/"), "plan": in.get("/solutions/none/plan/activate"), "nothing": in.get("/nothing"), "login": out.get("/login"), "redirect": out.get("/"),
		"foreign host": func() answer {
			out.header.Set("Host", "evil.example")
			defer out.header.Del("Host")
			return out.get("/login")
		}(),
	} {
		for header, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; " +
				"base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
			"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Referrer-Policy": "no-referrer",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			if got := a.Header.Get(header); got != want {
				t.Errorf("%s: %s is %q, want %q", name, header, got, want)
			}
		}
		for _, inline := range []string{"<style", "style=", "<script>", "onclick=", "javascript:"} {
			if strings.Contains(a.body, inline) {
				t.Errorf("%s has %s", name, inline)
			}
		}
	}
}

func TestForeignHost(t *testing.T) {
	b := start(t, nil)
	c := b.in(t)
	for _, host := range []string{"evil.example", "localhost", "127.0.0.1", "127.0.0.1:1"} {
		c.header.Set("Host", host)
		if a := c.get("/"); a.StatusCode != http.StatusMisdirectedRequest {
			t.Errorf("host %s: %d", host, a.StatusCode)
		}
	}
}

func TestForeignOrigin(t *testing.T) {
	b := start(t, nil)
	c := b.in(t)
	for _, header := range []http.Header{
		{"Sec-Fetch-Site": {"cross-site"}}, {"Sec-Fetch-Site": {"same-site"}}, {"Origin": {"https://evil.example"}}, {"Origin": {"null"}},
	} {
		for _, path := range []string{"/login/token", "/logout", "/environments", "/operations/resume", "/operations/x/stop", "/solutions/a/plan/activate"} {
			c.header = header
			if a := c.post(path, "token", "attackers", "name", "env"); a.StatusCode != http.StatusForbidden {
				t.Errorf("POST %s with %v: %d", path, header, a.StatusCode)
			}
		}
	}
	c.header = http.Header{"Sec-Fetch-Site": {"same-origin"}, "Origin": {b.server.URL}}
	c.leads(c.post("/logout"), "/login?ended=logout")
}

// TestCrossSiteLink follows a link from elsewhere: the browser keeps the cookie to itself, and comes again without being asked.
func TestCrossSiteLink(t *testing.T) {
	b := start(t, nil)
	c := b.browser(t)
	c.header.Set("Sec-Fetch-Site", "cross-site")
	a := c.get("/history")
	if a.StatusCode != http.StatusOK || a.Header.Get("Refresh") != "0; url=/login?to=%2Fhistory" {
		t.Errorf("%d %v", a.StatusCode, a.Header)
	}
	in := b.in(t)
	in.leads(in.get("/login?to=%2Fhistory"), "/history")
}

func TestOpenRedirect(t *testing.T) {
	b := start(t, nil)
	c := b.in(t)
	for _, to := range []string{
		"//evil.example", "https://evil.example", `/\evil.example`, "/\t/evil.example", "javascript:alert(1)", "evil", "", "/%0d%0aSet-Cookie: a=b", "/a\r\nLocation: https://evil.example",
	} {
		a := c.get("/login?to=" + url.QueryEscape(to))
		at := a.Header.Get("Location")
		u, err := url.Parse(at)
		if err != nil || u.Host != "" || u.Scheme != "" || !strings.HasPrefix(at, "/") || strings.HasPrefix(at, "//") || a.Header.Get("Set-Cookie") != "" {
			t.Errorf("to=%q leads to %q", to, at)
		}
	}
	c.leads(c.get("/login?to=%2Fenvironments%2Fa%3Fb%3Dc"), "/environments/a?b=c")
}

func TestCookies(t *testing.T) {
	for _, test := range []struct{ origin, to, want string }{
		{"http://console.localhost:1", "/", "solutionctl=ID; Path=/; Max-Age=86400; HttpOnly; SameSite=Strict"},
		{"https://console.example", "/", "__Host-solutionctl=ID; Path=/; Max-Age=86400; HttpOnly; Secure; SameSite=Strict"},
		{"https://console.example/below", "/below/", "__Host-solutionctl-88821692=ID; Path=/; Max-Age=86400; HttpOnly; Secure; SameSite=Strict"},
	} {
		b := start(t, func(o *console.Options) { o.Origin = test.origin })
		w := httptest.NewRecorder()
		b.ServeHTTP(w, httptest.NewRequest(http.MethodGet, b.NewLink(), nil))
		var got string
		for _, c := range w.Result().Cookies() {
			if !strings.Contains(c.Name, "login") {
				c.Value = "ID"
				got = c.String()
			}
		}
		if got != test.want {
			t.Errorf("%s: %s, want %s", test.origin, got, test.want)
		}
		if to := w.Header().Get("Location"); to != test.to {
			t.Errorf("%s leads to %s, want %s", test.origin, to, test.to)
		}
	}
}

func TestLargeBody(t *testing.T) {
	b := start(t, nil)
	c := b.in(t)
	if a := c.post("/environments", "name", "a", "description", strings.Repeat("x", 3<<20)); a.StatusCode < 400 {
		t.Errorf("%d", a.StatusCode)
	}
	if names := b.api.Names("Namespace"); strings.Contains(strings.Join(names, " "), "/a") {
		t.Errorf("it was created: %q", names)
	}
}

func TestCreateEnvironment(t *testing.T) {
	b := start(t, nil)
	c := b.in(t)
	c.leads(c.post("/environments", "name", "test", "description", "<script>alert(1)</script>"), "/environments/test")
	var e schema.EnvironmentStatus
	if c.json("/environments/test", &e); e.Name != "test" || e.Description != "<script>alert(1)</script>" {
		t.Errorf("%+v", e)
	}
	if a := c.get("/environments/test"); strings.Contains(a.body, "<script>alert") {
		t.Errorf("a description is HTML:\n%s", a.body)
	}
	for _, name := range []string{"", "Upper", "../x", "kube-system"} {
		if a := c.post("/environments", "name", name); a.StatusCode < 400 {
			t.Errorf("environment %q: %d", name, a.StatusCode)
		}
	}
}

func TestDeleteEnvironment(t *testing.T) {
	b := start(t, nil)
	c := b.in(t)
	c.leads(c.post("/environments", "name", "test"), "/environments/test")
	path := "/environments/test/plan/delete"
	var plan schema.Operation
	c.json(path, &plan)
	if !plan.Planned || plan.Empty() {
		t.Fatalf("%+v", plan)
	}
	digest := c.planDigest(path)
	if a := c.post(path, "plan", "another"); a.StatusCode != http.StatusConflict {
		t.Errorf("a plan that nobody saw: %d", a.StatusCode)
	}
	if b.api.Object("Namespace", "", "test") == nil {
		t.Fatal("it was deleted")
	}
	a := c.post(path, "plan", digest) // nothing in it needs a confirmation
	at := a.Header.Get("Location")
	if a.StatusCode != http.StatusSeeOther || !strings.HasPrefix(at, "/operations/") {
		t.Fatalf("%d %s\n%s", a.StatusCode, at, a.body)
	}
	if events := c.get(at + "/events"); !strings.Contains(events.body, "event: end") {
		t.Errorf("events: %s", events.body)
	}
	var done struct {
		Finished *time.Time
		Error    any
	}
	if c.json(at, &done); done.Finished == nil || done.Error != nil {
		t.Errorf("%+v", done)
	}
	if b.api.Object("Namespace", "", "test") != nil {
		t.Error("it is still there")
	}
	other := b.with(t, "somebody-else")
	for _, path := range []string{at, at + "/events", at + "/export"} {
		if a := other.get(path); a.StatusCode != http.StatusNotFound {
			t.Errorf("somebody else sees %s: %d", path, a.StatusCode)
		}
	}
}

// TestNamespaces: an environment gets another namespace, and one of several goes without the others.
func TestNamespaces(t *testing.T) {
	b := start(t, nil)
	c := b.in(t)
	c.leads(c.post("/environments", "name", "test"), "/environments/test")
	const one = "/plan/delete?namespace=test"
	if a := c.get("/environments/test"); !strings.Contains(a.body, "/environments/new?of=test") || strings.Contains(a.body, one) {
		t.Errorf("not another namespace, or a way to delete the only one:\n%s", content(a.body))
	}
	if a := c.get("/environments/new?of=test"); !strings.Contains(a.body, "New namespace in test") || strings.Contains(a.body, `id="description`) {
		t.Errorf("%s", content(a.body))
	}
	if a := c.post("/environments", "of", "test", "name", "test", "namespace", "Test"); a.StatusCode < 400 || !strings.Contains(a.body, "New namespace in test") {
		t.Errorf("%d\n%s", a.StatusCode, content(a.body))
	}
	c.leads(c.post("/environments", "of", "test", "name", "test", "namespace", "test-eu"), "/environments/test")
	b.clock.advance(2 * time.Second)
	if a := c.get("/environments/test"); !strings.Contains(a.body, one+"-eu") {
		t.Errorf("one of two cannot be deleted:\n%s", content(a.body))
	}
	path := "/environments/test/plan/delete?namespace=test-eu"
	if a := c.get(path); !strings.Contains(a.body, "Delete namespace test-eu of environment test") {
		t.Errorf("%s", content(a.body))
	}
	c.applies(path)
	if b.api.Object("Namespace", "", "test-eu") != nil || b.api.Object("Namespace", "", "test") == nil {
		t.Error("not this namespace was deleted")
	}
}

// planDigest is the digest of the plan that a page shows.
func (b *browser) planDigest(path string) string {
	b.Helper()
	a := b.get(path)
	digest := a.Header.Get("Solutionctl-Plan")
	if a.StatusCode != http.StatusOK || digest == "" {
		b.Fatalf("%s has no plan to apply: %d\n%s", path, a.StatusCode, a.body)
	}
	return digest
}

// TestFeedIsShared lets many browsers of one user look at the same time.
func TestFeedIsShared(t *testing.T) {
	b := start(t, nil)
	c := b.in(t)
	looks := func() []string { // alerts are asked for beside a look, by a request that may come later; a page that waits asks whether the server answers
		return slices.DeleteFunc(b.api.Requests(), func(r string) bool {
			return strings.HasSuffix(r, "/configmaps/monitoring") || strings.HasSuffix(r, "/version")
		})
	}
	c.get("/")
	looks()
	b.clock.advance(time.Hour)
	c.get("/")
	one := looks()
	b.clock.advance(time.Hour)
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if a := c.get("/"); a.StatusCode != http.StatusOK {
				t.Errorf("%d", a.StatusCode)
			}
		})
	}
	all.Wait()
	if many := looks(); len(one) == 0 || len(many) > len(one) {
		t.Errorf("one browser takes %q, fifty take %q", one, many)
	}
}

// TestFeedFollows: while a tab is open, the cluster is watched, and read again only after a change.
func TestFeedFollows(t *testing.T) {
	bed := deployertest.New(t)
	var looks, watches atomic.Int64
	b := startOn(t, bed.Server, nil)
	b.api.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/api/v1/namespaces" {
			if r.URL.Query().Has("watch") {
				watches.Add(1)
			} else {
				looks.Add(1)
			}
		}
		return b.authenticate(w, r)
	}
	c := b.in(t)
	next := c.follow("/events")
	if !next() {
		t.Fatal("a browser is told nothing")
	}
	for end := time.Now().Add(20 * time.Second); watches.Load() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("namespaces are not watched")
		}
	}
	before := looks.Load()
	bed.Namespace("production", "production")
	if !next() {
		t.Fatal("a browser is not told of a change")
	}
	if again := looks.Load() - before; again < 1 || again > 2 {
		t.Errorf("the cluster was looked at %d times", again)
	}
}

// TestWatchedPagesDoNotWait: while a tab is open, another one shows its last state at once, however slow the cluster
// is.
func TestWatchedPagesDoNotWait(t *testing.T) {
	api := clustertest.Start(t)
	var slow atomic.Bool
	release := make(chan struct{})
	defer close(release)
	b := startOn(t, api, nil)
	b.api.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		if slow.Load() {
			<-release
		}
		return b.authenticate(w, r)
	}
	c := b.in(t)
	var status schema.Status
	first := c.json("/", &status) // a page can contain the notice that it waited
	c.follow("/events")
	slow.Store(true)
	b.clock.advance(5 * time.Second)
	if a := c.json("/", &status); a.StatusCode != http.StatusOK || a.body != first.body {
		t.Errorf("%d\n%s", a.StatusCode, a.body)
	}
}

// TestFrameFirst: a browser that has to wait for the cluster gets the frame of the page meanwhile, once the API server has let the
// user in. A program waits for the whole.
func TestFrameFirst(t *testing.T) {
	api := clustertest.Start(t)
	var slow atomic.Bool
	release := make(chan struct{})
	b := startOn(t, api, nil)
	b.api.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		if slow.Load() && r.URL.Path != "/api/v1/namespaces" {
			<-release
		}
		return b.authenticate(w, r)
	}
	c := b.with(t, "mine")
	c.get("/") // which kinds there are is known then
	b.clock.advance(time.Minute)
	slow.Store(true)
	var bodies []io.Reader
	for _, path := range []string{"/", "/environments"} {
		a := c.begin(http.MethodGet, path, nil)
		defer a.Body.Close() //nolint:errcheck // it is read to its end
		first := make([]byte, 64<<10)
		n, err := a.Body.Read(first)
		if text := string(first[:n]); err != nil || a.StatusCode != http.StatusOK || !strings.Contains(text, `class="asking`) || strings.Contains(text, "</main>") {
			t.Fatalf("%s: %v\n%s", path, err, text)
		}
		bodies = append(bodies, a.Body)
	}
	close(release)
	for _, body := range bodies {
		rest, err := io.ReadAll(body)
		if text := string(rest); err != nil || !strings.Contains(text, "</main>") || !strings.Contains(text, `data-feed="/events?seen=`) {
			t.Errorf("%v\n%s", err, text)
		}
	}
}

// TestPreviewFirst: names of environments and requested versions are shown while the objects that were deployed are still read.
func TestPreviewFirst(t *testing.T) {
	bed := deployertest.New(t)
	bed.Added("shop", "1.0.0", deployertest.Content{})
	var slow atomic.Bool
	release := make(chan struct{})
	b := startOn(t, bed.Server, nil)
	b.api.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		if slow.Load() && strings.HasSuffix(r.URL.Path, "/deployments") {
			<-release
		}
		return b.authenticate(w, r)
	}
	c := b.in(t)
	c.get("/") // which kinds there are is known then
	b.clock.advance(time.Minute)
	slow.Store(true)
	a := c.begin(http.MethodGet, "/", nil)
	defer a.Body.Close() //nolint:errcheck // it is read to its end
	var first strings.Builder
	for part := make([]byte, 64<<10); !strings.Contains(first.String(), page.Text("matrix.shown", 1, 1)); {
		n, failure := a.Body.Read(part)
		if first.Write(part[:n]); failure != nil {
			t.Fatalf("%v\n%s", failure, &first)
		}
	}
	for _, text := range []string{`href="/environments/site"`, `<span class="dim">1.0.0</span>`, page.Text("frame.checking")} {
		if !strings.Contains(first.String(), text) {
			t.Errorf("nothing of %q in\n%s", text, &first)
		}
	}
	if strings.Contains(first.String(), page.Text("health.ready")) || strings.Contains(first.String(), "</main>") {
		t.Errorf("health is known before it is read:\n%s", &first)
	}
	close(release)
	rest, err := io.ReadAll(a.Body)
	if text := string(rest); err != nil || !strings.Contains(text, page.Text("health.ready")) || !strings.Contains(text, `data-feed="/events?seen=`) {
		t.Errorf("%v\n%s", err, text)
	}
}

// TestNoFrameForStrangers: whom the API server does not let in is led to the login, however long that takes.
func TestNoFrameForStrangers(t *testing.T) {
	b := start(t, nil)
	c := b.with(t, "mine")
	b.api.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		<-time.After(200 * time.Millisecond) // more than a page waits
		return b.authenticate(w, r)
	}
	b.deny("mine")
	b.clock.advance(time.Minute)
	c.leads(c.get("/"), "/login?to=%2F&ended=refused")
}

// stream returns the lines of a stream of events, which is open until the test ends.
func (b *browser) stream(path string) *bufio.Scanner {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, b.bench.server.URL+path, nil)
	if err != nil {
		b.Fatal(err)
	}
	response, err := b.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = response.Body.Close() }) // it ends with the test
	if kind := response.Header.Get("Content-Type"); kind != "text/event-stream" {
		b.Fatalf("%d %s", response.StatusCode, kind)
	}
	return bufio.NewScanner(response.Body)
}

// names returns the names of the events of a stream, as they arrive, until it ends.
func (b *browser) names(path string) <-chan string {
	b.Helper()
	lines, names := b.stream(path), make(chan string)
	go func() {
		defer close(names)
		for lines.Scan() {
			if name, found := strings.CutPrefix(lines.Text(), "event: "); found {
				select {
				case names <- name:
				case <-b.Context().Done():
					return
				}
			}
		}
	}()
	return names
}

// follow returns a function that waits for the next event of a stream, and reports whether there was one.
func (b *browser) follow(path string) (next func() bool) {
	b.Helper()
	names := b.names(path)
	return func() bool {
		_, more := <-names
		return more
	}
}

// TestStreamEndsWithSession: a stream ends with its session, also when that expires while a page is open.
func TestStreamEndsWithSession(t *testing.T) {
	for name, end := range map[string]func(*browser){
		"logout": func(c *browser) { c.leads(c.post("/logout"), "/login?ended=logout") },
		"idle":   func(c *browser) { c.bench.clock.advance(9 * time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			bed := deployertest.New(t)
			b := startOn(t, bed.Server, nil)
			c := b.in(t)
			next := c.follow("/events")
			if !next() {
				t.Fatal("a browser is told nothing")
			}
			end(c)
			bed.Namespace("production", "production")
			if next() {
				t.Error("a session that is over is told of a change")
			}
		})
	}
}

// freeAddress returns an address without a listener.
func freeAddress(t *testing.T) string {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err == nil {
		err = free.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return free.Addr().String()
}

// selfSigned makes a certificate of console.example with its key, in PEM.
func selfSigned(t *testing.T, serial int64) (certificate, key []byte) {
	t.Helper()
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"console.example"}}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, signer.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(signer)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})
}

// replaceFiles replaces files atomically, like a program that renews certificates.
func replaceFiles(t *testing.T, files map[string][]byte) {
	t.Helper()
	for file, data := range files {
		if err := errors.Join(os.WriteFile(file+".new", data, 0o600), os.Rename(file+".new", file)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestServeRenews serves with a certificate and keys that are renewed, and notifies the service manager.
func TestServeRenews(t *testing.T) {
	dir := t.TempDir()
	api := clustertest.Start(t)
	kubeconfig := api.Kubeconfig(t)
	address := freeAddress(t)
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close() //nolint:errcheck // nothing was written
	told := func(want string) {
		t.Helper()
		buffer := make([]byte, 100)
		if n, failure := manager.Read(buffer); failure != nil || string(buffer[:n]) != want {
			t.Errorf("the service manager was told %q, %v", buffer[:n], failure)
		}
	}
	certificate, key, sessions := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), filepath.Join(dir, "sessions")
	write := func(serial int64, ring string) {
		t.Helper()
		signed, private := selfSigned(t, serial)
		replaceFiles(t, map[string][]byte{certificate: signed, key: private, sessions: []byte(ring)})
	}
	ring := func(b byte) string { return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{b}, 32)) + "\n" }
	write(1, ring(1))
	o := console.ServeOptions{
		Options: console.Options{
			Connect: func(token session.Token) (*cluster.Cluster, error) {
				return cluster.Connect(cluster.Options{Kubeconfig: kubeconfig, Token: token, Now: time.Now})
			},
			Tokens: true, Origin: "https://console.example", Version: "1.0.0-test", Now: time.Now,
		},
		Listen: address, Certificate: certificate, Key: key, SessionKeys: sessions, Errors: io.Discard,
		Manager: service.Notifier{Socket: filepath.Join(dir, "notify"), Sink: report.Discard},
	}
	ctx, end := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() {
		_, failure := console.Serve(ctx, o)
		served <- failure
	}()
	told("READY=1")
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	// ask sends a request like a new user, with the cookies of this browser.
	ask := func(method, path string, form url.Values) (status int, serial int64) {
		t.Helper()
		client := &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, Transport: &http.Transport{
			DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
			DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, network, address)
			},
		}}
		r, err := http.NewRequestWithContext(t.Context(), method, "https://console.example"+path, strings.NewReader(form.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		a, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = a.Body.Close()
		return a.StatusCode, a.TLS.PeerCertificates[0].SerialNumber.Int64()
	}
	check := func(wantStatus int, wantSerial int64) {
		t.Helper()
		if status, serial := ask(http.MethodGet, "/", nil); status != wantStatus || serial != wantSerial {
			t.Errorf("status %d with certificate %d, want %d with %d", status, serial, wantStatus, wantSerial)
		}
	}
	ask(http.MethodPost, "/login/token", url.Values{"token": {"mine"}})
	check(http.StatusOK, 1)
	write(2, ring(2)+ring(1)) // the key is replaced
	check(http.StatusOK, 2)
	if err := os.WriteFile(certificate, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	check(http.StatusOK, 2) // existing sessions stay
	write(3, ring(3))
	check(http.StatusSeeOther, 3) // a session whose key is gone is not valid
	end()
	told("STOPPING=1")
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// TestServe serves a console under a path, and stops it while a page is open.
func TestServe(t *testing.T) {
	api := clustertest.Start(t)
	kubeconfig := api.Kubeconfig(t)
	ctx, end := context.WithCancel(t.Context())
	ready, served := make(chan *console.Console, 1), make(chan error, 1)
	o := console.ServeOptions{
		Options: console.Options{
			Connect: func(session.Token) (*cluster.Cluster, error) {
				return cluster.Connect(cluster.Options{Kubeconfig: kubeconfig, Now: time.Now})
			},
			Links: true, Version: "1.0.0-test", Now: time.Now,
		},
		Listen: "127.0.0.1:0", Errors: io.Discard, Ready: func(c *console.Console) { ready <- c },
	}
	go func() {
		_, err := console.Serve(ctx, o)
		served <- err
	}()
	c := <-ready
	origin, err := url.Parse(c.Origin)
	if err != nil || !strings.HasPrefix(origin.Host, "solutionctl-") || !strings.HasSuffix(origin.Hostname(), ".localhost") {
		t.Fatalf("origin %s", c.Origin)
	}
	ask := func(path, cookie string) *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:"+origin.Port()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = origin.Host
		r.Header.Set("Cookie", "solutionctl="+cookie)
		a, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	in := ask(strings.TrimPrefix(c.NewLink(), c.Origin), "")
	_ = in.Body.Close()
	var session string
	for _, cookie := range in.Cookies() {
		if cookie.Name == "solutionctl" {
			session = cookie.Value
		}
	}
	events := ask("/events", session)
	if events.StatusCode != http.StatusOK {
		t.Fatal(events.Status)
	}
	end()
	if err := <-served; err != nil {
		t.Error(err)
	}
	_, _ = io.Copy(io.Discard, events.Body) // it ends with the console
	_ = events.Body.Close()
}
