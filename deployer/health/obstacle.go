package health

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/schema/report"
)

// Obstacle is something in a cluster that keeps everybody from working, such as an API whose server is gone.
type Obstacle struct {
	Object  string // "APIService v1beta1.metrics.k8s.io"
	Webhook string // the one of a configuration that does not answer; "" for other obstacles
	Problem string // the end of a sentence that begins with the object
	Remedy  string // the remedy, with the command
}

func (o Obstacle) String() string { return o.Object + " " + o.Problem + ": " + o.Remedy }

var (
	apiServiceKind = schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"}
	definitionKind = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	serviceKind    = schema.GroupVersionKind{Version: "v1", Kind: "Service"}
	sliceKind      = schema.GroupVersionKind{Group: "discovery.k8s.io", Version: "v1", Kind: "EndpointSlice"}

	webhookKinds = []schema.GroupVersionKind{
		{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingWebhookConfiguration"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration"},
	}
)

// DeadAPIs are the aggregated APIs whose server does not answer. While there is one, no namespace is ever deleted
// completely, as the cluster cannot list its contents.
func DeadAPIs(ctx context.Context, r Reader) ([]Obstacle, error) {
	var found []Obstacle
	for object, err := range r.List(ctx, apiServiceKind, "", metav1.ListOptions{}) {
		if err != nil {
			return nil, err
		}
		status := Of(object)
		if status.Ready {
			continue
		}
		found = append(found, Obstacle{
			Object:  "APIService " + object.GetName(),
			Problem: "does not work: " + report.OneLine(status.Message, maxLength),
			Remedy:  "repair the server behind it; if it is not needed any more, kubectl delete apiservice " + object.GetName(),
		})
	}
	return found, nil
}

// DeadWebhooks are the required admission webhooks whose Service is missing or has no ready pod. Objects that match
// them cannot be created, changed or deleted. A webhook outside of the cluster is not checked.
func DeadWebhooks(ctx context.Context, r Reader) ([]Obstacle, error) {
	hooks, err := deadWebhooks(ctx, r)
	var found []Obstacle
	for _, hook := range hooks {
		found = append(found, hook.Obstacle)
	}
	return found, err
}

// deadWebhook is a webhook that does not answer, with its rules.
type deadWebhook struct {
	Obstacle
	rules []any
}

func deadWebhooks(ctx context.Context, r Reader) ([]deadWebhook, error) {
	services := Webhooks{Reader: r}
	var found []deadWebhook
	for _, kind := range webhookKinds {
		for object, err := range r.List(ctx, kind, "", metav1.ListOptions{}) {
			if err != nil {
				return nil, err
			}
			object.SetGroupVersionKind(kind)
			found = append(found, services.deadAdmission(ctx, object)...)
		}
	}
	return found, nil
}

// deadAdmission returns the webhooks of an admission configuration that do not answer.
func (w *Webhooks) deadAdmission(ctx context.Context, object *unstructured.Unstructured) []deadWebhook {
	var found []deadWebhook
	hooks, _, _ := unstructured.NestedSlice(object.Object, "webhooks")
	for _, hook := range hooks {
		fields, _ := hook.(map[string]any)
		if policy, _, _ := unstructured.NestedString(fields, "failurePolicy"); policy == "Ignore" {
			continue
		}
		problem := w.problem(ctx, fields, "clientConfig", "service")
		if problem == "" {
			continue
		}
		name, _, _ := unstructured.NestedString(fields, "name")
		rules, _, _ := unstructured.NestedSlice(fields, "rules")
		found = append(found, deadWebhook{rules: rules, Obstacle: Obstacle{
			Object:  object.GetKind() + " " + object.GetName(),
			Webhook: name,
			Problem: fmt.Sprintf("asks webhook %s, which does not answer: %s", name, problem),
			Remedy: fmt.Sprintf("repair the server behind it; if it is not needed any more, kubectl delete %s %s",
				strings.ToLower(object.GetKind()), object.GetName()),
		}})
	}
	return found
}

// concerns reports whether the API server calls the webhook when an object of the resource is changed or deleted.
func (w deadWebhook) concerns(resource schema.GroupResource) bool {
	return slices.ContainsFunc(w.rules, func(rule any) bool {
		fields, _ := rule.(map[string]any)
		has := func(field string, words ...string) bool {
			list, _, _ := unstructured.NestedStringSlice(fields, field)
			return slices.ContainsFunc(append(words, "*"), func(word string) bool { return slices.Contains(list, word) })
		}
		return has("operations", "UPDATE", "DELETE") && has("apiGroups", resource.Group) && has("resources", resource.Resource, "*/*")
	})
}

// DeadConversions are the definitions whose webhook, which converts custom resources between versions, is gone. Their
// objects can be neither read nor deleted, and so neither can their namespaces.
func DeadConversions(ctx context.Context, r Reader) ([]Obstacle, error) {
	services := Webhooks{Reader: r}
	var found []Obstacle
	for object, err := range r.List(ctx, definitionKind, "", metav1.ListOptions{}) {
		if err != nil {
			return nil, err
		}
		if dead, ok := services.deadConversion(ctx, object); ok {
			found = append(found, dead)
		}
	}
	return found, nil
}

func (w *Webhooks) deadConversion(ctx context.Context, definition *unstructured.Unstructured) (Obstacle, bool) {
	problem := w.problem(ctx, definition.Object, "spec", "conversion", "webhook", "clientConfig", "service")
	return Obstacle{
		Object:  "CustomResourceDefinition " + definition.GetName(),
		Problem: "converts its objects by a webhook that does not answer: " + problem,
		Remedy: fmt.Sprintf("bring its operator back; to let objects be deleted without it, "+
			`kubectl patch crd %s --type merge --patch '{"spec":{"conversion":{"strategy":"None","webhook":null}}}'`, definition.GetName()),
	}, problem != ""
}

// Webhooks judges the webhooks that objects name, the Service of each once. It is not for concurrent use.
type Webhooks struct {
	Reader Reader
	known  map[string]string
}

// Dead returns the webhooks that do not answer and that an object makes the API server call: for conversion by a CRD,
// or for admission. It ignores webhooks outside of the cluster, and those that the user is not allowed to check.
func (w *Webhooks) Dead(ctx context.Context, object *unstructured.Unstructured) []Obstacle {
	kind := object.GroupVersionKind().GroupKind()
	if kind == definitionKind.GroupKind() {
		if dead, ok := w.deadConversion(ctx, object); ok {
			return []Obstacle{dead}
		}
		return nil
	}
	if !slices.ContainsFunc(webhookKinds, func(k schema.GroupVersionKind) bool { return k.GroupKind() == kind }) {
		return nil
	}
	var found []Obstacle
	for _, dead := range w.deadAdmission(ctx, object) {
		found = append(found, dead.Obstacle)
	}
	return found
}

// problem explains why the Service at a path of an object does not serve. It is "" when it does, when the path names
// none, and when this cannot be checked.
func (w *Webhooks) problem(ctx context.Context, object map[string]any, path ...string) string {
	service, _, _ := unstructured.NestedMap(object, path...)
	namespace, _ := service["namespace"].(string)
	name, _ := service["name"].(string)
	if name == "" {
		return ""
	}
	key := namespace + "/" + name
	if problem, known := w.known[key]; known {
		return problem
	}
	if w.known == nil {
		w.known = map[string]string{}
	}
	w.known[key] = w.judge(ctx, namespace, name)
	return w.known[key]
}

func (w *Webhooks) judge(ctx context.Context, namespace, name string) string {
	service, err := w.Reader.Get(ctx, serviceKind, namespace, name)
	switch {
	case err != nil:
		return ""
	case service == nil:
		return fmt.Sprintf("Service %s/%s does not exist", namespace, name)
	}
	if kind, _, _ := unstructured.NestedString(service.Object, "spec", "type"); kind == "ExternalName" {
		return ""
	}
	for slice, err := range w.Reader.List(ctx, sliceKind, namespace, metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=" + name}) {
		if err != nil || hasReady(slice) {
			return ""
		}
	}
	return fmt.Sprintf("no pod behind Service %s/%s is ready", namespace, name)
}

// hasReady reports whether an EndpointSlice has an endpoint that accepts connections.
func hasReady(slice *unstructured.Unstructured) bool {
	endpoints, _, _ := unstructured.NestedSlice(slice.Object, "endpoints")
	return slices.ContainsFunc(endpoints, func(endpoint any) bool {
		fields, _ := endpoint.(map[string]any)
		ready, stated, _ := unstructured.NestedBool(fields, "conditions", "ready")
		return ready || !stated
	})
}
