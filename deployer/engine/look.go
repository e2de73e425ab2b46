package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// seenKey identifies what a list has shown: an object with the label of a release.
type seenKey struct {
	release string
	object  objectKey
}

// manyNamespaces is the number of namespaces up to which each is asked for by itself; beyond that, one list goes over all of them.
const manyNamespaces = 2

// fewObjects is the number of objects of a kind in a namespace up to which each is asked for by itself. A list makes the server wait
// until what it has in memory is not older than the question, for a tenth of a second while others write.
const fewObjects = 8

// query asks for objects of one kind: for some by their names, without names for all.
type query struct {
	kind      kube.GroupVersionKind
	namespace string
	names     []string
}

// queries ask for what the records say is there and may be as it is wanted.
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

// look reads the metadata of what the records say is there. What it does not find is asked for one by one later: an
// object without our label, in a namespace or of a kind that the user may not list, or none at all.
func (e *Engine) look(ctx context.Context, plans []*Plan) (map[seenKey]*unstructured.Unstructured, error) {
	selector := LabelRelease
	if len(plans) == 1 {
		selector += "=" + plans[0].Release.ID()
	}
	var (
		mu      sync.Mutex
		seen    = map[seenKey]*unstructured.Unstructured{}
		queries = queries(plans)
	)
	err := each(len(queries), true, func(i int) error {
		objects, err := e.answer(ctx, queries[i], selector)
		if errors.Is(err, cluster.ErrNoKind) || report.CodeOf(err) == report.Forbidden {
			return nil
		}
		if err != nil {
			return fmt.Errorf("what is deployed: %w", err)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, object := range objects {
			key := objectKey{queries[i].kind.GroupKind(), object.GetNamespace(), object.GetName()}
			seen[seenKey{object.GetLabels()[LabelRelease], key}] = object
		}
		return nil
	})
	return seen, err
}

// answer returns the metadata that a query asks for.
func (e *Engine) answer(ctx context.Context, q query, selector string) ([]*unstructured.Unstructured, error) {
	if q.names == nil {
		return e.listMetadata(ctx, q.kind, q.namespace, selector)
	}
	var found []*unstructured.Unstructured
	for _, name := range q.names {
		object, err := e.Cluster.GetMetadata(ctx, q.kind, q.namespace, name)
		if err != nil {
			return nil, err
		}
		if object != nil {
			found = append(found, object)
		}
	}
	return found, nil
}

// generations are kinds whose generation grows with every change of anything but metadata and status. That is a matter of
// each kind: PriorityClass, for one, keeps its generation when its description changes.
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

// unchanged tells from the metadata alone that an object needs nothing, and then says so in the step.
//
// It is sound, because the record holds what the server answered to our last apply: what was wanted (the hash), which
// object it became (the UID) and in which state it was then. An equal resource version means that not one byte was
// written since, so applying the same again would change nothing. Where controllers write the status, the resource version moves
// on; there an equal generation means the same for everything but the metadata, and of the metadata we compare what we
// set. Anything else, a webhook that changed its mind included, costs a dry run and no more.
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

// mayBeUnchanged reports whether the record says that an object is as it is wanted.
func (s *step) mayBeUnchanged() bool {
	known := s.known
	return s.desired != nil && known.Name != "" && known.Hash == s.hash && known.UID != "" && known.ResourceVersion != "" && !known.Leaving &&
		!known.Kept && known.APIVersion == s.Object.APIVersion
}

func contains(all, some map[string]string) bool {
	for key, value := range some {
		if got, ok := all[key]; !ok || got != value {
			return false
		}
	}
	return true
}
