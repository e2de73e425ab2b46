package console_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestUsersShareSessions: any number of logins of one user ends no session of another one, and keeps no user from logging in.
func TestUsersShareSessions(t *testing.T) {
	b, p := withProvider(t)
	b.api.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/selfsubjectreviews") {
			return b.authenticate(w, r)
		}
		user, _, _ := strings.Cut(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), "-")
		_, _ = fmt.Fprintf(w, `{"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1", "status": {"userInfo": {"username": %q}}}`, user)
		return true
	}
	admin, waiting := b.with(t, "admin"), b.browser(t)
	back := p.visit(waiting.get("/auth/start"))
	for n := range 1001 {
		one := b.browser(t)
		one.post("/login/token", "token", fmt.Sprintf("few-%d", n%100))
		one.get("/auth/start")
	}
	if a := admin.get("/login"); a.StatusCode != http.StatusSeeOther {
		t.Errorf("the other user is logged out: %d", a.StatusCode)
	}
	waiting.leads(waiting.get(back), "/")
}

// TestLogoutKeepsOperations: an operation has valid tokens after its user has logged out, also those of the next login, and they are revoked
// when it has ended.
func TestLogoutKeepsOperations(t *testing.T) {
	for _, again := range []bool{false, true} {
		b, p := withProvider(t)
		c := b.browser(t)
		c.leads(c.get(p.visit(c.get("/auth/start"))), "/")
		var armed atomic.Bool
		reached, release := make(chan struct{}), make(chan struct{})
		once := sync.OnceFunc(func() { close(reached) })
		b.api.Answer = func(w http.ResponseWriter, r *http.Request) bool {
			if armed.Load() && !strings.Contains(r.URL.Path, "selfsubject") {
				once()
				<-release
			}
			return b.authenticate(w, r)
		}
		c.get("/operations")
		armed.Store(true)
		begun := c.post("/operations/resume")
		<-reached
		c.leads(c.post("/logout"), "/login?ended=logout")
		if revoked := p.allRevoked(); len(revoked) > 0 {
			t.Errorf("revoked %q while an operation needs them", revoked)
		}
		armed.Store(false)
		if again {
			c.leads(c.get(p.visit(c.get("/auth/start"))), "/")
		}
		b.clock.advance(10 * time.Minute) // the token is renewed
		close(release)
		if again {
			c.ends(begun)
			continue
		}
		b.end()
		b.Wait()
		if revoked := p.allRevoked(); len(revoked) != 1 {
			t.Errorf("revoked %q", revoked)
		}
	}
}

func (p *provider) allRevoked() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.revoked
}
