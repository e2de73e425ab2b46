package engine

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Kinds are the kinds that are searched for objects of a release without a record: all that a release usually has.
var Kinds = slices.Concat(CommonKinds, []kube.GroupVersionKind{
	{Version: "v1", Kind: "ConfigMap"},
	{Version: "v1", Kind: "Secret"},
	{Version: "v1", Kind: "Service"},
	{Version: "v1", Kind: "PersistentVolumeClaim"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"},
	{Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"},
	{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"},
	{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"},
	{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"},
	{Group: "monitoring.coreos.com", Version: "v1", Kind: "ServiceMonitor"},
	{Group: "monitoring.coreos.com", Version: "v1", Kind: "PodMonitor"},
	{Group: "monitoring.coreos.com", Version: "v1", Kind: "PrometheusRule"},
	{Group: "cert-manager.io", Version: "v1", Kind: "Issuer"},
	{Group: "cert-manager.io", Version: "v1", Kind: "Certificate"},
	{Group: "scheduling.k8s.io", Version: "v1", Kind: "PriorityClass"},
	{Group: "storage.k8s.io", Version: "v1", Kind: "StorageClass"},
	{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingWebhookConfiguration"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicy"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicyBinding"},
})

// CommonKinds are kinds of which almost every release has an object: workloads, their accounts and CustomResourceDefinitions.
var CommonKinds = []kube.GroupVersionKind{
	{Group: "apps", Version: "v1", Kind: "Deployment"},
	{Group: "apps", Version: "v1", Kind: "StatefulSet"},
	{Group: "apps", Version: "v1", Kind: "DaemonSet"},
	{Group: "batch", Version: "v1", Kind: "Job"},
	{Group: "batch", Version: "v1", Kind: "CronJob"},
	{Version: "v1", Kind: "ServiceAccount"},
	{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
}

// onlyInCluster are kinds of which only a release of the whole cluster has objects: a namespace has no release with one of them.
var onlyInCluster = map[kube.GroupKind]bool{
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:                 true,
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:                               true,
	{Group: "storage.k8s.io", Kind: "StorageClass"}:                                   true,
	{Group: "apiregistration.k8s.io", Kind: "APIService"}:                             true,
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}:   true,
	{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}:     true,
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicy"}:        true,
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicyBinding"}: true,
}

// Found is an object of a release that was found by its label or its name.
type Found struct {
	record.Key
	Object *unstructured.Unstructured // its metadata, and of a workload its status
}

// IsManaged reports whether solutionctl has written an object, by its field managers. The label does not prove that: it is part of every
// copy of an object.
func IsManaged(object *unstructured.Unstructured) bool {
	return slices.ContainsFunc(object.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool { return isSelf(entry.Manager) })
}

// Deployed returns the object as a record has it. It was rendered from unknown input, so its hash is that of nothing.
func (f Found) Deployed() schema.DeployedObject {
	kind := f.Object.GroupVersionKind().GroupKind()
	return schema.DeployedObject{ObjectRef: refOf(f.Object), UID: string(f.Object.GetUID()), Hash: strings.TrimPrefix(record.DigestOf(nil), "sha256:"), Phase: phaseOf(kind)}
}

// IsListedWithStatus reports whether [Engine.Labelled] lists objects of a kind with their status.
func IsListedWithStatus(kind kube.GroupVersionKind) bool {
	return kind.Group == "apps" && slices.Contains(CommonKinds, kind)
}

// Labelled finds the objects of some kinds with the label of a release: of releases in the given namespaces, or of all releases if
// none are given. It leaves out objects with an owner, which are deleted with it, and kinds that the user is not allowed to list.
// The label alone does not prove that solutionctl wrote an object, see [IsManaged].
func (e *Engine) Labelled(ctx context.Context, kinds []kube.GroupVersionKind, namespaces ...string) ([]Found, error) {
	places := namespaces
	if len(namespaces) == 0 || len(namespaces) > manyNamespaces {
		places = []string{""}
	}
	if len(namespaces) > 0 && !slices.Contains(namespaces, "") {
		kinds = slices.DeleteFunc(slices.Clone(kinds), func(kind kube.GroupVersionKind) bool { return onlyInCluster[kind.GroupKind()] })
	}
	var mu sync.Mutex
	var objects []*unstructured.Unstructured
	err := cluster.Each(len(kinds), func(i int) error {
		for _, place := range places {
			list := e.Cluster.ListMetadata
			if IsListedWithStatus(kinds[i]) {
				list = e.Cluster.ListPartial
			}
			found, err := cluster.Collect(list(ctx, kinds[i], place, metav1.ListOptions{LabelSelector: schema.LabelRelease}))
			if errors.Is(err, cluster.ErrNoKind) || report.CodeOf(err) == report.Forbidden {
				return nil
			}
			if err != nil {
				return err
			}
			mu.Lock()
			objects = append(objects, found...)
			mu.Unlock()
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return matchReleases(objects, namespaces), nil
}

// matchReleases finds the releases of objects by their labels, and lists each object once. A label of a release in another namespace was
// copied and is ignored.
func matchReleases(objects []*unstructured.Unstructured, namespaces []string) []Found {
	all := namespaces
	if len(namespaces) == 0 {
		places := map[string]bool{"": true}
		for _, object := range objects {
			places[object.GetNamespace()] = true
		}
		all = slices.Sorted(maps.Keys(places))
	}
	included := map[string]bool{}
	for _, namespace := range all {
		included[namespace] = true
	}
	seen := map[record.ObjectKey]bool{}
	var list []Found
	for _, object := range objects {
		candidates := all
		if own := object.GetNamespace(); own != "" {
			candidates = slices.DeleteFunc([]string{own, ""}, func(n string) bool { return !included[n] })
		}
		key, known := record.FindKey(object.GetLabels()[schema.LabelRelease], candidates...)
		if known && len(object.GetOwnerReferences()) == 0 && !seen[keyOf(object)] {
			seen[keyOf(object)] = true
			list = append(list, Found{key, object})
		}
	}
	slices.SortFunc(list, func(a, b Found) int {
		if order := cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name)); order != 0 {
			return order
		}
		return cmp.Compare(refOf(a.Object).String(), refOf(b.Object).String())
	})
	return list
}
