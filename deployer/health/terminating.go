package health

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	document "github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/lazyregexp"
)

// maxHeld bounds the objects of one kind whose finalizers are explained: they are rarely held by different things.
const maxHeld = 3

// explainTerminating names the holders of an object that is being deleted.
func (e *explainer) explainTerminating(object *unstructured.Unstructured) []document.Reason {
	switch object.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Kind: "Namespace"}:
		e.explainNamespace(object)
	case definitionKind.GroupKind():
		e.explainDefinition(object)
	default:
		e.explainEnding(e.podsOf(object))
	}
	e.explainNode(object)
	e.explainFinalizers(object)
	e.explainWebhooks(object)
	if len(e.reasons) == 0 {
		e.add(deleting(object).Message)
	}
	return e.bounded()
}

// explainEnding names the pods that are left of a workload which goes after them.
func (e *explainer) explainEnding(pods []*unstructured.Unstructured) {
	for _, pod := range pods[:min(len(pods), maxHeld)] {
		if pod.GetDeletionTimestamp() == nil {
			continue
		}
		e.add(nameOf(pod) + " has not ended yet")
		e.explainNode(pod)
		e.explainFinalizers(pod)
	}
}

// explainNamespace names the objects that are left in a namespace which does not go away.
func (e *explainer) explainNamespace(namespace *unstructured.Unstructured) {
	now := conditions(namespace)
	if now["NamespaceDeletionDiscoveryFailure"].status == "True" {
		dead, _ := DeadAPIs(e.ctx, e.reader) // without permission, the condition has to suffice
		for _, api := range dead {
			e.add(api.String())
		}
	}
	if failure := now["NamespaceDeletionContentFailure"]; failure.status == "True" {
		e.explainFailure(failure.message)
	}
	e.addConditions(namespace, "NamespaceDeletionDiscoveryFailure", "NamespaceDeletionGroupVersionParsingFailure", "NamespaceDeletionContentFailure")
	for _, resource := range remainingIn(now["NamespaceContentRemaining"]) {
		e.explainHeld(e.kindOf(resource), namespace.GetName())
	}
	e.addConditions(namespace, "NamespaceContentRemaining", "NamespaceFinalizersRemaining")
}

// explainFailure explains why the cluster cannot delete, or even list, the contents of a namespace: it names the
// webhook that does not answer.
func (e *explainer) explainFailure(message string) {
	if strings.Contains(message, "conversion webhook") {
		dead, _ := DeadConversions(e.ctx, e.reader) // without permission, the message has to suffice
		for _, conversion := range dead {
			e.add(conversion.String())
		}
	}
	dead, _ := deadWebhooks(e.ctx, e.reader)
	for _, webhook := range dead {
		if strings.Contains(message, fmt.Sprintf("webhook %q", webhook.Webhook)) {
			e.add(webhook.String())
		}
	}
}

// remainder matches the remaining objects of a resource in a condition: "clocks.example.com has 2 resource instances",
// and "pods. has 1 resource instances" for one of the core group.
var remainder = lazyregexp.New(`([a-z0-9-]+)\.([a-z0-9.-]*) has \d+ resource instances`)

// remainingIn parses the resources that a condition of a namespace lists as remaining.
func remainingIn(c condition) []schema.GroupResource {
	var remaining []schema.GroupResource
	if c.status == "True" {
		for _, m := range remainder.FindAllStringSubmatch(c.message, maxReasons) {
			remaining = append(remaining, schema.GroupResource{Group: m[2], Resource: m[1]})
		}
	}
	return remaining
}

// ordinaryKinds are the kinds of Kubernetes that often have finalizers.
var ordinaryKinds = []schema.GroupVersionKind{
	{Version: "v1", Kind: "ConfigMap"},
	{Version: "v1", Kind: "PersistentVolumeClaim"},
	podKind,
	{Version: "v1", Kind: "Secret"},
	serviceKind,
	{Version: "v1", Kind: "ServiceAccount"},
	deploymentKind,
	{Group: "apps", Version: "v1", Kind: "StatefulSet"},
	{Group: "batch", Version: "v1", Kind: "Job"},
	{Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"},
}

var deploymentKind = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}

// kindOf returns the kind of a resource, with an empty name when it is not known.
func (e *explainer) kindOf(resource schema.GroupResource) schema.GroupVersionKind {
	for _, kind := range ordinaryKinds {
		if resourceOf(kind) == resource {
			return kind
		}
	}
	definition, err := e.reader.Get(e.ctx, definitionKind, "", resource.String())
	if err != nil || definition == nil {
		return schema.GroupVersionKind{}
	}
	return defined(definition)
}

// resourceOf guesses the resource of a kind, its name in URLs.
func resourceOf(kind schema.GroupVersionKind) schema.GroupResource {
	plural, _ := meta.UnsafeGuessKindToResource(kind)
	return plural.GroupResource()
}

// defined is the kind of a definition, in a version that is served.
func defined(definition *unstructured.Unstructured) schema.GroupVersionKind {
	var kind schema.GroupVersionKind
	kind.Group, _, _ = unstructured.NestedString(definition.Object, "spec", "group")
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, version := range versions {
		fields, _ := version.(map[string]any)
		if fields["served"] == true {
			kind.Version, _ = fields["name"].(string)
		}
	}
	if kind.Version != "" {
		kind.Kind, _, _ = unstructured.NestedString(definition.Object, "spec", "names", "kind")
	}
	return kind
}

// explainDefinition names the objects that are left of a definition: it goes when all of them have gone.
func (e *explainer) explainDefinition(definition *unstructured.Unstructured) {
	services := Webhooks{Reader: e.reader}
	if dead, ok := services.deadConversion(e.ctx, definition); ok {
		e.add(dead.String())
	}
	e.explainHeld(defined(definition), "")
	if c := conditions(definition)["Terminating"]; c.status == "True" && c.reason != "InstanceDeletionCompleted" {
		e.add(c.message)
	}
}

// explainHeld names the holders of the objects of a kind that are being deleted.
func (e *explainer) explainHeld(kind schema.GroupVersionKind, namespace string) {
	if kind.Kind == "" {
		return
	}
	const many = 500
	held := slices.DeleteFunc(e.list(kind, namespace, metav1.ListOptions{}, many), func(object *unstructured.Unstructured) bool {
		return object.GetDeletionTimestamp() == nil
	})
	for _, object := range held[:min(len(held), maxHeld)] {
		e.explainNode(object)
		e.explainFinalizers(object)
	}
	if len(held) > 0 {
		e.explainWebhooks(held[0])
	}
}

// explainNode names the node on which a pod without finalizers has to terminate.
func (e *explainer) explainNode(object *unstructured.Unstructured) {
	node, _, _ := unstructured.NestedString(object.Object, "spec", "nodeName")
	if object.GroupVersionKind() == podKind && node != "" && len(object.GetFinalizers()) == 0 {
		e.add(fmt.Sprintf("%s has to be ended by node %s: does the node work?", nameOf(object), node))
	}
}

// explainWebhooks names the webhooks that block every change of an object, and so the removal of its finalizers.
func (e *explainer) explainWebhooks(object *unstructured.Unstructured) {
	if len(object.GetFinalizers()) == 0 {
		return
	}
	dead, _ := deadWebhooks(e.ctx, e.reader) // without permission, they remain unknown
	for _, webhook := range dead {
		if webhook.concerns(resourceOf(object.GroupVersionKind())) {
			e.add(webhook.String())
		}
	}
}

// explainFinalizers names the controllers that have to give up an object that is being deleted, and their state.
func (e *explainer) explainFinalizers(object *unstructured.Unstructured) {
	for _, finalizer := range object.GetFinalizers() {
		if reason := e.holder(object, finalizer); reason != "" {
			e.add(fmt.Sprintf("%s waits for its finalizer %s: %s", nameOf(object), finalizer, reason))
		}
	}
}

func nameOf(object *unstructured.Unstructured) string {
	return document.ObjectRef{Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName()}.String()
}

// IsOfKubernetes reports whether Kubernetes itself serves a finalizer: removing it never waits for an operator.
func IsOfKubernetes(finalizer string) bool {
	domain, _, qualified := strings.Cut(finalizer, "/")
	switch {
	case !qualified:
		return slices.Contains([]string{metav1.FinalizerDeleteDependents, metav1.FinalizerOrphanDependents, string(corev1.FinalizerKubernetes)}, finalizer) ||
			strings.HasSuffix(finalizer, ".k8s.io")
	default:
		return domain == "kubernetes.io" || strings.HasSuffix(domain, ".kubernetes.io") || strings.HasSuffix(domain, ".k8s.io")
	}
}

// holder describes the condition under which a finalizer is removed; "" when another reason covers it.
func (e *explainer) holder(object *unstructured.Unstructured, finalizer string) string {
	switch {
	case finalizer == "kubernetes.io/pvc-protection":
		return e.users(object)
	case finalizer == metav1.FinalizerDeleteDependents:
		return "what belongs to it has to go first"
	case finalizer == "customresourcecleanup.apiextensions.k8s.io":
		return "" // the objects of the definition are explained
	case IsOfKubernetes(finalizer):
		return "a part of Kubernetes removes it: does it run?"
	}
	if operator := e.operator(object); operator != "" {
		return operator
	}
	if manager := e.manager(object, finalizer); manager != "" {
		return fmt.Sprintf("field manager %q has set it and has to remove it; is it still running?", manager)
	}
	return "the controller that has set it has to remove it; is it still running?"
}

// users names the pods that use a volume claim.
func (e *explainer) users(claim *unstructured.Unstructured) string {
	var names []string
	const many = 500
	for _, pod := range e.list(podKind, claim.GetNamespace(), metav1.ListOptions{}, many) {
		phase, _, _ := unstructured.NestedString(pod.Object, "status", "phase")
		if uses(pod, claim.GetName()) && phase != string(corev1.PodSucceeded) && phase != string(corev1.PodFailed) {
			names = append(names, pod.GetName())
		}
	}
	switch len(names) {
	case 0:
		return "Kubernetes removes it when no pod uses the claim"
	case 1:
		return "pod " + names[0] + " uses the claim, and has to end first"
	default:
		return fmt.Sprintf("pod %s and %d more use the claim, and have to end first", names[0], len(names)-1)
	}
}

func uses(pod *unstructured.Unstructured, claim string) bool {
	volumes, _, _ := unstructured.NestedSlice(pod.Object, "spec", "volumes")
	return slices.ContainsFunc(volumes, func(volume any) bool {
		fields, _ := volume.(map[string]any)
		name, _, _ := unstructured.NestedString(fields, "persistentVolumeClaim", "claimName")
		return name == claim
	})
}

// operator describes the state of the operator whose Solution brought the kind of an object; "" when none did.
func (e *explainer) operator(object *unstructured.Unstructured) string {
	definition, err := e.reader.Get(e.ctx, definitionKind, "", resourceOf(object.GroupVersionKind()).String())
	if err != nil || definition == nil {
		return ""
	}
	release := definition.GetLabels()[document.LabelRelease]
	dot := strings.LastIndexByte(release, '.') // in front of it is the name of the Solution
	if dot < 0 {
		return ""
	}
	name := release[:dot] + "-operator"
	deployment, err := e.reader.Get(e.ctx, deploymentKind, object.GetNamespace(), name)
	where := "Deployment " + object.GetNamespace() + "/" + name
	switch {
	case err != nil || object.GetNamespace() == "":
		return "the operator of Solution " + release[:dot] + " has to remove it"
	case deployment == nil:
		return where + " would remove it, but does not exist"
	}
	if now := Of(deployment); !now.Ready {
		return where + " would remove it, but " + now.Message
	}
	return fmt.Sprintf("%s runs and has to remove it: see 'kubectl logs --namespace %s deployment/%s'", where, object.GetNamespace(), name)
}

// manager returns the field manager that has set a finalizer.
func (e *explainer) manager(object *unstructured.Unstructured, finalizer string) string {
	hasFields := func(entry metav1.ManagedFieldsEntry) bool { return entry.FieldsV1 != nil }
	if !slices.ContainsFunc(object.GetManagedFields(), hasFields) { // only a part of its metadata was read
		live, err := e.reader.Get(e.ctx, object.GroupVersionKind(), object.GetNamespace(), object.GetName())
		if err != nil || live == nil {
			return ""
		}
		object = live
	}
	for _, entry := range object.GetManagedFields() {
		if hasFields(entry) && strings.Contains(entry.FieldsV1.GetRawString(), fmt.Sprintf(`"v:\"%s\""`, finalizer)) {
			return entry.Manager
		}
	}
	return ""
}
