package lint

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/lint/target"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// call is one Service that an object makes the API server call.
type call struct {
	object          *target.Object
	component       *schema.Component // nil for objects of the activation
	field           string            // where the object names the Service
	namespace, name string
	request         string // what the API server calls it for
}

// injectAuthority is the annotation of objects whose certificates cert-manager manages: activation leaves their Services as they are.
const injectAuthority = "cert-manager.io/inject-ca-from"

// moved reports whether activation points the call at the namespace of the Solution.
func (c call) moved() bool {
	annotations := mapIn(mapIn(c.object.Value, "metadata"), "annotations")
	return (c.object.Part == target.PartCRD || c.object.Part == target.PartCluster) && annotations[injectAuthority] == nil
}

// calls returns the Services that an object makes the API server call.
func calls(o *target.Object) []call {
	var found []call
	add := func(config map[string]any, field, request string) {
		service := mapIn(config, "service")
		namespace, _ := service["namespace"].(string)
		if name, _ := service["name"].(string); name != "" {
			found = append(found, call{object: o, field: field + ".service", namespace: namespace, name: name, request: request})
		}
	}
	spec := mapIn(o.Value, "spec")
	switch o.Group() + "/" + o.Kind {
	case "apiextensions.k8s.io/CustomResourceDefinition":
		conversion := mapIn(spec, "conversion")
		if conversion["strategy"] == "Webhook" {
			add(mapIn(mapIn(conversion, "webhook"), "clientConfig"), "spec.conversion.webhook.clientConfig", "to convert "+o.Name)
		}
	case "admissionregistration.k8s.io/MutatingWebhookConfiguration", "admissionregistration.k8s.io/ValidatingWebhookConfiguration":
		webhooks, _ := o.Value["webhooks"].([]any)
		for i, webhook := range webhooks {
			w, _ := webhook.(map[string]any)
			name, _ := w["name"].(string)
			add(mapIn(w, "clientConfig"), "webhooks["+strconv.Itoa(i)+"].clientConfig", "for requests that webhook "+name+" decides on")
		}
	case "apiregistration.k8s.io/APIService":
		add(spec, "spec", "to serve "+o.Name)
	}
	return found
}

func mapIn(m map[string]any, key string) map[string]any {
	value, _ := m[key].(map[string]any)
	return value
}

// checkWebhookServices finds Services that the API server is made to call and that neither activation nor a component of the cluster brings.
// Activation refuses an archive where one of its own objects has such a call.
func checkWebhookServices(ctx context.Context, t *subject, r *reporter) {
	if t.Solution == nil {
		return
	}
	for _, c := range t.calls() {
		if slices.ContainsFunc(servicesOf(ctx, t), func(s service) bool { return s.answers(c) }) {
			continue
		}
		severity, hint := report.SeverityError, "put its Service and Deployment into operator/cluster"
		if c.component != nil {
			hint = "add the Service to component " + c.component.Name
			if c.object.Kind != "CustomResourceDefinition" {
				severity = report.SeverityWarning // an operator may create the Service
			}
		}
		name := c.name
		if c.component != nil || !c.moved() {
			name = cmp.Or(c.namespace, releaseNamespace) + "/" + name
			hint += ", in this namespace"
		}
		r.ReportAs(severity, c.object.At(c.field), hint, "the API server calls Service %s %s, and the archive does not bring it to the cluster", name, c.request)
	}
}

// calls returns those of the objects that activation and the components of the cluster apply.
func (t *subject) calls() []call {
	var all []call
	for _, o := range t.Objects() {
		if o.Part == target.PartCRD || o.Part == target.PartCluster || o.Component != "" && o.IsDefinition() && t.isEnvironments(o) {
			all = append(all, calls(o)...)
		}
	}
	for i := range t.Solution.Spec.Components {
		component := &t.Solution.Spec.Components[i]
		if component.Scope != schema.ScopeCluster {
			continue
		}
		for _, o := range t.objectsOf(component) {
			for _, c := range calls(o) {
				c.component = component
				all = append(all, c)
			}
		}
	}
	return all
}

// isEnvironments reports whether an object of a chart belongs to a component of an environment.
func (t *subject) isEnvironments(o *target.Object) bool {
	return !slices.ContainsFunc(t.Solution.Spec.Components, func(c schema.Component) bool {
		return c.Name == o.Component && c.Scope == schema.ScopeCluster
	})
}

// service is a Service of the archive that is deployed once per cluster.
type service struct {
	namespace, name string
	component       string // "" for one that activation applies
}

// answers reports whether a call reaches the Service.
func (s service) answers(c call) bool {
	switch {
	case s.name != c.name:
		return false
	case s.component == "" && c.component == nil && c.moved():
		return true // in any namespace: activation writes its own
	case c.component == nil && c.moved() && !c.object.IsDefinition():
		return false // activation points it at a Service of its own
	case c.object.Rendered() && (c.namespace == "" || c.namespace == releaseNamespace):
		return c.component != nil && s.component == c.component.Name
	}
	return s.namespace == c.namespace
}

// servicesOf lists the Services that activation and the components of the cluster bring.
var servicesOf = fact(func(_ context.Context, t *subject) []service {
	var list []service
	for _, o := range t.Objects() {
		if o.Part == target.PartCluster && o.Group() == "" && o.Kind == "Service" {
			list = append(list, service{namespace: render.SystemNamespace(t.Solution.Metadata.Name), name: o.Name})
		}
	}
	for i := range t.Solution.Spec.Components {
		c := &t.Solution.Spec.Components[i]
		if c.Scope != schema.ScopeCluster {
			continue
		}
		for _, o := range t.objectsOf(c) {
			if o.Group() != "" || o.Kind != "Service" {
				continue
			}
			namespace := o.Namespace
			if namespace == "" || o.Rendered() && namespace == releaseNamespace {
				namespace = render.ComponentNamespace(t.Solution, c)
			}
			list = append(list, service{namespace: namespace, name: o.Name, component: c.Name})
		}
	}
	return list
})
