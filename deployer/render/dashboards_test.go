package render_test

import (
	"encoding/json"
	"strings"
	"testing"
)

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
