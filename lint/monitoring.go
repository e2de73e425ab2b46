package lint

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/lint/target"
	"github.com/solutionctl/solutionctl/schema/report"
)

func monitoringRules() []Rule {
	return []Rule{
		{ID: "SOL501", Name: "not-scraped", Group: GroupMonitoring, Severity: report.SeverityWarning, check: checkScraped},
		{ID: "SOL502", Name: "monitor-target", Group: GroupMonitoring, Severity: report.SeverityWarning, check: checkMonitorTargets},
		{ID: "SOL503", Name: "dashboard", Group: GroupMonitoring, Severity: report.SeverityError, check: checkDashboards},
		{ID: "SOL504", Name: "dashboard-data-source", Group: GroupMonitoring, Severity: report.SeverityWarning, check: checkDataSources},
		{ID: "SOL506", Name: "config-map-size", Group: GroupMonitoring, Severity: report.SeverityError, check: checkConfigMaps},
	}
}

const monitoringGroup = "monitoring.coreos.com"

// named returns the applied objects of an API group and kind.
func (t *subject) named(group, kind string) []*target.Object {
	var found []*target.Object
	for _, o := range t.Objects() {
		if o.Kind == kind && o.Group() == group && o.Part.Applied() {
			found = append(found, o)
		}
	}
	return found
}

func checkScraped(_ context.Context, t *subject, r *Reporter) {
	if !t.hasOperator() && len(t.pods()) == 0 {
		return // nothing runs
	}
	if t.Solution != nil && t.Solution.OperatorMetrics() != nil {
		return // the monitor is made when the operator is deployed
	}
	have := t.grantedRules(true)
	for _, kind := range []string{"ServiceMonitor", "PodMonitor"} {
		if len(t.named(monitoringGroup, kind)) > 0 || permits(have, monitoringGroup, strings.ToLower(kind)+"s", "create") {
			return
		}
	}
	r.Report(target.InFile("monitoring"), "add monitoring/servicemonitor.yaml, or set spec.operator.metrics", "nothing tells Prometheus of this Solution: there is no ServiceMonitor and no PodMonitor, and the operator may create none")
}

func checkMonitorTargets(_ context.Context, t *subject, r *Reporter) {
	operatorCreates := t.hasOperator() && permits(t.grantedRules(true), "", "services", "create")
	for _, monitor := range t.named(monitoringGroup, "ServiceMonitor") {
		if lookup(monitor.Value, "spec", "selector", "matchExpressions") != nil {
			continue // cannot be told by labels alone
		}
		labels, _ := lookup(monitor.Value, "spec", "selector", "matchLabels").(map[string]any)
		var services []*target.Object
		for _, service := range t.named("", "Service") {
			if subset(labels, lookup(service.Value, "metadata", "labels")) {
				services = append(services, service)
			}
		}
		if len(services) == 0 {
			if !operatorCreates {
				r.Report(monitor.At("spec.selector"), "label the Service", "no Service of the archive has the labels that %s selects", monitor)
			}
			continue
		}
		reportPorts(r, monitor, services)
	}
}

func reportPorts(r *Reporter, monitor *target.Object, services []*target.Object) {
	endpoints, _ := lookup(monitor.Value, "spec", "endpoints").([]any)
	for i, endpoint := range endpoints {
		port, _ := lookup(endpoint, "port").(string)
		if port == "" {
			continue
		}
		if !slices.ContainsFunc(services, func(s *target.Object) bool { return slices.Contains(portNames(s), port) }) {
			r.Report(monitor.At(pathOf("spec.endpoints", i)+".port"), "name a port of the Service", "%s has no port with the name %s", services[0], port)
		}
	}
}

func portNames(service *target.Object) []string {
	ports, _ := lookup(service.Value, "spec", "ports").([]any)
	var names []string
	for _, port := range ports {
		name, _ := lookup(port, "name").(string)
		names = append(names, name)
	}
	return names
}

// subset tells whether labels, which may be of any type, hold every wanted one.
func subset(wanted map[string]any, labels any) bool {
	have, _ := labels.(map[string]any)
	for key, value := range wanted {
		if have[key] != value {
			return false
		}
	}
	return true
}

func isDashboard(name string) bool {
	return strings.HasPrefix(name, "monitoring/dashboards/") && path.Ext(name) == ".json"
}

func checkDashboards(_ context.Context, t *subject, r *Reporter) {
	for _, file := range t.Files() {
		if !isDashboard(file.Path) {
			continue
		}
		dashboard, err := t.dashboard(file.Path)
		switch {
		case err != nil:
			r.Report(target.InFile(file.Path), "export the dashboard again", "not a JSON object: %v", err)
		case dashboard["title"] == nil && dashboard["dashboard"] != nil:
			r.Report(target.InFile(file.Path), "keep what is in the field dashboard only", "the dashboard is wrapped in a field named dashboard")
		default:
			if title, _ := dashboard["title"].(string); title == "" {
				r.Report(target.InFile(file.Path), "add a title", "the dashboard has no title")
			}
			if dashboard["panels"] == nil && dashboard["rows"] == nil {
				r.Report(target.InFile(file.Path), "add panels", "the dashboard has no panels")
			}
		}
	}
}

func (t *subject) dashboard(name string) (map[string]any, error) {
	data, err := t.Text(name)
	if err != nil {
		return nil, err
	}
	var dashboard map[string]any
	if err := json.Unmarshal(data, &dashboard); err != nil {
		return nil, err
	}
	if dashboard == nil {
		return nil, fmt.Errorf("it is null")
	}
	return dashboard, nil
}

func checkDataSources(_ context.Context, t *subject, r *Reporter) {
	for _, file := range t.Files() {
		if !isDashboard(file.Path) {
			continue
		}
		dashboard, err := t.dashboard(file.Path)
		if err != nil {
			continue // another rule reports it
		}
		var fixed []string
		walkDataSources(dashboard, func(at, name string) {
			if !strings.Contains(name, "$") && !strings.HasPrefix(name, "-- ") && name != "grafana" && name != "" {
				fixed = append(fixed, at+" = "+name)
			}
		})
		if len(fixed) > 0 {
			r.Report(target.Place{File: file.Path, Object: fixed[0]}, `refer to a variable of type datasource, as "${datasource}"`,
				"the dashboard names a data source of one Grafana (%s)", report.Count(len(fixed), "place"))
		}
	}
}

// walkDataSources finds every field "datasource" and calls see with its name or identifier.
func walkDataSources(dashboard any, see func(at, name string)) {
	walkFields(dashboard, "", 0, func(at, key string, value any) {
		if key != "datasource" {
			return
		}
		switch source := value.(type) {
		case string:
			see(at, source)
		case map[string]any:
			if uid, ok := source["uid"].(string); ok {
				see(at+".uid", uid)
			}
		}
	})
}

const maxDashboardDepth = 64

// The size of a ConfigMap, and from where on it is close.
const (
	maxConfigMap   = 1 << 20
	closeConfigMap = maxConfigMap / 4 * 3
)

func checkConfigMaps(_ context.Context, t *subject, r *Reporter) {
	for _, file := range t.Files() {
		if isDashboard(file.Path) {
			reportSize(r, target.InFile(file.Path), file.Size)
		}
	}
	for _, o := range t.named("", "ConfigMap") {
		size := int64(0)
		for _, field := range []string{"data", "binaryData"} {
			data, _ := lookup(o.Value, field).(map[string]any)
			for key, value := range data {
				text, _ := value.(string)
				size += int64(len(key) + len(text))
			}
		}
		reportSize(r, o.At("data"), size)
	}
}

func reportSize(r *Reporter, at target.Place, size int64) {
	switch {
	case size > maxConfigMap:
		r.Report(at, "take it apart", "%d bytes do not fit into a ConfigMap, which holds %d", size, maxConfigMap)
	case size > closeConfigMap:
		r.ReportAs(report.SeverityWarning, at, "take it apart", "%d bytes are close to the size of a ConfigMap, %d", size, maxConfigMap)
	}
}
