package schema

// Monitoring says what the Prometheus and the Grafana of a site look for. What is empty is as every Solution has it.
type Monitoring struct {
	// Labels are put on every monitor and every PrometheusRule of Solutions.
	Labels map[string]string `json:"labels,omitempty"`
	// RuleLabels are put on every PrometheusRule besides.
	RuleLabels map[string]string    `json:"ruleLabels,omitempty"`
	Dashboards MonitoringDashboards `json:"dashboards"`
}

// MonitoringDashboards says how Grafana finds the ConfigMaps of dashboards.
type MonitoringDashboards struct {
	Labels map[string]string `json:"labels,omitempty"`
	// FolderAnnotation is the annotation in which Grafana's sidecar looks for the folder.
	FolderAnnotation string `json:"folderAnnotation,omitempty"`
	// Namespace is where all of them go; empty for that of each Solution.
	Namespace string `json:"namespace,omitempty"`
}

// ClusterMonitoring is what all Solutions of a cluster have to know of its monitoring. It is stored in the ConfigMap
// solutionctl-system/monitoring, key monitoring.json.
type ClusterMonitoring struct {
	Stamp
	Monitoring
}

// MonitoringReport holds what is recorded of the monitoring of a cluster. `solutionctl deploy monitoring` prints it.
type MonitoringReport struct {
	Monitoring
	// Notices are what whoever runs the command should know, one sentence each.
	Notices []string `json:"notices"`
}
