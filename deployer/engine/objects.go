package engine

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine/diff"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

func keyOf(object *unstructured.Unstructured) record.ObjectKey {
	return record.ObjectKey{GroupKind: object.GroupVersionKind().GroupKind(), Namespace: object.GetNamespace(), Name: object.GetName()}
}

func kindOfRef(r schema.ObjectRef) kube.GroupVersionKind {
	return kube.FromAPIVersionAndKind(r.APIVersion, r.Kind)
}

func refOf(object *unstructured.Unstructured) schema.ObjectRef {
	return schema.ObjectRef{APIVersion: object.GetAPIVersion(), Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName()}
}

// prepare returns the object as it is applied: without fields that only the server writes, and with the label of the release.
func prepare(key record.Key, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if object.GetAPIVersion() == "" || object.GetKind() == "" || object.GetName() == "" {
		return nil, report.Errorf(report.Invalid, "%s has no apiVersion, no kind or no name", refOf(object))
	}
	object = object.DeepCopy()
	unstructured.RemoveNestedField(object.Object, "status")
	for _, field := range diff.Bookkeeping {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	if err := foldStringData(object); err != nil {
		return nil, err
	}
	cluster.SetLabel(object, schema.LabelRelease, key.ID())
	return object, nil
}

// foldStringData moves stringData of a Secret to data, as the server does: server-side apply tracks stored fields only, so a key
// that is removed from stringData would stay.
func foldStringData(object *unstructured.Unstructured) error {
	if object.GroupVersionKind() != cluster.SecretKind {
		return nil
	}
	given := object.Object["stringData"]
	texts, isTable := given.(map[string]any)
	if given != nil && !isTable {
		return report.Errorf(report.Invalid, "%s: stringData is not a map", refOf(object))
	}
	delete(object.Object, "stringData")
	for _, key := range slices.Sorted(maps.Keys(texts)) {
		text, isText := texts[key].(string)
		if texts[key] != nil && !isText { // it may be a password of digits, so the message does not contain it
			return report.Errorf(report.Invalid, "%s: stringData.%s is not a string", refOf(object), key).WithHint("write it in quotes")
		}
		if err := unstructured.SetNestedField(object.Object, base64.StdEncoding.EncodeToString([]byte(text)), "data", key); err != nil {
			return report.Errorf(report.Invalid, "%s: %w", refOf(object), err)
		}
	}
	return nil
}

// hashOf returns the same hash for equal objects, whatever their order and notation.
func hashOf(object *unstructured.Unstructured) (string, error) {
	data, err := json.Marshal(object.Object) // sorts the keys
	if err != nil {
		return "", report.Errorf(report.Invalid, "%s: %w", refOf(object), err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}

// Phases in which objects are applied; they are deleted in the opposite order.
const (
	phaseNamespaces = iota
	phaseDefinitions
	phaseAccounts
	phaseRoles
	phaseBindings
	phaseConfiguration
	phaseServices
	phaseWorkloads
	phaseConversions
	phaseOthers
	phaseAdmission
	phases
)

var phaseNames = [phases]string{
	"namespaces", "custom resource definitions", "service accounts", "roles", "role bindings", "configuration",
	"services", "workloads", "custom resource definitions that are converted", "ingresses, monitoring and others", "admission",
}

var phaseOfKind = map[kube.GroupKind]int{
	{Kind: "Namespace"}: phaseNamespaces,
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: phaseDefinitions,
	{Kind: "ServiceAccount"}:                                         phaseAccounts,
	{Group: "rbac.authorization.k8s.io", Kind: "Role"}:               phaseRoles,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:        phaseRoles,
	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}:        phaseBindings,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}: phaseBindings,

	{Kind: "ConfigMap"}:                                     phaseConfiguration,
	{Kind: "Secret"}:                                        phaseConfiguration,
	{Kind: "LimitRange"}:                                    phaseConfiguration,
	{Kind: "ResourceQuota"}:                                 phaseConfiguration,
	{Kind: "PersistentVolumeClaim"}:                         phaseConfiguration,
	{Kind: "PersistentVolume"}:                              phaseConfiguration,
	{Group: "storage.k8s.io", Kind: "StorageClass"}:         phaseConfiguration,
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:     phaseConfiguration,
	{Group: "networking.k8s.io", Kind: "NetworkPolicy"}:     phaseConfiguration,
	{Group: "networking.k8s.io", Kind: "IngressClass"}:      phaseConfiguration,
	{Kind: "Service"}:                                       phaseServices,
	{Kind: "Endpoints"}:                                     phaseServices,
	{Group: "discovery.k8s.io", Kind: "EndpointSlice"}:      phaseServices,
	{Group: "policy", Kind: "PodDisruptionBudget"}:          phaseWorkloads,
	{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}: phaseWorkloads,
	{Kind: "Pod"}:                                           phaseWorkloads,
	{Kind: "ReplicationController"}:                         phaseWorkloads,
	{Group: "apps", Kind: "Deployment"}:                     phaseWorkloads,
	{Group: "apps", Kind: "StatefulSet"}:                    phaseWorkloads,
	{Group: "apps", Kind: "DaemonSet"}:                      phaseWorkloads,
	{Group: "apps", Kind: "ReplicaSet"}:                     phaseWorkloads,
	{Group: "batch", Kind: "Job"}:                           phaseWorkloads,
	{Group: "batch", Kind: "CronJob"}:                       phaseWorkloads,
	{Group: "apiregistration.k8s.io", Kind: "APIService"}:   phaseAdmission,
}

// phaseOf returns the phase in which objects of a kind are applied, lower ones first.
func phaseOf(kind kube.GroupKind) int {
	if phase, ok := phaseOfKind[kind]; ok {
		return phase
	}
	if kind.Group == "admissionregistration.k8s.io" {
		return phaseAdmission
	}
	return phaseOthers
}

// phaseOfObject returns the phase in which an object is applied. A CustomResourceDefinition with a conversion webhook comes after
// the workloads that serve the webhook: once it is applied, the API server calls the webhook for each object that is stored in
// another version.
func phaseOfObject(object *unstructured.Unstructured) int {
	phase := phaseOf(object.GroupVersionKind().GroupKind())
	if strategy, _, _ := unstructured.NestedString(object.Object, "spec", "conversion", "strategy"); phase == phaseDefinitions && strategy == "Webhook" {
		return phaseConversions
	}
	return phase
}

// protected are kinds whose objects hold data of others: they are never deleted as a side effect.
var protected = map[kube.GroupKind]bool{
	{Kind: "Namespace"}: true,
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: true,
	{Kind: "PersistentVolumeClaim"}:                                   true,
	{Kind: "PersistentVolume"}:                                        true,
}

// AnnotationAllowDeletion is on objects that a policy protects from deletion unless its value is "true".
const AnnotationAllowDeletion = "solutionctl.io/allow-deletion"

// definedKinds returns the kinds of the served versions of a CustomResourceDefinition.
func definedKinds(definition *unstructured.Unstructured) []kube.GroupVersionKind {
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	var kinds []kube.GroupVersionKind
	for _, v := range versions {
		version, _ := v.(map[string]any)
		if served, _ := version["served"].(bool); served {
			name, _ := version["name"].(string)
			kinds = append(kinds, kube.GroupVersionKind{Group: group, Version: name, Kind: kind})
		}
	}
	return kinds
}

// storedBefore returns the stored versions of a CustomResourceDefinition that the new one does not have. The API server refuses the new
// one until no object is stored in them. Nil for other kinds.
func storedBefore(live, desired *unstructured.Unstructured) []string {
	if phase := phaseOf(live.GroupVersionKind().GroupKind()); phase != phaseDefinitions {
		return nil
	}
	stored, _, _ := unstructured.NestedStringSlice(live.Object, "status", "storedVersions")
	versions, _, _ := unstructured.NestedSlice(desired.Object, "spec", "versions")
	return slices.DeleteFunc(stored, func(name string) bool {
		return slices.ContainsFunc(versions, func(v any) bool {
			version, _ := v.(map[string]any)
			return version["name"] == name
		})
	})
}

// describe returns the labels and field managers that hint at the owner of an object.
func describe(object *unstructured.Unstructured) string {
	var signs []string
	for _, label := range []string{schema.LabelRelease, "app.kubernetes.io/managed-by", "heritage"} {
		if value := object.GetLabels()[label]; value != "" {
			signs = append(signs, "label "+label+"="+value)
		}
	}
	seen := map[string]bool{}
	for _, entry := range object.GetManagedFields() {
		if entry.Subresource == "" && !seen[entry.Manager] {
			seen[entry.Manager] = true
			signs = append(signs, "field manager "+entry.Manager)
		}
	}
	if len(signs) == 0 {
		return "it has no label and no field manager that names its owner"
	}
	return strings.Join(signs, ", ")
}
