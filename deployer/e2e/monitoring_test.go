package e2e_test

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
)

// TestMonitoring runs the scripts of testdata/monitoring, each on a real node of its own. EXAMPLE is a copy of the example Solution, with
// the images of all its releases; EXAMPLE/definitions has the CRDs of the Prometheus operator, EXAMPLE/prometheus is one that finds its targets in
// a cluster.
func TestMonitoring(t *testing.T) {
	t.Parallel()
	testcluster.Long(t, "TestMonitoringNotSelected in deployer, and promtool on all rules")
	for _, name := range []string{"prometheus", "promtool", "prometheus-alertmanager", "amtool", "prometheus-node-exporter", "jq"} {
		if _, err := exec.LookPath(name); err != nil {
			if os.Getenv("CI") == "true" {
				t.Fatal(err)
			}
			t.Skipf("%v: .ci/setup installs it", err)
		}
	}
	example := copyExample(t)
	t.Run("solutions", func(t *testing.T) {
		t.Parallel()
		c := monitored(t, example)
		runScripts(t, "testdata/monitoring/solutions.txtar", c, example, c.EnterNode)
	})
	t.Run("itself", func(t *testing.T) {
		t.Parallel()
		c := testcluster.StartFor(t, testcluster.Options{Node: true})
		runScripts(t, "testdata/monitoring/itself.txtar", c, example, c.EnterNode)
	})
}

// monitored starts a cluster whose node has the images of the Prometheus operator, of Prometheus and of Debian's Alertmanager, and puts
// the definitions of the operator and the program of Prometheus into a directory.
func monitored(t *testing.T, dir string) *testcluster.Cluster {
	t.Helper()
	operator, source, err := testcluster.PrometheusOperator(t.Context(), os.Stderr)
	if err == nil {
		err = os.CopyFS(filepath.Join(dir, "definitions"), os.DirFS(source))
	}
	if err != nil {
		t.Fatal(err)
	}
	prometheus, err := testcluster.Prometheus(t.Context(), os.Stderr)
	if err == nil {
		err = os.Symlink(prometheus, filepath.Join(dir, "prometheus"))
	}
	if err != nil {
		t.Fatal(err)
	}
	const templates = "/usr/share/prometheus/alertmanager/"
	c := testcluster.StartFor(t, testcluster.Options{Node: true})
	for image, files := range map[string][]string{
		"operator":        {filepath.Join(operator, "operator")},
		"config-reloader": {filepath.Join(operator, "prometheus-config-reloader")},
		"prometheus":      {prometheus},
		"alertmanager":    {"/usr/bin/prometheus-alertmanager", templates + "default.tmpl", templates + "email.tmpl"},
	} {
		if err := c.ImportProgram(t.Context(), "solutionctl.invalid/"+image+":test", files[0], files[1:]...); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// sidecar writes the dashboards of all namespaces into a directory, as the sidecar of Grafana's charts does: each key of a ConfigMap
// with the label is a file, below the folder that an annotation names.
func (s *session) sidecar(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: sidecar DIR LABEL [FOLDER-ANNOTATION]")
	}
	found, err := s.cluster.Client().CoreV1().ConfigMaps(metav1.NamespaceAll).List(context.Background(), metav1.ListOptions{LabelSelector: args[1]})
	ts.Check(err)
	for _, m := range found.Items {
		dir := ts.MkAbs(args[0])
		if len(args) == 3 {
			dir = filepath.Join(dir, m.Annotations[args[2]])
		}
		ts.Check(os.MkdirAll(dir, 0o755))
		for _, key := range slices.Sorted(maps.Keys(m.Data)) {
			ts.Check(os.WriteFile(filepath.Join(dir, key), []byte(m.Data[key]), 0o644))
		}
	}
}
