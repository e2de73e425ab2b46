package console_test

import (
	"fmt"
	"html"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	authorization "k8s.io/api/authorization/v1"

	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/schema"
)

// monitored is a cluster with a Prometheus.
func monitored(t *testing.T) *deployertest.Bed {
	t.Helper()
	bed := deployertest.New(t, `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: prometheuses.monitoring.coreos.com}, spec: {
  group: monitoring.coreos.com, scope: Namespaced, names: {kind: Prometheus, plural: prometheuses}, versions: [{name: v1, served: true, storage: true}]}}`,
		"{apiVersion: v1, kind: Namespace, metadata: {name: monitoring}}",
		"{apiVersion: monitoring.coreos.com/v1, kind: Prometheus, metadata: {name: kps, namespace: monitoring}}")
	bed.Added("shop", "1.0.0", deployertest.Content{})
	return bed
}

// alarmed is a console in front of a cluster with a Prometheus that serves alerts; asked counts its requests.
func alarmed(t *testing.T, alerts func() string) (b *bench, asked *atomic.Int64) {
	t.Helper()
	bed := monitored(t)
	bed.Namespace("calm", "calm")
	b, asked = startOn(t, bed.Server, nil), new(atomic.Int64)
	b.api.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		if b.authenticate(w, r) {
			return true
		}
		if r.URL.Path != "/api/v1/namespaces/monitoring/services/http:prometheus-operated:9090/proxy/api/v1/alerts" {
			return false
		}
		asked.Add(1)
		_, _ = fmt.Fprintf(w, `{"status":"success","data":{"alerts":[%s]}}`, alerts())
		return true
	}
	return b, asked
}

const slowShop = `{"state":"firing","activeAt":"2026-11-23T10:00:00Z","labels":{"alertname":"ShopIsSlow","severity":"warning","namespace":"site","solution":"shop"},
  "annotations":{"summary":"It takes <b>long</b>.","runbook":"solutionctl deploy status"}}`

// TestAlerts: pages do not wait for a Prometheus, are updated when it has answered, and show each alert where it
// belongs.
func TestAlerts(t *testing.T) {
	answer := make(chan struct{})
	b, asked := alarmed(t, func() string { <-answer; return slowShop })
	c := b.in(t)
	if a := c.get("/"); a.StatusCode != http.StatusOK || !strings.Contains(a.body, `<a href="/alerts">Show</a>`) {
		t.Errorf("%d\n%s", a.StatusCode, content(a.body))
	}
	next := c.follow("/events")
	if !next() {
		t.Fatal("a browser is told nothing")
	}
	if a := c.get("/environments/site"); a.StatusCode != http.StatusOK || strings.Contains(a.body, "ShopIsSlow") { // or it would wait for ever
		t.Errorf("%d\n%s", a.StatusCode, content(a.body))
	}
	close(answer)
	if !next() {
		t.Fatal("a browser is not told of alerts")
	}
	for path, want := range map[string]bool{
		"/": false, "/alerts": true, "/environments/site": true, "/solutions/shop": true, "/environments/calm": false,
	} {
		a := c.get(path)
		if a.StatusCode != http.StatusOK || strings.Contains(a.body, "ShopIsSlow") != want || strings.Contains(a.body, "<b>long") {
			t.Errorf("%s: %d\n%s", path, a.StatusCode, content(a.body))
		}
	}
	if a := c.get("/"); !strings.Contains(a.body, `<a href="/alerts">1 firing</a>`) {
		t.Error(content(a.body))
	}
	var list schema.AlertList
	if a := c.json("/alerts", &list); a.StatusCode != http.StatusOK || len(list.Alerts) != 1 || list.Alerts[0].Solution != "shop" {
		t.Errorf("%d %+v", a.StatusCode, list)
	}
	deployertest.Valid(t, "alerts", list)
	if n := asked.Load(); n != 1 {
		t.Errorf("it was asked %d times", n)
	}
	b.clock.advance(time.Minute)
	c.get("/alerts")
	c.get("/alerts")
	if n := asked.Load(); n != 2 {
		t.Errorf("a minute later it was asked %d times", n)
	}
}

// TestAlertsUnknown: pages that cannot show alerts show the reason, and are not errors.
func TestAlertsUnknown(t *testing.T) {
	t.Run("no right", func(t *testing.T) {
		b, _ := alarmed(t, func() string { return slowShop })
		b.api.May = func(a authorization.ResourceAttributes) bool { return a.Verb != "*" && a.Subresource != "proxy" }
		c := b.with(t, "joe")
		if a := c.get("/alerts"); a.StatusCode != http.StatusOK || !strings.Contains(a.body, "http:prometheus-operated:9090") {
			t.Errorf("%d\n%s", a.StatusCode, content(a.body))
		}
		if a := c.get("/environments/site"); a.StatusCode != http.StatusOK || !strings.Contains(a.body, "services/proxy") {
			t.Errorf("%d\n%s", a.StatusCode, content(a.body))
		}
		if a := c.get("/"); a.StatusCode != http.StatusOK || !strings.Contains(a.body, `<a href="/alerts">not known</a>`) {
			t.Errorf("%d\n%s", a.StatusCode, content(a.body))
		}
		var refused struct{ Code string }
		if a := c.json("/alerts", &refused); a.StatusCode != http.StatusForbidden || refused.Code != "forbidden" {
			t.Errorf("a program is told %d %s", a.StatusCode, a.body)
		}
	})
	t.Run("another answer", func(t *testing.T) {
		b, _ := alarmed(t, func() string { return "<html>" })
		if a := b.in(t).get("/alerts"); a.StatusCode != http.StatusOK || !strings.Contains(a.body, "not that of a Prometheus") {
			t.Errorf("%d\n%s", a.StatusCode, content(a.body))
		}
	})
	t.Run("no Prometheus", func(t *testing.T) {
		c := startOn(t, deployertest.New(t).Server, nil).in(t)
		if a := c.get("/alerts"); a.StatusCode != http.StatusOK || !strings.Contains(a.body, "solutionctl deploy monitoring config --prometheus") {
			t.Errorf("%d\n%s", a.StatusCode, content(a.body))
		}
		if a := c.get("/"); !strings.Contains(a.body, `<a href="/alerts">Show</a>`) {
			t.Error(content(a.body))
		}
	})
}

// TestVisitorSeesNoOldAlerts: an alert that was seen hours ago is not shown as a present one.
func TestVisitorSeesNoOldAlerts(t *testing.T) {
	bed := monitored(t)
	b := startOn(t, bed.Server, nil)
	bed.Only(deployertest.Environment, func(a authorization.ResourceAttributes) bool {
		return a.Group == "monitoring.coreos.com" || a.Namespace == "monitoring" || a.Resource == "customresourcedefinitions"
	})
	var resolved atomic.Bool
	before := b.api.Answer
	b.api.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/proxy/api/v1/alerts") {
			alerts := slowShop
			if resolved.Load() {
				alerts = ""
			}
			_, _ = fmt.Fprintf(w, `{"status":"success","data":{"alerts":[%s]}}`, alerts)
			return true
		}
		return before != nil && before(w, r)
	}
	site := "/environments/" + deployertest.Environment
	c, other := b.with(t, "joe"), b.with(t, "joe")
	for _, one := range []*browser{c, other} {
		one.leads(one.get("/environments?open="+deployertest.Environment), site)
	}
	feed := regexp.MustCompile(`data-feed="([^"]*)"`).FindStringSubmatch(other.get(site).body)
	next := other.follow(html.UnescapeString(feed[1]))
	for i := 0; !strings.Contains(other.get(site).body, "ShopIsSlow"); i++ {
		if i > 20 || !next() {
			t.Fatalf("no alert\n%s", content(other.get(site).body))
		}
	}
	other.post("/logout")
	for next() {
	}
	resolved.Store(true)
	b.clock.advance(7 * time.Hour)
	if a := c.get(site); a.StatusCode != http.StatusOK || strings.Contains(a.body, "ShopIsSlow") {
		t.Errorf("%d\n%s", a.StatusCode, content(a.body))
	}
}
