package deployer

import (
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/kube/powers"
)

var ingressKind = kube.GroupVersionKind{Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"}

// foreignHosts returns which Ingress of others answers for a host. The Ingresses of the cluster are read only if the objects that are
// planned name hosts, and if the user is allowed to; a notice says what was not compared.
func (d *Deployer) foreignHosts(ctx context.Context, t *task, key engine.Key, objects []*unstructured.Unstructured) (func(host string) string, error) {
	var namespaces []string
	for _, o := range objects {
		if o.GroupVersionKind().GroupKind() == ingressKind.GroupKind() && len(powers.IngressHosts(o)) > 0 {
			namespaces = append(namespaces, o.GetNamespace())
		}
	}
	if len(namespaces) == 0 {
		return nil, nil
	}
	missing, err := d.Cluster.Missing(ctx, cluster.Permission{Verb: "list", Group: ingressKind.Group, Resource: "ingresses"})
	if err != nil {
		return nil, err
	}
	if len(missing) > 0 {
		t.notice("you do not have permission to list the Ingresses of the cluster: hosts were not compared with those of others")
		return nil, nil
	}
	answering := map[string]string{}
	for ingress, err := range d.Cluster.List(ctx, ingressKind, "", metav1.ListOptions{}) {
		if err != nil {
			return nil, err
		}
		if isOwnIngress(key, namespaces, ingress) {
			continue
		}
		for _, host := range powers.IngressHosts(ingress) {
			answering[host] = "Ingress " + ingress.GetNamespace() + "/" + ingress.GetName()
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

// isOwnIngress tells of an Ingress whether it is of a Solution in one of the namespaces of what is planned: deployed with it, or made in
// its environment by its operator or an administrator.
func isOwnIngress(key engine.Key, namespaces []string, ingress *unstructured.Unstructured) bool {
	solution, _, labelled := strings.Cut(ingress.GetLabels()[engine.LabelRelease], ".")
	if !labelled {
		return key.Namespace != "" && ingress.GetNamespace() == key.Namespace
	}
	return solution == key.Name && slices.Contains(namespaces, ingress.GetNamespace())
}
