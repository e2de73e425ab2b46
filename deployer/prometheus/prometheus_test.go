package prometheus_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/solutionctl/solutionctl/deployer/prometheus"
)

func server(tb testing.TB, kind, name, spec string) *unstructured.Unstructured {
	tb.Helper()
	o := &unstructured.Unstructured{}
	text := fmt.Sprintf("{apiVersion: monitoring.coreos.com/v1, kind: %s, metadata: {namespace: monitoring, name: %s}, spec: {%s}}", kind, name, spec)
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		tb.Fatal(err)
	}
	return o
}

func object(kind, namespace string, labels map[string]string) prometheus.Object {
	o := &unstructured.Unstructured{Object: map[string]any{"kind": kind}}
	o.SetNamespace(namespace)
	o.SetName("shop")
	o.SetLabels(labels)
	return prometheus.Object{Unstructured: o}
}

// reading is a monitor with an endpoint.
func reading(endpoint string) prometheus.Object {
	o := object("ServiceMonitor", "site", nil)
	var spec map[string]any
	if err := yaml.Unmarshal([]byte("{endpoints: [7, {port: metrics}, {"+endpoint+"}]}"), &spec); err != nil {
		panic(err)
	}
	o.Object["spec"] = spec
	return o
}

const (
	kps     = "monitoring/kps"
	anyNS   = "serviceMonitorNamespaceSelector: {}, ruleNamespaceSelector: {}"
	release = "serviceMonitorSelector: {matchLabels: {release: kps}}, ruleSelector: {matchLabels: {release: kps}}, " + anyNS
)

func TestJudge(t *testing.T) {
	selected := prometheus.Verdict{Server: "Prometheus " + kps, Selected: true}
	for name, test := range map[string]struct {
		kind, spec string
		object     prometheus.Object
		want       prometheus.Verdict
	}{
		"everything is selected": {spec: "serviceMonitorSelector: {}, " + anyNS, want: selected},
		"label lacks": {
			spec: release,
			want: prometheus.Verdict{Labels: map[string]string{"release": "kps"}},
		},
		"another value": {
			spec: release, object: object("ServiceMonitor", "site", map[string]string{"release": "other"}),
			want: prometheus.Verdict{Labels: map[string]string{"release": "kps"}},
		},
		"label is there": {spec: release, object: object("ServiceMonitor", "site", map[string]string{"release": "kps"}), want: selected},
		"no selector":    {spec: anyNS, want: prometheus.Verdict{Obstacles: []string{"selects no ServiceMonitor at all"}}},
		"own namespace only": {
			spec: "serviceMonitorSelector: {}", want: prometheus.Verdict{Obstacles: []string{"looks into its own namespace only"}},
		},
		"in the own namespace": {spec: "serviceMonitorSelector: {}", object: object("ServiceMonitor", "monitoring", nil), want: selected},
		"label of the namespace": {
			spec: "serviceMonitorSelector: {}, serviceMonitorNamespaceSelector: {matchLabels: {team: shop}}",
			want: prometheus.Verdict{NamespaceLabels: map[string]string{"team": "shop"}},
		},
		"namespace by name": {
			spec: "serviceMonitorSelector: {}, serviceMonitorNamespaceSelector: {matchLabels: {kubernetes.io/metadata.name: site}}", want: selected,
		},
		"other namespace by name": {
			spec: "serviceMonitorSelector: {}, serviceMonitorNamespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: [a, b]}]}",
			want: prometheus.Verdict{Obstacles: []string{"does not look into namespace site"}},
		},
		"expressions": {
			spec: "serviceMonitorSelector: {matchExpressions: [{key: a, operator: In, values: [x, w]}, {key: b, operator: Exists}, {key: c, operator: NotIn, values: [z]}]}, " + anyNS,
			want: prometheus.Verdict{Labels: map[string]string{"a": "x", "b": ""}},
		},
		"passed over": {
			spec:   "serviceMonitorSelector: {matchExpressions: [{key: c, operator: NotIn, values: [z]}, {key: d, operator: DoesNotExist}]}, " + anyNS,
			object: object("ServiceMonitor", "site", map[string]string{"c": "z", "d": "1"}),
			want:   prometheus.Verdict{Obstacles: []string{"passes over the label c=z", "passes over the label d=1"}},
		},
		"unreadable": {
			spec: "serviceMonitorSelector: {matchLabels: [1]}, " + anyNS,
			want: prometheus.Verdict{Obstacles: []string{"has a serviceMonitorSelector that cannot be read"}},
		},
		"rule of an environment, enforced": {
			spec: "ruleSelector: {}, enforcedNamespaceLabel: namespace, " + anyNS, object: object("PrometheusRule", "site", nil), want: selected,
		},
		"rule of the cluster, enforced": {
			spec: "ruleSelector: {}, enforcedNamespaceLabel: namespace, " + anyNS, object: everywhere("shop-system"),
			want: prometheus.Verdict{Obstacles: []string{"shows a rule the metrics of namespace shop-system only"}},
		},
		"rule of the cluster, exempt": {
			spec: "ruleSelector: {}, enforcedNamespaceLabel: namespace, excludedFromEnforcement: " +
				"[7, {resource: prometheusrules, namespace: shop-system}], " + anyNS,
			object: everywhere("shop-system"), want: selected,
		},
		"its token, allowed": {spec: "serviceMonitorSelector: {}, arbitraryFSAccessThroughSMs: {deny: false}, " + anyNS, object: reading("bearerTokenFile: /a"), want: selected},
		"its token, denied": {
			spec: "serviceMonitorSelector: {}, arbitraryFSAccessThroughSMs: {deny: true}, " + anyNS, object: reading("bearerTokenFile: /a"),
			want: prometheus.Verdict{Obstacles: []string{"takes no monitor that reads files of Prometheus, such as its token"}},
		},
		"an authority in a file, denied": {
			spec: "serviceMonitorSelector: {}, arbitraryFSAccessThroughSMs: {deny: true}, " + anyNS, object: reading("tlsConfig: {caFile: /a}"),
			want: prometheus.Verdict{Obstacles: []string{"takes no monitor that reads files of Prometheus, such as its token"}},
		},
		"no file, denied": {
			spec: "serviceMonitorSelector: {}, arbitraryFSAccessThroughSMs: {deny: true}, " + anyNS, object: reading("tlsConfig: {ca: {secret: {name: a, key: b}}}, bearerTokenFile: ''"),
			want: selected,
		},
		"agents know no rules":      {kind: "PrometheusAgent", spec: release, object: object("PrometheusRule", "site", nil)},
		"rulers know no monitors":   {kind: "ThanosRuler", spec: release},
		"nothing but a name":        {spec: "", want: prometheus.Verdict{Obstacles: []string{"selects no ServiceMonitor at all", "looks into its own namespace only"}}},
		"rulers select rules alone": {kind: "ThanosRuler", spec: release, object: object("PrometheusRule", "site", map[string]string{"release": "kps"}), want: prometheus.Verdict{Server: "ThanosRuler " + kps, Selected: true}},
	} {
		t.Run(name, func(t *testing.T) {
			kind, o, want := "Prometheus", test.object, test.want
			if test.kind != "" {
				kind = test.kind
			}
			if o.Unstructured == nil {
				o = object("ServiceMonitor", "site", nil)
			}
			if want.Server == "" && test.kind == "" {
				want.Server = "Prometheus " + kps
			}
			got := prometheus.Judge([]*unstructured.Unstructured{server(t, kind, "kps", test.spec)}, o)
			if diff := cmp.Diff(want, got, noneIsEmpty); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestNearest: the server that needs the smallest change is reported; one server that selects the object is sufficient.
func TestNearest(t *testing.T) {
	far := server(t, "Prometheus", "far", "")
	near := server(t, "Prometheus", "near", release)
	takes := server(t, "Prometheus", "takes", "serviceMonitorSelector: {}, "+anyNS)
	o := object("ServiceMonitor", "site", nil)
	if got := prometheus.Judge([]*unstructured.Unstructured{far, near}, o); got.Server != "Prometheus monitoring/near" || got.Selected {
		t.Errorf("%+v", got)
	}
	if got := prometheus.Judge([]*unstructured.Unstructured{far, near, takes}, o); got.Server != "Prometheus monitoring/takes" || !got.Selected {
		t.Errorf("%+v", got)
	}
	if got := prometheus.Judge(nil, o); got.Server != "" || got.Selected {
		t.Errorf("without a server: %+v", got)
	}
}

func everywhere(namespace string) prometheus.Object {
	o := object("PrometheusRule", namespace, nil)
	o.Everywhere = true
	return o
}

// noneIsEmpty compares nil and empty maps as equal.
var noneIsEmpty = cmp.FilterValues(func(a, b map[string]string) bool { return len(a)+len(b) == 0 }, cmp.Ignore())

func Example() {
	kps := &unstructured.Unstructured{Object: map[string]any{
		"kind": "Prometheus", "metadata": map[string]any{"namespace": "monitoring", "name": "kps"},
		"spec": map[string]any{
			"serviceMonitorSelector":          map[string]any{"matchLabels": map[string]any{"release": "kps"}},
			"serviceMonitorNamespaceSelector": map[string]any{},
		},
	}}
	verdict := prometheus.Judge([]*unstructured.Unstructured{kps}, object("ServiceMonitor", "site", nil))
	fmt.Println(verdict.Selected, verdict.Server, verdict.Labels)
	fmt.Println(verdict.Why("site"))
	// Output:
	// false Prometheus monitoring/kps map[release:kps]
	// Prometheus monitoring/kps wants its label release=kps
}
