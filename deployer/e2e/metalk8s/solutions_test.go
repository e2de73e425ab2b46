package metalk8s_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solutionctl/solutionctl/schema/report"
)

func TestSolutions(t *testing.T) {
	d, client := connect(t)
	reset(t, client)
	ctx := t.Context()

	s, err := d.Solutions(ctx)
	check(t, err)
	if len(s.Versions) != 0 || len(s.Problems) != 0 {
		t.Errorf("nothing was imported: got %+v", s)
	}

	check(t, d.PutVersion(ctx, "db", entry(t, "db", "1.10.0")))
	check(t, d.PutVersion(ctx, "db", entry(t, "db", "1.9.0")))
	namespace, err := client.CoreV1().Namespaces().Get(ctx, "metalk8s-solutions", metav1.GetOptions{})
	check(t, err)
	want := map[string]string{
		"app.kubernetes.io/managed-by": "metalk8s", "app.kubernetes.io/part-of": "metalk8s", "heritage": "metalk8s",
		"kubernetes.io/metadata.name": "metalk8s-solutions",
	}
	if diff := cmp.Diff(namespace.Labels, want); diff != "" {
		t.Errorf("labels of the namespace (-got +want):\n%s", diff)
	}

	wantError(t, d.SetActive(ctx, "db", "2.0.0"), report.NotImported, "2.0.0", "deploy import")
	check(t, d.SetActive(ctx, "db", "1.9.0"))
	check(t, d.PutVersion(ctx, "db", entry(t, "db", "1.9.0"))) // again: it stays active
	s, err = d.Solutions(ctx)
	check(t, err)
	if got := s.Active("db"); got != "1.9.0" {
		t.Errorf("active: got %q", got)
	}
	if _, ok := s.Find("db", "1.10.0"); !ok {
		t.Error("1.10.0 is lost")
	}
	list := mustData(t, client, "metalk8s-solutions", "metalk8s-solutions")["db"]
	entry := func(version string, active bool) string {
		return fmt.Sprintf(`{"name": "db", "id": "db-%[1]s", "version": "%[1]s", "active": %[2]t, "archive": "/archives/db-%[1]s.iso",
			"mountpoint": "/srv/scality/db-%[1]s", "manifest": {"apiVersion": "solutions.metalk8s.scality.com/v1alpha1", "kind": "Solution",
			"metadata": {"name": "db"}, "spec": {"version": "%[1]s", "images": [], "customApiGroups": [],
			"operator": {"image": {"name": "db-operator", "tag": "%[1]s"}}, "ui": {"image": {"name": "db-ui", "tag": "%[1]s"}}}}}`, version, active)
	}
	if diff := cmp.Diff(generic(t, list), generic(t, "["+entry("1.9.0", true)+","+entry("1.10.0", false)+"]")); diff != "" {
		t.Errorf("what MetalK8s reads (-got +want):\n%s", diff)
	}

	check(t, d.SetActive(ctx, "db", ""))
	check(t, d.RemoveVersion(ctx, "db", "1.9.0"))
	check(t, d.RemoveVersion(ctx, "db", "1.9.0"))
	check(t, d.RemoveVersion(ctx, "unknown", "1.9.0"))
	list = mustData(t, client, "metalk8s-solutions", "metalk8s-solutions")["db"]
	if diff := cmp.Diff(generic(t, list), generic(t, "["+entry("1.10.0", false)+"]")); diff != "" {
		t.Errorf("after the removal (-got +want):\n%s", diff)
	}
	check(t, d.RemoveVersion(ctx, "db", "1.10.0"))
	if data := mustData(t, client, "metalk8s-solutions", "metalk8s-solutions"); len(data) != 0 {
		t.Errorf("the last version has left %v", data)
	}
}

// TestSolutionsOfOthers keeps what other tools wrote, readable or not.
func TestSolutionsOfOthers(t *testing.T) {
	d, client := connect(t)
	reset(t, client)
	ctx := t.Context()
	newNamespace(t, client, "metalk8s-solutions", map[string]string{"heritage": "metalk8s"}, nil)
	theirs := map[string]string{
		// as Salt writes it, with what a later release might add
		"example-solution": `[{"active": true, "archive": "/archives/a.iso", "id": "example-solution-1.0.0", "manifest": {"kind": "Solution", "spec":
			{"version": "1.0.0", "later": [1]}}, "mountpoint": "/srv/scality/example-solution-1.0.0", "name": "Example Solution", "version": "1.0.0",
			"checksum": "abc"}]`,
		// as MetalK8s 2.4 wrote it: neither active nor manifest
		"old":    `[{"archive": "/archives/o.iso", "id": "old-1.0.0", "mountpoint": "/srv/scality/old-1.0.0", "name": "Old", "version": "1.0.0"}]`,
		"broken": `[{"version": "1.0.0"`,
		"notes":  "remember to upgrade",
	}
	newConfigMap(t, client, "metalk8s-solutions", "metalk8s-solutions", theirs)

	s, err := d.Solutions(ctx)
	check(t, err)
	if got := s.Active("example-solution") + s.Active("old"); got != "1.0.0" {
		t.Errorf("active: got %q", got)
	}
	var problems []string
	for _, p := range s.Problems {
		problems = append(problems, p.Where)
	}
	wantProblems := []string{
		"ConfigMap metalk8s-solutions/metalk8s-solutions, key broken", "ConfigMap metalk8s-solutions/metalk8s-solutions, key notes",
	}
	if diff := cmp.Diff(problems, wantProblems); diff != "" {
		t.Errorf("problems (-got +want):\n%s", diff)
	}

	wantError(t, d.PutVersion(ctx, "broken", entry(t, "broken", "2.0.0")), report.Invalid, "key broken", "kubectl edit")
	check(t, d.SetActive(ctx, "old", "1.0.0"))
	check(t, d.PutVersion(ctx, "example-solution", entry(t, "example-solution", "1.0.0")))
	check(t, d.PutVersion(ctx, "example-solution", entry(t, "example-solution", "1.1.0")))
	data := mustData(t, client, "metalk8s-solutions", "metalk8s-solutions")
	for _, key := range []string{"broken", "notes"} {
		if data[key] != theirs[key] {
			t.Errorf("%s was changed to %q", key, data[key])
		}
	}
	var list []map[string]any
	check(t, json.Unmarshal([]byte(data["example-solution"]), &list))
	if len(list) != 2 || list[0]["checksum"] != "abc" || list[0]["active"] != true || list[1]["active"] != false || list[1]["checksum"] != nil {
		t.Errorf("example-solution: %v", list)
	}
	check(t, json.Unmarshal([]byte(data["old"]), &list))
	if list[0]["active"] != true || list[0]["name"] != "Old" {
		t.Errorf("old: %v", list)
	}
}

// TestSolutionsForbidden names the rule that is missing.
func TestSolutionsForbidden(t *testing.T) {
	connect(t)
	kubeconfig := kubeconfigOf(t, "nobody")
	_, err := documents(t, kubeconfig).Solutions(t.Context())
	wantError(t, err, report.Forbidden, "nobody", "configmaps", "get")
	_, err = documents(t, kubeconfig).Environments(t.Context())
	wantError(t, err, report.Forbidden, "nobody", "namespaces", "list")
}
