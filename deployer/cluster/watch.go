package cluster

import (
	"context"
	"iter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// Change is what a watch saw: an object that is new or that the watch finds when it starts ([watch.Added]), one that
// changed ([watch.Modified]), or the last that is known of one that is gone ([watch.Deleted]).
type Change struct {
	Type   watch.EventType
	Object *unstructured.Unstructured
}

// Watch follows the objects of a kind. It first yields those that are there, or, when o.ResourceVersion is set, what
// happened since then. It goes on over lost connections, restarts of the server and a history that the server no longer
// has: changes in between may be yielded as one, but the last state of every object is. It ends with its context,
// silently, or with an error that waiting does not heal: the kind is gone, the user may not watch it.
func (c *Cluster) Watch(ctx context.Context, kind schema.GroupVersionKind, namespace string, o metav1.ListOptions) iter.Seq2[Change, error] {
	panic("TODO")
}
