package records

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Answer is the response of an endpoint of the registry to a node.
type Answer struct {
	Endpoint string
	Err      error     // it does not answer, or not as a registry
	Until    time.Time // when its certificate expires
	Missing  []string  // the versions that it does not serve, sorted
}

// IsUntrusted reports whether nodes would reject the endpoint: no known authority has signed its certificate.
func (a Answer) IsUntrusted() bool {
	_, ok := errors.AsType[x509.UnknownAuthorityError](a.Err)
	return ok
}

// AskRegistry asks each endpoint of a registry for an image of each import, as a node would. It asks all endpoints at
// once and gives each of them the timeout.
func AskRegistry(ctx context.Context, registry *schema.ClusterRegistry, imports []schema.Import, timeout time.Duration) []Answer {
	client := clientFor(registry)
	defer client.CloseIdleConnections()
	answers := make([]Answer, len(registry.Endpoints))
	var group sync.WaitGroup
	for i, endpoint := range registry.Endpoints {
		group.Go(func() {
			bounded, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			a := askEndpoint(bounded, client, strings.TrimSuffix(endpoint, "/"), imports)
			if a.Err != nil && bounded.Err() != nil && ctx.Err() == nil {
				a.Err = fmt.Errorf("no answer within %s: no host has this address, a firewall drops the packets, or the host does not respond", timeout)
			}
			answers[i] = a
		})
	}
	group.Wait()
	return answers
}

// AskEndpoints asks the endpoints of a list for the imports, and adds their answers to it.
func AskEndpoints(ctx context.Context, list *schema.EndpointList, registry *schema.ClusterRegistry, imports []schema.Import) {
	for _, a := range AskRegistry(ctx, registry, imports, 2*Briefly) {
		answer := &schema.EndpointAnswer{Serves: len(imports) - len(a.Missing), Missing: append([]string{}, a.Missing...)}
		if a.Err != nil {
			answer = &schema.EndpointAnswer{Missing: []string{}, Problem: a.Err.Error()}
		}
		for i := range list.Endpoints {
			if strings.TrimSuffix(list.Endpoints[i].URL, "/") == a.Endpoint {
				list.Endpoints[i].Answer = answer
			}
		}
	}
}

// authorities returns the system's authorities where images were pushed to a registry of the site, which nodes trust by them; none for hosts that serve.
func authorities(registry *schema.ClusterRegistry) *x509.CertPool {
	if pool, err := x509.SystemCertPool(); registry.Mode == schema.RegistryExternal && err == nil {
		return pool
	}
	return x509.NewCertPool()
}

// clientFor connects as nodes do: directly, trusting the registry's authorities only, where there are any.
func clientFor(registry *schema.ClusterRegistry) *http.Client {
	transport := &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}}
	if registry.CA != "" {
		transport.TLSClientConfig.RootCAs = authorities(registry)
		transport.TLSClientConfig.RootCAs.AppendCertsFromPEM([]byte(registry.CA))
	}
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func askEndpoint(ctx context.Context, client *http.Client, endpoint string, imports []schema.Import) Answer {
	a := Answer{Endpoint: endpoint}
	var status int
	base, _ := schema.SplitEndpoint(endpoint)
	status, a.Until, a.Err = ask(ctx, client, base+"/v2/")
	if a.Err == nil && status != http.StatusOK && status != http.StatusUnauthorized {
		a.Err = fmt.Errorf("it answers %d %s: this is not a registry", status, strings.ToLower(http.StatusText(status)))
	}
	if a.Err == nil {
		a.Missing, a.Err = missingAt(ctx, client, endpoint, imports)
	}
	return a
}

// missingAt returns the imported versions of which an endpoint does not have an image.
func missingAt(ctx context.Context, client *http.Client, endpoint string, imports []schema.Import) ([]string, error) {
	var mu sync.Mutex
	var missing []string
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for _, i := range imports {
		group.Go(func() error {
			for _, ref := range slices.Sorted(maps.Keys(i.Images))[:min(1, len(i.Images))] {
				name, _, _ := strings.Cut(ref, ":")
				status, err := askRepository(ctx, client, endpoint, i.ID()+"/"+name, i.Images[ref])
				if err != nil {
					return err
				}
				if status != http.StatusOK {
					mu.Lock()
					defer mu.Unlock()
					missing = append(missing, i.ID())
				}
			}
			return nil
		})
	}
	err := group.Wait()
	slices.Sort(missing)
	return missing, err
}

// askRepository asks an endpoint for an image as a node without a login does.
func askRepository(ctx context.Context, client *http.Client, endpoint, repository, digest string) (status int, err error) {
	base, prefix := schema.SplitEndpoint(endpoint)
	address := schema.EndpointPath(endpoint) + "/" + repository + "/manifests/" + digest
	status, _, err = ask(ctx, client, address)
	if err != nil || status != http.StatusUnauthorized {
		return status, err
	}
	transport, err := oci.AnonymousTransport(ctx, base, path.Join(prefix, repository), client.Transport)
	if err == nil {
		status, _, err = ask(ctx, &http.Client{Transport: transport, CheckRedirect: client.CheckRedirect}, address)
	}
	if err != nil || status == http.StatusUnauthorized || status == http.StatusForbidden {
		return status, errLogin
	}
	return status, nil
}

// errLogin is the answer of a registry that has no images for nodes without a login.
var errLogin = errors.New("it wants a login, which nodes do not have: let anyone pull from this project")

// NeedsLogin reports whether nodes cannot pull from the endpoint without a login.
func (a Answer) NeedsLogin() bool { return errors.Is(a.Err, errLogin) }

// ask returns the status of an answer and when the certificate behind it expires.
func ask(ctx context.Context, client *http.Client, url string) (status int, until time.Time, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, url, http.NoBody)
	if err != nil {
		return 0, until, err
	}
	request.Header.Set("Accept", "application/vnd.docker.distribution.manifest.v2+json, application/vnd.oci.image.manifest.v1+json, "+
		"application/vnd.oci.image.index.v1+json, application/vnd.docker.distribution.manifest.list.v2+json")
	response, err := client.Do(request)
	if err != nil {
		return 0, until, err
	}
	_ = response.Body.Close() // there is none
	if response.TLS != nil && len(response.TLS.PeerCertificates) > 0 {
		until = response.TLS.PeerCertificates[0].NotAfter
	}
	return response.StatusCode, until, nil
}

// Briefly is for how long a verb that is about something else waits for the registry.
const Briefly = 2 * time.Second

// CheckAuthority refuses an authority that has not signed the present certificate of an endpoint. An endpoint without
// an answer is accepted: it may be started later, or be unreachable from here.
func CheckAuthority(ctx context.Context, registry schema.ClusterRegistry) error {
	if registry.CA == "" {
		return nil
	}
	for _, a := range AskRegistry(ctx, &registry, nil, Briefly) {
		if a.IsUntrusted() {
			return report.Errorf(report.Refused, "endpoint %s answers with a certificate that the given authority has not signed", a.Endpoint).
				WithHint("each host has an authority of its own: run the command on that host, or name the file tls/ca.crt in its store with --ca")
		}
	}
	return nil
}

// RegistryRemedy is the command that records in the cluster where its images are.
func RegistryRemedy() report.Remedy { return report.Run("deploy registry add", "https://HOST:5000") }
