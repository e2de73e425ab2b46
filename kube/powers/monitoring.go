package powers

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/schema"
)

// monitoring judges what Prometheus is to read, and with what.
func (j *judgement) monitoring(o Object) {
	selector := nestedMap(o.Object, "spec", "namespaceSelector")
	if any, _ := selector["any"].(bool); any {
		j.place(o, "spec.namespaceSelector").add(schema.PowerReadsOthersMetrics, schema.ReachNamespaces, "have metrics of every namespace collected with its settings", "*")
	}
	others := slices.DeleteFunc(nestedStrings(selector, "matchNames"), func(namespace string) bool { return j.own[namespace] })
	if others = set(others); len(others) > 0 {
		j.place(o, "spec.namespaceSelector").add(schema.PowerReadsOthersMetrics, schema.ReachNamespaces, "have metrics of "+placeText(others)+" collected with its settings", others...)
	}
	for _, key := range []string{"endpoints", "podMetricsEndpoints"} {
		for i, endpoint := range nested(o.Object, "spec", key) {
			if file := stringIn(endpoint, "bearerTokenFile"); file != "" {
				j.place(o, indexed("spec."+key, i)+".bearerTokenFile").show(schema.PowerReadsOthersMetrics, schema.ReachNamespaces, "be shown a file of Prometheus ("+file+")", file)
			}
		}
	}
	targets := nestedStrings(o.Object, "spec", "targets", "staticConfig", "static")
	if targets = set(targets); len(targets) > 0 {
		j.place(o, "spec.targets").show(schema.PowerOpensToOutside, schema.ReachOutside, "have addresses of its choice asked ("+enumerate(targets)+")", targets...)
	}
	j.foreign(o)
}

// dashboards finds scripts in dashboards, which run in the browsers of their viewers.
func (j *judgement) dashboards(o Object) {
	if o.GetLabels()[schema.LabelDashboard] == "" {
		return
	}
	data, _, _ := unstructured.NestedFieldNoCopy(o.Object, "data")
	files, _ := data.(map[string]any)
	for name, content := range files {
		if s, ok := content.(string); ok && strings.Contains(strings.ToLower(s), `<script`) {
			j.place(o, "data").add(schema.PowerReadsOthersMetrics, schema.ReachPeople, "run scripts in the browsers of those who look at a dashboard ("+name+")", name)
		}
	}
}
