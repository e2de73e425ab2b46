package e2e_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/host/monitoring"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/lint"
	"github.com/solutionctl/solutionctl/lint/target"
)

var moreRules = flag.String("rules", "", "a directory with more rules, none of which may be refused, such as the manifests of kube-prometheus")

// ruleFile has groups as they are written for Prometheus, or inside of a PrometheusRule.
type ruleFile struct {
	Groups []ruleGroup `json:"groups,omitempty"`
	Spec   *ruleFile   `json:"spec,omitempty"`
}

type ruleGroup struct {
	Name  string           `json:"name"`
	Rules []map[string]any `json:"rules"`
}

// TestForeignRules lints and scopes rules that others have written: those of Ceph and of the Prometheus operator, and every expression
// that Prometheus tests itself with. What promtool accepts is not refused, and what comes out of it promtool accepts as well.
func TestForeignRules(t *testing.T) {
	t.Parallel()
	const ceph = "/etc/prometheus/ceph/ceph_default_alerts.yml"
	for _, name := range []string{"/usr/bin/promtool", ceph} {
		if _, err := os.Stat(name); err != nil {
			if os.Getenv("CI") == "true" {
				t.Fatal(err)
			}
			t.Skipf("%v: .ci/setup installs it", err)
		}
	}
	operator := moduleDir(t, filepath.Join("cmd", "prometheus-operator"), "github.com/prometheus-operator/prometheus-operator")
	files := []string{ceph, filepath.Join(operator, "example", "mixin", "alerts.yaml")}
	if *moreRules != "" {
		more, err := filepath.Glob(filepath.Join(*moreRules, "*.y*ml"))
		if err != nil || len(more) == 0 {
			t.Fatalf("no rules in %s: %v", *moreRules, err)
		}
		files = append(files, more...)
	}
	count := 0
	for _, name := range files {
		groups := readRules(t, name)
		if len(groups) == 0 {
			continue
		}
		if refused := promtoolRefuses(t, groups); len(refused) > 0 {
			t.Errorf("%s: promtool refuses %q", name, refused)
		}
		count += judgeRules(t, name, groups)
	}
	suite, err := filepath.Glob(filepath.Join(moduleDir(t, ".", "github.com/prometheus/prometheus"), "promql", "promqltest", "testdata", "*.test"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range suite {
		group := ownTests(t, name)
		refused := promtoolRefuses(t, []ruleGroup{group}) // it knows less of the language
		group.Rules = slices.DeleteFunc(group.Rules, func(rule map[string]any) bool { return slices.Contains(refused, rule["record"].(string)) })
		count += judgeRules(t, name, []ruleGroup{group})
	}
	t.Logf("%d rules", count)
	if count < 1000 {
		t.Errorf("got %d rules, want 1000 or more", count)
	}
}

// TestOwnRules lints what watches over solutionctl itself. That its rules are about all environments together is meant.
func TestOwnRules(t *testing.T) {
	t.Parallel()
	objects, err := monitoring.Objects("solutionctl-system", monitoring.Target{Address: netip.MustParseAddrPort("10.0.0.1:5000")})
	if err != nil {
		t.Fatal(err)
	}
	opened, err := target.OpenDirectory(deployertest.Payload(t, "itself", "1.0.0", deployertest.Content{Bare: true, Files: map[string]string{"monitoring/itself.yaml": string(objects)}}), "itself")
	if err != nil {
		t.Fatal(err)
	}
	result, err := lint.Run(t.Context(), opened, lint.Options{Enable: []string{string(lint.GroupMonitoring)}})
	if err != nil {
		t.Fatal(err)
	}
	for _, finding := range result.Findings {
		if strings.HasPrefix(finding.Rule, "SOL5") && finding.Rule != "SOL507" {
			t.Errorf("%+v", finding)
		}
	}
}

// moduleDir is the directory of a module in the version that the module in a directory requires.
func moduleDir(t *testing.T, dir, module string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", module)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	var info struct{ Dir string }
	if err := json.Unmarshal(out, &info); err != nil {
		t.Fatal(err)
	}
	return info.Dir
}

func readRules(t *testing.T, name string) []ruleGroup {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var file ruleFile
	if err := yaml.Unmarshal(data, &file); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if file.Spec != nil {
		return file.Spec.Groups
	}
	return file.Groups
}

var evaluation = regexp.MustCompile(`(?m)^eval\S* (?:instant at \S+|range from \S+ to \S+ step \S+) (.+)$`)

// ownTests are the expressions of one of Prometheus' test scripts, each as a rule. The sign keeps those out that have a result which
// no rule may have, a text, say.
func ownTests(t *testing.T, name string) ruleGroup {
	t.Helper()
	script, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	group := ruleGroup{Name: filepath.Base(name)}
	for i, match := range evaluation.FindAllStringSubmatch(string(script), -1) {
		group.Rules = append(group.Rules, map[string]any{"record": fmt.Sprintf("number:%d", i), "expr": "-(" + match[1] + ")"})
	}
	return group
}

var refusal = regexp.MustCompile(`group ".*", rule \d+, "([^"]+)": `)

// promtoolRefuses names the rules that Prometheus' own tool finds fault with.
func promtoolRefuses(t *testing.T, groups []ruleGroup) (names []string) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(name, asYAML(t, ruleFile{Groups: groups}), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "promtool", "check", "rules", "--lint=none", name).CombinedOutput()
	for _, match := range refusal.FindAllStringSubmatch(string(out), -1) {
		names = append(names, match[1])
	}
	if err != nil && len(names) == 0 {
		t.Fatalf("promtool: %v\n%s", err, out)
	}
	return names
}

// judgeRules lints rules as those of a Solution, has promtool judge what they are in an environment, and counts them there.
func judgeRules(t *testing.T, name string, groups []ruleGroup) (count int) {
	t.Helper()
	files := map[string]string{"monitoring/rules.yaml": string(asYAML(t, map[string]any{
		"apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule", "metadata": map[string]any{"name": "foreign"}, "spec": ruleFile{Groups: groups},
	}))}
	payload := deployertest.Payload(t, "foreign", "1.0.0", deployertest.Content{Bare: true, Files: files})
	opened, err := target.OpenDirectory(payload, "foreign")
	if err != nil {
		t.Fatal(err)
	}
	result, err := lint.Run(t.Context(), opened, lint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, finding := range result.Findings {
		if finding.Rule == "SOL505" {
			t.Errorf("%s: lint refuses %+v", name, finding)
		}
	}
	objects, err := render.Environment(payload, render.Settings{Registry: "registry.solutionctl.invalid", Namespace: "prod", Environment: "prod"})
	if err != nil {
		t.Errorf("%s: %v", name, err)
	}
	for _, o := range objects {
		if o.GetKind() != "PrometheusRule" {
			continue
		}
		var scoped ruleFile
		if err := yaml.Unmarshal(asYAML(t, o.Object), &scoped); err != nil {
			t.Fatal(err)
		}
		if refused := promtoolRefuses(t, scoped.Spec.Groups); len(refused) > 0 {
			t.Errorf("%s: in an environment promtool refuses %q", name, refused)
		}
		for _, group := range scoped.Spec.Groups {
			count += len(group.Rules)
		}
	}
	return count
}

func asYAML(t *testing.T, content any) []byte {
	t.Helper()
	data, err := yaml.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
