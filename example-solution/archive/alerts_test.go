package archive

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestAlerts has Prometheus' own tool judge the alerting rules, and what they say of made-up series.
func TestAlerts(t *testing.T) {
	if _, err := exec.LookPath("promtool"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip("promtool is missing: apt-get install prometheus")
	}
	var object struct{ Spec map[string]any } // a PrometheusRule has the same groups as a file of rules
	unmarshal(t, read(t, "monitoring/prometheusrule.yaml"), &object)
	rules, err := yaml.Marshal(object.Spec)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, data := range map[string][]byte{"rules.yaml": rules, "alerts.yaml": read(t, "testdata/alerts.yaml")} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"check", "rules", "rules.yaml"}, {"test", "rules", "alerts.yaml"}} {
		cmd := exec.CommandContext(t.Context(), "promtool", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", args, err, out)
		}
	}
}
