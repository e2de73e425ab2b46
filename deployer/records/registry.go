package records

import (
	"context"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Registry returns where the nodes of the cluster find images, nil when nothing was recorded: before the first import.
func (r *Records) Registry(ctx context.Context) (*schema.ClusterRegistry, error) {
	registry, _, err := r.readRegistry(ctx)
	return registry, err
}

func (r *Records) readRegistry(ctx context.Context) (*schema.ClusterRegistry, *unstructured.Unstructured, error) {
	registry, object, err := readDocument[schema.ClusterRegistry](ctx, r, RegistryName)
	return registry, object, recordAgain(err, RegistryName, " on the host that serves the images", RegistryRemedy())
}

// EditRegistry changes the recorded endpoints for images, and returns the new record.
func (r *Records) EditRegistry(ctx context.Context, edit func(*schema.ClusterRegistry) (*schema.ClusterRegistry, error)) (*schema.ClusterRegistry, error) {
	known, object, err := r.readRegistry(ctx)
	if err != nil {
		return nil, err
	}
	next, err := edit(known)
	if err != nil || known != nil && slices.Equal(known.Endpoints, next.Endpoints) && known.CA == next.CA && maps.Equal(known.Authorities, next.Authorities) {
		return next, err
	}
	next.Stamp = schema.NewStamp("registry", r.Version)
	data, err := schema.MarshalStored(*next)
	if err != nil {
		return nil, err
	}
	return next, r.writeDocument(ctx, RegistryName, object, data)
}

// WithEndpoints returns a registry with more endpoints.
func WithEndpoints(known *schema.ClusterRegistry, more schema.ClusterRegistry, replace bool) (*schema.ClusterRegistry, error) {
	if known == nil {
		known = &schema.ClusterRegistry{Mode: more.Mode, Host: more.Host, Endpoints: []string{}}
	}
	if known.Host != more.Host {
		return nil, report.Errorf(report.Refused, "this cluster was set up for registry mode %s (%s), not %s (%s)",
			known.Mode, known.Host, more.Mode, more.Host).
			WithHint("everything that was deployed names its images by the first one; leave out --registry-mode, --endpoint and --push-to")
	}
	if len(more.Endpoints) == 0 {
		return known, nil
	}
	given, err := parseAuthorities(more.CA)
	if err != nil {
		return nil, err
	}
	next := newTrust(known)
	next.renew(given)
	for _, text := range more.Endpoints {
		endpoint, err := schema.ParseEndpoint(text)
		if err != nil {
			return nil, err
		}
		if err := next.add(endpoint, given, replace); err != nil {
			return nil, err
		}
	}
	return next.registry(known), nil
}

// WithoutEndpoints returns a registry with fewer endpoints.
func WithoutEndpoints(known *schema.ClusterRegistry, endpoints []string) (*schema.ClusterRegistry, error) {
	if known == nil {
		known = &schema.ClusterRegistry{}
	}
	next := newTrust(known)
	for _, text := range endpoints {
		endpoint, err := schema.ParseEndpoint(text)
		if err != nil {
			return nil, err
		}
		i := slices.Index(next.endpoints, endpoint)
		if i < 0 {
			e := report.Errorf(report.NotFound, "the cluster knows no endpoint %s", endpoint)
			if len(next.endpoints) == 0 {
				return nil, e.WithHint("it knows none")
			}
			return nil, e.WithHint("it knows %s", strings.Join(next.endpoints, ", "))
		}
		next.endpoints = slices.Delete(next.endpoints, i, i+1)
	}
	return next.registry(known), nil
}

// Endpoints lists where nodes find images. A nil registry has no endpoints.
func Endpoints(r *schema.ClusterRegistry) *schema.EndpointList {
	if r == nil {
		r = &schema.ClusterRegistry{}
	}
	list := &schema.EndpointList{Mode: r.Mode, Host: r.Host, Endpoints: []schema.Endpoint{}}
	trust := newTrust(r)
	for _, url := range trust.endpoints {
		endpoint := schema.Endpoint{URL: url, Authorities: []schema.EndpointAuthority{}}
		for _, c := range trust.authorities[url] {
			endpoint.Authorities = append(endpoint.Authorities, schema.EndpointAuthority{Fingerprint: fingerprint(c), NotAfter: c.NotAfter.UTC()})
		}
		list.Endpoints = append(list.Endpoints, endpoint)
	}
	return list
}
