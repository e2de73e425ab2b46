package lint

import (
	"context"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/lint/target"
	"github.com/solutionctl/solutionctl/schema/report"
)

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

func checkScraped(_ context.Context, t *subject, r *reporter) {
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
	r.Report(target.InFile("monitoring"), "add monitoring/servicemonitor.yaml, or set spec.operator.metrics", "Prometheus does not scrape this Solution: it has no ServiceMonitor and no PodMonitor, and its operator has no permission to create one")
}

func checkMonitorTargets(_ context.Context, t *subject, r *reporter) {
	operatorCreates := t.hasOperator() && permits(t.grantedRules(true), "", "services", "create")
	for _, monitor := range t.named(monitoringGroup, "ServiceMonitor") {
		if lookup(monitor.Value, "spec", "selector", "matchExpressions") != nil {
			continue // labels alone do not decide it
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

func reportPorts(r *reporter, monitor *target.Object, services []*target.Object) {
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

// subset reports whether labels, which may be of any type, hold every wanted one.
func subset(wanted map[string]any, labels any) bool {
	have, _ := labels.(map[string]any)
	for key, value := range wanted {
		if have[key] != value {
			return false
		}
	}
	return true
}

// The size of a ConfigMap, and from where on it is close.
const (
	maxConfigMap   = 1 << 20
	closeConfigMap = maxConfigMap / 4 * 3
)

func checkConfigMaps(_ context.Context, t *subject, r *reporter) {
	for _, file := range t.Files() {
		if isDashboard(file.Path) {
			reportSize(r, func() target.Place { return target.InFile(file.Path) }, file.Size)
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
		reportSize(r, func() target.Place { return o.At("data") }, size)
	}
}

// reportSize reports what is too large at a place, which is only looked up then.
func reportSize(r *reporter, at func() target.Place, size int64) {
	switch {
	case size > maxConfigMap:
		r.Report(at(), "take it apart", "%d bytes do not fit into a ConfigMap, which holds %d", size, maxConfigMap)
	case size > closeConfigMap:
		r.ReportAs(report.SeverityWarning, at(), "take it apart", "%d bytes are close to the size of a ConfigMap, %d", size, maxConfigMap)
	}
}
