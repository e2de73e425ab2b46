package site

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/prometheus"
	"github.com/solutionctl/solutionctl/kube/pods"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// detect adds the labels without which no Prometheus of the cluster selects the monitors and rules of Solutions, and what the sidecar of
// its Grafana selects.
func (s *Site) detect(ctx context.Context, next *schema.MonitoringReport) error {
	servers, err := s.Survey.PrometheusServers(ctx)
	if err != nil {
		return fmt.Errorf("detect what Prometheus selects: %w", err)
	}
	grafana, err := s.detectSidecar(ctx, next)
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

// grafanas selects what Grafana's charts deploy.
const grafanas = "app.kubernetes.io/name=grafana"

// detectSidecar sets what the sidecar of Grafana's charts selects, and reports whether there is one. Without permission to list workloads
// it adds a notice.
func (s *Site) detectSidecar(ctx context.Context, next *schema.MonitoringReport) (found bool, err error) {
	for _, kind := range []kube.GroupVersionKind{cluster.DeploymentKind, {Group: "apps", Version: "v1", Kind: "StatefulSet"}} {
		for workload, err := range s.Cluster.List(ctx, kind, "", metav1.ListOptions{LabelSelector: grafanas}) {
			if report.CodeOf(err) == report.Forbidden {
				next.Notices = append(next.Notices, "it is not known which dashboards Grafana selects, as you have no permission to list every "+kind.Kind+": specify them with --dashboard-label, --folder-annotation and --dashboard-namespace")
				return false, nil
			}
			if err != nil {
				return false, fmt.Errorf("detect what Grafana looks for: %w", err)
			}
			if settings := sidecarOf(workload); settings != nil && !found {
				if err := useSidecar(next, workload, settings); err != nil {
					return false, err
				}
				found = true
			}
		}
	}
	return found, nil
}

// sidecarOf returns the environment variables of the container that collects dashboards; nil if there is none.
func sidecarOf(workload *unstructured.Unstructured) map[string]string {
	for _, container := range pods.Containers(workload.Object) {
		name, _ := container["name"].(string)
		list, _ := container["env"].([]any)
		settings := map[string]string{}
		for _, v := range list {
			variable, _ := v.(map[string]any)
			key, _ := variable["name"].(string)
			settings[key], _ = variable["value"].(string)
		}
		if strings.HasSuffix(name, "sc-dashboard") && settings["LABEL"] != "" {
			return settings
		}
	}
	return nil
}

// useSidecar sets what a sidecar selects where it differs from what every dashboard has.
func useSidecar(next *schema.MonitoringReport, workload *unstructured.Unstructured, settings map[string]string) error {
	var differences []string
	label := settings["LABEL"] + "=" + cmp.Or(settings["LABEL_VALUE"], "1")
	if label != "grafana_dashboard=1" {
		labels, err := WithLabels(next.Dashboards.Labels, []string{label})
		if err != nil {
			return err
		}
		next.Dashboards.Labels, differences = labels, append(differences, "the label "+label)
	}
	if folder := settings["FOLDER_ANNOTATION"]; folder != "" && folder != "metalk8s.scality.com/grafana-folder-name" {
		if err := checkName("annotation", folder, validation.IsQualifiedName); err != nil {
			return err
		}
		next.Dashboards.FolderAnnotation, differences = folder, append(differences, "the folder in annotation "+folder)
	}
	if namespaces := strings.Split(cmp.Or(settings["NAMESPACE"], workload.GetNamespace()), ","); !slices.Contains(namespaces, "ALL") {
		if err := checkName("namespace", namespaces[0], validation.IsDNS1123Label); err != nil {
			return err
		}
		next.Dashboards.Namespace, differences = namespaces[0], append(differences, "namespace "+namespaces[0]+" only")
	}
	if len(differences) > 0 {
		next.Notices = append(next.Notices, fmt.Sprintf("the sidecar of %s looks for dashboards by %s", cluster.NameOf(workload), strings.Join(differences, ", ")))
	}
	return nil
}
