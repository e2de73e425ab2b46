// Package site knows how the Prometheus and the Grafana of a site find what Solutions deploy: which labels, annotations and namespaces they
// select, and which monitors, rules and dashboards of a plan they would not show.
//
// Start with [Site.Configure], which records the selection, and detects it if asked. [Site.Remarks], [Site.CheckDashboards] and
// [Site.MovedRules] check the releases of a plan.
package site

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Site is the monitoring of a cluster. All fields are required.
type Site struct {
	Cluster *cluster.Cluster
	Records *records.Records
	Survey  *survey.Survey
}

// Options change what is recorded of the site's Prometheus and Grafana. Nil or empty fields leave it as it is. Labels are KEY=VALUE, or
// KEY- to remove one.
type Options struct {
	Labels           []string // of monitors and rules
	RuleLabels       []string // of rules, in addition
	DashboardLabels  []string
	FolderAnnotation *string // "" for none but MetalK8s'
	Namespace        *string // of dashboards; "" for that of each Solution
	// Prometheus are the URLs inside the cluster of the servers that are asked for alerts; they replace the recorded ones. An empty URL
	// is ignored, so that a list of one removes all.
	Prometheus []string
	Detect     bool // read the selectors of the cluster's Prometheus objects and of Grafana's sidecar; the fields above win
	DryRun     bool // only check
}

// Monitoring returns what is recorded of the site's Prometheus and Grafana.
func (s *Site) Monitoring(ctx context.Context) (*schema.MonitoringReport, error) {
	known, err := s.Records.Monitoring(ctx)
	if err != nil {
		return nil, err
	}
	return &schema.MonitoringReport{Monitoring: known, Notices: []string{}}, nil
}

// Configure records what the site's Prometheus and Grafana select, and returns it with the Solutions that must be deployed again to get
// it. The caller holds the lock of the cluster, except for a dry run.
func (s *Site) Configure(ctx context.Context, o Options) (*schema.MonitoringReport, error) {
	known, err := s.Records.Monitoring(ctx)
	if err != nil {
		return nil, err
	}
	next, err := s.changed(ctx, known, o)
	if err != nil || o.DryRun {
		return next, err
	}
	return next, s.Records.SetMonitoring(ctx, next.Monitoring)
}

// changed returns what is to be recorded in place of known, with notices.
func (s *Site) changed(ctx context.Context, known schema.Monitoring, o Options) (*schema.MonitoringReport, error) {
	next := &schema.MonitoringReport{Monitoring: known, Notices: []string{}}
	if o.Detect {
		if err := s.detect(ctx, next); err != nil {
			return nil, err
		}
	}
	for _, of := range []struct {
		labels  *map[string]string
		changes []string
	}{{&next.Labels, o.Labels}, {&next.RuleLabels, o.RuleLabels}, {&next.Dashboards.Labels, o.DashboardLabels}} {
		labels, err := WithLabels(*of.labels, of.changes)
		if err != nil {
			return nil, err
		}
		*of.labels = labels
	}
	if o.FolderAnnotation != nil {
		next.Dashboards.FolderAnnotation = *o.FolderAnnotation
		if err := checkName("annotation", *o.FolderAnnotation, validation.IsQualifiedName); err != nil {
			return nil, err
		}
	}
	if o.Namespace != nil {
		next.Dashboards.Namespace = *o.Namespace
		if err := s.checkNamespace(ctx, *o.Namespace); err != nil {
			return nil, err
		}
	}
	if o.Prometheus != nil {
		next.Prometheus = nil
	}
	for _, url := range o.Prometheus {
		if url == "" {
			continue
		}
		service, err := schema.ParsePrometheusService(url)
		if err != nil {
			return nil, err
		}
		next.Prometheus = append(next.Prometheus, service)
	}
	outdated, err := s.outdated(ctx, known, next.Monitoring)
	next.Notices = append(next.Notices, outdated...)
	return next, err
}

// checkNamespace refuses a namespace for dashboards that does not exist: the next activation would fail, perhaps for a user who cannot
// change the configuration.
func (s *Site) checkNamespace(ctx context.Context, name string) error {
	if err := checkName("namespace", name, validation.IsDNS1123Label); err != nil || name == "" {
		return err
	}
	found, err := s.Cluster.Get(ctx, cluster.NamespaceKind, "", name)
	if report.CodeOf(err) == report.Forbidden || found != nil {
		return nil
	}
	if err != nil {
		return err
	}
	return report.Errorf(report.NotFound, "namespace %s is not there", name).WithHint("name the one in which the Grafana of the site looks for dashboards")
}

// outdated returns a notice for each command that deploys again what has monitors, rules or dashboards with the former labels.
func (s *Site) outdated(ctx context.Context, known, next schema.Monitoring) ([]string, error) {
	monitors := !maps.Equal(known.Labels, next.Labels) || !maps.Equal(known.RuleLabels, next.RuleLabels)
	dashboards := !maps.Equal(known.Dashboards.Labels, next.Dashboards.Labels) ||
		known.Dashboards.FolderAnnotation != next.Dashboards.FolderAnnotation || known.Dashboards.Namespace != next.Dashboards.Namespace
	if !monitors && !dashboards {
		return nil, nil
	}
	states, err := s.Records.Engine.States(ctx)
	if err != nil {
		return nil, err
	}
	places := map[string][]string{} // namespaces, by the command
	for _, state := range states {
		version, deployed := records.DeployedVersion(state)
		affected := slices.ContainsFunc(records.ObjectsOf(state), func(o schema.DeployedObject) bool {
			return monitors && strings.HasPrefix(o.APIVersion, "monitoring.coreos.com/") ||
				dashboards && state.Namespace == "" && o.Kind == "ConfigMap" && strings.HasPrefix(o.Name, state.Name+"-dashboard-")
		})
		if !deployed || !affected {
			continue
		}
		again := report.Run("deploy add", "ENVIRONMENT", state.Name, version)
		if state.Namespace == "" {
			again = report.Run("deploy activate", state.Name, version)
		}
		if command := again.String(); !slices.Contains(places[command], state.Namespace) {
			places[command] = append(places[command], state.Namespace)
		}
	}
	var notices []string
	for _, command := range slices.Sorted(maps.Keys(places)) {
		where := "in the whole cluster"
		if list := places[command]; list[0] != "" {
			where = "in " + strings.Join(list, ", ")
		}
		notices = append(notices, fmt.Sprintf("what is deployed %s is as it was until this is run again: %s", where, command))
	}
	return notices, nil
}
