package console_test

import (
	"html"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/deployer/console"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/deployertest/vendortest"
	"github.com/solutionctl/solutionctl/deployer/host"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/trust"
)

// TestSettings: a user with a link changes endpoints and signers on the host that keeps archives; other users cannot.
func TestSettings(t *testing.T) {
	dir := t.TempDir()
	vendor := vendortest.New(t)
	store, err := vendor.Trusted()
	if err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(dir, "acme.pub")
	if err = os.WriteFile(key, store.List()[0].Key.PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	trusted := func() (*trust.Store, error) { return trust.Load([]string{filepath.Join(dir, "trust")}, nil) }
	bed := deployertest.New(t)
	bed.Imported("shop", "1.0.0", deployertest.Content{})
	b := startOn(t, bed.Server, func(o *console.Options) {
		o.Trusted = trusted
		o.Settings = &console.HostSettings{TrustDir: filepath.Join(dir, "trust"), Open: func() (*host.Host, error) {
			return host.Open(host.Places{Store: filepath.Join(dir, "store"), Configuration: filepath.Join(dir, "solutions.yaml"), Nginx: filepath.Join(dir, "nginx")})
		}}
	})
	c, joe := b.in(t), b.with(t, "joe")
	shows := func(words ...string) {
		t.Helper()
		text := html.UnescapeString(c.get("/settings").body)
		for _, word := range words {
			if !strings.Contains(text, word) {
				t.Errorf("the settings do not say %s:\n%s", word, content(text))
			}
		}
	}
	const endpoint = "http://10.0.0.2:5000"
	if a := c.post("/settings/endpoints", "url", "ftp://10.0.0.2"); a.StatusCode < 400 || !strings.Contains(a.body, `value="ftp://10.0.0.2"`) {
		t.Errorf("%d\n%s", a.StatusCode, content(a.body))
	}
	c.leads(c.post("/settings/endpoints", "url", endpoint), "/settings")
	shows(endpoint, "/settings/remove?endpoint=http%3A%2F%2F10.0.0.2%3A5000")
	if a := c.post("/settings/keys", "name", "acme", "file", filepath.Join(dir, "none")); a.StatusCode != http.StatusNotFound {
		t.Errorf("%d\n%s", a.StatusCode, content(a.body))
	}
	c.leads(c.post("/settings/keys", "name", "acme", "file", key), "/settings")
	shows("acme", store.List()[0].Key.Fingerprint())
	for _, path := range []string{"/settings/remove?endpoint=" + url.QueryEscape(endpoint), "/settings/remove?key=acme"} {
		if a := joe.get(path); a.StatusCode != http.StatusForbidden {
			t.Errorf("somebody else is asked: %d", a.StatusCode)
		}
		if a := c.get(path); a.StatusCode != http.StatusOK {
			t.Errorf("%s: %d", path, a.StatusCode)
		}
	}
	if a := joe.get("/settings"); strings.Contains(a.body, "/settings/") {
		t.Errorf("somebody else may change something:\n%s", content(a.body))
	}
	for _, who := range []*browser{joe, c} { // without permission, and without confirmation
		who.post("/settings/endpoints", "url", "")
		who.post("/settings/keys", "name", "", "file", key)
		for _, kind := range []string{"endpoint", "key"} {
			if a := who.post("/settings/remove", kind, map[string]string{"endpoint": endpoint, "key": "acme"}[kind]); a.StatusCode < 400 {
				t.Errorf("%s is removed: %d", kind, a.StatusCode)
			}
		}
	}
	if a := joe.post("/settings/remove", "key", "acme", "confirm", "acme"); a.StatusCode != http.StatusForbidden {
		t.Errorf("somebody else removes a key: %d", a.StatusCode)
	}
	shows(endpoint, "acme")
	c.leads(c.post("/settings/remove", "endpoint", endpoint, "confirm", endpoint), "/settings")
	c.leads(c.post("/settings/remove", "key", "acme", "confirm", "acme"), "/settings")
	if a := c.get("/settings"); strings.Contains(a.body, endpoint) || strings.Contains(a.body, "key=acme") {
		t.Errorf("they are still there:\n%s", content(a.body))
	}
}

// TestTrust: the settings show the trusted keys to a user with a link, and to others that they are not shown: no page
// reports an empty trust store when it is not empty.
func TestTrust(t *testing.T) {
	vendor := vendortest.New(t)
	store, err := vendor.Trusted()
	if err != nil {
		t.Fatal(err)
	}
	fingerprint := store.List()[0].Key.Fingerprint()
	damaged := func() (*trust.Store, error) {
		return nil, report.Errorf(report.Invalid, "policy.yaml: line 3 is damaged")
	}
	const none, elsewhere = "No key is trusted", "solutionctl trust list"
	for _, test := range []struct {
		name        string
		trusted     func() (*trust.Store, error)
		token       bool
		says, never []string
	}{
		{"who runs it", vendor.Trusted, false, []string{fingerprint, "vendor"}, []string{none, elsewhere}},
		{"another vendor", vendor.Trusted, true, []string{elsewhere}, []string{none, fingerprint}},
		{"a host without a store", nil, false, []string{elsewhere}, []string{none}},
		{"no vendor is trusted", func() (*trust.Store, error) { return trust.Keys(nil), nil }, false, []string{none}, []string{elsewhere}},
		{"it cannot be read", damaged, false, []string{"line 3 is damaged"}, []string{none}},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := start(t, func(o *console.Options) { o.Trusted = test.trusted })
			c := b.in(t)
			if test.token {
				c = b.with(t, "jane")
			}
			page := html.UnescapeString(c.get("/settings").body)
			for _, words := range test.says {
				if !strings.Contains(page, words) {
					t.Errorf("the page does not say %q", words)
				}
			}
			for _, words := range test.never {
				if strings.Contains(page, words) {
					t.Errorf("the page says %q", words)
				}
			}
		})
	}
}
