package plan

import (
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/kube/powers"
)

// foreignHosts returns which Ingress or route of others answers for a host. Those of the cluster are read only if the planned objects name
// hosts, and if the user has permission to list them; a notice names the kinds that were not compared.
func (r *Run) foreignHosts(ctx context.Context, key engine.Key, objects []*unstructured.Unstructured) (func(host string) string, error) {
	var namespaces []string
	for _, o := range objects {
		if group := o.GroupVersionKind().GroupKind(); (powers.IsRoute(group) || group.Kind == "Gateway") && len(powers.Hosts(o)) > 0 {
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
	answering := map[string]string{}
	for _, kind := range kinds {
		if !powers.IsRoute(kind.GroupVersionKind.GroupKind()) {
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
		for route, err := range r.Cluster.List(ctx, kind.GroupVersionKind, "", metav1.ListOptions{}) {
			if err != nil {
				return nil, err
			}
			if isOwnRoute(key, namespaces, route) {
				continue
			}
			for _, host := range powers.Hosts(route) {
				answering[host] = cluster.Name(route.GetKind(), route.GetNamespace(), route.GetName())
			}
		}
	}
	return func(host string) string {
		if other := answering[host]; other != "" {
			return other
		}
		_, parent, _ := strings.Cut(host, ".")
		return answering["*."+parent]
	}, nil
}

// isOwnRoute reports whether an Ingress or a route is of a Solution in one of the planned namespaces: deployed with it, or made in its
// environment by its operator or an administrator.
func isOwnRoute(key engine.Key, namespaces []string, route *unstructured.Unstructured) bool {
	solution, _, labelled := strings.Cut(route.GetLabels()[engine.LabelRelease], ".")
	if !labelled {
		return key.Namespace != "" && route.GetNamespace() == key.Namespace
	}
	return solution == key.Name && slices.Contains(namespaces, route.GetNamespace())
}
