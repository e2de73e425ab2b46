package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

var sample = Page{Title: "Tea & <Cake>", Message: "open", Theme: "Dark", Version: "1.0.0", Hostname: "tea-1"}

func get(t *testing.T, h http.Handler, method, path string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, nil))
	return w
}

func TestHTML(t *testing.T) {
	w := get(t, sample.Handler(prometheus.NewRegistry()), http.MethodGet, "/")
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "text/html; charset=utf-8" {
		t.Errorf("got %d, %v", w.Code, w.Header())
	}
	for _, want := range []string{
		"<title>Tea &amp; &lt;Cake&gt;</title>", "<h1>Tea &amp; &lt;Cake&gt;</h1>", "<p>open</p>",
		`<body class="Dark">`, "version 1.0.0, served by tea-1",
	} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("page lacks %q:\n%s", want, w.Body)
		}
	}
}

// TestBanners are above the title, and in /info only where there are some.
func TestBanners(t *testing.T) {
	file := filepath.Join(t.TempDir(), "banners")
	if err := os.WriteFile(file, []byte("closed <today>\nopen tomorrow\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	page := sample
	var err error
	if page.Banners, err = lines(file); err != nil {
		t.Fatal(err)
	}
	body := get(t, page.Handler(prometheus.NewRegistry()), http.MethodGet, "/").Body.String()
	if !strings.Contains(body, "<aside>closed &lt;today&gt;</aside>\n<aside>open tomorrow</aside>\n<h1>") {
		t.Errorf("got %s", body)
	}
	for want, p := range map[bool]Page{true: page, false: sample} {
		info := get(t, p.Handler(prometheus.NewRegistry()), http.MethodGet, "/info").Body.String()
		if strings.Contains(info, `"banners":["closed \u003ctoday\u003e","open tomorrow"]`) != want || strings.Contains(info, "banners") != want {
			t.Errorf("banners should be %v: %s", want, info)
		}
	}
	if _, err := lines(file + "-not"); err == nil {
		t.Error("no file: got no error")
	}
}

func TestInfo(t *testing.T) {
	w := get(t, sample.Handler(prometheus.NewRegistry()), http.MethodGet, "/info")
	var got Page
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(got, sample); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

func TestOtherRequests(t *testing.T) {
	h := sample.Handler(prometheus.NewRegistry())
	for _, tt := range []struct {
		method, path string
		want         int
	}{
		{http.MethodGet, "/other", http.StatusNotFound},
		{http.MethodPost, "/", http.StatusMethodNotAllowed},
		{http.MethodHead, "/", http.StatusOK},
		{http.MethodGet, "/metrics", http.StatusNotFound}, // not for visitors
	} {
		if got := get(t, h, tt.method, tt.path).Code; got != tt.want {
			t.Errorf("%s %s: got %d, want %d", tt.method, tt.path, got, tt.want)
		}
	}
}

func TestMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	h := sample.Handler(registry)
	for _, path := range []string{"/", "/info", "/other"} {
		get(t, h, http.MethodGet, path)
	}
	const head = "# HELP website_requests_total Requests answered.\n# TYPE website_requests_total counter\n"
	if declared, err := os.ReadFile("../archive/monitoring/metrics.prom"); err != nil || !strings.Contains(string(declared), head) {
		t.Errorf("metrics.prom does not declare it: %v", err)
	}
	want := head + `
website_requests_total{code="200",version="1.0.0"} 2
website_requests_total{code="404",version="1.0.0"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	served := get(t, promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), http.MethodGet, "/metrics")
	if !strings.Contains(served.Body.String(), `website_requests_total{code="404",version="1.0.0"} 1`) {
		t.Errorf("got %s", served.Body)
	}
}

// TestRun starts and stops the whole program, and once finds its port taken.
func TestRun(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := run(ctx, func(string) string { return "" }, "127.0.0.1:0", "127.0.0.1:0"); err != nil {
		t.Errorf("got %v", err)
	}
	taken := httptest.NewServer(http.NotFoundHandler())
	defer taken.Close()
	address := strings.TrimPrefix(taken.URL, "http://")
	if err := run(t.Context(), func(string) string { return "" }, "127.0.0.1:0", address); err == nil {
		t.Error("port taken: got no error")
	}
}
