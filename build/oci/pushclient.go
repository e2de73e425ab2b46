package oci

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/solutionctl/solutionctl/schema/report"
)

// PushOptions say how a registry is reached, and how images are uploaded to it.
type PushOptions struct {
	Keychain  Keychain // nil: anonymous
	CertsDirs []string // see [Options]
	CA        []byte   // certificates, in PEM, by which the registry is trusted as well
	PlainHTTP []string // registries, HOST[:PORT], that are asked without TLS
	// Transport replaces the one of this package; then CertsDirs and CA do not count.
	Transport http.RoundTripper

	Jobs int         // uploads at once; 0: 4
	Sink report.Sink // nil: report.Discard

	wait func(context.Context, time.Duration) error // between attempts; nil: time passes
	idle time.Duration                              // as in registryClient; 0: a minute
}

// commitTimeout is for how long a registry may take to check and move a blob that it has received.
const commitTimeout = 5 * time.Minute

// transport returns the connections to one registry.
func (o *PushOptions) transport() (http.RoundTripper, error) {
	if o.Transport != nil {
		return o.Transport, nil
	}
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.ResponseHeaderTimeout = commitTimeout
	if len(o.CA) > 0 {
		t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
		if err := appendAuthority(t.TLSClientConfig, o.CA); err != nil {
			return nil, fmt.Errorf("authority of the registry: %w", err)
		}
	}
	return &hostCertificates{dirs: o.CertsDirs, below: t}, nil
}

// registryClient is the connection to a registry that is written to.
type registryClient struct {
	o     PushOptions
	below http.RoundTripper
	wait  func(context.Context, time.Duration) error // between attempts
	idle  time.Duration                              // without a byte that the registry takes or sends, before a connection is closed
	gate  *gate
	repos onces[string, *repository]
}

func newRegistryClient(o PushOptions) (*registryClient, error) {
	if o.Sink == nil {
		o.Sink = report.Discard
	}
	if o.Jobs <= 0 {
		o.Jobs = 4
	}
	if o.Keychain == nil {
		o.Keychain = authn.NewMultiKeychain()
	}
	if o.wait == nil {
		o.wait = sleep
	}
	if o.idle == 0 {
		o.idle = time.Minute
	}
	below, err := o.transport()
	return &registryClient{o: o, below: below, wait: o.wait, idle: o.idle, gate: newGate(o.Jobs)}, err
}

// repository returns the one connection to a repository, HOST[:PORT]/PATH.
func (c *registryClient) repository(text string) (*repository, error) {
	return c.repos.get(text, func() (*repository, error) {
		repo, err := parseRepository(text, c.o.PlainHTTP)
		return &repository{c: c, repo: repo}, err
	})
}

// CheckRepository refuses a text other than HOST[:PORT]/PATH.
func CheckRepository(text string) error {
	_, err := parseRepository(text, nil)
	return err
}

// parseRepository reads HOST[:PORT]/PATH. Nothing is asked of a registry that the text does not name.
func parseRepository(text string, plain []string) (name.Repository, error) {
	repo, err := name.NewRepository(text, name.StrictValidation)
	if err == nil && slices.Contains(plain, repo.RegistryStr()) {
		repo, err = name.NewRepository(text, name.StrictValidation, name.Insecure)
	}
	if err != nil {
		return repo, report.Errorf(report.Usage, "%q is not a repository of a registry", Redact("//" + text)[2:]).
			WithHint("write HOST[:PORT]/PATH in small letters, such as registry.example.com/solutions")
	}
	return repo, nil
}

// repository is one repository of the registry. It authenticates for itself, because a token is for one repository.
type repository struct {
	c    *registryClient
	repo name.Repository
	from []string // repositories of the same registry that blobs are mounted from

	mu     sync.Mutex
	client *http.Client // nil: not authenticated
	known  bool         // the registry has accepted the login once
}

func (t *repository) String() string { return t.repo.Name() }

// connect authenticates unless that was done.
func (t *repository) connect(ctx context.Context) (*http.Client, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.client != nil {
		return t.client, nil
	}
	auth, err := authn.Resolve(ctx, t.c.o.Keychain, t.repo)
	if err != nil {
		return nil, report.Errorf(report.Unavailable, "%s: credentials: %w", t, err).
			WithHint("check the docker or podman configuration, or log in again: `docker login %s`", t.repo.RegistryStr())
	}
	scopes := []string{t.repo.Scope(transport.PushScope)}
	for _, other := range t.from {
		scopes = append(scopes, t.repo.Registry.Repo(other).Scope(transport.PullScope))
	}
	rt, err := transport.NewWithContext(ctx, t.repo.Registry, auth, bearerFirst{watching{tlsOnly{t.c.below, t.c.o.PlainHTTP}, t.c.idle}}, scopes)
	if err != nil {
		return nil, err
	}
	t.client = &http.Client{Transport: rt, CheckRedirect: checkRedirect}
	return t.client, nil
}

// reconnect makes the next request authenticate again.
func (t *repository) reconnect(client *http.Client) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.client == client {
		t.client = nil
	}
}

// accepted notes that the login is good: when the registry refuses it later, a token has expired.
func (t *repository) accepted() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known = true
}

func (t *repository) isAccepted() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.known
}

// checkRedirect lets a registry send readers to its storage, and nothing that is written to another host.
func checkRedirect(req *http.Request, via []*http.Request) error {
	if first := via[0]; first.Method != http.MethodGet && first.Method != http.MethodHead && req.URL.Host != first.URL.Host {
		return errElsewhere
	}
	if len(via) >= 10 {
		return errors.New("it redirects again and again")
	}
	return nil
}

// errElsewhere is the failure of a registry that sends what is uploaded to another host.
var errElsewhere = errors.New("it sends uploads to another host, which gets nothing")

// base is the address of the registry.
func (t *repository) base() *url.URL {
	return &url.URL{Scheme: t.repo.Scheme(), Host: t.repo.RegistryStr()}
}

// at is the address of something in the repository.
func (t *repository) at(what string) string {
	return t.base().String() + "/v2/" + t.repo.RepositoryStr() + "/" + what
}

// exchange is one request that can be repeated, and the statuses of its good answers.
type exchange struct {
	method, what string // below the repository
	address      string // instead of what, for an upload on its way
	header       http.Header
	body         []byte
	want         []int
}

// answer is a good answer without its body, which does not matter.
type answer struct {
	status int
	size   int64 // of the body; -1 is unknown
	header http.Header
}

// do sends a request until it has a good answer or an error that stays. It is bounded.
func (t *repository) do(ctx context.Context, x exchange) (answer, error) {
	resp, err := t.get(ctx, x)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close() //nolint:errcheck // nothing of it is read
	return answer{resp.StatusCode, resp.ContentLength, resp.Header}, nil
}

// get is like do for an answer with a body, which the caller closes.
func (t *repository) get(ctx context.Context, x exchange) (*http.Response, error) {
	for attempt := 0; ; attempt++ {
		resp, err := t.once(ctx, x, bytes.NewReader(x.body), int64(len(x.body)))
		if err == nil {
			return resp, nil
		}
		if err = t.again(ctx, attempt, err, ""); err != nil {
			return nil, err
		}
	}
}

// again waits before the next attempt after a failure that may be temporary; it returns any other, and the one after
// which enough was tried. It reports pauses that people notice, and the first failure in a row of an upload, which blob names.
func (t *repository) again(ctx context.Context, attempt int, err error, blob string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	failure, ok := errors.AsType[*requestError](err)
	if ok && failure.status == http.StatusUnauthorized && attempt > 0 && !t.isAccepted() {
		return err
	}
	if !ok || !failure.temporaryForWriter() || attempt+1 >= failure.attempts() {
		return err
	}
	if failure.isOverload() {
		t.c.gate.halve()
	}
	wait := backoff(attempt, failure.retryAfter)
	switch {
	case blob != "" && attempt == 0 && failure.status != http.StatusUnauthorized: // else a token has expired
		t.warn("%s: %v; the next attempt is in %v", blob, failure, wait)
	case wait >= noticeable:
		t.warn("%v; the next attempt is in %v", failure, wait)
	}
	return t.c.wait(ctx, wait)
}

// warn reports a difficulty of a push that continues.
func (t *repository) warn(format string, args ...any) {
	t.c.o.Sink.Emit(report.Event{Step: "push", Name: t.String(), State: report.Warning, Note: fmt.Sprintf(format, args...)})
}

// once sends a request once.
func (t *repository) once(ctx context.Context, x exchange, body io.Reader, size int64) (*http.Response, error) {
	client, err := t.connect(ctx)
	if err != nil {
		return nil, t.failure(x, err, nil)
	}
	address := x.address
	if address == "" {
		address = t.at(x.what)
	}
	req, err := http.NewRequestWithContext(ctx, x.method, address, body)
	if err != nil {
		return nil, err
	}
	req.ContentLength = size
	maps.Copy(req.Header, x.header)
	resp, err := client.Do(req)
	if err != nil {
		return nil, t.failure(x, err, nil)
	}
	if slices.Contains(x.want, resp.StatusCode) {
		t.accepted()
		return resp, nil
	}
	defer resp.Body.Close() //nolint:errcheck // the answer is an error
	if resp.StatusCode == http.StatusUnauthorized {
		t.reconnect(client)
	}
	err = transport.CheckError(resp, x.want...)
	if err == nil {
		err = fmt.Errorf("it answers %d", resp.StatusCode)
	}
	return nil, t.failure(x, err, resp)
}

// exists asks whether something is there, and returns its size and digest as the registry gives them; -1 and "" where it
// does not.
func (t *repository) exists(ctx context.Context, what string, accept string) (there bool, size int64, digest string, err error) {
	header := http.Header{}
	if accept != "" {
		header.Set("Accept", accept)
	}
	a, err := t.do(ctx, exchange{method: http.MethodHead, what: what, header: header, want: []int{http.StatusOK, http.StatusNotFound}})
	if err != nil || a.status == http.StatusNotFound {
		return false, -1, "", err
	}
	return true, a.size, a.header.Get("Docker-Content-Digest"), nil
}
