package oci

import (
	"context"
	"net/http"
	"net/url"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/solutionctl/solutionctl/schema/report"
)

// AnonymousTransport makes requests to a repository of a registry, by its URL, as a client without a login does: with the
// token that the registry gives to anyone, where it has one.
func AnonymousTransport(ctx context.Context, registry, repository string, below http.RoundTripper) (http.RoundTripper, error) {
	address, err := url.Parse(registry)
	if err != nil {
		return nil, err
	}
	var options []name.Option
	plain := tlsOnly{RoundTripper: below}
	if address.Scheme == "http" { // it is recorded so
		options, plain.plain = append(options, name.Insecure), []string{address.Host}
	}
	at, err := name.NewRegistry(address.Host, options...)
	if err != nil {
		return nil, report.Errorf(report.Usage, "%s is not a registry: %w", registry, err)
	}
	return transport.NewWithContext(ctx, at, authn.Anonymous, bearerFirst{plain}, []string{at.Repo(repository).Scope(transport.PullScope)})
}
