package lint_test

import (
	"strings"
	"testing"
	"testing/fstest"
)

func monitoringMutations() map[string]mutation {
	const (
		monitor   = "monitoring/servicemonitor.yaml"
		dashboard = "monitoring/dashboards/websites.json"
		rules     = "monitoring/prometheusrule.yaml"
	)
	return map[string]mutation{
		"SOL501": {files: func(files fstest.MapFS) { delete(files, monitor) }},
		"SOL502": {files: edit(monitor, "port: metrics", "port: prometheus")},
		"SOL503": {files: edit(dashboard, `"title": "Example Solution: websites",`, "")},
		"SOL504": {files: edit(dashboard, `"uid": "${datasource}"`, `"uid": "P1809F7CD0C75ACF3"`)},
		"SOL505": {files: edit(rules, `state="ready"}`, `state="ready"`)},
		"SOL506": {files: add(dashboard, strings.Repeat(" ", 800<<10))},
		"SOL507": {files: edit(rules, `expr: website_replicas{state="ready"}`, `expr: kube_pod_status_ready`)},
		"SOL508": {files: edit(dashboard, `"name": "datasource"`, `"name": "DS_PROMETHEUS"`)},
		"SOL509": {files: edit(rules, "{severity: warning}", "{}")},
		"SOL510": {files: edit(dashboard, `"uid": "example-solution",`, "")},
		"SOL511": {files: edit(exampleUI, "  selector:\n    app.kubernetes.io/name: example-solution-ui\n  ports", "  selector:\n    app.kubernetes.io/name: example-solution\n  ports")},
		"SOL512": {files: edit(exampleUI, "readinessProbe", "startupProbe")},
		"SOL513": {files: edit(exampleUI, "kind: Role\n", "kind: ClusterRole\n")},
		"SOL514": {files: edit(exampleUI, "{{ repository }}", "ghcr.io/solutionctl")},
		"SOL515": {files: edit(dashboard, `(rate(website_requests_total`, `(rate(website requests_total`)},
		"SOL516": {files: edit(rules, `expr: website_replicas{state="ready"}`, `expr: website_replica{state="ready"}`)},
	}
}

// TestMonitorOfOperator: an archive whose manifest requests a monitor need not contain one.
func TestMonitorOfOperator(t *testing.T) {
	for metrics, want := range map[string]int{"{enabled: true}": 0, "{enabled: false}": 1} {
		m := mutation{files: func(files fstest.MapFS) {
			delete(files, "monitoring/servicemonitor.yaml")
			edit("manifest.yaml", "  operator:\n", "  operator:\n    metrics: "+metrics+"\n")(files)
		}}
		if found := of("SOL501", run(t, m.target(t), "SOL501")); len(found) != want {
			t.Errorf("%s: got %d findings, want %d", metrics, len(found), want)
		}
	}
}
