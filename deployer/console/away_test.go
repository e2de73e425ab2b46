package console_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestAway: while the API server is away, pages show the last state with its time and the reason, carry nothing out,
// and are updated when it is back. A user without a last state, or who wants to log in, gets the reason.
func TestAway(t *testing.T) {
	bed := deployertest.New(t)
	bed.Activated("shop", "1.0.0", deployertest.Content{})
	var away atomic.Bool
	b := startOn(t, bed.Server, nil)
	b.api.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		if away.Load() {
			panic(http.ErrAbortHandler) // the connection breaks
		}
		return b.authenticate(w, r)
	}
	c, late := b.with(t, "mine"), b.with(t, "other")
	site := "/environments/" + deployertest.Environment
	path := site + "/plan/add?solution=shop"
	c.get("/")
	seen := c.planDigest(path)
	next := c.followNames("/events")
	next("changed")
	away.Store(true)
	b.clock.advance(time.Minute)
	next("stale")
	for _, page := range []string{"/", "/environments"} {
		if a := c.get(page); a.StatusCode != http.StatusOK || !strings.Contains(a.body, "Not up to date since") || !strings.Contains(a.body, deployertest.Environment) {
			t.Errorf("%s: %d\n%s", page, a.StatusCode, a.body)
		}
	}
	for what, a := range map[string]answer{"a plan": c.get(path), "to carry it out": c.post(path, "plan", seen), "what nobody has seen": late.get("/"), "the history": c.get("/history")} {
		if a.StatusCode != http.StatusBadGateway || !strings.Contains(a.body, "does not answer") {
			t.Errorf("%s: %d\n%s", what, a.StatusCode, content(a.body))
		}
	}
	if a := b.browser(t).post("/login/token", "token", "third"); a.StatusCode != http.StatusBadGateway || !strings.Contains(a.body, "does not answer") {
		t.Errorf("logging in: %d\n%s", a.StatusCode, content(a.body))
	}
	away.Store(false)
	next("changed")
	if a := c.get("/"); a.StatusCode != http.StatusOK || strings.Contains(a.body, "Not up to date since") {
		t.Errorf("it is back: %d\n%s", a.StatusCode, content(a.body))
	}
	c.applies(path)
}

// TestSlow: a page waits no longer than its timeout for a slow API server, and shows the last state.
func TestSlow(t *testing.T) {
	bed := deployertest.New(t)
	bed.Namespace("production", "production")
	var slow atomic.Bool
	release := make(chan struct{})
	defer close(release)
	b := startOn(t, bed.Server, nil)
	b.api.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		if slow.Load() {
			<-release
		}
		return b.authenticate(w, r)
	}
	c, late := b.with(t, "mine"), b.with(t, "other")
	c.get("/")
	slow.Store(true)
	b.clock.advance(time.Minute)
	got := make(chan answer, 1)
	go func() { got <- late.get("/") }()
	if a := c.get("/"); a.StatusCode != http.StatusOK || !strings.Contains(a.body, "Not up to date since") || !strings.Contains(a.body, "production") {
		t.Errorf("what was seen before: %d\n%s", a.StatusCode, content(a.body))
	}
	if a := <-got; a.StatusCode != http.StatusGatewayTimeout && a.StatusCode != http.StatusBadGateway || strings.Contains(a.body, "context") {
		t.Errorf("what nobody has seen: %d\n%s", a.StatusCode, content(a.body))
	}
}

// followNames returns a function that waits for the next event of a stream with a name.
func (b *browser) followNames(path string) func(name string) {
	b.Helper()
	names := b.names(path)
	return func(want string) {
		b.Helper()
		for name := range names {
			if name == want {
				return
			}
		}
		b.Fatalf("the stream has ended without event %s", want)
	}
}

// TestTokenExpiresMeanwhile: a token that expires during an operation ends it with that reason. The operation is
// recorded, and the user can resume it after logging in again.
func TestTokenExpiresMeanwhile(t *testing.T) {
	bed := deployertest.New(t)
	bed.Activated("shop", "1.0.0", deployertest.Content{})
	b := startOn(t, bed.Server, nil)
	b.api.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/deployments/") && !r.URL.Query().Has("dryRun") {
			b.deny("mine")
		}
		return b.authenticate(w, r)
	}
	c := b.with(t, "mine")
	path := "/environments/" + deployertest.Environment + "/plan/add?solution=shop"
	at := c.post(path, "plan", c.planDigest(path)).Header.Get("Location")
	c.get(at + "/events") // until its end
	var done struct{ Error *struct{ Code report.Code } }
	if c.json(at, &done); done.Error == nil || done.Error.Code != report.Unauthenticated {
		t.Errorf("the operation ended with %+v", done.Error)
	}
	if a := c.get(at); a.StatusCode != http.StatusOK || !strings.Contains(a.body, "Log in again") {
		t.Errorf("%d\n%s", a.StatusCode, content(a.body))
	}
	if names := bed.Server.Names("Deployment"); len(names) > 0 {
		t.Errorf("deployed is %q", names)
	}
	b.clock.advance(2 * time.Second)
	c.leads(c.get("/operations"), "/login?to=%2Foperations&ended=refused")

	again := b.with(t, "renewed")
	if a := again.get("/operations"); !strings.Contains(a.body, "Resume") || !strings.Contains(a.body, "shop") {
		t.Errorf("what was begun is not on the page: %d\n%s", a.StatusCode, content(a.body))
	}
	for _, lease := range bed.Server.Names("Lease") { // without renewal it expires
		namespace, name, _ := strings.Cut(lease, "/")
		bed.Deleted("Lease", namespace, name)
	}
	again.ends(again.post("/operations/resume"))
	if names := bed.Server.Names("Deployment"); len(names) != 1 {
		t.Errorf("deployed is %q", names)
	}
	var status schema.Status
	if again.json("/", &status); !status.Ready {
		t.Errorf("%+v", status)
	}
}
