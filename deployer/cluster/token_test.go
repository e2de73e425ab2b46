package cluster

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solutionctl/solutionctl/schema/report"
)

// tokens gives one token after the other, then an error.
type tokens struct {
	mu    sync.Mutex
	left  []string
	err   error
	asked int
}

func (k *tokens) next(context.Context) (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asked++
	if len(k.left) == 0 {
		return "", k.err
	}
	token := k.left[0]
	if k.left = k.left[1:]; len(k.left) == 0 && k.err == nil {
		k.left = []string{token}
	}
	return token, nil
}

type events struct {
	mu  sync.Mutex
	all []report.Event
}

func (e *events) Emit(event report.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, event)
}

// withTokens is a connection to a server that answers like this, with tokens.
func withTokens(t *testing.T, k *tokens, sink report.Sink, handler http.HandlerFunc) *Cluster {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	c, err := Connect(Options{Kubeconfig: kubeconfig(t, server.URL, "a"), Now: time.Now, Token: k.next, Sink: sink})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// certificate returns a certificate with its key, as a kubeconfig has them.
func certificate(t *testing.T) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	encode := func(kind string, data []byte) string {
		return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}))
	}
	return encode("CERTIFICATE", signed), encode("PRIVATE KEY", raw)
}

// TestTokenInsteadOfCredentials checks that with a token no credentials of the kubeconfig are sent.
func TestTokenInsteadOfCredentials(t *testing.T) {
	var seen *http.Request
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = r
		_, _ = w.Write([]byte("{}"))
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS13}
	server.StartTLS()
	t.Cleanup(server.Close)
	authority := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	dir := t.TempDir()
	ran := filepath.Join(dir, "ran")
	crt, key := certificate(t)
	write := func(address, user string) string {
		file := filepath.Join(dir, "config")
		text := fmt.Sprintf("{clusters: [{name: c, cluster: {server: %q, certificate-authority-data: %s}}], users: [{name: bob, user: %s}], "+
			"contexts: [{name: a, context: {cluster: c, user: bob}}], current-context: a}", address, authority, user)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	hidden := strings.Replace(server.URL, "https://", "https://bob:secret@", 1)
	for name, test := range map[string]struct {
		address, user string
		as            string
	}{
		"a certificate":                 {server.URL, fmt.Sprintf("{client-certificate-data: %s, client-key-data: %s}", crt, key), ""},
		"a certificate that is missing": {server.URL, "{client-certificate: gone.crt, client-key: gone.key}", ""},
		"a token":                       {server.URL, "{token: theirs}", ""},
		"a token that is missing":       {server.URL, "{tokenFile: /gone/token}", ""},
		"a password":                    {server.URL, "{username: bob, password: secret}", ""},
		"a password in the address":     {hidden, "{}", ""},
		"a program":                     {server.URL, fmt.Sprintf("{exec: {apiVersion: client.authentication.k8s.io/v1, command: touch, args: [%q], interactiveMode: Never}}", ran), ""},
		"another user":                  {server.URL, "{token: theirs, as: admin, as-groups: ['system:masters'], as-uid: x}", ""},
		"a requested user":              {server.URL, "{token: theirs, as: admin, as-groups: ['system:masters']}", "eve"},
	} {
		t.Run(name, func(t *testing.T) {
			k := &tokens{left: []string{"mine"}}
			c, err := Connect(Options{Kubeconfig: write(test.address, test.user), Now: time.Now, Token: k.next, As: test.as})
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err = c.do(t.Context(), request{verb: "get", method: http.MethodGet, path: "/version", about: "test"}); err != nil {
				t.Fatal(err)
			}
			if got := seen.Header.Values("Authorization"); !slices.Equal(got, []string{"Bearer mine"}) {
				t.Errorf("authorization %q", got)
			}
			if len(seen.TLS.PeerCertificates) > 0 {
				t.Error("the certificate of the kubeconfig was sent")
			}
			var impersonated []string
			for header := range seen.Header {
				if strings.HasPrefix(header, "Impersonate") {
					impersonated = append(impersonated, header+" "+seen.Header.Get(header))
				}
			}
			if want := []string{"Impersonate-User " + test.as}; test.as == "" && impersonated != nil || test.as != "" && !slices.Equal(impersonated, want) {
				t.Errorf("impersonated: %q", impersonated)
			}
			if name := c.User(t.Context()); name != test.as {
				t.Errorf("somebody whom nobody knows is %q", name)
			}
		})
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("the program of the kubeconfig was run")
	}
}

// TestTokenOfEachRequest checks that each request has the current token, and that the user name belongs to the token.
func TestTokenOfEachRequest(t *testing.T) {
	var reviews atomic.Int32
	k := &tokens{left: []string{"a", "a", "a", "b"}}
	c := withTokens(t, k, nil, func(w http.ResponseWriter, r *http.Request) {
		reviews.Add(1)
		who := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		_, _ = fmt.Fprintf(w, `{"kind":"SelfSubjectReview","status":{"allowed":%t,"userInfo":{"username":%q}}}`, who == "a", who)
	})
	for i, want := range []struct {
		name    string
		reviews int32
	}{{"a", 1}, {"a", 1}, {"b", 2}, {"b", 2}} {
		if got := c.User(t.Context()); got != want.name || reviews.Load() != want.reviews {
			t.Errorf("%d: %q after %d reviews", i, got, reviews.Load())
		}
	}
	k.left = []string{"a", "a", "a", "b"}
	for i, want := range []bool{true, true, false} {
		if got, err := c.mayDoAll(t.Context()); got != want || err != nil {
			t.Errorf("%d: may do everything: %t, %v", i, got, err)
		}
	}
}

// TestNoToken checks that a missing token ends a request at once, with its own error, and that nothing is sent.
func TestNoToken(t *testing.T) {
	expired := errors.New("the session ended at noon")
	for name, test := range map[string]struct {
		tokens *tokens
		code   report.Code
		text   string
		hint   string
		cause  error
	}{
		"an error":          {&tokens{err: expired}, report.Unauthenticated, "no token for the API server: the session ended at noon", "log in again", expired},
		"one with its code": {&tokens{err: report.Errorf(report.Unavailable, "dex: %w", expired).WithHint("look at dex")}, report.Unavailable, "dex: the session ended", "look at dex", expired},
		"an empty one":      {&tokens{left: []string{""}}, report.Unauthenticated, "it is empty", "log in again", nil},
		"two lines":         {&tokens{left: []string{"secret\r\nX-Remote-User: admin"}}, report.Unauthenticated, "characters that no token has", "log in again", nil},
	} {
		t.Run(name, func(t *testing.T) {
			var requests atomic.Int32
			sink := &events{}
			c := withTokens(t, test.tokens, sink, func(http.ResponseWriter, *http.Request) { requests.Add(1) })
			c.answered.Store(true)
			inDoubt := false
			calls := map[string]func() error{
				"a write": func() (err error) {
					_, inDoubt, err = c.do(t.Context(), request{verb: "create", method: http.MethodPost, path: "/a", about: "test", write: true})
					return err
				},
				"a write whose lock was not renewed for want of one": func() error {
					ctx := WithGuard(t.Context(), guardFunc(func() error { return errSilent }))
					_, _, err := c.do(ctx, request{verb: "create", method: http.MethodPost, path: "/a", about: "test", write: true})
					return err
				},
				"rights":  func() error { _, err := c.Missing(t.Context(), Permission{Verb: "get"}); return err },
				"a probe": func() error { _, err := c.Probe(t.Context()); return err },
				"a watch": func() error {
					for _, err := range c.Watch(t.Context(), NamespaceKind, "", metav1.ListOptions{ResourceVersion: "1"}) {
						return err
					}
					return nil
				},
			}
			for what, call := range calls {
				test.tokens.asked = 0
				err := call()
				if report.CodeOf(err) != test.code || !strings.Contains(err.Error(), test.text) || !strings.Contains(strings.Join(report.Hints(err), ""), test.hint) {
					t.Errorf("%s: %s: %v; %q", what, report.CodeOf(err), err, report.Hints(err))
				}
				if test.cause != nil && !errors.Is(err, test.cause) || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "answer") {
					t.Errorf("%s: %v", what, err)
				}
				if test.tokens.asked != 1 {
					t.Errorf("%s: asked for a token %d times", what, test.tokens.asked)
				}
			}
			if requests.Load() > 0 || inDoubt || c.changed.Load() || len(sink.all) > 0 {
				t.Errorf("%d requests, in doubt %t, changed %t, told %v", requests.Load(), inDoubt, c.changed.Load(), sink.all)
			}
		})
	}
}

// TestTokenEnds checks the error of a watch that is reopened with an expired token.
func TestTokenEnds(t *testing.T) {
	k := &tokens{left: []string{"a", "a", "a"}, err: errors.New("expired")} // discovery, its second half, the first watch
	c := withTokens(t, k, nil, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "" {
			_, _ = w.Write([]byte(strings.NewReplacer("pods", "namespaces", "Pod", "Namespace", `"Namespaced"`, `"Cluster"`).Replace(map[string]string{"/api": core, "/apis": groups}[r.URL.Path])))
		}
	})
	for change, err := range c.Watch(t.Context(), NamespaceKind, "", metav1.ListOptions{ResourceVersion: "1"}) {
		if report.CodeOf(err) != report.Unauthenticated || k.asked != 4 {
			t.Errorf("%+v, %v, %d", change, err, k.asked)
		}
	}
	if k.asked != 4 {
		t.Errorf("it ended without a word after %d tokens", k.asked)
	}
}

// TestTokenUnknown: what a server does not know, or sends elsewhere.
func TestTokenUnknown(t *testing.T) {
	var elsewhere atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	t.Cleanup(other.Close)
	c := withTokens(t, &tokens{left: []string{"a"}}, nil, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/away" {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
			return
		}
		w.WriteHeader(http.StatusUnauthorized)
	})
	_, _, err := c.do(t.Context(), request{verb: "get", method: http.MethodGet, path: "/version", about: "test"})
	if report.CodeOf(err) != report.Unauthenticated || !strings.Contains(strings.Join(report.Hints(err), ""), "log in again: the token") {
		t.Errorf("%v; %q", err, report.Hints(err))
	}
	if _, _, err = c.do(t.Context(), request{verb: "get", method: http.MethodGet, path: "/away", about: "test"}); err == nil || elsewhere.Load() > 0 {
		t.Errorf("%v, %d requests elsewhere", err, elsewhere.Load())
	}
}
