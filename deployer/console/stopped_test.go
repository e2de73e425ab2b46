package console_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	authorization "k8s.io/api/authorization/v1"

	"github.com/solutionctl/solutionctl/deployer/deployertest"
)

// TestStopWaiting: a user who stops an operation sees that it was stopped, what continues, and how to finish it or go
// back.
func TestStopWaiting(t *testing.T) {
	bed := deployertest.New(t)
	bed.Added("shop", "1.0.0", deployertest.Content{})
	bed.Activated("shop", "1.1.0", deployertest.Content{Fields: "colour: {type: string}"})
	reached, release := make(chan struct{}), make(chan struct{})
	b := startOn(t, bed.Server, nil)
	b.api.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/deployments/") && !r.URL.Query().Has("dryRun") {
			close(reached)
			select {
			case <-release:
			case <-r.Context().Done():
			}
		}
		return b.authenticate(w, r)
	}
	defer close(release)
	c := b.in(t)
	path := "/environments/" + deployertest.Environment + "/plan/upgrade?solution=shop&version=1.1.0"
	at := c.post(path, "plan", c.planDigest(path)).Header.Get("Location")
	<-reached
	c.leads(c.post(at+"/stop"), at)
	c.get(at + "/events") // until its end
	a := c.get(at)
	for _, text := range []string{"You stopped waiting at", "The cluster continues", "Resume", "/plan/rollback?solution=shop", "Not finished", "Stopped"} {
		if !strings.Contains(a.body, text) {
			t.Errorf("there is no %q in\n%s", text, content(a.body))
		}
	}
	for _, text := range []string{"context canceled", "console was stopped", "run the same command again"} {
		if strings.Contains(content(a.body), text) {
			t.Errorf("there is %q in\n%s", text, content(a.body))
		}
	}
	if a := c.get("/history"); strings.Contains(a.body, "context canceled") || !strings.Contains(a.body, "the user stopped waiting") {
		t.Errorf("the history: %s", content(a.body))
	}
}

// TestLockOfTheDead: the lock of a killed program is not shown as held once it has expired.
func TestLockOfTheDead(t *testing.T) {
	bed := deployertest.New(t, `{apiVersion: v1, kind: Namespace, metadata: {name: solutionctl-system}}`, `{apiVersion: coordination.k8s.io/v1, kind: Lease,
metadata: {name: env-shopfloor, namespace: solutionctl-system, annotations: {}},
spec: {holderIdentity: "someone/x", leaseDurationSeconds: 15, acquireTime: "`+time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")+`", renewTime: "`+time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")+`"}}`)
	b := startOn(t, bed.Server, nil)
	c := b.in(t)
	if a := c.get("/"); !strings.Contains(a.body, "is at work on namespace shopfloor") || strings.Contains(a.body, "env-shopfloor") {
		t.Errorf("%s", content(a.body))
	}
	b.clock.advance(time.Minute)
	if a := c.get("/"); strings.Contains(a.body, "is at work on") {
		t.Errorf("the dead are at work: %s", content(a.body))
	}
	if a := c.get("/operations"); !strings.Contains(a.body, "namespace shopfloor") || !strings.Contains(a.body, "ended without giving it back") {
		t.Errorf("%s", content(a.body))
	}
}

// TestDifference: when the plan is not the one that the user has seen, the page shows the differences.
func TestDifference(t *testing.T) {
	bed := deployertest.New(t)
	bed.Added("shop", "1.0.0", deployertest.Content{})
	bed.Activated("shop", "1.1.0", deployertest.Content{Fields: "colour: {type: string}"})
	c := startOn(t, bed.Server, nil).in(t)
	path := "/environments/" + deployertest.Environment + "/plan/upgrade?solution=shop&version=1.1.0"
	seen := c.planDigest(path)
	bed.Deleted("Role", deployertest.Environment, "shop-operator")
	a := c.post(path, "plan", seen)
	if a.StatusCode != http.StatusConflict || !strings.Contains(a.body, "What differs from the plan that you saw") || !strings.Contains(a.body, "Create Role "+deployertest.Environment+"/shop-operator") {
		t.Errorf("%d\n%s", a.StatusCode, content(a.body))
	}
	if other := c.post(path, "plan", "sha256:unknown"); other.StatusCode != http.StatusConflict || !strings.Contains(other.body, "is not known") {
		t.Errorf("%d\n%s", other.StatusCode, content(other.body))
	}
	c.ends(c.post(path, "plan", a.Header.Get("Solutionctl-Plan")))
}

// TestResumeWithoutRights: a user without permission for the changes is refused before an operation begins.
func TestResumeWithoutRights(t *testing.T) {
	bed := deployertest.New(t)
	b := startOn(t, bed.Server, nil)
	bed.Only("nowhere", func(a authorization.ResourceAttributes) bool { return a.Verb == "get" || a.Verb == "list" })
	c := b.with(t, "reader")
	if a := c.post("/operations/resume"); a.StatusCode != http.StatusForbidden || !strings.Contains(a.body, "leases") {
		t.Errorf("%d\n%s", a.StatusCode, content(a.body))
	}
	if a := c.get("/environments/new"); !strings.Contains(a.body, "permission to create namespaces") {
		t.Errorf("a form that leads to a refusal: %s", content(a.body))
	}
}
