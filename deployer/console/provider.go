package console

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Provider is an identity provider that speaks OpenID Connect. The API server has to accept the id tokens that it gives to this
// client: every request is sent with that of the user.
type Provider struct {
	Issuer                 string
	ClientID, ClientSecret string
	CA                     []byte // that the provider's certificate is signed by, in PEM; nil for those of this host

	mu       sync.Mutex
	client   *http.Client
	config   *oauth2.Config
	verifier *oidc.IDTokenVerifier
}

const (
	loginPatience = 10 * time.Minute // for logging in at the provider
	skew          = time.Minute      // that clocks may differ
	renewal       = 30 * time.Second // before it expires a token is renewed
)

// discover asks the provider where its endpoints are, once. It may be started after the console.
func (p *Provider) discover(ctx context.Context, c *Console) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.config != nil {
		return nil
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}, TLSHandshakeTimeout: 10 * time.Second}
	if p.CA != nil {
		transport.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !transport.TLSClientConfig.RootCAs.AppendCertsFromPEM(p.CA) {
			return report.Errorf(report.Usage, "the authority of the identity provider is no certificate in PEM")
		}
	}
	p.client = &http.Client{Timeout: 10 * time.Second, Transport: transport}
	// The keys are fetched again and again, long after this request.
	found, err := oidc.NewProvider(p.with(context.WithoutCancel(ctx)), p.Issuer)
	if err != nil {
		return report.Errorf(report.Unavailable, "identity provider %s: %w", p.Issuer, err)
	}
	p.verifier = found.Verifier(&oidc.Config{ClientID: p.ClientID, Now: func() time.Time { return c.Now().Add(-skew) }})
	p.config = &oauth2.Config{
		ClientID: p.ClientID, ClientSecret: p.ClientSecret, Endpoint: found.Endpoint(), RedirectURL: c.Origin + "/auth/callback",
		Scopes: []string{oidc.ScopeOpenID, "email", "profile", "groups", oidc.ScopeOfflineAccess},
	}
	return nil
}

func (p *Provider) with(ctx context.Context) context.Context {
	return oidc.ClientContext(ctx, p.client)
}

// startProvider sends a browser to the identity provider. What it comes back with is worth nothing without the cookie.
func (c *Console) startProvider(w http.ResponseWriter, r *http.Request) {
	if err := c.Provider.discover(r.Context(), c); err != nil {
		c.showLogin(w, r, statusOf(err), local(r.FormValue("to")), page.ProblemOf(err))
		return
	}
	one := login{way: byProvider, verifier: oauth2.GenerateVerifier(), nonce: oauth2.GenerateVerifier(), to: local(r.FormValue("to"))}
	state := c.sessions.begin(one, loginPatience)
	c.setCookie(w, loginCookie, state, http.SameSiteLaxMode, loginPatience)
	http.Redirect(w, r, c.Provider.config.AuthCodeURL(state, oidc.Nonce(one.nonce), oauth2.S256ChallengeOption(one.verifier)), http.StatusSeeOther)
}

// finishProvider lets in who comes back from the identity provider.
func (c *Console) finishProvider(w http.ResponseWriter, r *http.Request) {
	i, to, err := c.exchange(r)
	c.setCookie(w, loginCookie, "", http.SameSiteLaxMode, 0)
	if err != nil {
		status := http.StatusForbidden
		if report.CodeOf(err) == report.Unavailable {
			status = http.StatusBadGateway
		}
		c.showLogin(w, r, status, to, page.ProblemOf(err))
		return
	}
	c.enter(w, r, i, to)
}

// exchange turns the code that a browser has brought into an identity.
func (c *Console) exchange(r *http.Request) (*identity, string, error) {
	state := c.cookie(r, loginCookie)
	if state == "" || state != r.FormValue("state") {
		return nil, "/", report.Errorf(report.Forbidden, "this login was not begun in this browser, or took longer than ten minutes").WithHint("begin again")
	}
	one, known := c.sessions.finish(byProvider, state)
	p := c.Provider
	switch {
	case !known || p.discover(r.Context(), c) != nil:
		return nil, "/", report.Errorf(report.Forbidden, "this login was used before, took longer than ten minutes, or the console was started anew").WithHint("begin again")
	case r.FormValue("error") != "":
		return nil, one.to, report.Errorf(report.Forbidden, "the identity provider did not let you in")
	}
	answer, err := p.config.Exchange(p.with(r.Context()), r.FormValue("code"), oauth2.VerifierOption(one.verifier))
	if err != nil {
		return nil, one.to, refusedByProvider(err)
	}
	t := &tokens{provider: p, now: c.Now}
	nonce, err := t.take(r.Context(), answer)
	if err != nil {
		return nil, one.to, err
	}
	if nonce != one.nonce {
		return nil, one.to, report.Errorf(report.Forbidden, "the identity provider's token belongs to another login")
	}
	i, err := c.identify(r.Context(), byProvider, string(byProvider)+" "+p.Issuer+" "+t.subject, t.current)
	if report.CodeOf(err) == report.Unauthenticated {
		// Not the page for logging in once more: the provider would say yes again at once.
		err = report.Errorf(report.Forbidden, "identity provider %s knows you, and the API server does not accept its tokens", p.Issuer).
			WithHint("whoever runs the API server compares its issuer and audience (%s), the claim of the name, and the clocks", p.ClientID)
	}
	return i, one.to, err
}

// refusedByProvider is an error of the provider without what it says in detail: that may quote what was sent.
func refusedByProvider(err error) error {
	if refusal, ok := errors.AsType[*oauth2.RetrieveError](err); ok && refusal.Response.StatusCode < http.StatusInternalServerError {
		return report.Errorf(report.Unauthenticated, "the identity provider does not renew your login (%s)", http.StatusText(refusal.Response.StatusCode)).WithHint("log in again")
	}
	return report.Errorf(report.Unavailable, "the identity provider does not answer")
}

// tokens are those of a user, renewed when they are about to expire.
type tokens struct {
	provider *Provider
	now      func() time.Time

	mu      sync.Mutex
	subject string
	id      string
	until   time.Time
	refresh string
}

// take keeps what the provider has answered, if it is for the same user, and returns the nonce.
func (t *tokens) take(ctx context.Context, answer *oauth2.Token) (nonce string, err error) {
	raw, _ := answer.Extra("id_token").(string)
	verified, err := t.provider.verifier.Verify(t.provider.with(ctx), raw)
	if err != nil {
		return "", report.Errorf(report.Forbidden, "the identity provider's token is not valid: %w", err).
			WithHint("whoever runs the console compares issuer, client and clocks")
	}
	if t.subject != "" && t.subject != verified.Subject {
		return "", report.Errorf(report.Unauthenticated, "the identity provider's token is that of somebody else")
	}
	t.subject, t.id, t.until = verified.Subject, raw, verified.Expiry
	if answer.RefreshToken != "" {
		t.refresh = answer.RefreshToken
	}
	return verified.Nonce, nil
}

// current is the token for a request.
func (t *tokens) current(ctx context.Context) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.now().Before(t.until.Add(-renewal)) {
		return t.id, nil
	}
	if t.refresh == "" {
		return "", report.Errorf(report.Unauthenticated, "the login has expired").WithHint("log in again")
	}
	// Others wait for the same token: it is not lost because this request ends.
	ctx, cancel := context.WithTimeout(t.provider.with(context.WithoutCancel(ctx)), 15*time.Second)
	defer cancel()
	answer, err := t.provider.config.TokenSource(ctx, &oauth2.Token{RefreshToken: t.refresh}).Token()
	if err != nil {
		return "", refusedByProvider(err)
	}
	if _, err := t.take(ctx, answer); err != nil {
		return "", err
	}
	return t.id, nil
}
