// Package dex runs Dex, an identity provider, in the process of a test.
package dex

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dexidp/dex/connector"
	"github.com/dexidp/dex/server"
	"github.com/dexidp/dex/storage"
	"github.com/dexidp/dex/storage/memory"
	"github.com/dexidp/dex/web"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/oauth2"
)

// Password belongs to every user, ClientID and ClientSecret to the one client.
const (
	Password     = "password"
	ClientID     = "solutionctl-console"
	ClientSecret = "for-tests-only"
)

// Provider is a Dex that answers.
type Provider struct {
	Issuer  string
	CA      []byte // in PEM, of its certificate
	storage storage.Storage
	server  *httptest.Server
}

// User can log in.
type User struct {
	Address string
	Groups  []string
}

// Start starts Dex with users, until the test ends. Its tokens are good for so long.
func Start(tb testing.TB, lifetime time.Duration, users ...User) *Provider {
	tb.Helper()
	logger := slog.New(slog.NewTextHandler(io.Discard, nil))
	s := memory.New(logger)
	ctx, cancel := context.WithCancel(context.WithoutCancel(tb.Context()))
	tb.Cleanup(cancel)
	register()
	config, err := json.Marshal(people{users})
	if err != nil {
		tb.Fatal(err)
	}
	if err = s.CreateConnector(ctx, storage.Connector{ID: "people", Type: "people", Name: "Password", Config: config}); err != nil {
		tb.Fatal(err)
	}
	var handler http.Handler
	listening := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.ServeHTTP(w, r) }))
	p := &Provider{Issuer: "https://" + listening.Listener.Addr().String() + "/dex", storage: s, server: listening}
	policy, err := server.NewRefreshTokenPolicy(logger, false, "", "", "")
	if err != nil {
		tb.Fatal(err)
	}
	handler, err = server.NewServer(ctx, server.Config{
		Issuer: p.Issuer, Storage: s, SkipApprovalScreen: true, IDTokensValidFor: lifetime, RefreshTokenPolicy: policy,
		AllowedGrantTypes: []string{"authorization_code", "refresh_token"}, SupportedResponseTypes: []string{"code"},
		Logger: logger, PrometheusRegistry: prometheus.NewRegistry(), Web: server.WebConfig{WebFS: web.FS(), Issuer: "Dex"},
	})
	if err != nil {
		tb.Fatal(err)
	}
	listening.StartTLS()
	tb.Cleanup(listening.Close)
	p.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: listening.Certificate().Raw})
	return p
}

// Address is where Dex listens.
func (p *Provider) Address() string { return p.server.Listener.Addr().String() }

// Serve answers at a listener, too: at the address of Dex, but in another network.
func (p *Provider) Serve(tb testing.TB, l net.Listener) {
	tb.Helper()
	var ended sync.WaitGroup
	ended.Go(func() { _ = p.server.Config.Serve(tls.NewListener(l, p.server.TLS)) }) // until the listener is closed
	tb.Cleanup(func() {
		if err := l.Close(); err != nil {
			tb.Error(err)
		}
		ended.Wait()
	})
}

// Client lets a client ask for tokens, which is led back to this address.
func (p *Provider) Client(tb testing.TB, redirect string) {
	tb.Helper()
	err := p.storage.CreateClient(tb.Context(), storage.Client{ID: ClientID, Secret: ClientSecret, Name: "solutionctl", RedirectURIs: []string{redirect}})
	if err != nil {
		tb.Fatal(err)
	}
}

// LogIn returns the id token of a user, who logs in as a person does. Dex leads to the address that the client has.
func (p *Provider) LogIn(ctx context.Context, address, redirect string) (string, error) {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(p.CA)
	jar, err := cookiejar.New(nil)
	if err != nil {
		return "", err
	}
	client := &http.Client{
		Jar: jar, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true},
		CheckRedirect: func(r *http.Request, _ []*http.Request) error {
			if strings.HasPrefix(r.URL.String(), redirect) {
				return http.ErrUseLastResponse
			}
			return nil
		},
	}
	config := oauth2.Config{
		ClientID: ClientID, ClientSecret: ClientSecret, RedirectURL: redirect, Scopes: []string{"openid", "email", "groups"},
		Endpoint: oauth2.Endpoint{AuthURL: p.Issuer + "/auth", TokenURL: p.Issuer + "/token"},
	}
	form, err := client.Get(config.AuthCodeURL("state")) //nolint:noctx // as a browser does
	if err != nil {
		return "", err
	}
	in, err := client.PostForm(form.Request.URL.String(), url.Values{"login": {address}, "password": {Password}}) //nolint:noctx // as above
	if err = errors.Join(err, form.Body.Close()); err != nil {
		return "", err
	}
	back, err := in.Location()
	if err = errors.Join(err, in.Body.Close()); err != nil {
		return "", fmt.Errorf("%s does not log in: %s, %w", address, in.Status, err)
	}
	token, err := config.Exchange(context.WithValue(ctx, oauth2.HTTPClient, client), back.Query().Get("code"))
	if err != nil {
		return "", err
	}
	id, _ := token.Extra("id_token").(string)
	return id, nil
}

// register makes the connector known: Dex has a table of them for the process.
var register = sync.OnceFunc(func() {
	server.ConnectorsConfig["people"] = func() server.ConnectorConfig { return &people{} }
})

// people is a connector to a directory of users and their groups, as LDAP is one. Dex itself knows passwords without groups.
type people struct{ Users []User }

func (p *people) Open(string, *slog.Logger) (connector.Connector, error) { return p, nil }
func (p *people) Prompt() string                                         { return "email address" }

// Login checks a password.
func (p *people) Login(_ context.Context, s connector.Scopes, address, password string) (connector.Identity, bool, error) {
	if password != Password {
		return connector.Identity{}, false, nil
	}
	return p.identity(s, address)
}

// Refresh looks a user up who logged in before.
func (p *people) Refresh(_ context.Context, s connector.Scopes, known connector.Identity) (connector.Identity, error) {
	identity, ok, err := p.identity(s, known.Email)
	if err == nil && !ok {
		err = errors.New("there is no such user any more")
	}
	return identity, err
}

func (p *people) identity(s connector.Scopes, address string) (connector.Identity, bool, error) {
	for i, u := range p.Users {
		if u.Address != address {
			continue
		}
		name, _, _ := strings.Cut(address, "@")
		identity := connector.Identity{UserID: strconv.Itoa(i + 1), Username: name, Email: address, EmailVerified: true}
		if s.Groups {
			identity.Groups = u.Groups
		}
		return identity, true, nil
	}
	return connector.Identity{}, false, nil
}

// Authentication returns the configuration with which an API server accepts the tokens of the client, in the version that the oldest supported Kubernetes
// knows, and the newest still does. Users are called oidc:ADDRESS, groups oidc:GROUP.
func (p *Provider) Authentication() string {
	return `apiVersion: apiserver.config.k8s.io/v1beta1
kind: AuthenticationConfiguration
jwt:
- issuer:
    url: ` + p.Issuer + `
    audiences: [` + ClientID + `]
    certificateAuthority: |
      ` + strings.ReplaceAll(strings.TrimSpace(string(p.CA)), "\n", "\n      ") + `
  claimValidationRules:
  - expression: "claims.?email_verified.orValue(false) == true"
    message: this address is not verified
  claimMappings:
    username: {expression: "'oidc:' + claims.email"}
    groups: {claim: groups, prefix: "oidc:"}
`
}
