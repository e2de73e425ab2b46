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
		j.add(o, schema.PowerReadsOthersMetrics, schema.ReachNamespaces, "spec.namespaceSelector", "have metrics of every namespace collected with its settings", "*")
	}
	others := slices.DeleteFunc(nestedStrings(selector, "matchNames"), func(namespace string) bool { return j.own[namespace] })
	if others = set(others); len(others) > 0 {
		j.add(o, schema.PowerReadsOthersMetrics, schema.ReachNamespaces, "spec.namespaceSelector", "have metrics of "+placeText(others)+" collected with its settings", others...)
	}
	for _, key := range []string{"endpoints", "podMetricsEndpoints"} {
		for i, endpoint := range nested(o.Object, "spec", key) {
			if file := stringIn(endpoint, "bearerTokenFile"); file != "" {
				j.show(o, schema.PowerReadsOthersMetrics, schema.ReachNamespaces, indexed("spec."+key, i)+".bearerTokenFile", "be shown a file of Prometheus ("+file+")", file)
			}
		}
	}
	targets := nestedStrings(o.Object, "spec", "targets", "staticConfig", "static")
	if targets = set(targets); len(targets) > 0 {
		j.show(o, schema.PowerOpensToOutside, schema.ReachOutside, "spec.targets", "have addresses of its choice asked ("+enumerate(targets)+")", targets...)
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
			j.add(o, schema.PowerReadsOthersMetrics, schema.ReachPeople, "data", "run scripts in the browsers of those who look at a dashboard ("+name+")", name)
		}
	}
}
