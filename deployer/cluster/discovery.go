package cluster

import (
	"context"
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ErrNoKind means that the cluster does not have a kind of objects: its CustomResourceDefinition is not there or not yet
// served, or the cluster is too old or too new for it.
var ErrNoKind = errors.New("the cluster has no such kind")

// discovery is what the API server said about its kinds.
type discovery struct {
	mu    sync.Mutex
	kinds map[schema.GroupVersionKind]*meta.RESTMapping
}

// Mapping tells how to address objects of a kind. What the server said is kept; a kind that is not known makes it ask
// once more, so that a CustomResourceDefinition that was just established is found. The error is [ErrNoKind] when the
// cluster has no such kind.
func (c *Cluster) Mapping(ctx context.Context, kind schema.GroupVersionKind) (*meta.RESTMapping, error) {
	panic("TODO")
}

// Kinds returns every kind that can be listed and deleted, sorted, one version for each: the one that the server prefers.
func (c *Cluster) Kinds(ctx context.Context) ([]*meta.RESTMapping, error) {
	panic("TODO")
}

// Refresh makes the next Mapping ask the server again.
func (c *Cluster) Refresh() {
	panic("TODO")
}

// Version returns the version of the API server, such as "v1.36.3".
func (c *Cluster) Version(ctx context.Context) (string, error) {
	panic("TODO")
}
