package render_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/schema"
)

// TestMonitoringOfTheSite: what the site looks for is on what it looks for, and on nothing else.
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
