package render_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/schema/report"
)

// rulesOf is a manifest with one group of rules; each is a line of YAML.
func rulesOf(name, scope string, rules ...string) string {
	return "apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata:\n  name: " + name + "\n  annotations: {" + scope + "}\n" +
		"spec:\n  groups:\n  - name: g\n    rules:\n    - " + strings.Join(rules, "\n    - ") + "\n"
}

const clusterScope = "solutionctl.io/scope: cluster"

// scoped are the rules of a PrometheusRule.
func scoped(o *unstructured.Unstructured) any {
	return o.Object["spec"].(map[string]any)["groups"].([]any)[0].(map[string]any)["rules"]
}

// TestRulesOfAnEnvironment: the rules of each environment cover that environment only, and name it in a label.
func TestRulesOfAnEnvironment(t *testing.T) {
	p := newPayload(t, map[string]string{"monitoring/rules.yaml": rulesOf("db", "",
		`{alert: Down, expr: "db_up == 0 # why", for: 1m}`,
		`{alert: Labelled, expr: "db_up == 0", labels: {severity: critical, environment: mine}}`,
		`{record: "db:up:sum", expr: "sum(db_up)"}`,
		`{record: "db:all", expr: "sum(db_up) / sum(db_up{namespace=~'a|b'})", labels: {a: b}}`,
		`{alert: Elsewhere, expr: "up{namespace='monitoring'} == 0"}`,
		`{record: one, expr: 1}`,
	)})
	s := settings()
	s.Namespace, s.Environment = "prod-a", "prod"
	objects, err := render.Environment(p, s)
	if err != nil {
		t.Fatal(err)
	}
	rule := find(t, objects, "PrometheusRule", "db")
	here := func(labels map[string]any) map[string]any {
		all := map[string]any{"namespace": "prod-a", "solution": "db", "environment": "prod"}
		maps.Copy(all, labels)
		return all
	}
	want := []any{
		map[string]any{"alert": "Down", "expr": `db_up{namespace="prod-a"} == 0 # why`, "for": "1m", "labels": here(nil)},
		map[string]any{"alert": "Labelled", "expr": `db_up{namespace="prod-a"} == 0`, "labels": here(map[string]any{"severity": "critical", "environment": "mine"})},
		map[string]any{"record": "db:up:sum", "expr": `sum(db_up{namespace="prod-a"})`, "labels": map[string]any{"namespace": "prod-a"}},
		map[string]any{"record": "db:all", "expr": `sum(db_up{namespace="prod-a"}) / sum(db_up{namespace=~'a|b'})`, "labels": map[string]any{"a": "b"}},
		map[string]any{"alert": "Elsewhere", "expr": "up{namespace='monitoring'} == 0", "labels": map[string]any{"solution": "db", "environment": "prod"}},
		map[string]any{"record": "one", "expr": int64(1)},
	}
	if diff := cmp.Diff(want, scoped(rule)); diff != "" {
		t.Error(diff)
	}
	if _, selected := rule.GetLabels()["metalk8s.scality.com/monitor"]; rule.GetNamespace() != "prod-a" || !selected {
		t.Errorf("it is in %s, labelled %v", rule.GetNamespace(), rule.GetLabels())
	}
	s.Namespace = "prod-b" // renders the same parsed rules again
	if objects, err = render.Environment(p, s); err != nil || strings.Contains(scoped(find(t, objects, "PrometheusRule", "db")).([]any)[0].(map[string]any)["expr"].(string), "prod-a") {
		t.Errorf("one environment is about another one: %v", err)
	}
}

// TestRulesOfTheCluster: a rule for the whole cluster stays unchanged, for any Prometheus, and its alerts name its
// Solution.
func TestRulesOfTheCluster(t *testing.T) {
	p := newPayload(t, map[string]string{"monitoring/rules.yaml": rulesOf("db", clusterScope,
		`{alert: Load, expr: "load_of_a_newer_language(node_load1)"}`, `{alert: Mine, expr: up, labels: {solution: mine}}`, `{record: load, expr: node_load1}`)})
	objects := activation(t, p, settings())
	if diff := cmp.Diff([]string{"Namespace /db-system", "PrometheusRule db-system/db"}, names(objects)); diff != "" {
		t.Fatal(diff)
	}
	want := []any{
		map[string]any{"alert": "Load", "expr": "load_of_a_newer_language(node_load1)", "labels": map[string]any{"solution": "db"}},
		map[string]any{"alert": "Mine", "expr": "up", "labels": map[string]any{"solution": "mine"}},
		map[string]any{"record": "load", "expr": "node_load1"},
	}
	if diff := cmp.Diff(want, scoped(objects[1])); diff != "" {
		t.Error(diff)
	}
	inside, err := render.Environment(p, settings())
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range inside {
		if o.GetKind() == "PrometheusRule" {
			t.Errorf("the environment has it as well, in %s", o.GetNamespace())
		}
	}
}

// TestRulesOfComponents: those of an environment are scoped, charts included, those of the cluster are not.
func TestRulesOfComponents(t *testing.T) {
	p := cloud(t, map[string]string{"components/one.yaml": rulesOf("one", "", `{alert: Down, expr: up == 0}`)})
	for name, want := range map[string]string{"one": `up{namespace="prod"} == 0`, "base": "up == 0"} {
		rule := scoped(component(t, p, name)[0]).([]any)[0].(map[string]any)
		if labels, _ := rule["labels"].(map[string]any); rule["expr"] != want || labels["solution"] != "cloud" {
			t.Errorf("%s: got %v", name, rule)
		}
	}
	p = chartPayload(t, map[string]string{"templates/rules.yaml": rulesOf("{{ .Release.Name }}", "", `{alert: Down, expr: up == 0, annotations: {summary: "{{ "{{ $labels.pod }}" }}"}}`)})
	rendered, err := render.Chart(t.Context(), p, "chart", settings(), render.ChartSettings{})
	if err != nil {
		t.Fatal(err)
	}
	rule := scoped(find(t, rendered.Objects, "PrometheusRule", "main")).([]any)[0].(map[string]any)
	if rule["expr"] != `up{namespace="prod"} == 0` || rule["annotations"].(map[string]any)["summary"] != "{{ $labels.pod }}" {
		t.Errorf("of a chart: got %v", rule)
	}
}

// TestClumsyRules: invalid PromQL is refused with its place; the API server refuses other mistakes.
func TestClumsyRules(t *testing.T) {
	p := newPayload(t, map[string]string{"monitoring/rules.yaml": rulesOf("db", "", "{alert: A, expr: up}", `{alert: B, expr: "sum(up"}`)})
	_, err := render.Environment(p, settings())
	const want = "monitoring/rules.yaml:11: PrometheusRule/db: the expression is not PromQL: 1:7: unclosed left parenthesis"
	if report.CodeOf(err) != report.Invalid || err.Error() != want {
		t.Errorf("got %s: %v", report.CodeOf(err), err)
	}
	for _, content := range []string{
		"spec: 5", "spec: {groups: 5}", "spec: {groups: [5, {rules: 5}, {rules: [5, {}, {expr: 5}, {expr: {a: b}}, {alert: 5, expr: up, labels: 5}]}]}", "spec: null",
	} {
		head, _, _ := strings.Cut(rulesOf("db", ""), "spec:")
		objects, err := render.Environment(newPayload(t, map[string]string{"monitoring/rules.yaml": head + content + "\n"}), settings())
		if err != nil {
			t.Errorf("%s: %v", content, err)
			continue
		}
		find(t, objects, "PrometheusRule", "db")
	}
}

// TestAlertOfOneEnvironment evaluates the rules of two environments with Prometheus' own tool: a fault of one raises an
// alert for this one only.
func TestAlertOfOneEnvironment(t *testing.T) {
	if _, err := exec.LookPath("promtool"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip("promtool is missing: apt-get install prometheus")
	}
	dir := t.TempDir()
	write := func(name string, content any) {
		data, err := yaml.Marshal(content)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	p := exampleSolution(t, "1.0.0")
	for _, environment := range []string{"a", "b"} {
		s := settings()
		s.Namespace, s.Environment = environment, environment
		objects, err := render.Environment(p, s)
		if err != nil {
			t.Fatal(err)
		}
		write(environment+".yaml", find(t, objects, "PrometheusRule", "example-solution").Object["spec"])
	}
	series := func(namespace, state, values string) any {
		return map[string]any{"series": fmt.Sprintf("website_replicas{namespace=%q,website=\"www\",state=%q}", namespace, state), "values": values}
	}
	write("test.yaml", map[string]any{"rule_files": []string{"a.yaml", "b.yaml"}, "tests": []any{map[string]any{
		"interval":     "1m",
		"input_series": []any{series("a", "wanted", "3+0x20"), series("a", "ready", "2+0x20"), series("b", "wanted", "3+0x20"), series("b", "ready", "3+0x20")},
		"alert_rule_test": []any{map[string]any{"eval_time": "15m", "alertname": "WebsiteNotReady", "exp_alerts": []any{map[string]any{
			"exp_labels": map[string]any{"severity": "warning", "website": "www", "namespace": "a", "environment": "a", "solution": "example-solution"},
			"exp_annotations": map[string]any{
				"summary": "Website a/www has had fewer ready servers than requested for ten minutes; its status shows why.",
			},
		}}}},
	}}})
	cmd := exec.CommandContext(t.Context(), "promtool", "test", "rules", "test.yaml")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
