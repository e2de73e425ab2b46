package deployer

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// grafanas finds what Grafana's charts deploy.
const grafanas = "app.kubernetes.io/name=grafana"

// detectSidecar sets what the sidecar of Grafana's charts looks for, and tells whether there is one. Who may not look for it is told.
func (d *Deployer) detectSidecar(ctx context.Context, next *schema.MonitoringReport) (found bool, err error) {
	for _, kind := range []kube.GroupVersionKind{cluster.DeploymentKind, {Group: "apps", Version: "v1", Kind: "StatefulSet"}} {
		for workload, err := range d.Cluster.List(ctx, kind, "", metav1.ListOptions{LabelSelector: grafanas}) {
			if report.CodeOf(err) == report.Forbidden {
				next.Notices = append(next.Notices, "which dashboards Grafana looks for is not known, as you may not list every "+kind.Kind+": say it with --dashboard-label, --folder-annotation and --dashboard-namespace")
				return false, nil
			}
			if err != nil {
				return false, fmt.Errorf("detect what Grafana looks for: %w", err)
			}
			if settings := sidecarOf(workload); settings != nil && !found {
				workload.SetGroupVersionKind(kind)
				if err := takeSidecar(next, workload, settings); err != nil {
					return false, err
				}
				found = true
			}
		}
	}
	return found, nil
}

// sidecarOf is the environment of the container that collects dashboards, nil where there is none.
func sidecarOf(workload *unstructured.Unstructured) map[string]string {
	containers, _, _ := unstructured.NestedSlice(workload.Object, "spec", "template", "spec", "containers")
	for _, c := range containers {
		container, _ := c.(map[string]any)
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

// takeSidecar records what differs from what every dashboard has.
func takeSidecar(next *schema.MonitoringReport, workload *unstructured.Unstructured, settings map[string]string) error {
	var said []string
	label := settings["LABEL"] + "=" + cmp.Or(settings["LABEL_VALUE"], "1")
	if label != "grafana_dashboard=1" {
		labels, err := WithLabels(next.Dashboards.Labels, []string{label})
		if err != nil {
			return err
		}
		next.Dashboards.Labels, said = labels, append(said, "the label "+label)
	}
	if folder := settings["FOLDER_ANNOTATION"]; folder != "" && folder != "metalk8s.scality.com/grafana-folder-name" {
		if err := checkName("annotation", folder, validation.IsQualifiedName); err != nil {
			return err
		}
		next.Dashboards.FolderAnnotation, said = folder, append(said, "the folder in annotation "+folder)
	}
	if namespaces := strings.Split(cmp.Or(settings["NAMESPACE"], workload.GetNamespace()), ","); !slices.Contains(namespaces, "ALL") {
		if err := checkName("namespace", namespaces[0], validation.IsDNS1123Label); err != nil {
			return err
		}
		next.Dashboards.Namespace, said = namespaces[0], append(said, "namespace "+namespaces[0]+" only")
	}
	if len(said) > 0 {
		next.Notices = append(next.Notices, fmt.Sprintf("the sidecar of %s looks for dashboards by %s", cluster.NameOf(workload), strings.Join(said, ", ")))
	}
	return nil
}
