package plan

import (
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/kube/powers"
	"github.com/solutionctl/solutionctl/schema"
)

// foreignHosts returns which Ingress, route, Gateway or Service of others answers for a host of an object. Those of the cluster are read only if the
// planned objects name hosts, and if the user has permission to list them; a notice names the kinds that were not compared.
func (r *Run) foreignHosts(ctx context.Context, key record.Key, objects []*unstructured.Unstructured) (func(o *unstructured.Unstructured, host string) string, error) {
	var namespaces []string
	for _, o := range objects {
		if powers.HasHosts(o.GroupVersionKind().GroupKind()) && len(powers.Hosts(o)) > 0 {
			namespaces = append(namespaces, o.GetNamespace())
		}
	}
	if len(namespaces) == 0 {
		return nil, nil
	}
	kinds, err := r.Cluster.Kinds(ctx)
	if err != nil {
		return nil, err
	}
	answering := hosts{}
	for _, kind := range kinds {
		if !powers.HasHosts(kind.GroupVersionKind.GroupKind()) {
			continue
		}
		missing, err := r.Cluster.Missing(ctx, cluster.Permission{Verb: "list", Group: kind.Resource.Group, Resource: kind.Resource.Resource})
		if err != nil {
			return nil, err
		}
		if len(missing) > 0 {
			r.Notice("you do not have permission to list the " + kind.Resource.GroupResource().String() + " of the cluster: hosts were not compared with those of others")
			continue
		}
		for object, err := range r.Cluster.List(ctx, kind.GroupVersionKind, "", metav1.ListOptions{}) {
			if err != nil {
				return nil, err
			}
			if !isOwnRoute(key, namespaces, object) {
				answering.add(object)
			}
		}
	}
	return answering.foreign, nil
}

// hosts has the objects that answer for each host.
type hosts map[string][]schema.ObjectRef

func (h hosts) add(object *unstructured.Unstructured) {
	for _, host := range powers.Hosts(object) {
		h[host] = append(h[host], records.RefOf(object.GroupVersionKind(), object))
	}
}

// foreign names an object that answers for a host, itself or with a wildcard, other than those that a route is attached to.
func (h hosts) foreign(route *unstructured.Unstructured, host string) string {
	isForeign := func(ref schema.ObjectRef) bool { return !powers.IsParent(route, ref) }
	if i := slices.IndexFunc(h[host], isForeign); i >= 0 {
		return h[host][i].String()
	}
	_, parent, below := strings.Cut(host, ".")
	for level := 1; below; level++ {
		list := h["*."+parent]
		if i := slices.IndexFunc(list, func(ref schema.ObjectRef) bool {
			group, _, _ := strings.Cut(ref.APIVersion, "/")
			return isForeign(ref) && ref.Kind != "Service" && (level == 1 || powers.MatchesBelow(group)) // a DNS name for all that a proxy answers
		}); i >= 0 {
			return list[i].String()
		}
		_, parent, below = strings.Cut(parent, ".")
	}
	return ""
}

// isOwnRoute reports whether an Ingress, a route or a Gateway is of a Solution in one of the planned namespaces: deployed with it, or made in its
// environment by its operator or an administrator.
func isOwnRoute(key record.Key, namespaces []string, route *unstructured.Unstructured) bool {
	solution, _, labelled := strings.Cut(route.GetLabels()[schema.LabelRelease], ".")
	if !labelled {
		return key.Namespace != "" && route.GetNamespace() == key.Namespace
	}
	return solution == key.Name && slices.Contains(namespaces, route.GetNamespace())
}
