package deployer

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/prometheus"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// MonitoringOptions change what is recorded of the site's Prometheus and Grafana. What is nil or empty stays. Labels are
// KEY=VALUE, or KEY- for one that goes.
type MonitoringOptions struct {
	Labels           []string // of monitors and rules
	RuleLabels       []string // of rules besides
	DashboardLabels  []string
	FolderAnnotation *string // "" for none but MetalK8s'
	Namespace        *string // of dashboards; "" for that of each Solution
	// Prometheus are the URLs inside the cluster of who is asked for alerts, in place of those that are recorded; one that is empty
	// is none.
	Prometheus []string
	Detect     bool // ask the cluster's Prometheus objects and Grafana's sidecar what they look for; what is above wins
	DryRun     bool // only judge
}

// Monitoring tells what is recorded of the site's Prometheus and Grafana.
func (d *Deployer) Monitoring(ctx context.Context) (*schema.MonitoringReport, error) {
	known, err := d.Records.Monitoring(ctx)
	if err != nil {
		return nil, err
	}
	return &schema.MonitoringReport{Monitoring: known, Notices: []string{}}, nil
}

// ConfigureMonitoring records what the site's Prometheus and Grafana look for, and tells which Solutions have to be deployed
// again to get it. A dry run takes no lock: a lock is a change, too.
func (d *Deployer) ConfigureMonitoring(ctx context.Context, o MonitoringOptions) (result *schema.MonitoringReport, err error) {
	configure := func(ctx context.Context) error {
		known, failure := d.Records.Monitoring(ctx)
		if failure != nil {
			return failure
		}
		if result, failure = d.monitoringAfter(ctx, known, o); failure != nil || o.DryRun {
			return failure
		}
		return d.Records.SetMonitoring(ctx, result.Monitoring)
	}
	if o.DryRun {
		err = configure(ctx)
	} else {
		err = d.Locked(ctx, configure, clusterLock)
	}
	if err != nil {
		return nil, err
	}
	return result, nil
}

// monitoringAfter returns what is to be recorded, and what there is to say about it.
func (d *Deployer) monitoringAfter(ctx context.Context, known schema.Monitoring, o MonitoringOptions) (*schema.MonitoringReport, error) {
	next := &schema.MonitoringReport{Monitoring: known, Notices: []string{}}
	if o.Detect {
		if err := d.detectMonitoring(ctx, next); err != nil {
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
		if err := d.checkNamespace(ctx, *o.Namespace); err != nil {
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
	outdated, err := d.outdatedMonitoring(ctx, known, next.Monitoring)
	next.Notices = append(next.Notices, outdated...)
	return next, err
}

// WithLabels returns labels after changes, KEY=VALUE or KEY-, nil for none.
func WithLabels(labels map[string]string, changes []string) (map[string]string, error) {
	next := map[string]string{}
	maps.Copy(next, labels)
	for _, change := range changes {
		key, value, sets := strings.Cut(change, "=")
		if name, goes := strings.CutSuffix(change, "-"); goes && !sets && name != "" {
			delete(next, name)
			continue
		}
		if !sets || key == "" {
			return nil, report.Errorf(report.Usage, "label %q is neither KEY=VALUE nor KEY-", change)
		}
		if err := checkName("label", key, validation.IsQualifiedName); err != nil {
			return nil, err
		}
		if err := checkName("value of label "+key, value, validation.IsValidLabelValue); err != nil {
			return nil, err
		}
		if isOurLabel(key) {
			return nil, report.Errorf(report.Usage, "label %s tells whose an object is: it cannot have another value", key).
				WithHint("give the Prometheus or the Grafana of the site a selector with another label")
		}
		next[key] = value
	}
	if len(next) == 0 {
		return nil, nil
	}
	return next, nil
}

// isOurLabel tells labels by which objects of Solutions are found again.
func isOurLabel(key string) bool {
	return strings.HasPrefix(key, "solutionctl.io/") || key == "app.kubernetes.io/managed-by" || key == "app.kubernetes.io/part-of"
}

// checkName holds a text against a rule of Kubernetes; an empty one takes something away.
func checkName(what, text string, judge func(string) []string) error {
	if text == "" {
		return nil
	}
	if problems := judge(text); len(problems) > 0 {
		return report.Errorf(report.Usage, "%s %q: %s", what, text, problems[0])
	}
	return nil
}

// checkNamespace refuses a namespace for dashboards that is not there: the next activation would fail, and whoever activates may not be
// who can mend it.
func (d *Deployer) checkNamespace(ctx context.Context, name string) error {
	if err := checkName("namespace", name, validation.IsDNS1123Label); err != nil || name == "" {
		return err
	}
	found, err := d.Cluster.Get(ctx, cluster.NamespaceKind, "", name)
	if report.CodeOf(err) == report.Forbidden || found != nil {
		return nil
	}
	if err != nil {
		return err
	}
	return report.Errorf(report.NotFound, "namespace %s is not there", name).WithHint("name the one in which the Grafana of the site looks for dashboards")
}

// outdatedMonitoring tells which Solutions have monitors, rules or dashboards that get what changed only when they are
// deployed again.
func (d *Deployer) outdatedMonitoring(ctx context.Context, known, next schema.Monitoring) ([]string, error) {
	monitors := !maps.Equal(known.Labels, next.Labels) || !maps.Equal(known.RuleLabels, next.RuleLabels)
	dashboards := !maps.Equal(known.Dashboards.Labels, next.Dashboards.Labels) ||
		known.Dashboards.FolderAnnotation != next.Dashboards.FolderAnnotation || known.Dashboards.Namespace != next.Dashboards.Namespace
	if !monitors && !dashboards {
		return nil, nil
	}
	states, err := d.Records.Engine.States(ctx)
	if err != nil {
		return nil, err
	}
	places := map[string][]string{} // namespaces, by the command
	for _, s := range states {
		version, deployed := records.DeployedVersion(s)
		affected := slices.ContainsFunc(records.ObjectsOf(s), func(o schema.DeployedObject) bool {
			return monitors && strings.HasPrefix(o.APIVersion, "monitoring.coreos.com/") ||
				dashboards && s.Namespace == "" && o.Kind == "ConfigMap" && strings.HasPrefix(o.Name, s.Name+"-dashboard-")
		})
		if !deployed || !affected {
			continue
		}
		again := report.Run("deploy add", "ENVIRONMENT", s.Name, version)
		if s.Namespace == "" {
			again = report.Run("deploy activate", s.Name, version)
		}
		if command := again.String(); !slices.Contains(places[command], s.Namespace) {
			places[command] = append(places[command], s.Namespace)
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

// detectMonitoring adds the labels without which no Prometheus of the cluster selects what Solutions bring, and what the sidecar of its
// Grafana looks for.
func (d *Deployer) detectMonitoring(ctx context.Context, next *schema.MonitoringReport) error {
	servers, err := d.Survey.PrometheusServers(ctx)
	if err != nil {
		return fmt.Errorf("detect what Prometheus selects: %w", err)
	}
	grafana, err := d.detectSidecar(ctx, next)
	if err != nil {
		return err
	}
	if len(servers) == 0 && !grafana {
		return report.Errorf(report.NotFound, "this cluster has no Prometheus object to ask").
			WithHint("say which labels its Prometheus selects with --label")
	}
	for _, kind := range prometheus.Selected() {
		sample := &unstructured.Unstructured{}
		sample.SetGroupVersionKind(kind)
		labels, of := map[string]string{"metalk8s.scality.com/monitor": ""}, &next.Labels
		maps.Copy(labels, next.Labels)
		if kind.Kind == prometheus.Rule {
			maps.Copy(labels, next.RuleLabels)
			of = &next.RuleLabels
		}
		sample.SetLabels(labels)
		v := prometheus.Judge(servers, prometheus.Object{Unstructured: sample})
		var changes []string
		for _, key := range slices.Sorted(maps.Keys(v.Labels)) {
			changes = append(changes, key+"="+v.Labels[key])
		}
		if len(changes) > 0 {
			next.Notices = append(next.Notices, fmt.Sprintf("%s selects each %s with %s", v.Server, kind.Kind, strings.Join(changes, ", ")))
		}
		if *of, err = WithLabels(*of, changes); err != nil {
			return err
		}
	}
	return nil
}

// remark notes which monitors and rules of releases no Prometheus will select.
func (d *Deployer) remark(ctx context.Context, t *task, releases ...engine.Release) error {
	var objects []*unstructured.Unstructured
	for _, r := range releases {
		objects = append(objects, r.Objects...)
	}
	remarks, err := d.Survey.Remarks(ctx, objects)
	t.notice(remarks...)
	return err
}
