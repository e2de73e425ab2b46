package render_test

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/schema"
)

// TestMonitoringOfTheSite: only monitors, rules and dashboards get the labels that the site selects.
func TestMonitoringOfTheSite(t *testing.T) {
	object := func(kind string) string {
		return "apiVersion: monitoring.coreos.com/v1\nkind: " + kind + "\nmetadata: {name: db, labels: {release: theirs}}\n"
	}
	p := newPayload(t, map[string]string{
		"monitoring/monitor.yaml": object("ServiceMonitor"), "monitoring/rule.yaml": object("PrometheusRule"), "monitoring/own.yaml": object("Alertmanager"),
		"monitoring/dashboards/one.json": `{"uid": "one"}`,
	})
	s := settings()
	s.Monitoring = schema.Monitoring{
		Labels: map[string]string{"release": "kps"}, RuleLabels: map[string]string{"role": "rules"},
		Dashboards: schema.MonitoringDashboards{Labels: map[string]string{"grafana": "yes"}, FolderAnnotation: "folder", Namespace: "grafana"},
	}
	objects := environment(t, p, s)
	for kind, want := range map[string][2]string{"ServiceMonitor": {"kps", ""}, "PrometheusRule": {"kps", "rules"}, "Alertmanager": {"theirs", ""}} {
		if labels := find(t, objects, kind, "db").GetLabels(); labels["release"] != want[0] || labels["role"] != want[1] {
			t.Errorf("%s has the labels %v", kind, labels)
		}
	}
	cluster := activation(t, p, s)
	o := find(t, cluster, "ConfigMap", "db-dashboard-one")
	if o.GetNamespace() != "grafana" || o.GetLabels()["grafana"] != "yes" || o.GetAnnotations()["folder"] != p.Solution.DisplayName() {
		t.Errorf("the dashboard is %v", o.Object["metadata"])
	}
	if len(cluster) != 1 {
		t.Errorf("a namespace with nothing in it: %v", names(cluster))
	}
}

// TestDashboardsOfComponents: those that manifests and charts of components bring are found by the site as well, stay where they are, and
// are in the folder that they name.
func TestDashboardsOfComponents(t *testing.T) {
	const named = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: board, labels: {grafana_dashboard: \"1\"}, annotations: {folder: Theirs}}\ndata: {a.json: '{}'}\n"
	const other = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n"
	s := settings()
	s.Monitoring.Dashboards = schema.MonitoringDashboards{Labels: map[string]string{"grafana": "yes"}, FolderAnnotation: "folder", Namespace: "grafana"}
	p := chartPayload(t, map[string]string{"templates/board.yaml": named + other})
	chart, err := render.Chart(t.Context(), p, "chart", s, render.ChartSettings{})
	if err != nil {
		t.Fatal(err)
	}
	manifests, err := render.Component(cloud(t, map[string]string{"components/one.yaml": named + other}), "one", s)
	if err != nil {
		t.Fatal(err)
	}
	for from, objects := range map[string][]*unstructured.Unstructured{"a chart": chart.Objects, "manifests": manifests} {
		o := find(t, objects, "ConfigMap", "board")
		folders := o.GetAnnotations()
		if o.GetNamespace() != "prod" || o.GetLabels()["grafana"] != "yes" || folders["folder"] != "Theirs" || folders["metalk8s.scality.com/grafana-folder-name"] != p.Solution.DisplayName() {
			t.Errorf("%s: the dashboard is %v", from, o.Object["metadata"])
		}
		if o := find(t, objects, "ConfigMap", "other"); o.GetLabels()["grafana"] != "" || len(o.GetAnnotations()) > 0 {
			t.Errorf("%s: what is no dashboard is %v", from, o.Object["metadata"])
		}
	}
}

func TestDashboardsHaveUIDAndFolder(t *testing.T) {
	const long = "a-dashboard-whose-name-is-longer-than-what-grafana-takes"
	p := newPayload(t, map[string]string{
		"manifest.yaml":                              strings.Replace(dbManifest, "{name: db}", "{name: db, annotations: {solutions.metalk8s.scality.com/display-name: The Base}}", 1),
		"monitoring/dashboards/given.json":           `{"uid": "mine", "title": "Given"}`,
		"monitoring/dashboards/Sub/none.json":        `{"title": "None", "id": 12345678901234567890}`,
		"monitoring/dashboards/" + long + "-1.json":  `{"uid": null}`,
		"monitoring/dashboards/" + long + "-2.json":  `{"uid": ""}`,
		"monitoring/dashboards/not-a-dashboard.json": `[1]`,
	})
	want := map[string]string{"db-dashboard-given": "mine", "db-dashboard-sub-none": "db-sub-none", "db-dashboard-" + long + "-1": "", "db-dashboard-" + long + "-2": ""}
	seen := map[string]bool{}
	objects := activation(t, p, settings())
	for name, uid := range want {
		o := find(t, objects, "ConfigMap", name)
		if folder := o.GetAnnotations()["metalk8s.scality.com/grafana-folder-name"]; folder != "The Base" {
			t.Errorf("%s is in folder %q", name, folder)
		}
		var dashboard struct {
			UID string
			ID  json.Number
		}
		if err := json.Unmarshal([]byte(text(t, o, "data", name+".json")), &dashboard); err != nil {
			t.Fatal(err)
		}
		if got := dashboard.UID; got == "" || len(got) > 40 || seen[got] || uid != "" && got != uid {
			t.Errorf("%s has the uid %q, want %q", name, got, uid)
		}
		if dashboard.ID != "" && dashboard.ID != "12345678901234567890" {
			t.Errorf("%s: another number: %s", name, dashboard.ID)
		}
		seen[dashboard.UID] = true
	}
	if got := text(t, find(t, objects, "ConfigMap", "db-dashboard-not-a-dashboard"), "data", "db-dashboard-not-a-dashboard.json"); got != "[1]" {
		t.Errorf("what is no dashboard became %s", got)
	}
}
