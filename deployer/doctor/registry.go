package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/solutionctl/solutionctl/schema"
)

// registry asks every endpoint of the registry for an image of every imported version, as a node would.
func (x *examination) registry() {
	registry, err := x.Deployer.Registry(x.ctx)
	if err != nil {
		x.failed("registry", "endpoints", err)
		return
	}
	if registry == nil {
		x.skip("registry", "endpoints", "the cluster knows no registry yet: nothing was imported")
		return
	}
	x.node(registry)
	catalog, err := x.Deployer.Catalog(x.ctx)
	switch {
	case err != nil:
		x.failed("registry", "endpoints", err)
		return
	case len(catalog.Imports()) == 0:
		x.skip("registry", "endpoints", "nothing is imported")
		return
	case registry.Mode == schema.RegistryMetalK8s:
		x.skip("registry", "endpoints", "MetalK8s' nginx serves the images")
		return
	case len(registry.Endpoints) == 0:
		x.add(schema.CheckProblem, "registry", "endpoints", "the cluster does not know where nodes find images",
			"import an archive again with --endpoint https://HOST:5000, the address on which 'solutionctl deploy serve' listens")
		return
	}
	client := clientFor(registry)
	for _, endpoint := range registry.Endpoints {
		x.endpoint(client, strings.TrimSuffix(endpoint, "/"), catalog.Imports())
	}
}

// clientFor connects as nodes do: directly, trusting the registry's authority only, where there is one.
func clientFor(registry *schema.ClusterRegistry) *http.Client {
	transport := &http.Transport{TLSHandshakeTimeout: patience, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}}
	if registry.CA != "" {
		transport.TLSClientConfig.RootCAs = x509.NewCertPool()
		transport.TLSClientConfig.RootCAs.AppendCertsFromPEM([]byte(registry.CA))
	}
	return &http.Client{
		Transport: transport, Timeout: patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func (x *examination) endpoint(client *http.Client, endpoint string, imports []schema.Import) {
	status, until, err := ask(x.ctx, client, endpoint+"/v2/")
	if err == nil && status != http.StatusOK && status != http.StatusUnauthorized {
		err = fmt.Errorf("it answers %d %s: it is no registry", status, strings.ToLower(http.StatusText(status)))
	}
	if err != nil {
		x.add(schema.CheckProblem, "registry", "endpoints", fmt.Sprintf("%s does not answer: %v", endpoint, err),
			"see that 'solutionctl deploy serve' runs there; which addresses nodes use: 'solutionctl deploy import FILE --endpoint URL'")
		return
	}
	x.certificate("registry", "the certificate of "+endpoint, until, "restart 'solutionctl deploy serve' there, which renews it")
	missing := missingAt(x.ctx, client, endpoint, imports)
	if len(missing) == 0 {
		x.ok("registry", "endpoints", "%s serves all %d imported versions", endpoint, len(imports))
		return
	}
	x.add(schema.CheckProblem, "registry", "endpoints", fmt.Sprintf("%s does not serve %s", endpoint, strings.Join(missing, ", ")),
		"import the archives on that host, too")
}

// missingAt returns the imported versions of which an endpoint does not have an image.
func missingAt(ctx context.Context, client *http.Client, endpoint string, imports []schema.Import) []string {
	var mu sync.Mutex
	var missing []string
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for _, i := range imports {
		group.Go(func() error {
			for _, ref := range slices.Sorted(maps.Keys(i.Images))[:min(1, len(i.Images))] {
				name, _, _ := strings.Cut(ref, ":")
				status, _, err := ask(ctx, client, endpoint+"/v2/"+i.ID()+"/"+name+"/manifests/"+i.Images[ref])
				if err != nil || status != http.StatusOK {
					mu.Lock()
					defer mu.Unlock()
					missing = append(missing, i.ID())
				}
			}
			return nil
		})
	}
	_ = group.Wait() // none of them fails
	slices.Sort(missing)
	if more := len(missing) - maxRows; more > 0 {
		missing = append(missing[:maxRows], fmt.Sprintf("and %d more", more))
	}
	return missing
}

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
