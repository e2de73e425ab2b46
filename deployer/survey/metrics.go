package survey

import (
	"time"

	"github.com/solutionctl/solutionctl/deployer/metrics"
	"github.com/solutionctl/solutionctl/schema"
)

// WriteMetrics writes a status as metrics. There are at most four series for each Solution in a namespace: while an
// operation is pending, nothing counts as drifted or waiting. Cluster-wide releases have an empty environment and
// namespace. Drift has a series only if the status includes it.
func WriteMetrics(page *metrics.Page, s *schema.Status, looked time.Time) {
	page.Family("solutionctl_status_timestamp_seconds", metrics.Gauge, "When the cluster was looked at.").Add(float64(looked.Unix()))
	page.Family("solutionctl_problems", metrics.Gauge, "Problems of the cluster as a whole.").Add(float64(len(s.Problems)))
	archives := page.Family("solutionctl_imported_archives", metrics.Gauge, "Versions of a Solution that were imported.")
	for _, solution := range s.Solutions {
		archives.Add(float64(len(solution.Versions)), "solution", solution.Name)
	}
	active := page.Family("solutionctl_active_version_info", metrics.Gauge, "The version of a Solution that is active.")
	for _, solution := range s.Solutions {
		if solution.Active != "" {
			active.Add(1, "solution", solution.Name, "version", solution.Active)
		}
	}
	environments := page.Family("solutionctl_environment_ready", metrics.Gauge, "Whether everything in an environment works.")
	for _, e := range s.Environments {
		environments.Add(truth(IsEnvironmentReady(e)), "environment", e.Name)
	}
	var deployments []placed
	for d := range s.Deployments() {
		deployments = append(deployments, placed{d, []string{"environment", d.Environment, namespaceLabel, d.Namespace, "solution", d.Solution}})
	}
	writeDeployments(page, deployments)
}

// namespaceLabel is not called namespace: that is where node_exporter runs, once the Prometheus operator has scraped it.
const namespaceLabel = "environment_namespace"

// placed is a Solution in a namespace of an environment.
type placed struct {
	schema.PlacedDeployment
	labels []string // without spare capacity: append copies
}

func writeDeployments(page *metrics.Page, deployments []placed) {
	each := func(name, help string, write func(f metrics.Family, d placed)) {
		family := page.Family("solutionctl_"+name, metrics.Gauge, help)
		for _, d := range deployments {
			write(family, d)
		}
	}
	each("deployment_ready", "Whether a Solution works.", func(f metrics.Family, d placed) {
		f.Add(truth(isWell(d.Health)), d.labels...)
	})
	each("deployment_info", "The version of a Solution that is there, the one that is asked for, and how it is.", func(f metrics.Family, d placed) {
		f.Add(1, append(d.labels, "version", d.Version, "wanted", d.Wanted, "health", string(d.Health))...)
	})
	each("deployment_drifted_objects", "Objects that others have changed since they were deployed.", func(f metrics.Family, d placed) {
		if d.Drift != nil {
			f.Add(float64(len(d.Drift)), d.labels...)
		}
	})
	each("deployment_waiting_objects", "Objects that were not created, because the cluster does not have their kinds.", func(f metrics.Family, d placed) {
		if len(d.Waiting) > 0 {
			f.Add(float64(len(d.Waiting)), d.labels...)
		}
	})
	each("pending_operation_start_timestamp_seconds", "When an operation was begun that has not ended.", func(f metrics.Family, d placed) {
		if p := d.Pending; p != nil {
			f.Add(float64(p.Started.Unix()), append(d.labels, "operation", p.Operation)...)
		}
	})
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
