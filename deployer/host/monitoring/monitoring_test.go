package monitoring_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/solutionctl/solutionctl/deployer/host/monitoring"
	"github.com/solutionctl/solutionctl/kube/promql"
)

func Example() {
	text, err := monitoring.Objects("solutionctl-system", monitoring.Target{Address: netip.MustParseAddrPort("10.0.0.1:5000")})
	if err != nil {
		panic(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "kind: ") {
			fmt.Print(line)
		}
	}
	// Output:
	// kind: Service
	// kind: Endpoints
	// kind: ServiceMonitor
	// kind: PrometheusRule
	// kind: PrometheusRule
	// kind: ConfigMap
}

// file is a file of Prometheus' rules, as much as is judged here.
type file struct {
	Groups []struct {
		Name  string
		Rules []struct {
			Alert, Expr         string
			Labels, Annotations map[string]string
		}
	}
}

// TestRules: each alert has a severity, a description of the fault and of its consequences, and a remedy.
func TestRules(t *testing.T) {
	var found file
	if err := yaml.UnmarshalStrict(monitoring.Rules(), &struct {
		Groups []any `json:"groups"`
	}{}); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(monitoring.Rules(), &found); err != nil {
		t.Fatal(err)
	}
	tests, err := os.ReadFile("testdata/alerts.test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, group := range found.Groups {
		for _, rule := range group.Rules {
			if seen[rule.Alert] || rule.Labels["severity"] == "" || rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" || rule.Annotations["runbook"] == "" {
				t.Errorf("%s is there twice, or incomplete: %v %v", rule.Alert, rule.Labels, rule.Annotations)
			}
			seen[rule.Alert] = true
			if !strings.Contains(string(tests), `{alertname="`+rule.Alert+`",alertstate="firing"`) {
				t.Errorf("no test makes %s fire", rule.Alert)
			}
		}
	}
	if len(seen) < 10 {
		t.Errorf("%d alerts", len(seen))
	}
}

// TestPromtool has Prometheus' own tool check the rules, and make each of them fire.
func TestPromtool(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip("promtool is not installed (apt-get install prometheus)")
	}
	dir := t.TempDir()
	tests, err := os.ReadFile("testdata/alerts.test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"alerts.yaml": monitoring.Rules(), "alerts.test.yaml": tests} {
		if err = os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"check", "rules", "alerts.yaml"}, {"test", "rules", "alerts.test.yaml"}} {
		command := exec.CommandContext(t.Context(), promtool, args...)
		command.Dir = dir
		if out, err := command.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// TestDashboard: Grafana finds it under one uid, and Prometheus reads every expression of it.
func TestDashboard(t *testing.T) {
	var found struct {
		UID    string
		Panels []struct {
			Title, Type string
			GridPos     struct{ X, Y, W, H int }
			Targets     []struct{ Expr string }
			FieldConfig struct {
				Defaults struct{ Thresholds *struct{} }
			}
		}
	}
	if err := json.Unmarshal(monitoring.Dashboard(), &found); err != nil || found.UID != "solutionctl" {
		t.Fatalf("uid %s: %v", found.UID, err)
	}
	places := map[[2]int]string{}
	for _, panel := range found.Panels {
		for _, target := range panel.Targets {
			if _, err := promql.Parse(strings.ReplaceAll(target.Expr, "$__rate_interval", "5m")); err != nil {
				t.Errorf("%s: %v in %s", panel.Title, err, target.Expr)
			}
		}
		if panel.Type == "stat" && panel.FieldConfig.Defaults.Thresholds == nil {
			t.Errorf("%s is green whatever it says", panel.Title)
		}
		for x := range panel.GridPos.W {
			for y := range panel.GridPos.H {
				place := [2]int{panel.GridPos.X + x, panel.GridPos.Y + y}
				if other := places[place]; other != "" || place[0] >= 24 || len(panel.Targets) == 0 {
					t.Fatalf("panel %q lies on %q, beside the page, or shows nothing", panel.Title, other)
				}
				places[place] = panel.Title
			}
		}
	}
}

// TestObjects: the objects for the Prometheus operator, for each way to reach a registry.
func TestObjects(t *testing.T) {
	address := netip.MustParseAddrPort("[fd00::1]:5000")
	for _, test := range []struct {
		name   string
		target monitoring.Target
		want   string // the endpoint of the ServiceMonitor, as JSON
		count  int
	}{
		{"not encrypted", monitoring.Target{Address: address}, `{"port":"metrics","scheme":"http"}`, 6},
		{"by an authority that Prometheus knows", monitoring.Target{Address: address, TLS: true}, `{"port":"metrics","scheme":"https"}`, 6},
		{
			"by the registry's own authority",
			monitoring.Target{Address: address, TLS: true, CA: "PEM\n", Name: "registry.example"},
			`{"port":"metrics","scheme":"https","tlsConfig":{"ca":{"configMap":{"key":"ca.crt","name":"solutionctl-registry-ca"}},"serverName":"registry.example"}}`, 7,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			objects := objectsOf(t, test.target)
			if len(objects) != test.count {
				t.Errorf("%d objects, want %d", len(objects), test.count)
			}
			spec := objects["ServiceMonitor/solutionctl-registry"]["spec"].(map[string]any)
			if got, _ := json.Marshal(spec["endpoints"].([]any)[0]); string(got) != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			if got, _ := json.Marshal(objects["Endpoints/solutionctl-registry"]["subsets"]); !strings.Contains(string(got), `"ip":"fd00::1"`) {
				t.Errorf("the address is not in %s", got)
			}
			if got := objects["ConfigMap/solutionctl-dashboard"]["data"].(map[string]any)["solutionctl.json"]; got.(string) != string(monitoring.Dashboard()) {
				t.Errorf("the dashboard became %s", got)
			}
			for _, name := range []string{"solutionctl-registry", "solutionctl-operations"} {
				rules, _ := json.Marshal(objects["PrometheusRule/"+name]["spec"])
				if !strings.HasPrefix(string(rules), `{"groups":[{"name":"`+name+`","rules":[`) || strings.Contains(string(rules), "},{\"name\":") {
					t.Errorf("rules %s", rules)
				}
			}
		})
	}
}

// objectsOf are the documents that watch over a target, by kind and name.
func objectsOf(t *testing.T, target monitoring.Target) map[string]map[string]any {
	t.Helper()
	text, err := monitoring.Objects("here", target)
	if err != nil {
		t.Fatal(err)
	}
	objects := map[string]map[string]any{}
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var o struct {
			Kind     string
			Metadata struct{ Name, Namespace string }
		}
		var all map[string]any
		if err = yaml.UnmarshalStrict([]byte(document), &all); err == nil {
			err = yaml.Unmarshal([]byte(document), &o)
		}
		if err != nil || o.Metadata.Namespace != "here" {
			t.Fatalf("%v in\n%s", err, document)
		}
		objects[o.Kind+"/"+o.Metadata.Name] = all
	}
	return objects
}

// TestSelected: monitors and rules have the labels that a site selects, other objects do not. Without a registry there
// remain the rules about operations and the dashboard.
func TestSelected(t *testing.T) {
	site := map[string]string{"release": "kps", "true": "1"}
	for name, test := range map[string]struct {
		target monitoring.Target
		count  int
	}{
		"a registry": {monitoring.Target{Address: netip.MustParseAddrPort("10.0.0.1:5000"), Selectors: site}, 6},
		"none":       {monitoring.Target{Selectors: site}, 2},
	} {
		objects := objectsOf(t, test.target)
		if len(objects) != test.count {
			t.Errorf("%s: %d objects, want %d", name, len(objects), test.count)
		}
		for object, content := range objects {
			labels, _ := json.Marshal(content["metadata"].(map[string]any)["labels"])
			const want = `{"app.kubernetes.io/part-of":"solutionctl","metalk8s.scality.com/monitor":"","release":"kps","true":"1"}`
			if selected := strings.HasPrefix(object, "ServiceMonitor") || strings.HasPrefix(object, "PrometheusRule"); (string(labels) == want) != selected {
				t.Errorf("%s: %s has the labels %s", name, object, labels)
			}
		}
	}
}
