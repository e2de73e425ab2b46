package console_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/solutionctl/solutionctl/deployer/cluster/clustertest"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
)

// TestFormAfterEnd: a form that is sent after the end of the session leads to the login, and from there back to the
// form with its inputs, except confirmations and possible secrets.
func TestFormAfterEnd(t *testing.T) {
	bed := deployertest.New(t)
	bed.Added("shop", "1.0.0", deployertest.Content{})
	b := startOn(t, bed.Server, nil)
	own := "/environments/" + deployertest.Environment
	for _, test := range []struct {
		path   string
		fields []string
		back   string
		shows  string
	}{
		{"/environments", []string{"name", "fresh", "description", "Tests & more"}, "/environments/new?description=Tests+%26+more&name=fresh", `value="Tests &amp; more"`},
		{own + "/plan/add", []string{"solution", "shop", "version", "1.0.0", "plan", "sha256:x", "confirm", "x", "adopt", "true"}, own + "/plan/add?solution=shop&version=1.0.0", "1.0.0"},
		{own + "/plan/delete", []string{"data", "delete", "confirm", "x"}, own + "/plan/delete?data=delete", "delete"},
		{"/operations/resume", nil, "/operations", "Operations"},
		{own + "/apps", []string{"kind", "Clock", "name", "tower", "spec.password", "hunter2"}, own + "/apps/new?kind=Clock&name=tower", "tower"},
		{"/environments", []string{"name", strings.Repeat("x", 2000)}, "/environments/new", "Name"},
	} {
		c := b.with(t, "mine")
		b.clock.advance(9 * time.Hour)
		a := c.post(test.path, test.fields...)
		c.leads(a, "/login?to="+url.QueryEscape(test.back)+"&ended=idle")
		login := c.get(a.Header.Get("Location"))
		if !strings.Contains(login.body, "eight hours") || strings.Contains(login.body, "hunter2") {
			t.Errorf("%s: %s", test.path, content(login.body))
		}
		c.leads(c.post("/login/token", "token", "mine", "to", test.back), test.back)
		if a := c.get(test.back); a.StatusCode != http.StatusOK || !strings.Contains(a.body, test.shows) {
			t.Errorf("%s: %d\n%s", test.back, a.StatusCode, content(a.body))
		}
	}
}

// TestTokenHasExpired: an expired token is distinguished from a revoked one.
func TestTokenHasExpired(t *testing.T) {
	b := start(t, nil)
	for end, want := range map[time.Duration]string{time.Minute: "expired", 48 * time.Hour: "refused"} {
		token := "e30." + base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"exp":%d}`, b.clock.now().Add(end).Unix())) + ".c2ln"
		c := b.with(t, token)
		b.deny(token)
		b.clock.advance(2 * time.Minute)
		c.leads(c.get("/"), "/login?to=%2F&ended="+want)
	}
}

// TestRevokedMeanwhile: open pages show at once that the session has ended.
func TestRevokedMeanwhile(t *testing.T) {
	b := start(t, nil)
	c := b.with(t, "mine")
	c.get("/")
	names := c.names("/events")
	b.deny("mine")
	b.clock.advance(time.Minute)
	for name := range names { // until the stream ends
		if name == "stale" {
			t.Error("the page says that the cluster does not answer")
		}
	}
	c.leads(c.get("/"), "/login?to=%2F&ended=refused")
}

// TestHangingServer: open pages report an API server that hangs, fails or is gone, with the time of the state that they
// show.
func TestHangingServer(t *testing.T) {
	back := make(chan struct{}) // of the server that hangs
	for name, broken := range map[string]func(w http.ResponseWriter, r *http.Request){
		"hangs": func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-back:
			case <-r.Context().Done():
			}
		},
		"fails":   func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"is gone": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			bed := deployertest.New(t)
			bed.Added("shop", "1.0.0", deployertest.Content{})
			b := startOn(t, bed.Server, nil)
			var away atomic.Bool
			b.api.Answer = func(w http.ResponseWriter, r *http.Request) bool {
				if away.Load() && r.URL.Query().Get("watch") == "" {
					broken(w, r)
					return away.Load() // a server that continues answers the request
				}
				return false
			}
			c := b.in(t)
			c.get("/")
			next := c.followNames("/events")
			away.Store(true)
			since := time.Now()
			next("stale")
			t.Logf("reported after %s", time.Since(since).Round(10*time.Millisecond))
			site := "/environments/" + deployertest.Environment
			for _, path := range []string{"/", "/environments", site, "/solutions/shop"} { // have a last state
				if a := c.get(path); a.StatusCode != http.StatusOK || !strings.Contains(content(a.body), "Not up to date since 20") {
					t.Errorf("%s: %d\n%s", path, a.StatusCode, content(a.body))
				}
			}
			var pages sync.WaitGroup
			for _, path := range []string{ // read more than the last state
				"/solutions", "/history", "/loader", "/settings", site + "/apps", site + "/components/shop", site + "/plan/repair",
				site + "/plan/delete?data=delete", "/solutions/shop/plan/deactivate",
			} {
				pages.Go(func() {
					a := c.get(path)
					if text := content(a.body); strings.Contains(text, "takes too long") || strings.Contains(text, "context canceled") ||
						strings.Contains(text, "There is no registry") ||
						!strings.Contains(text, "The cluster was last read at 20") && !strings.Contains(text, "Not up to date since 20") && path != "/settings" {
						t.Errorf("%s: %d\n%s", path, a.StatusCode, text)
					}
				})
			}
			pages.Wait()
			if a := c.get("/doctor"); !strings.Contains(a.body, "does not answer") && !strings.Contains(a.body, "cannot do it now") {
				t.Errorf("doctor: %d\n%s", a.StatusCode, content(a.body))
			}
			away.Store(false)
			if name == "hangs" {
				close(back)
			}
			next("changed")
		})
	}
}

// TestManyPages: with HTTP/1.1 only some pages keep a connection, and the others poll: a browser has six connections
// for a host, and users also need some for their clicks.
func TestManyPages(t *testing.T) {
	b := start(t, nil)
	c := b.in(t)
	c.get("/")
	for range 4 {
		c.names("/events")
	}
	if a := c.get("/events"); a.StatusCode != http.StatusNoContent {
		t.Errorf("the fifth page: %d", a.StatusCode)
	}
	if other := b.in(t); true {
		other.names("/events") // of another browser
	}
}

// TestLoginNotAccepted: the page about a login that the API server does not accept has one title, a way on, and no file of the server.
func TestLoginNotAccepted(t *testing.T) {
	bed := deployertest.New(t)
	bed.Activated("shop", "1.0.0", deployertest.Content{})
	b := startOn(t, bed.Server, nil)
	c := b.in(t)
	b.api.Answer = func(w http.ResponseWriter, _ *http.Request) bool {
		clustertest.Fail(w, apierrors.NewUnauthorized("Unauthorized"))
		return true
	}
	path := "/environments/" + deployertest.Environment + "/plan/add?solution=shop"
	a := c.get(path)
	if strings.Count(a.body, "Your login is not accepted") != 2 || strings.Contains(a.body, "This page cannot be shown") { // tab and heading
		t.Errorf("not one title:\n%s", content(a.body))
	}
	if a.StatusCode != http.StatusUnauthorized || !strings.Contains(a.body, `href="`+path+`">Check again</a>`) || strings.Contains(a.body, "kubeconfig") {
		t.Errorf("%d\n%s", a.StatusCode, content(a.body))
	}
}
