package render

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const monitoringGroup = "monitoring.coreos.com"

// monitored gives objects of the Prometheus operator the label by which MetalK8s selects them, unless the archive has it, and
// those that a Prometheus selects what the site asks for: it knows its Prometheus, and the author of an archive does not.
func (r *renderer) monitored(o *unstructured.Unstructured) *unstructured.Unstructured {
	if o.GroupVersionKind().Group != monitoringGroup {
		return o
	}
	labels := maps.Clone(o.GetLabels())
	if labels == nil {
		labels = map[string]string{}
	}
	const metalk8s = "metalk8s.scality.com/monitor"
	if _, has := labels[metalk8s]; !has {
		labels[metalk8s] = ""
	}
	switch o.GetKind() {
	case "PrometheusRule":
		maps.Copy(labels, r.s.Monitoring.Labels)
		maps.Copy(labels, r.s.Monitoring.RuleLabels)
	case "ServiceMonitor", "PodMonitor", "Probe", "ScrapeConfig":
		maps.Copy(labels, r.s.Monitoring.Labels)
	}
	o.SetLabels(labels)
	return o
}
