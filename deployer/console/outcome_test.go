package console_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/deployer/deployertest"
)

// finished returns the page of an operation after its end.
func (b *browser) finished(path string) answer {
	b.Helper()
	return b.ended(b.post(path, "plan", b.planDigest(path)))
}

// ended returns the page of the operation to which an answer leads, after its end.
func (b *browser) ended(a answer) answer {
	b.Helper()
	at := a.Header.Get("Location")
	b.get(at + "/events") // until its end
	return b.get(at)
}

// TestOutcome: the page of an operation ends with the new state and the actions on it.
func TestOutcome(t *testing.T) {
	bed := deployertest.New(t)
	bed.Imported("shop", "1.0.0", deployertest.Content{})
	b := startOn(t, bed.Server, nil)
	c := b.in(t)
	site := "/environments/" + deployertest.Environment
	c.finished("/solutions/shop/plan/activate?version=1.0.0").has(t, "shop 1.0.0 is active", "Add to site", site+"/plan/add?solution=shop&version=1.0.0", "Open shop")

	a := c.finished(site + "/plan/add?solution=shop")
	a.has(t, "shop 1.0.0 runs in site", "1 of 1 workload ready", "took ", "Create Clock", "Open site", "not Roll back", "not Try again", "steps</summary>")
	if to := a.link(t, "Create Clock"); to != site+"/apps/new?kind=Clock" {
		t.Errorf("an application is created at %s", to)
	}
	bed.Imported("shop", "1.1.0", deployertest.Content{})
	c.finished("/solutions/shop/plan/activate?version=1.1.0").has(t, "Upgrade in site")
	bed.Server.Put(t, `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: shop, namespace: site, ownerReferences: [
{apiVersion: apps/v1, kind: Deployment, name: shop-operator, uid: "`+string(bed.Server.Object("Deployment", "site", "shop-operator").GetUID())+`", controller: true}]},
spec: {tls: [{hosts: [shop.example.com]}], rules: [{host: shop.example.com, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: shop, port: {number: 80}}}}]}}]}}`)
	a = c.finished(site + "/plan/upgrade?solution=shop&version=1.1.0")
	a.has(t, "shop 1.1.0 runs in site", "Roll back", `href="https://shop.example.com/" target="_blank" rel="noopener noreferrer"`)
	if to := a.link(t, "Roll back"); to != site+"/plan/rollback?solution=shop" {
		t.Errorf("the way back is %s", to)
	}
	c.finished(site+"/plan/remove?solution=shop").has(t, "shop is removed from site", "Open site", "not Create Clock")
}

// TestOutcomeOfFailure: a failed operation shows its error, the state of the Solution, the last lines of its log, and the ways on.
func TestOutcomeOfFailure(t *testing.T) {
	bed := deployertest.New(t)
	bed.Added("shop", "1.0.0", deployertest.Content{})
	bed.Activated("shop", "1.1.0", deployertest.Content{})
	b := startOn(t, bed.Server, nil)
	operator := bed.Server.Object("Deployment", deployertest.Environment, "shop-operator")
	bed.Server.Put(t, `{apiVersion: v1, kind: Pod, metadata: {name: shop-operator-x, namespace: site, uid: pod-x,
  ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: shop-operator, uid: "`+string(operator.GetUID())+`", controller: true}]},
spec: {containers: [{name: manager}, {name: proxy}]},
status: {containerStatuses: [{name: manager, ready: false, restartCount: 3, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 1}}},
  {name: proxy, ready: true, state: {running: {}}}]}}`)
	b.api.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case strings.HasSuffix(r.URL.Path, "/log"):
			_, _ = w.Write([]byte("2026-11-26T10:00:00.000000000Z " + r.URL.Query().Get("container") + ": <b>no configuration</b>\n"))
			return true
		case r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/deployments/") && !r.URL.Query().Has("dryRun"):
			http.Error(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":500,"message":"the disk of etcd is full"}`, http.StatusInternalServerError)
			return true
		}
		return b.authenticate(w, r)
	}
	c := b.in(t)
	path := "/environments/" + deployertest.Environment + "/plan/upgrade?solution=shop&version=1.1.0"
	a := c.finished(path)
	a.has(t, "the disk of etcd is full", "In site now: shop", "Try again", "Roll back", "shop-operator-x manager", "manager: <b>no configuration</b>", "not proxy: <b>", "not runs in site")
	if to := a.link(t, "Try again"); to != "/environments/site/plan/upgrade?solution=shop&version=1.1.0" {
		t.Errorf("trying again leads to %s", to)
	}
}
