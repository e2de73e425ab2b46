package render

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/schema"
)

const monitoringGroup = "monitoring.coreos.com"

// monitored adds to objects of the Prometheus operator the label by which MetalK8s selects them, unless the archive
// sets it, and the labels that the site's Prometheus selects, which the author of an archive does not know.
func (r *renderer) monitored(o *unstructured.Unstructured) *unstructured.Unstructured {
	if o.GroupVersionKind().Group != monitoringGroup {
		return r.shown(o)
	}
	labels := map[string]string{"metalk8s.scality.com/monitor": ""}
	maps.Copy(labels, o.GetLabels())
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

// annotationFolder is the folder for a dashboard, as the sidecar of MetalK8s' Grafana reads it.
const annotationFolder = "metalk8s.scality.com/grafana-folder-name"

// shown gives a dashboard the labels by which the sidecar of the site finds it, and the folder of the Solution, unless the archive
// has one.
func (r *renderer) shown(o *unstructured.Unstructured) *unstructured.Unstructured {
	labels := o.GetLabels()
	if _, is := labels[schema.LabelDashboard]; !is || o.GetKind() != "ConfigMap" {
		return o
	}
	maps.Copy(labels, r.s.Monitoring.Dashboards.Labels)
	o.SetLabels(labels)
	annotations := map[string]string{annotationFolder: r.p.Solution.DisplayName()}
	if another := r.s.Monitoring.Dashboards.FolderAnnotation; another != "" {
		annotations[another] = r.p.Solution.DisplayName()
	}
	maps.Copy(annotations, o.GetAnnotations())
	o.SetAnnotations(annotations)
	return o
}
