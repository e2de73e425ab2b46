// Package dex runs Dex, an identity provider, in the process of a test.
package dex

import (
	"context"
	"encoding/pem"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dexidp/dex/server"
	"github.com/dexidp/dex/storage"
	"github.com/dexidp/dex/storage/memory"
	"github.com/dexidp/dex/web"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/crypto/bcrypt"
)

// Password is that of every user, ClientID and ClientSecret are those of the one client.
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
}

// Start starts Dex with users of these addresses, until the test ends. Its tokens are good for so long.
func Start(tb testing.TB, lifetime time.Duration, users ...string) *Provider {
	tb.Helper()
	logger := slog.New(slog.NewTextHandler(io.Discard, nil))
	hash, err := bcrypt.GenerateFromPassword([]byte(Password), bcrypt.DefaultCost)
	if err != nil {
		tb.Fatal(err)
	}
	var passwords []storage.Password
	for i, address := range users {
		name, _, _ := strings.Cut(address, "@")
		passwords = append(passwords, storage.Password{Email: address, Hash: hash, Username: name, UserID: strconv.Itoa(i + 1)})
	}
	// Not CreatePassword: renewing a token reads passwords while it holds the lock of this storage.
	s := storage.WithStaticPasswords(memory.New(logger), passwords, logger)
	ctx, cancel := context.WithCancel(context.WithoutCancel(tb.Context()))
	tb.Cleanup(cancel)
	if err = s.CreateConnector(ctx, storage.Connector{ID: "local", Type: "local", Name: "Password"}); err != nil {
		tb.Fatal(err)
	}
	var handler http.Handler
	listening := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.ServeHTTP(w, r) }))
	p := &Provider{Issuer: "https://" + listening.Listener.Addr().String() + "/dex", storage: s}
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

// Client lets a client ask for tokens, which is led back to this address.
func (p *Provider) Client(tb testing.TB, redirect string) {
	tb.Helper()
	err := p.storage.CreateClient(tb.Context(), storage.Client{ID: ClientID, Secret: ClientSecret, Name: "solutionctl", RedirectURIs: []string{redirect}})
	if err != nil {
		tb.Fatal(err)
	}
}

// Authentication is what makes an API server accept the tokens of the client, in the version that the oldest supported Kubernetes
// knows, and the newest still does. Users are called oidc:ADDRESS.
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
