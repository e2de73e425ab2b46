// Package prometheus decides which Prometheus of a cluster selects a monitor or an alerting rule, and why none does.
//
// [Judge] compares one object with the objects of the Prometheus operator: their label selectors and namespace
// selectors, the namespace label that some enforce, and whether monitors may read files. It makes no requests; package
// survey reads its input. Whether the account of a Prometheus has permission to list the pods of a namespace is checked
// there.
package prometheus

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// group is the API group of the Prometheus operator.
const group = "monitoring.coreos.com"

// DefinitionName is the name of the CustomResourceDefinition of Prometheus objects.
const DefinitionName = "prometheuses." + group

// Servers returns the kinds whose objects select monitors or rules.
func Servers() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		{Group: group, Version: "v1", Kind: "Prometheus"},
		{Group: group, Version: "v1alpha1", Kind: "PrometheusAgent"},
		{Group: group, Version: "v1", Kind: "ThanosRuler"},
	}
}

// Selected returns the kinds that are selected.
func Selected() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		{Group: group, Version: "v1", Kind: "ServiceMonitor"},
		{Group: group, Version: "v1", Kind: "PodMonitor"},
		{Group: group, Version: "v1", Kind: Rule},
	}
}

// Rule is the kind of alerting and recording rules.
const Rule = "PrometheusRule"

// nameLabel is a label that every namespace has, with its name.
const nameLabel = "kubernetes.io/metadata.name"

// selectors name the field of a server that selects a kind.
var selectors = map[string]string{"ServiceMonitor": "serviceMonitor", "PodMonitor": "podMonitor", Rule: "rule"}

// Object is a monitor or a rule. Looked at are its metadata and, where it is there, how a monitor proves who it is.
type Object struct {
	*unstructured.Unstructured
	Namespace map[string]string // labels of the namespace
	// Everywhere marks a rule about other namespaces than its own.
	Everywhere bool
}

// Verdict names the server that selects an object, or the reasons why none does.
type Verdict struct {
	// Server selects the object, as KIND NAMESPACE/NAME, or is nearest to it; empty when no server takes objects of its kind.
	Server   string
	Selected bool
	// Labels are the labels that the object lacks, NamespaceLabels those that its namespace lacks.
	Labels, NamespaceLabels map[string]string
	// Obstacles are reasons that no label changes, each a clause about the server.
	Obstacles []string
}

// Judge holds an object against all servers. Of those that do not select it the verdict is about the one that lacks least.
func Judge(servers []*unstructured.Unstructured, o Object) Verdict {
	var nearest Verdict
	for _, server := range servers {
		if !takes(server, o.GetKind()) {
			continue
		}
		v := judge(server, o)
		if v.Selected {
			return v
		}
		if nearest.Server == "" || v.distance() < nearest.distance() {
			nearest = v
		}
	}
	return nearest
}

// takes reports whether a server handles a kind at all: agents ignore rules, rulers handle only rules.
func takes(server *unstructured.Unstructured, kind string) bool {
	switch server.GetKind() {
	case "PrometheusAgent":
		return kind != Rule
	case "ThanosRuler":
		return kind == Rule
	}
	return true
}

// distance ranks verdicts by the effort to change them: a label of the object, a label of its namespace, the server
// itself.
func (v Verdict) distance() int {
	return len(v.Labels) + 100*len(v.NamespaceLabels) + 10000*len(v.Obstacles)
}

func judge(server *unstructured.Unstructured, o Object) Verdict {
	v := Verdict{Server: server.GetKind() + " " + server.GetNamespace() + "/" + server.GetName()}
	field := selectors[o.GetKind()]
	var obstacles []string
	v.Labels, obstacles = lacks(server, field+"Selector", o.GetLabels(), "selects no "+o.GetKind()+" at all")
	v.Obstacles = append(v.Obstacles, obstacles...)
	if _, restricted := at(server, field+"NamespaceSelector").(map[string]any); restricted || o.GetNamespace() != server.GetNamespace() {
		labels := labels.Merge(o.Namespace, labels.Set{nameLabel: o.GetNamespace()})
		v.NamespaceLabels, obstacles = lacks(server, field+"NamespaceSelector", labels, "looks into its own namespace only")
		v.Obstacles = append(v.Obstacles, obstacles...)
	}
	if enforced, _ := at(server, "enforcedNamespaceLabel").(string); enforced != "" && o.Everywhere && !isExempt(server, o) {
		v.Obstacles = append(v.Obstacles, "shows a rule the metrics of namespace "+o.GetNamespace()+" only")
	}
	if denied, _, _ := unstructured.NestedBool(server.Object, "spec", "arbitraryFSAccessThroughSMs", "deny"); denied && readsFiles(o) {
		v.Obstacles = append(v.Obstacles, "takes no monitor that reads files of Prometheus, such as its token")
	}
	v.Selected = len(v.Labels)+len(v.NamespaceLabels)+len(v.Obstacles) == 0
	return v
}

// readsFiles reports whether a ServiceMonitor names files for Prometheus to read. No other kind can.
func readsFiles(o Object) bool {
	endpoints, _, _ := unstructured.NestedSlice(o.Object, "spec", "endpoints")
	return slices.ContainsFunc(endpoints, func(e any) bool {
		endpoint, _ := e.(map[string]any)
		trust, _ := endpoint["tlsConfig"].(map[string]any)
		for _, file := range []any{endpoint["bearerTokenFile"], trust["caFile"], trust["certFile"], trust["keyFile"]} {
			if name, _ := file.(string); name != "" {
				return true
			}
		}
		return false
	})
}

func at(server *unstructured.Unstructured, field string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(server.Object, "spec", field)
	return value
}

// lacks returns the labels without which a selector does not match, and the obstacles that no label changes. Kubernetes
// sets the name of a namespace as a label, which cannot be changed.
func lacks(server *unstructured.Unstructured, field string, labels map[string]string, absent string) (missing map[string]string, obstacles []string) {
	value, ok := at(server, field).(map[string]any)
	if !ok {
		return nil, []string{absent}
	}
	var selector metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(value, &selector); err != nil {
		return nil, []string{"has a " + field + " that cannot be read"}
	}
	missing = map[string]string{}
	want := func(key string, values ...string) {
		switch has, is := labels[key]; {
		case is && (len(values) == 0 || slices.Contains(values, has)):
		case key == nameLabel:
			obstacles = append(obstacles, "does not look into namespace "+has)
		default:
			missing[key] = cmp.Or(slices.Concat(values, []string{""})...)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(selector.MatchLabels)) {
		want(key, selector.MatchLabels[key])
	}
	for _, e := range selector.MatchExpressions {
		has, is := labels[e.Key]
		switch e.Operator {
		case metav1.LabelSelectorOpIn:
			want(e.Key, e.Values...)
		case metav1.LabelSelectorOpExists:
			want(e.Key)
		case metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpDoesNotExist:
			if is && (e.Operator == metav1.LabelSelectorOpDoesNotExist || slices.Contains(e.Values, has)) {
				obstacles = append(obstacles, "passes over the label "+e.Key+"="+has)
			}
		}
	}
	return missing, obstacles
}

// isExempt reports whether a server leaves a rule unchanged.
func isExempt(server *unstructured.Unstructured, o Object) bool {
	list, _ := at(server, "excludedFromEnforcement").([]any)
	return slices.ContainsFunc(list, func(entry any) bool {
		e, _ := entry.(map[string]any)
		return e["resource"] == "prometheusrules" && e["namespace"] == o.GetNamespace() && (e["name"] == nil || e["name"] == "" || e["name"] == o.GetName())
	})
}

// Why explains why no server selects an object in a namespace, as a clause about the server. It is empty when one does.
func (v Verdict) Why(namespace string) string {
	var clauses []string
	if len(v.Labels) > 0 {
		clauses = append(clauses, "wants its "+list(v.Labels))
	}
	if len(v.NamespaceLabels) > 0 {
		clauses = append(clauses, "wants namespace "+namespace+" to have the "+list(v.NamespaceLabels))
	}
	clauses = append(clauses, v.Obstacles...)
	if len(clauses) == 0 {
		return ""
	}
	return v.Server + " " + strings.Join(clauses, ", and ")
}

func list(labels map[string]string) string {
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		pairs = append(pairs, key+"="+labels[key])
	}
	if len(pairs) == 1 {
		return "label " + pairs[0]
	}
	return "labels " + strings.Join(pairs, " and ")
}
