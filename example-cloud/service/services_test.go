package main

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// start starts services that know each other, and returns where they are.
func start(t *testing.T, names ...string) map[string]string {
	t.Helper()
	environment := map[string]string{"KEY": "k"}
	for _, name := range names {
		handler, err := newHandler(name, func(variable string) string { return environment[variable] })
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(handler)
		t.Cleanup(server.Close)
		environment[strings.ToUpper(name)+"_URL"] = server.URL
	}
	return environment
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, strings.TrimSpace(string(body))
}

func TestChain(t *testing.T) {
	at := start(t, "identity", "network", "conductor", "scheduler", "compute")
	_, token := get(t, at["IDENTITY_URL"]+"/token")
	for _, test := range []struct {
		name, token string
		status      int
		want        string
	}{
		{"a server", token, 200, "compute boots, identity knows you, scheduler chooses host-1, conductor builds it, network gives 10.0.0.7"},
		{"a stranger", "guess", 403, "identity does not know you"},
		{"no token", "", 403, "identity does not know you"},
	} {
		if status, got := get(t, at["COMPUTE_URL"]+"/boot?token="+test.token); status != test.status || got != test.want {
			t.Errorf("%s: %d %q, want %d %q", test.name, status, got, test.status, test.want)
		}
	}
}

func TestOneIsGone(t *testing.T) {
	at := maps.Clone(start(t, "identity"))
	at["CONDUCTOR_URL"] = "http://127.0.0.1:1"
	handler, err := newHandler("scheduler", func(variable string) string { return at[variable] })
	if err != nil {
		t.Fatal(err)
	}
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/boot?token=a", http.NoBody))
	if answer.Code != http.StatusBadGateway || !strings.Contains(answer.Body.String(), "scheduler cannot reach conductor") {
		t.Errorf("%d %s", answer.Code, answer.Body)
	}
}

func TestIncomplete(t *testing.T) {
	for name, want := range map[string]string{"compute": "compute needs identity: set IDENTITY_URL", "identity": "set KEY", "storage": `no service "storage"`} {
		if _, err := newHandler(name, func(string) string { return "" }); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

func TestSync(t *testing.T) {
	dir := t.TempDir()
	for file, content := range map[string]string{"token": "t", "namespace": "shop", "ca.crt": ""} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	status := http.StatusCreated
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/namespaces/shop/configmaps" || r.Header.Get("Authorization") != "Bearer t" {
			t.Errorf("%s %v", r.URL, r.Header)
		}
		w.WriteHeader(status)
	}))
	defer server.Close()
	at := api{server.URL, dir}
	for _, test := range []struct {
		status int
		good   bool
	}{{http.StatusCreated, true}, {http.StatusConflict, true}, {http.StatusForbidden, false}} {
		status = test.status
		if err := at.sync(t.Context(), "identity-schema"); (err == nil) != test.good {
			t.Errorf("%d: %v", test.status, err)
		}
	}
}
