package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// seenKey identifies an object with the label of a release in a list.
type seenKey struct {
	release string
	object  record.ObjectKey
}

// manyNamespaces is the number of namespaces up to which each is listed separately; beyond it, one list covers the cluster.
const manyNamespaces = 2

// fewObjects is the number of objects of a kind in a namespace up to which each is read separately. A list has to wait until the
// cache of the server is up to date, about a tenth of a second under load.
const fewObjects = 8

// query reads objects of one kind: those with the names, or all if there are none.
type query struct {
	kind      kube.GroupVersionKind
	namespace string
	names     []string
}

// queries returns queries for recorded objects that may be unchanged.
func queries(plans []*Plan) []query {
	names := map[kube.GroupVersionKind]map[string][]string{}
	for _, p := range plans {
		for _, s := range p.steps {
			if !s.mayBeUnchanged() {
				continue
			}
			kind := kindOfRef(s.Object)
			if names[kind] == nil {
				names[kind] = map[string][]string{}
			}
			names[kind][s.Object.Namespace] = append(names[kind][s.Object.Namespace], s.Object.Name)
		}
	}
	var list []query
	for kind, in := range names {
		if len(in) > manyNamespaces {
			list = append(list, query{kind: kind})
			continue
		}
		for namespace, objects := range in {
			if len(objects) > fewObjects {
				objects = nil
			}
			list = append(list, query{kind, namespace, objects})
		}
	}
	return list
}

// readDeployed reads the metadata of recorded objects. Objects that it does not find are read one by one later: they may lack the label,
// or the user is not allowed to list them.
func (e *Engine) readDeployed(ctx context.Context, plans []*Plan) (map[seenKey]*unstructured.Unstructured, error) {
	selector := schema.LabelRelease
	if len(plans) == 1 {
		selector += "=" + plans[0].Release.ID()
	}
	var (
		mu      sync.Mutex
		seen    = map[seenKey]*unstructured.Unstructured{}
		queries = queries(plans)
	)
	err := cluster.Each(len(queries), func(i int) error {
		objects, err := e.answer(ctx, queries[i], selector)
		if errors.Is(err, cluster.ErrNoKind) || report.CodeOf(err) == report.Forbidden {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read deployed objects: %w", err)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, object := range objects {
			key := record.ObjectKey{GroupKind: queries[i].kind.GroupKind(), Namespace: object.GetNamespace(), Name: object.GetName()}
			seen[seenKey{object.GetLabels()[schema.LabelRelease], key}] = object
		}
		return nil
	})
	return seen, err
}

// answer returns the metadata that a query reads.
func (e *Engine) answer(ctx context.Context, q query, selector string) ([]*unstructured.Unstructured, error) {
	if q.names == nil {
		return cluster.Collect(e.Cluster.ListMetadata(ctx, q.kind, q.namespace, metav1.ListOptions{LabelSelector: selector}))
	}
	found := make([]*unstructured.Unstructured, len(q.names))
	err := cluster.Each(len(q.names), func(i int) (err error) {
		found[i], err = e.Cluster.GetMetadata(ctx, q.kind, q.namespace, q.names[i])
		return err
	})
	return slices.DeleteFunc(found, func(o *unstructured.Unstructured) bool { return o == nil }), err
}

// generations are kinds whose generation grows with every change except those of metadata and status. This depends on the kind:
// PriorityClass, for example, keeps its generation when its description changes.
var generations = map[kube.GroupKind]bool{
	{Group: "apps", Kind: "Deployment"}:                               true,
	{Group: "apps", Kind: "StatefulSet"}:                              true,
	{Group: "apps", Kind: "DaemonSet"}:                                true,
	{Group: "batch", Kind: "Job"}:                                     true,
	{Group: "batch", Kind: "CronJob"}:                                 true,
	{Group: "networking.k8s.io", Kind: "Ingress"}:                     true,
	{Group: "networking.k8s.io", Kind: "NetworkPolicy"}:               true,
	{Group: "policy", Kind: "PodDisruptionBudget"}:                    true,
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: true,
}

// unchanged reports, from the metadata alone, that an object needs no change, and sets the action of the step.
//
// This is sound because the record has the answer of the server to the last apply: the hash of the desired object, the UID and the
// resource version. With an equal resource version nothing was written since. Where controllers write the status, an equal
// generation proves the same except for metadata, of which the fields that we set are compared. In all other cases, such as a
// webhook that decides differently now, a dry run is made.
func (s *step) unchanged(live *unstructured.Unstructured) bool {
	known := s.known
	if !s.mayBeUnchanged() || live == nil || live.GetDeletionTimestamp() != nil || known.UID != string(live.GetUID()) {
		return false
	}
	if known.ResourceVersion != live.GetResourceVersion() {
		if !generations[kindOfRef(s.Object).GroupKind()] || known.Generation == 0 || known.Generation != live.GetGeneration() {
			return false
		}
		if len(s.desired.GetOwnerReferences())+len(s.desired.GetFinalizers()) > 0 ||
			!contains(live.GetLabels(), s.desired.GetLabels()) || !contains(live.GetAnnotations(), s.desired.GetAnnotations()) {
			return false
		}
	}
	s.Action, s.live = schema.ActionNone, live
	return true
}

// mayBeUnchanged reports whether the object is recorded as it is desired.
func (s *step) mayBeUnchanged() bool {
	known := s.known
	return s.desired != nil && known.Name != "" && known.Hash == s.hash && known.UID != "" && known.ResourceVersion != "" && !known.Leaving &&
		!known.Kept && known.APIVersion == s.Object.APIVersion
}

func contains[V comparable](all, some map[string]V) bool {
	for key, value := range some {
		if got, ok := all[key]; !ok || got != value {
			return false
		}
	}
	return true
}
