package powers

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/lazyregexp"
)

// monitoring judges what Prometheus is to read, and with what.
func (j *judgement) monitoring(o Object) {
	spec := nestedMap(o.Object, "spec")
	j.place(o, "spec.namespaceSelector").collects(nestedMap(spec, "namespaceSelector"))
	j.place(o, "spec.targets.ingress.namespaceSelector").collects(nestedMap(spec, "targets", "ingress", "namespaceSelector"))
	for _, key := range []string{"endpoints", "podMetricsEndpoints"} {
		for i, endpoint := range nested(spec, key) {
			at := indexed("spec."+key, i)
			if file := stringIn(endpoint, "bearerTokenFile"); file != "" {
				j.place(o, at+".bearerTokenFile").show(schema.PowerReadsOthersMetrics, schema.ReachNamespaces, "be shown a file of Prometheus ("+file+")", file)
			}
			j.place(o, at+".relabelings").readdresses(nested(endpoint, "relabelings"))
		}
	}
	for _, key := range []string{"staticConfig", "ingress"} {
		rules := nested(spec, "targets", key, "relabelingConfigs")
		for label := range nestedMap(spec, "targets", key, "labels") { // rules find them as if a rule had made them
			rules = append(rules, map[string]any{"targetLabel": label})
		}
		j.place(o, "spec.targets."+key+".relabelingConfigs").readdresses(rules)
	}
	if url := stringIn(nestedMap(spec, "prober"), "url"); url != "" && !j.isOwnService(url) {
		j.place(o, "spec.prober.url").add(schema.PowerReadsOthersMetrics, schema.ReachNamespaces, "have metrics of an address of its choice collected ("+url+")", url)
	}
	targets := nestedStrings(o.Object, "spec", "targets", "staticConfig", "static")
	if targets = set(targets); len(targets) > 0 {
		j.place(o, "spec.targets").show(schema.PowerOpensToOutside, schema.ReachOutside, "have addresses of its choice asked ("+enumerate(targets)+")", targets...)
	}
	j.foreign(o)
}

// collects judges of which namespaces metrics are collected.
func (p place) collects(selector map[string]any) {
	if any, _ := selector["any"].(bool); any {
		p.add(schema.PowerReadsOthersMetrics, schema.ReachNamespaces, "have metrics of every namespace collected with its settings", "*")
	}
	others := slices.DeleteFunc(nestedStrings(selector, "matchNames"), func(namespace string) bool { return p.own[namespace] })
	if others = set(others); len(others) > 0 {
		p.add(schema.PowerReadsOthersMetrics, schema.ReachNamespaces, "have metrics of "+placeText(others)+" collected with its settings", others...)
	}
}

// readdresses judges rules by which Prometheus asks other addresses than those of the selected objects.
func (p place) readdresses(relabelings []map[string]any) {
	if slices.ContainsFunc(relabelings, setsAddress) {
		p.add(schema.PowerReadsOthersMetrics, schema.ReachNamespaces, "have metrics of addresses of its choice collected", addressLabel)
	}
}

// addressLabel is the label with the address that Prometheus asks.
const addressLabel = "__address__"

// setsAddress reports whether a rule may set the address, alone or together with others: it writes a label with a name that ends with that
// of the address, or that is computed.
func setsAddress(rule map[string]any) bool {
	target := stringIn(rule, "targetLabel")
	if strings.EqualFold(stringIn(rule, "action"), "labelmap") {
		target = cmp.Or(stringIn(rule, "replacement"), "$1")
		if copiedLabels.MatchString(stringIn(rule, "regex")) && copiedTo.MatchString(target) {
			return false
		}
	}
	return strings.Contains(target, addressLabel) || strings.Contains(target, "$")
}

// A labelmap that copies labels or annotations of Kubernetes has the ends of their names, with or without a prefix. Such a name ends with
// a letter or a digit, unless another rule, or a target, has made it.
var (
	copiedLabels = lazyregexp.New(`^__meta_kubernetes_\w+\([^()]*\)$`)
	copiedTo     = lazyregexp.New(`^([A-Za-z]\w*)?(\$1|\$\{1\})$`)
)

// isOwnService reports whether a host, with a port or without, is a Service of one of its own namespaces.
func (j *judgement) isOwnService(host string) bool {
	labels := strings.Split(strings.Split(host, ":")[0], ".")
	return len(labels) >= 2 && j.own[labels[1]] && (len(labels) == 2 || labels[2] == "svc")
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
