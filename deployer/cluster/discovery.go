package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/solutionctl/solutionctl/schema/report"
)

// ErrNoKind means that the cluster does not have a kind of objects: its CustomResourceDefinition is not there or not yet
// served, or the cluster is too old or too new for it.
var ErrNoKind = errors.New("the cluster has no such kind")

// discovery holds the kinds of the API server, each in all its versions.
type discovery struct {
	mu    sync.Mutex
	asked time.Duration // when, on the boot clock
	kinds map[schema.GroupVersionKind]*meta.RESTMapping
	best  []*meta.RESTMapping // one version of each, the server's favourite
	// versions has all of all groups, true for one of a server behind the API server that does not answer.
	versions map[schema.GroupVersion]bool
}

// askAgain is the age of the knowledge that a kind is missing at which the server is asked again: objects of a
// missing kind rarely come alone.
const askAgain = time.Second

// Mapping returns the resource and the scope of a kind. Answers of the server are cached; an unknown kind is looked up again, at most
// once a second, so that a new CustomResourceDefinition is found. The error is [ErrNoKind] if the cluster does not have the kind.
func (c *Cluster) Mapping(ctx context.Context, kind schema.GroupVersionKind) (*meta.RESTMapping, error) {
	c.kinds.mu.Lock()
	defer c.kinds.mu.Unlock()
	if known := c.kinds.kinds[kind]; known != nil {
		return known, nil
	}
	if err := c.discover(ctx, bootTime()); err != nil {
		return nil, err
	}
	switch {
	case c.kinds.kinds[kind] != nil:
		return c.kinds.kinds[kind], nil
	case c.kinds.versions[kind.GroupVersion()]:
		return nil, staleGroup(kind.GroupVersion())
	default:
		return nil, fmt.Errorf("%s %s: %w", kind.Kind, kind.GroupVersion(), ErrNoKind)
	}
}

// Kinds returns every kind of the cluster whose objects can be listed and deleted, in the version that the server prefers,
// sorted by group and kind. It asks the server, unless that was done within the last second, or since a second before the memory of the context
// began, see [WithMemory]. The kinds of a server behind the API server that does not answer are left out; that is an error only for the
// groups that the caller needs.
func (c *Cluster) Kinds(ctx context.Context, needed ...string) ([]*meta.RESTMapping, error) {
	c.kinds.mu.Lock()
	defer c.kinds.mu.Unlock()
	if err := c.discover(ctx, memoryOf(ctx).began); err != nil {
		return nil, err
	}
	for version, stale := range c.kinds.versions {
		if stale && slices.Contains(needed, version.Group) {
			return nil, staleGroup(version)
		}
	}
	return slices.Clone(c.kinds.best), nil
}

// Versions returns the versions of all API groups, sorted, also those of servers that do not answer and those without kinds. It asks as
// [Cluster.Kinds] does.
func (c *Cluster) Versions(ctx context.Context) ([]schema.GroupVersion, error) {
	c.kinds.mu.Lock()
	defer c.kinds.mu.Unlock()
	if err := c.discover(ctx, memoryOf(ctx).began); err != nil {
		return nil, err
	}
	return slices.SortedFunc(maps.Keys(c.kinds.versions), func(a, b schema.GroupVersion) int { return cmp.Compare(a.String(), b.String()) }), nil
}

// Refresh makes the next question about a kind go to the server, because kinds were added, changed or removed.
func (c *Cluster) Refresh() {
	c.kinds.mu.Lock()
	defer c.kinds.mu.Unlock()
	c.kinds.kinds = nil
}

// discover asks the server for its kinds, unless that was done since a moment before a time: two requests, one for the core group and one for all
// others.
func (c *Cluster) discover(ctx context.Context, since time.Duration) error {
	if c.kinds.kinds != nil && since-c.kinds.asked < askAgain {
		return nil
	}
	found := discovery{kinds: map[schema.GroupVersionKind]*meta.RESTMapping{}, versions: map[schema.GroupVersion]bool{}}
	for _, path := range []string{"/api", "/apis"} {
		answer, _, err := c.do(ctx, request{
			verb: "get", method: http.MethodGet, path: path, about: "read the kinds of the API server",
			accept: "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
		})
		if err != nil {
			return err
		}
		var list apidiscovery.APIGroupDiscoveryList
		if err := json.Unmarshal(answer, &list); err != nil {
			return fmt.Errorf("list of kinds: %w", err)
		}
		if list.Kind != "APIGroupDiscoveryList" {
			return report.Errorf(report.Failure, "the API server is older than Kubernetes 1.30").WithHint("upgrade the cluster")
		}
		for _, group := range list.Items {
			found.add(group)
		}
	}
	slices.SortFunc(found.best, func(a, b *meta.RESTMapping) int {
		return cmp.Or(cmp.Compare(a.GroupVersionKind.Group, b.GroupVersionKind.Group), cmp.Compare(a.GroupVersionKind.Kind, b.GroupVersionKind.Kind))
	})
	c.kinds.asked, c.kinds.kinds, c.kinds.best, c.kinds.versions = bootTime(), found.kinds, found.best, found.versions
	return nil
}

// add adds the versions of a group in the server's order of preference.
func (d *discovery) add(group apidiscovery.APIGroupDiscovery) {
	preferred := map[string]bool{}
	for _, v := range group.Versions {
		version := schema.GroupVersion{Group: group.Name, Version: v.Version}
		d.versions[version] = v.Freshness == apidiscovery.DiscoveryFreshnessStale
		for _, r := range v.Resources {
			if r.ResponseKind == nil {
				continue // only subresources are left of it
			}
			kind := mapping(version, r)
			d.kinds[kind.GroupVersionKind] = kind
			if slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "delete") && !preferred[r.Resource] {
				preferred[r.Resource] = true
				d.best = append(d.best, kind)
			}
		}
	}
}

func mapping(version schema.GroupVersion, r apidiscovery.APIResourceDiscovery) *meta.RESTMapping {
	m := &meta.RESTMapping{Resource: version.WithResource(r.Resource), GroupVersionKind: version.WithKind(r.ResponseKind.Kind), Scope: meta.RESTScopeRoot}
	if r.Scope == apidiscovery.ScopeNamespace {
		m.Scope = meta.RESTScopeNamespace
	}
	return m
}

// staleGroup is the error when a server behind the API server does not answer for its kinds.
func staleGroup(version schema.GroupVersion) error {
	return report.Errorf(report.Unavailable, "the kinds of %s are not known: the server that has them does not answer", version).
		WithHint("look at APIService %s.%s, and at the Service that it names; if it is not needed any more, delete it", version.Version, version.Group)
}

// Version returns the version of the API server, such as "v1.36.3". A context with a memory, see [WithMemory], asks once.
func (c *Cluster) Version(ctx context.Context) (string, error) {
	m := memoryOf(ctx)
	m.asking.Lock()
	defer m.asking.Unlock()
	if m.version != "" {
		return m.version, nil
	}
	answer, _, err := c.do(ctx, request{verb: "get", method: http.MethodGet, path: "/version", about: "read the version of the API server"})
	if err != nil {
		return "", err
	}
	var info version.Info
	if err := json.Unmarshal(answer, &info); err != nil {
		return "", fmt.Errorf("version of the API server: %w", err)
	}
	m.version = info.GitVersion
	return m.version, nil
}

// APIVersions returns what the cluster serves, sorted: every group and version, such as apps/v1, and every kind in it, such as
// apps/v1/Deployment. It asks the server at most once a second, and once for a context with a memory: see [WithMemory].
func (c *Cluster) APIVersions(ctx context.Context) ([]string, error) {
	m := memoryOf(ctx)
	m.asking.Lock()
	defer m.asking.Unlock()
	if m.versions != nil {
		return slices.Clone(m.versions), nil
	}
	if _, err := c.Kinds(ctx); err != nil {
		return nil, err
	}
	c.kinds.mu.Lock()
	defer c.kinds.mu.Unlock()
	served := map[string]bool{}
	for kind := range c.kinds.kinds {
		served[kind.GroupVersion().String()], served[kind.GroupVersion().String()+"/"+kind.Kind] = true, true
	}
	m.versions = slices.Sorted(maps.Keys(served))
	return slices.Clone(m.versions), nil
}
