package clustertest

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kind is a kind of objects as the server serves it in one version.
type kind struct {
	schema.GroupVersionKind
	resource   string
	namespaced bool
	status     bool // has a status that only its subresource changes
}

func (k kind) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: k.Group, Resource: k.resource}
}

// builtin are the kinds of every cluster: group, version, and kinds with their resources; * marks those without namespaces.
var builtin = []string{
	"/v1 ConfigMap/configmaps Secret/secrets Service/services ServiceAccount/serviceaccounts Pod/pods Event/events Endpoints/endpoints " +
		"PersistentVolumeClaim/persistentvolumeclaims ReplicationController/replicationcontrollers LimitRange/limitranges ResourceQuota/resourcequotas " +
		"Namespace/namespaces* Node/nodes* PersistentVolume/persistentvolumes*",
	"apps/v1 Deployment/deployments StatefulSet/statefulsets DaemonSet/daemonsets ReplicaSet/replicasets ControllerRevision/controllerrevisions",
	"batch/v1 Job/jobs CronJob/cronjobs",
	"rbac.authorization.k8s.io/v1 Role/roles RoleBinding/rolebindings ClusterRole/clusterroles* ClusterRoleBinding/clusterrolebindings*",
	"networking.k8s.io/v1 Ingress/ingresses NetworkPolicy/networkpolicies IngressClass/ingressclasses*",
	"policy/v1 PodDisruptionBudget/poddisruptionbudgets",
	"autoscaling/v2 HorizontalPodAutoscaler/horizontalpodautoscalers",
	"coordination.k8s.io/v1 Lease/leases",
	"discovery.k8s.io/v1 EndpointSlice/endpointslices",
	"storage.k8s.io/v1 StorageClass/storageclasses*",
	"scheduling.k8s.io/v1 PriorityClass/priorityclasses*",
	"apiextensions.k8s.io/v1 CustomResourceDefinition/customresourcedefinitions*",
	"apiregistration.k8s.io/v1 APIService/apiservices*",
	"admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration/validatingwebhookconfigurations* " +
		"MutatingWebhookConfiguration/mutatingwebhookconfigurations* ValidatingAdmissionPolicy/validatingadmissionpolicies* " +
		"ValidatingAdmissionPolicyBinding/validatingadmissionpolicybindings*",
}

// withStatus are the built-in kinds whose status has a subresource and a controller that writes it.
var withStatus = []string{
	"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob", "Pod", "Namespace", "Node", "PersistentVolumeClaim", "PersistentVolume",
	"Service", "Ingress", "CustomResourceDefinition", "APIService", "PodDisruptionBudget", "HorizontalPodAutoscaler",
}

// builtinKinds are read once: each request needs them.
var builtinKinds = sync.OnceValue(func() []kind {
	var kinds []kind
	for _, line := range builtin {
		fields := strings.Fields(line)
		group, version, _ := strings.Cut(fields[0], "/")
		for _, field := range fields[1:] {
			name, resource, _ := strings.Cut(field, "/")
			plural, cluster := strings.CutSuffix(resource, "*")
			kinds = append(kinds, kind{
				GroupVersionKind: schema.GroupVersionKind{Group: group, Version: version, Kind: name},
				resource:         plural, namespaced: !cluster, status: slices.Contains(withStatus, name),
			})
		}
	}
	return kinds
})

// kindsOf are the kinds that a CustomResourceDefinition makes, one for each version that is served.
func kindsOf(definition *unstructured.Unstructured) []kind {
	at := func(fields ...string) string {
		text, _, _ := unstructured.NestedString(definition.Object, append([]string{"spec"}, fields...)...)
		return text
	}
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	var kinds []kind
	for _, v := range versions {
		version, _ := v.(map[string]any)
		if version["served"] != true {
			continue
		}
		name, _ := version["name"].(string)
		_, status, _ := unstructured.NestedMap(version, "subresources", "status")
		kinds = append(kinds, kind{
			GroupVersionKind: schema.GroupVersionKind{Group: at("group"), Version: name, Kind: at("names", "kind")},
			resource:         at("names", "plural"), namespaced: at("scope") == "Namespaced", status: status,
		})
	}
	return kinds
}

// kinds are all that the server serves now. The caller holds the lock.
func (s *Server) kinds() []kind {
	kinds := slices.Clone(builtinKinds())
	for _, definition := range s.objects[definitions] {
		if definition.GetDeletionTimestamp() == nil {
			kinds = append(kinds, kindsOf(definition)...)
		}
	}
	return kinds
}

var (
	definitions = schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}
	namespaces  = schema.GroupResource{Resource: "namespaces"}
	apiServices = schema.GroupResource{Group: "apiregistration.k8s.io", Resource: "apiservices"}
)

// discover answers /api or /apis with all kinds of the core group, or of the others.
func (s *Server) discover(core bool) apidiscovery.APIGroupDiscoveryList {
	kinds := slices.DeleteFunc(s.kinds(), func(k kind) bool { return (k.Group == "") != core })
	slices.SortStableFunc(kinds, func(a, b kind) int { return cmp.Compare(a.Group, b.Group) })
	list := apidiscovery.APIGroupDiscoveryList{TypeMeta: metav1.TypeMeta{APIVersion: "apidiscovery.k8s.io/v2", Kind: "APIGroupDiscoveryList"}}
	for _, k := range kinds {
		last := len(list.Items) - 1
		if last < 0 || list.Items[last].Name != k.Group {
			list.Items = append(list.Items, apidiscovery.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: k.Group}})
			last++
		}
		group := &list.Items[last]
		i := slices.IndexFunc(group.Versions, func(v apidiscovery.APIVersionDiscovery) bool { return v.Version == k.Version })
		if i < 0 {
			i = len(group.Versions)
			group.Versions = append(group.Versions, apidiscovery.APIVersionDiscovery{Version: k.Version, Freshness: apidiscovery.DiscoveryFreshnessCurrent})
		}
		scope := apidiscovery.ScopeCluster
		if k.namespaced {
			scope = apidiscovery.ScopeNamespace
		}
		group.Versions[i].Resources = append(group.Versions[i].Resources, apidiscovery.APIResourceDiscovery{
			Resource: k.resource, Scope: scope, ResponseKind: &metav1.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Kind},
			Verbs: []string{"create", "delete", "get", "list", "patch", "update", "watch"},
		})
	}
	for _, service := range s.objects[apiServices] {
		if group, version := nested(service, "group"), nested(service, "version"); !core && group != "" { // which has no kinds
			list.Items = append(list.Items, apidiscovery.APIGroupDiscovery{
				ObjectMeta: metav1.ObjectMeta{Name: group},
				Versions:   []apidiscovery.APIVersionDiscovery{{Version: version, Freshness: apidiscovery.DiscoveryFreshnessCurrent}},
			})
		}
	}
	return list
}

func nested(object *unstructured.Unstructured, field string) string {
	value, _, _ := unstructured.NestedString(object.Object, "spec", field)
	return value
}
