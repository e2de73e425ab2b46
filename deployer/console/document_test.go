package console_test

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/schema"
)

// TestDocuments: a program gets the document of a page, which is that of the command line.
func TestDocuments(t *testing.T) {
	bed := deployertest.New(t)
	bed.Added("shop", "1.0.0", deployertest.Content{Scale: true})
	bed.Imported("shop", "1.1.0", deployertest.Content{Scale: true})
	bed.Clock("shop", deployertest.Environment, "wall", "hands: 3")
	b := startOn(t, bed.Server, nil)
	c := b.in(t)
	c.header.Set("Accept", "application/json")
	site := "/environments/" + deployertest.Environment
	clock := site + "/apps/" + deployertest.Environment + "/Clock/wall"
	for path, kind := range map[string]string{
		"/": "status", "/solutions": "search", site: "environment", site + "?compare=fields": "environment",
		site + "/plan/repair": "operation", site + "/plan/delete?data=delete": "operation", "/solutions/shop/plan/activate": "operation",
		site + "/apps": "apps", site + "/apps/new?kind=Clock": "appform", clock: "app", clock + "/edit": "appform",
		"/history": "history", "/doctor": "diagnosis", "/settings": "endpoints",
	} {
		a := c.get(path)
		if err := schema.ValidateOutput(kind, []byte(a.body)); err != nil || a.StatusCode != http.StatusOK || a.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %d %v\n%s", path, a.StatusCode, err, a.body)
		}
	}
}

// TestSecretsOfApps: the page of an application has no secrets.
func TestSecretsOfApps(t *testing.T) {
	bed := deployertest.New(t)
	bed.Added("shop", "1.0.0", deployertest.Content{Fields: "password: {type: string}"})
	bed.Clock("shop", deployertest.Environment, "wall", "hands: 3, password: hunter2")
	a := startOn(t, bed.Server, nil).in(t).get("/environments/" + deployertest.Environment + "/apps/" + deployertest.Environment + "/Clock/wall")
	a.has(t, "hands: 3", "password: (hidden)", "not hunter2")
}

// TestEnvironmentDocuments: the page of all environments has the document of each.
func TestEnvironmentDocuments(t *testing.T) {
	bed := deployertest.New(t)
	bed.Added("shop", "1.0.0", deployertest.Content{})
	var all struct{ Environments []json.RawMessage }
	if a := startOn(t, bed.Server, nil).in(t).json("/environments", &all); len(all.Environments) != 1 {
		t.Fatal(a.body)
	}
	if err := schema.ValidateOutput("environment", all.Environments[0]); err != nil {
		t.Error(err)
	}
}

// deadlines are the last ones that were set for a request.
type deadlines struct {
	http.ResponseWriter
	read, write *atomic.Pointer[time.Time]
}

func (d deadlines) Unwrap() http.ResponseWriter { return d.ResponseWriter }

func (d deadlines) SetReadDeadline(at time.Time) error {
	d.read.Store(&at)
	return http.NewResponseController(d.ResponseWriter).SetReadDeadline(at)
}

func (d deadlines) SetWriteDeadline(at time.Time) error {
	d.write.Store(&at)
	return http.NewResponseController(d.ResponseWriter).SetWriteDeadline(at)
}

// TestSupportTakesLong: the deadline of the form does not end the work, and the one of the answer is after it.
func TestSupportTakesLong(t *testing.T) {
	b := start(t, nil)
	c := b.in(t)
	var read, write atomic.Pointer[time.Time]
	b.server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { b.ServeHTTP(deadlines{w, &read, &write}, r) })
	var asked atomic.Int64
	b.api.Answer = func(http.ResponseWriter, *http.Request) bool {
		asked.Add(1)
		if at := read.Load(); at != nil && !at.IsZero() {
			t.Errorf("at work, with a deadline for reading the form: %v", at)
		}
		if at := write.Load(); at != nil && time.Until(*at) < 4*time.Minute {
			t.Errorf("at work, with a deadline for the answer: %v", at)
		}
		return false
	}
	if a := c.post("/support", "logs", "true"); a.StatusCode != http.StatusOK || asked.Load() == 0 || read.Load() == nil || write.Load() == nil {
		t.Errorf("%d, %d requests", a.StatusCode, asked.Load())
	}
}

// TestSupport: the page returns a support bundle without secrets.
func TestSupport(t *testing.T) {
	bed := deployertest.New(t)
	bed.Added("shop", "1.0.0", deployertest.Content{})
	bed.Server.Put(t, "{apiVersion: v1, kind: Secret, metadata: {name: password, namespace: "+deployertest.Environment+"}, stringData: {password: tell-nobody}}")
	b := startOn(t, bed.Server, nil)
	a := b.in(t).post("/support")
	if a.StatusCode != http.StatusOK || !strings.HasPrefix(a.Header.Get("Content-Disposition"), "attachment; filename=solutionctl-support-") {
		t.Fatalf("%d %v", a.StatusCode, a.Header)
	}
	unzipped, err := gzip.NewReader(strings.NewReader(a.body))
	if err != nil {
		t.Fatal(err)
	}
	files := 0
	for bundle := tar.NewReader(unzipped); ; files++ {
		h, err := bundle.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if data, err := io.ReadAll(bundle); err != nil || strings.Contains(string(data), "tell-nobody") {
			t.Errorf("%s: a secret is in it, %v", h.Name, err)
		}
	}
	if files < 3 {
		t.Errorf("it has %d files", files)
	}
}
