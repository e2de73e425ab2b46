package lint

import "github.com/solutionctl/solutionctl/schema/report"

func monitoringRules() []Rule {
	return []Rule{
		{
			ID: "SOL501", Name: "not-scraped", Group: GroupMonitoring, Severity: report.SeverityWarning,
			Summary:     "Prometheus learns of the operator and its application.",
			Explanation: "MetalK8s' Prometheus scrapes what a ServiceMonitor or PodMonitor names. Either the archive brings one, in monitoring/ or among its components, or the operator may create them.",
			Bad:         "# neither monitoring/servicemonitor.yaml nor a rule on servicemonitors", Good: "# monitoring/servicemonitor.yaml\nkind: ServiceMonitor",
			check: checkScraped,
		},
		{
			ID: "SOL502", Name: "monitor-target", Group: GroupMonitoring, Severity: report.SeverityWarning,
			Summary:     "Every ServiceMonitor finds a Service with the ports that it names.",
			Explanation: "A ServiceMonitor selects Services by label and their ports by name; one that finds nothing is silent. Services that the operator creates cannot be seen here: where it may create them, a monitor without a Service is not reported.",
			Bad:         "endpoints: [{port: metrics}]   # and the Service has the port http only", Good: "kind: Service\nspec: {ports: [{name: metrics, port: 8081}]}",
			check: checkMonitorTargets,
		},
		{
			ID: "SOL503", Name: "dashboard", Group: GroupMonitoring, Severity: report.SeverityError,
			Summary:     "Every file of monitoring/dashboards is a Grafana dashboard.",
			Explanation: "Grafana loads a dashboard from JSON with a title and panels. What the web page exports for sharing has the dashboard in a field of its own and is not loaded.",
			Bad:         `{"dashboard": {"title": "Web", "panels": []}}`, Good: `{"uid": "web", "title": "Web", "panels": []}`,
			check: checkDashboards,
		},
		{
			ID: "SOL504", Name: "dashboard-data-source", Group: GroupMonitoring, Severity: report.SeverityWarning,
			Summary:     "Dashboards name their data source by a variable.",
			Explanation: "The identifier of a data source is made when a Grafana is installed: a dashboard that has the identifier of its author's Grafana shows no data anywhere else. Declare a variable of type datasource and refer to it, or name the default data source by null.",
			Bad:         `"datasource": {"type": "prometheus", "uid": "P1809F7CD0C75ACF3"}`, Good: `"datasource": {"type": "prometheus", "uid": "${datasource}"}`,
			check: checkDataSources,
		},
		{
			ID: "SOL505", Name: "prometheus-rules", Group: GroupMonitoring, Severity: report.SeverityError,
			Summary:     "Every PrometheusRule has well-formed groups, rules and expressions.",
			Explanation: "Prometheus refuses the whole file for one bad rule. Groups need different names; a rule is either an alert or a recording and has an expression; durations are numbers with units. Of expressions, brackets, quotes and durations are checked, not the whole grammar of PromQL.",
			Bad:         "- {alert: Down, expr: \"sum(rate(up[5m])\"}", Good: "- {alert: Down, expr: \"sum(rate(up[5m]))\"}",
			check: checkPrometheusRules,
		},
		{
			ID: "SOL506", Name: "config-map-size", Group: GroupMonitoring, Severity: report.SeverityError,
			Summary:     "Every dashboard fits into a ConfigMap.",
			Explanation: "A ConfigMap holds 1 MiB, and dashboards are kept in ConfigMaps. From three quarters of that on this is a warning, above it an error.",
			Bad:         "monitoring/dashboards/all.json of 2 MiB", Good: "monitoring/dashboards/overview.json and details.json",
			check: checkConfigMaps,
		},
		{
			ID: "SOL511", Name: "ui-service", Group: GroupMonitoring, Severity: report.SeverityWarning,
			Summary:     "Every workload of the user interface has a Service.",
			Explanation: "People reach the user interface through an Ingress, and that through a Service whose selector matches the labels of the pods.",
			Bad:         "# ui/ui.yaml holds a Deployment only", Good: "kind: Service\nspec: {selector: {app: web-ui}, ports: [{port: 80, targetPort: http}]}",
			check: checkUIService,
		},
		{
			ID: "SOL512", Name: "ui-probes", Group: GroupMonitoring, Severity: report.SeverityWarning,
			Summary:     "Every container of the user interface has a readiness probe.",
			Explanation: "Without one, people are sent to pods that do not answer yet.",
			Bad:         "containers: [{name: ui, image: …}]", Good: "readinessProbe: {httpGet: {path: /readyz, port: http}}",
			check: checkUIProbes,
		},
		{
			ID: "SOL513", Name: "ui-rights", Group: GroupMonitoring, Severity: report.SeverityError,
			Summary:     "The user interface needs no rights on the whole cluster.",
			Explanation: "It serves one namespace. ClusterRoles and ClusterRoleBindings in ui/ reach all of them; with a ClusterRoleBinding, whoever breaks into the user interface has what it names everywhere.",
			Bad:         "kind: ClusterRoleBinding", Good: "kind: RoleBinding",
			check: checkUIRights,
		},
		{
			ID: "SOL514", Name: "ui-image", Group: GroupMonitoring, Severity: report.SeverityError,
			Summary:     "Images in ui/ are named with {{ repository }}.",
			Explanation: "The registry that serves the archive has another name at every site. MetalK8s fills in the variable repository; any other name is pulled from where it says, which fails without internet. An image with an origin is a warning: it can be pulled where original names are mirrored.",
			Bad:         "image: docker.io/acme/web-ui:1.0.0", Good: "image: \"{{ repository }}/web-ui:1.0.0\"",
			check: checkUIImages,
		},
	}
}
