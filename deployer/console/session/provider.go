package session

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Provider is an identity provider that speaks OpenID Connect. The API server has to accept the id tokens that it gives to this
// client: every request is sent with that of the user, or in the name of the user ([Options.ConnectAs]).
type Provider struct {
	Issuer                 string
	ClientID, ClientSecret string
	CA                     []byte // that the provider's certificate is signed by, in PEM; nil for those of this host
	// Groups are the groups that count where users are impersonated, by their names at the provider.
	Groups []string

	mu       sync.Mutex
	client   *http.Client
	config   *oauth2.Config
	revoking string // endpoint for revoking tokens; "" where there is none
	verifier *oidc.IDTokenVerifier
}

const (
	loginTimeout = 10 * time.Minute // for logging in at the provider
	skew         = time.Minute      // that clocks may differ
	renewal      = 30 * time.Second // before it expires a token is renewed
)

// discover asks the provider where its endpoints are, once. It may be started after the console.
func (p *Provider) discover(ctx context.Context, m *Manager) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.config != nil {
		return nil
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}, TLSHandshakeTimeout: 10 * time.Second}
	if p.CA != nil {
		transport.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !transport.TLSClientConfig.RootCAs.AppendCertsFromPEM(p.CA) {
			return report.Errorf(report.Usage, "the authority of the identity provider is not a certificate in PEM")
		}
	}
	p.client = &http.Client{Timeout: 10 * time.Second, Transport: transport}
	// The keys are fetched again and again, long after this request.
	found, err := oidc.NewProvider(p.with(context.WithoutCancel(ctx)), p.Issuer)
	if err != nil {
		return report.Errorf(report.Unavailable, "identity provider %s: %w", p.Issuer, err)
	}
	var also struct {
		Revocation string `json:"revocation_endpoint"`
	}
	if err := found.Claims(&also); err == nil && strings.HasPrefix(also.Revocation, "https://") {
		p.revoking = also.Revocation
	}
	p.verifier = found.Verifier(&oidc.Config{ClientID: p.ClientID, Now: func() time.Time { return m.Now().Add(-skew) }})
	p.config = &oauth2.Config{
		ClientID: p.ClientID, ClientSecret: p.ClientSecret, Endpoint: found.Endpoint(), RedirectURL: m.Origin + "/auth/callback",
		Scopes: []string{oidc.ScopeOpenID, "email", "profile", "groups", oidc.ScopeOfflineAccess},
	}
	return nil
}

func (p *Provider) with(ctx context.Context) context.Context {
	return oidc.ClientContext(ctx, p.client)
}

// StartProvider redirects a browser to the identity provider. The answer of the provider is only accepted with the cookie set here.
func (m *Manager) StartProvider(w http.ResponseWriter, r *http.Request) {
	if err := m.Provider.discover(r.Context(), m); err != nil {
		m.ShowLogin(w, r, 0, LocalPath(r.FormValue("to")), err)
		return
	}
	one := begun{
		State: rand.Text(), Until: m.Now().Add(loginTimeout).Unix(), Verifier: oauth2.GenerateVerifier(), Nonce: oauth2.GenerateVerifier(), To: LocalPath(r.FormValue("to")),
	}
	text, err := m.loginKeys().seal(m.purpose(loginCookie), one)
	if err != nil {
		m.ShowLogin(w, r, 0, one.To, err)
		return
	}
	m.setCookie(w, loginCookie, text, http.SameSiteLaxMode, loginTimeout)
	http.Redirect(w, r, m.Provider.config.AuthCodeURL(one.State, oidc.Nonce(one.Nonce), oauth2.S256ChallengeOption(one.Verifier)), http.StatusSeeOther)
}

// FinishProvider logs in the user who comes back from the identity provider.
func (m *Manager) FinishProvider(w http.ResponseWriter, r *http.Request) {
	i, to, err := m.exchange(r)
	m.setCookie(w, loginCookie, "", http.SameSiteLaxMode, 0)
	if err != nil {
		status := http.StatusForbidden
		if report.CodeOf(err) == report.Unavailable {
			status = http.StatusBadGateway
		}
		m.ShowLogin(w, r, status, to, err)
		return
	}
	m.enter(w, r, i, to)
}

// key identifies a user of the provider.
func (p *Provider) key(subject string) string {
	return string(byProvider) + " " + p.Issuer + " " + subject
}

// impersonated is the impersonated user and groups for a user of the provider. Their names begin with "oidc:", so that
// none of them is a user or group of Kubernetes itself.
type impersonated struct {
	name   string
	groups []string
}

// who returns the user and groups of a token.
func (p *Provider) who(token *oidc.IDToken) (impersonated, error) {
	var claims struct {
		Email    string   `json:"email"`
		Verified bool     `json:"email_verified"`
		Groups   []string `json:"groups"`
	}
	if err := token.Claims(&claims); err != nil || claims.Email == "" || !claims.Verified {
		return impersonated{}, report.Errorf(report.Forbidden, "the identity provider does not vouch for your address").
			WithHint("ask the administrator of the provider to check the claims email and email_verified")
	}
	w := impersonated{name: "oidc:" + claims.Email}
	for _, group := range slices.Sorted(slices.Values(claims.Groups)) {
		if slices.Contains(p.Groups, group) {
			w.groups = append(w.groups, "oidc:"+group)
		}
	}
	return w, nil
}

// key identifies the impersonated user: other groups make another identity.
func (w impersonated) key() string { return strings.Join(append([]string{w.name}, w.groups...), " ") }

// key is that of an identity with these tokens.
func (t *tokens) key(ctx context.Context) (string, error) {
	key := t.manager.Provider.key(t.subject)
	if t.manager.ConnectAs == nil {
		return key, nil
	}
	w, err := t.identity(ctx)
	return key + " " + w.key(), err
}

// identity returns the present user and groups of these tokens, from the provider.
func (t *tokens) identity(ctx context.Context) (impersonated, error) {
	if _, err := t.bearer(ctx); err != nil {
		return impersonated{}, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.manager.Provider
	if t.who.name != "" {
		return t.who, nil
	}
	if err := p.discover(ctx, t.manager); err != nil { // the token comes from another replica
		return impersonated{}, err
	}
	verified, err := p.verifier.Verify(p.with(ctx), t.id)
	if err == nil {
		t.who, err = p.who(verified)
	}
	return t.who, err
}

// impersonate makes the connection of an identity one in the name of its user, for as long as the provider calls them the same.
func (m *Manager) impersonate(ctx context.Context, i *Identity) (*cluster.Cluster, error) {
	user, err := i.tokens.identity(ctx)
	if err != nil {
		return nil, err
	}
	return m.ConnectAs(user.name, user.groups, func(ctx context.Context) error {
		now, err := i.current().identity(ctx)
		if err == nil && now.key() != user.key() {
			err = report.Errorf(report.Unauthenticated, "the identity provider has changed your name or groups").WithHint("log in again")
		}
		return err
	})
}

// begun is a login that a browser keeps: the provider may lead it back to another replica, and any number of them takes no room here.
type begun struct {
	State    string `json:"s"`
	Until    int64  `json:"u"`
	Verifier string `json:"v"`
	Nonce    string `json:"n"`
	To       string `json:"t"`
}

// loginKeys seal begun logins.
func (m *Manager) loginKeys() Keys {
	if m.Keys == nil {
		return m.own
	}
	return m.Keys()
}

// finishLogin returns the login that this browser has begun, and whether it is finished for the first time, and in time. It is not its own where
// the provider gives back something else than this browser has got.
func (m *Manager) finishLogin(r *http.Request) (one begun, mine, known bool) {
	if !m.loginKeys().open(m.purpose(loginCookie), m.cookie(r, loginCookie), &one) || one.State != r.FormValue("state") {
		return begun{}, false, false
	}
	until := time.Unix(one.Until, 0)
	fresh := m.sessions.shut(one.State, until)
	one.To = LocalPath(one.To)
	return one, true, fresh && !m.Now().After(until)
}

// exchange turns the code that a browser has brought into an identity.
func (m *Manager) exchange(r *http.Request) (*Identity, string, error) {
	one, mine, known := m.finishLogin(r)
	if !mine {
		return nil, "/", report.Errorf(report.Forbidden, "this login was not begun in this browser, took longer than ten minutes, or the console was started again").WithHint("begin again")
	}
	p := m.Provider
	switch {
	case !known || p.discover(r.Context(), m) != nil:
		return nil, "/", report.Errorf(report.Forbidden, "this login was used before, or took longer than ten minutes").WithHint("begin again")
	case r.FormValue("error") != "":
		return nil, one.To, report.Errorf(report.Forbidden, "the identity provider did not let you in")
	}
	answer, err := p.config.Exchange(p.with(r.Context()), r.FormValue("code"), oauth2.VerifierOption(one.Verifier))
	if err != nil {
		return nil, one.To, refusedByProvider(err)
	}
	t := &tokens{manager: m}
	nonce, err := t.take(r.Context(), answer)
	if err != nil {
		return nil, one.To, err
	}
	if nonce != one.Nonce {
		return nil, one.To, report.Errorf(report.Forbidden, "the identity provider's token belongs to another login")
	}
	key, err := t.key(r.Context())
	if err != nil {
		return nil, one.To, err
	}
	i, err := m.identify(r.Context(), byProvider, key, t)
	if report.CodeOf(err) == report.Unauthenticated {
		// Not the page for logging in once more: the provider would say yes again at once.
		err = report.Errorf(report.Forbidden, "identity provider %s knows you, and the API server does not accept its tokens", p.Issuer).
			WithHint("ask an administrator of the API server to check its issuer, its audience (%s), the claim of the name, and the clocks", p.ClientID)
	}
	return i, one.To, err
}

// refusedByProvider is an error of the provider without its description, which could quote the request.
func refusedByProvider(err error) error {
	if refusal, ok := errors.AsType[*oauth2.RetrieveError](err); ok && refusal.Response.StatusCode < http.StatusInternalServerError {
		return report.Errorf(report.Unauthenticated, "the identity provider does not renew your login (%s)", http.StatusText(refusal.Response.StatusCode)).WithHint("log in again")
	}
	return report.Errorf(report.Unavailable, "the identity provider does not answer")
}

// tokens are the tokens of a user. Those of a provider are renewed when they are about to expire.
type tokens struct {
	manager *Manager // nil for a token that stays as it is

	mu      sync.Mutex
	subject string
	id      string
	taken   time.Time // from the provider; zero where another replica did that
	until   time.Time
	refresh string
	who     impersonated // "" is unknown yet, or not needed
}

// fill adds the data that another replica needs.
func (t *tokens) fill(k *kept) {
	if t == nil { // of a link, which is for this process
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	k.Subject, k.Token, k.Refresh = t.subject, t.id, t.refresh
	if !t.until.IsZero() {
		k.Until = t.until.Unix()
	}
}

// adopt takes tokens that another replica has renewed: some providers allow each refresh token only once.
func (t *tokens) adopt(k *kept) {
	if t == nil || t.manager == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	until := time.Unix(k.Until, 0)
	if k.Until == 0 || !until.After(t.until) || k.Subject != t.subject {
		return
	}
	t.id, t.refresh, t.taken, t.until, t.who = k.Token, k.Refresh, time.Time{}, until, impersonated{}
}

// take keeps the tokens of an answer, if it is for the same user, and returns the nonce.
func (t *tokens) take(ctx context.Context, answer *oauth2.Token) (nonce string, err error) {
	raw, _ := answer.Extra("id_token").(string)
	provider := t.manager.Provider
	verified, err := provider.verifier.Verify(provider.with(ctx), raw)
	if err != nil {
		return "", report.Errorf(report.Forbidden, "the identity provider's token is not valid: %w", err).
			WithHint("ask the administrator of the console to check issuer, client and clocks")
	}
	if t.subject != "" && t.subject != verified.Subject {
		return "", report.Errorf(report.Unauthenticated, "the identity provider's token belongs to another user")
	}
	if t.manager.ConnectAs != nil {
		if t.who, err = provider.who(verified); err != nil {
			return "", err
		}
	}
	t.subject, t.id, t.taken, t.until = verified.Subject, raw, t.manager.Now(), verified.Expiry
	if answer.RefreshToken != "" {
		t.refresh = answer.RefreshToken
	}
	return verified.Nonce, nil
}

// bearer is the token for a request.
func (t *tokens) bearer(ctx context.Context) (string, error) {
	if t == nil {
		return "", nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.manager == nil || t.isValid() {
		return t.id, nil
	}
	return t.renew(ctx)
}

// isValid reports whether the token is good for a request. The caller holds t.mu.
func (t *tokens) isValid() bool { return t.id != "" && t.manager.Now().Before(t.until.Add(-renewal)) }

// fresh is a token for a request that takes long: one that was renewed just now, if the provider does that.
func (t *tokens) fresh(ctx context.Context) (string, error) {
	if t == nil {
		return "", nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.manager == nil || t.isValid() && (t.refresh == "" || t.manager.Now().Sub(t.taken) < renewal) {
		return t.id, nil
	}
	id, err := t.renew(ctx)
	if err != nil && t.isValid() {
		return t.id, nil
	}
	return id, err
}

// renew gets another token. The caller holds t.mu.
func (t *tokens) renew(ctx context.Context) (string, error) {
	if t.refresh == "" {
		return "", report.Errorf(report.Unauthenticated, "the login has expired").WithHint("log in again")
	}
	// Others wait for the same token: it is not lost because this request ends.
	provider := t.manager.Provider
	if err := provider.discover(ctx, t.manager); err != nil { // perhaps the login was at another replica
		return "", err
	}
	ctx, cancel := context.WithTimeout(provider.with(context.WithoutCancel(ctx)), 15*time.Second)
	defer cancel()
	answer, err := provider.config.TokenSource(ctx, &oauth2.Token{RefreshToken: t.refresh}).Token()
	if err != nil {
		return "", refusedByProvider(err)
	}
	if _, err := t.take(ctx, answer); err != nil {
		return "", err
	}
	return t.id, nil
}

// revoke revokes the refresh token at the provider, where it supports that. It does not wait for the answer.
func (t *tokens) revoke(ctx context.Context) {
	if t == nil || t.manager == nil {
		return
	}
	t.mu.Lock()
	refresh := t.refresh
	t.mu.Unlock()
	p := t.manager.Provider
	if refresh == "" || p.discover(ctx, t.manager) != nil || p.revoking == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
	defer cancel()
	form := url.Values{"token": {refresh}, "token_type_hint": {"refresh_token"}}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.revoking, strings.NewReader(form.Encode()))
	if err != nil {
		return
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.SetBasicAuth(url.QueryEscape(p.ClientID), url.QueryEscape(p.ClientSecret))
	if answer, err := p.client.Do(r); err == nil {
		_ = answer.Body.Close()
	}
}
