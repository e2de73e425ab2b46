package console_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/console"
	"github.com/solutionctl/solutionctl/deployer/console/session"
)

// provider is an identity provider that lets everybody in as its user.
type provider struct {
	*httptest.Server
	testing.TB
	key *rsa.PrivateKey
	now func() time.Time

	mu        sync.Mutex
	user      string
	groups    []string
	challenge map[string]string // by code
	nonce     string            // instead of the one that was asked for
	nonces    map[string]string // by code
	refreshes int
	broken    bool // renews nothing any more
	rotate    bool // renews each token once
	revoked   []string
}

const client = "solutionctl-console"

func startProvider(t *testing.T, now func() time.Time) *provider {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p := &provider{TB: t, key: key, now: now, user: "jane", challenge: map[string]string{}, nonces: map[string]string{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		p.write(w, map[string]any{
			"revocation_endpoint": p.URL + "/revoke",
			"issuer":              p.URL, "authorization_endpoint": p.URL + "/auth", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
			"id_token_signing_alg_values_supported": []string{"RS256"},
		})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		p.write(w, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "k", Algorithm: "RS256", Use: "sig"}}})
	})
	mux.HandleFunc("POST /token", p.token)
	mux.HandleFunc("POST /revoke", func(_ http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if id, secret, _ := r.BasicAuth(); id == client && secret == "secret" {
			p.revoked, p.broken = append(p.revoked, r.FormValue("token")), true
		}
	})
	p.Server = httptest.NewTLSServer(mux)
	t.Cleanup(p.Close)
	return p
}

func (p *provider) write(w http.ResponseWriter, document any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(document); err != nil {
		p.Error(err)
	}
}

// visit logs in at the provider and returns the path back.
func (p *provider) visit(start answer) string {
	p.Helper()
	at, err := url.Parse(start.Header.Get("Location"))
	if err != nil || !strings.HasPrefix(at.String(), p.URL+"/auth?") {
		p.Fatalf("%d leads to %s: %v", start.StatusCode, at, err)
	}
	q := at.Query()
	if q.Get("code_challenge_method") != "S256" || q.Get("client_id") != client || q.Get("response_type") != "code" {
		p.Errorf("%s", at)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	code := rand.Text()
	p.challenge[code], p.nonces[code] = q.Get("code_challenge"), q.Get("nonce")
	return q.Get("redirect_uri") + "?" + url.Values{"code": {code}, "state": {q.Get("state")}}.Encode()
}

func (p *provider) token(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	nonce := ""
	switch r.FormValue("grant_type") {
	case "authorization_code":
		code, sum := r.FormValue("code"), sha256.Sum256([]byte(r.FormValue("code_verifier")))
		if p.challenge[code] == "" || p.challenge[code] != base64.RawURLEncoding.EncodeToString(sum[:]) {
			http.Error(w, "code", http.StatusBadRequest)
			return
		}
		nonce = p.nonces[code]
		delete(p.challenge, code)
	case "refresh_token":
		if p.broken || r.FormValue("refresh_token") != p.renewable() {
			http.Error(w, "refresh", http.StatusBadRequest)
			return
		}
		p.refreshes++
	}
	if p.nonce != "" {
		nonce = p.nonce
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: p.key, KeyID: "k"}}, nil)
	if err != nil {
		p.Error(err)
	}
	claims, err := json.Marshal(map[string]any{
		"iss": p.URL, "aud": client, "sub": p.user, "nonce": nonce, "iat": p.now().Unix(), "exp": p.now().Add(10 * time.Minute).Unix(), "n": p.refreshes,
		"email": p.user + "@example.com", "email_verified": p.user != "mallory", "groups": p.groups,
	})
	if err != nil {
		p.Error(err)
	}
	signed, err := signer.Sign(claims)
	if err != nil {
		p.Error(err)
	}
	id, err := signed.CompactSerialize()
	if err != nil {
		p.Error(err)
	}
	p.write(w, map[string]any{"access_token": "access", "token_type": "bearer", "id_token": id, "refresh_token": p.renewable(), "expires_in": 600})
}

// renewable is the token that can be renewed next.
func (p *provider) renewable() string {
	if p.rotate {
		return fmt.Sprintf("again-%d", p.refreshes)
	}
	return "again"
}

// client is the provider as a console knows it.
func (p *provider) client() *session.Provider {
	return &session.Provider{
		Issuer: p.URL, ClientID: client, ClientSecret: "secret", CA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.Certificate().Raw}),
	}
}

func withProvider(t *testing.T) (*bench, *provider) {
	t.Helper()
	c := &clock{}
	p := startProvider(t, c.now)
	b := start(t, func(o *console.Options) {
		o.Provider, o.Now = p.client(), c.now
	})
	b.clock = c
	return b, p
}

func TestProvider(t *testing.T) {
	b, p := withProvider(t)
	c := b.browser(t)
	back := p.visit(c.get("/auth/start?to=%2Fhistory"))
	c.header.Set("Sec-Fetch-Site", "cross-site")
	a := c.get(back)
	c.header.Del("Sec-Fetch-Site")
	if a.StatusCode != http.StatusOK || a.Header.Get("Refresh") != "0; url=/history" || c.sessionCookie() == "" {
		t.Fatalf("%d %v\n%s", a.StatusCode, a.Header, a.body)
	}
	if a := c.get("/"); a.StatusCode != http.StatusOK {
		t.Fatalf("%d\n%s", a.StatusCode, a.body)
	}
	first := b.lastToken()
	if strings.Count(first, ".") != 2 {
		t.Fatalf("the API server got %q", first)
	}
	b.clock.advance(10 * time.Minute) // the token has expired
	if a := c.get("/"); a.StatusCode != http.StatusOK || p.refreshes != 1 || b.lastToken() == first {
		t.Errorf("%d after %d renewals", a.StatusCode, p.refreshes)
	}
	if again := b.browser(t).get(back); again.StatusCode != http.StatusForbidden {
		t.Errorf("an answer of the provider is used twice: %d", again.StatusCode)
	}
	b.clock.advance(10 * time.Minute)
	p.mu.Lock()
	p.broken = true
	p.mu.Unlock()
	c.leads(c.get("/"), "/login?to=%2F&ended=expired")
}

func (b *bench) lastToken() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sent[len(b.sent)-1]
}

func TestProviderRefuses(t *testing.T) {
	for name, test := range map[string]func(b *bench, p *provider, c *browser, back string) answer{
		"another browser": func(b *bench, _ *provider, c *browser, back string) answer { return b.browser(c.T).get(back) },
		"state of another browser": func(_ *bench, _ *provider, c *browser, back string) answer {
			c.get("/auth/start")
			return c.get(back)
		},
		"no state": func(_ *bench, _ *provider, c *browser, back string) answer {
			return c.get(strings.Split(back, "&state")[0])
		},
		"error": func(_ *bench, _ *provider, c *browser, back string) answer {
			return c.get(back + "&error=access_denied&error_description=call+0800-evil")
		},
		"code": func(_ *bench, _ *provider, c *browser, back string) answer {
			return c.get(strings.Replace(back, "code=", "code=x", 1))
		},
		"nonce": func(_ *bench, p *provider, c *browser, back string) answer {
			p.nonce = "another"
			return c.get(back)
		},
		"late": func(b *bench, _ *provider, c *browser, back string) answer {
			b.clock.advance(11 * time.Minute)
			return c.get(back)
		},
		"state as a link": func(_ *bench, _ *provider, c *browser, back string) answer {
			at, _ := url.Parse(back)
			return c.get("/start?once=" + at.Query().Get("state"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, p := withProvider(t)
			c := b.browser(t)
			a := test(b, p, c, p.visit(c.get("/auth/start")))
			if a.StatusCode < 400 || c.sessionCookie() != "" || strings.Contains(a.body, "evil") {
				t.Errorf("%d, session %q\n%s", a.StatusCode, c.sessionCookie(), a.body)
			}
		})
	}
}

// TestProviderAlone: the API server rejects the tokens of the provider. This is reported, and does not cause a redirect
// loop.
func TestProviderAlone(t *testing.T) {
	b, p := withProvider(t)
	b.api.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		b.deny(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		return b.authenticate(w, r)
	}
	c := b.browser(t)
	a := c.get(p.visit(c.get("/auth/start")))
	if a.StatusCode != http.StatusForbidden || c.sessionCookie() != "" || !strings.Contains(a.body, client) || a.Header.Get("Refresh") != "" {
		t.Errorf("%d\n%s", a.StatusCode, a.body)
	}
}

// TestProviderShares logs one user in twice, and another one: the first two share an identity.
func TestProviderShares(t *testing.T) {
	b, p := withProvider(t)
	in := func() *browser {
		c := b.browser(t)
		c.leads(c.get(p.visit(c.get("/auth/start"))), "/")
		return c
	}
	first, second := in(), in()
	p.mu.Lock()
	p.user = "joe"
	p.mu.Unlock()
	other := in()
	first.leads(first.post("/logout", "all", "true"), "/login?ended=logout")
	second.leads(second.get("/"), "/login?to=%2F&ended=logout")
	if a := other.get("/"); a.StatusCode != http.StatusOK {
		t.Errorf("somebody else: %d", a.StatusCode)
	}
}

// TestImpersonated: where the API server does not know the provider, each request impersonates the user, as long as the
// provider confirms them. A user cannot become a user of Kubernetes itself, and only configured groups count.
func TestImpersonated(t *testing.T) {
	clock := &clock{}
	p := startProvider(t, clock.now)
	p.groups = []string{"operators", "system:masters", "others"}
	var b *bench
	b = start(t, func(o *console.Options) {
		o.Provider, o.Now = p.client(), clock.now
		o.Provider.Groups = []string{"operators", "absent"}
		o.ConnectAs = func(user string, groups []string, admit func(context.Context) error) (*cluster.Cluster, error) {
			return cluster.Connect(cluster.Options{Kubeconfig: b.api.Kubeconfig(t), As: user, AsGroups: groups, Admit: admit, Now: clock.now, Retry: -1})
		}
	})
	b.clock = clock
	var mu sync.Mutex
	names := map[string]bool{}
	b.api.Answer = func(_ http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		names[r.Header.Get("Impersonate-User")+" "+strings.Join(r.Header["Impersonate-Group"], ",")+" "+strings.Join(r.Header["Authorization"], "")] = true
		return false
	}
	asked := func(want ...string) {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		if got := slices.Sorted(maps.Keys(names)); !slices.Equal(got, want) {
			t.Errorf("asked as %q, want %q", got, want)
		}
		clear(names)
	}
	c := b.browser(t)
	c.leads(c.get(p.visit(c.get("/auth/start"))), "/")
	c.get("/")
	asked("oidc:jane@example.com oidc:operators ")
	b.clock.advance(10 * time.Minute)
	if a := c.get("/"); a.StatusCode != http.StatusOK || p.refreshes != 1 {
		t.Errorf("%d after %d renewals", a.StatusCode, p.refreshes)
	}
	asked("oidc:jane@example.com oidc:operators ")
	p.mu.Lock()
	p.groups = nil // she has left
	p.mu.Unlock()
	b.clock.advance(10 * time.Minute)
	c.leads(c.get("/"), "/login?to=%2F&ended=refused")
	asked()
	c.leads(c.get(p.visit(c.get("/auth/start"))), "/")
	c.get("/")
	asked("oidc:jane@example.com  ")
	p.mu.Lock()
	p.broken = true // the provider does not confirm her any more
	p.mu.Unlock()
	b.clock.advance(10 * time.Minute)
	c.leads(c.get("/"), "/login?to=%2F&ended=expired")
	asked()
	p.mu.Lock()
	p.user = "mallory"
	p.mu.Unlock()
	m := b.browser(t)
	if a := m.get(p.visit(m.get("/auth/start"))); a.StatusCode != http.StatusForbidden || m.sessionCookie() != "" {
		t.Errorf("an address that nobody has verified: %d", a.StatusCode)
	}
	asked()
}
