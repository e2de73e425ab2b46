package lint_test

import (
	"strings"
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
		"SOL511": {files: edit(exampleUI, "  selector:\n    app.kubernetes.io/name: example-solution-ui\n  ports", "  selector:\n    app.kubernetes.io/name: example-solution\n  ports")},
		"SOL512": {files: edit(exampleUI, "readinessProbe", "startupProbe")},
		"SOL513": {files: edit(exampleUI, "kind: Role\n", "kind: ClusterRole\n")},
		"SOL514": {files: edit(exampleUI, "{{ repository }}", "ghcr.io/solutionctl")},
	}
}
