package survey

import (
	"context"
	"iter"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/health"
	"github.com/solutionctl/solutionctl/schema"
)

// reasonsOf returns the function that finds out why an object is not ready. If many are not, what they depend on is read at once.
func (v *Survey) reasonsOf(ctx context.Context, live observations) func(context.Context, *unstructured.Unstructured) []schema.Reason {
	notReady := 0
	namespaces := map[string]bool{}
	for ref, seen := range live {
		if !seen.hidden && !seen.status.Ready {
			notReady++
			namespaces[ref.Namespace] = true
		}
	}
	delete(namespaces, "")
	if notReady > fewReads {
		return health.Gather(ctx, eventsApart{v.Cluster}, slices.Sorted(maps.Keys(namespaces))).Reasons
	}
	return func(ctx context.Context, object *unstructured.Unstructured) []schema.Reason {
		return health.Reasons(ctx, v.Cluster, object)
	}
}

// eventsApart reads without noting Events for a [cluster.Follower]. Where many objects are not ready there is always a new one, and most repeat
// an old one: a change of the objects themselves is followed, and the time until the next read grows while nothing else changes.
type eventsApart struct{ *cluster.Cluster }

// ListWithConditions is [cluster.Cluster.ListWithConditions].
func (r eventsApart) ListWithConditions(ctx context.Context, kind kube.GroupVersionKind, namespace string, o metav1.ListOptions) iter.Seq2[*unstructured.Unstructured, error] {
	if kind == cluster.EventKind {
		ctx = cluster.WithoutReads(ctx)
	}
	return r.Cluster.ListWithConditions(ctx, kind, namespace, o)
}
