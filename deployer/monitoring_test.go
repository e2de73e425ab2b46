package deployer_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	authorization "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster/clustertest"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/plan"
	monitoring "github.com/solutionctl/solutionctl/deployer/site"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// monitored is a shop with a rule and a dashboard.
func monitored() deployertest.Content {
	c := rules("")
	c.Files["monitoring/dashboards/shop.json"] = `{"title": "Shop"}`
	return c
}

// TestConfigureMonitoring checks that the configuration applies to later deployments, and that existing ones are reported.
func TestConfigureMonitoring(t *testing.T) {
	b := deployertest.New(t)
	b.MonitoringKinds("PrometheusRule")
	b.Server.Put(t, "{apiVersion: v1, kind: Namespace, metadata: {name: monitoring}}")
	b.Added(shop, "1.0.0", monitored())
	folder, namespace := "grafana_folder", "monitoring"
	options := monitoring.Options{
		Labels: []string{"release=kps"}, RuleLabels: []string{"role=alert-rules"}, DashboardLabels: []string{"grafana_dashboard=yes"},
		FolderAnnotation: &folder, Namespace: &namespace, DryRun: true,
	}
	b.Writes()
	planned, err := b.ConfigureMonitoring(t.Context(), options)
	if err != nil || planned.Labels["release"] != "kps" || len(b.Writes()) > 0 {
		t.Errorf("a dry run: %+v, %v", planned, err)
	}
	options.DryRun = false
	done := configure(b, options)
	deployertest.Valid(t, "monitoring", done)
	wantWords(t, done.Notices,
		"what is deployed in "+site+" is as it was until this is run again: solutionctl deploy add ENVIRONMENT shop 1.0.0",
		"what is deployed in the whole cluster is as it was until this is run again: solutionctl deploy activate shop 1.0.0")
	must(b, add("1.0.0"))
	must(b, activate("1.0.0"))
	labels := b.Server.Object("PrometheusRule", site, shop).GetLabels()
	if labels["release"] != "kps" || labels["role"] != "alert-rules" {
		t.Errorf("the rule has the labels %v", labels)
	}
	dashboard := b.Server.Object("ConfigMap", "monitoring", "shop-dashboard-shop")
	if dashboard == nil || dashboard.GetLabels()["grafana_dashboard"] != "yes" || dashboard.GetAnnotations()["grafana_folder"] == "" {
		t.Errorf("the dashboard is %v", dashboard)
	}
	if b.Server.Object("ConfigMap", "shop-system", "shop-dashboard-shop") != nil {
		t.Error("it is still where it was")
	}
	nowhere := ""
	configure(b, monitoring.Options{Labels: []string{"release-"}, Namespace: &nowhere})
	if left, err := b.Site.Monitoring(t.Context()); err != nil || len(left.Labels) > 0 || left.RuleLabels["role"] != "alert-rules" || left.Dashboards.Namespace != "" {
		t.Errorf("left: %+v, %v", left, err)
	}
}

// TestDashboardsOfTheSite checks that only a dashboard goes without an approval to the namespace that the site has for them: Grafana also acts on
// other ConfigMaps there.
func TestDashboardsOfTheSite(t *testing.T) {
	b := deployertest.New(t)
	b.Put(neighbourNamespace())
	namespace := neighbour
	configure(b, monitoring.Options{Namespace: &namespace})
	content := elsewhere("manifests: components/part.yaml", map[string]string{
		"components/part.yaml":            "{apiVersion: v1, kind: ConfigMap, metadata: {name: shop-dashboard-source, labels: {grafana_datasource: '1'}}, data: {a.yaml: 'datasources: []'}}\n",
		"monitoring/dashboards/shop.json": `{"title": "Shop"}`,
	})
	b.Imported(shop, "1.0.0", content)
	_, err := b.Activate(t.Context(), deployer.ActivateOptions{Solution: shop, Version: "1.0.0"})
	deployertest.Refused(t, err, report.Refused, "objects-elsewhere:ConfigMap/team-b/shop-dashboard-source")
	missing, ok := errors.AsType[*plan.PowersError](err)
	if !ok || len(missing.Powers) != 1 {
		t.Errorf("%v asks for other powers", err)
	}
}

// TestMonitoringNotSelected checks that objects that no Prometheus selects are reported in the plan and in the status, and that the
// Solution counts as ready all the same.
func TestMonitoringNotSelected(t *testing.T) {
	b := deployertest.New(t)
	b.MonitoringKinds("PrometheusRule", "Prometheus")
	b.Server.Put(t, deployertest.Prometheus)
	b.Activated(shop, "1.0.0", rules(""))
	const lacks = "no Prometheus selects PrometheusRule " + site + "/shop: Prometheus monitoring/kps wants its labels release=kps and role=alert-rules"
	const cure = "solutionctl deploy monitoring config --rule-label release=kps --rule-label role=alert-rules"
	wantWords(t, must(b, add("1.0.0")).Notices, lacks, cure)
	reasons := func() (reasons []string) {
		t.Helper()
		status, err := b.Survey.Status(t.Context(), survey.StatusOptions{})
		if err != nil || !status.Ready {
			t.Errorf("%+v, %v", status, err)
		}
		return schema.Sentences(status.Environments[0].Namespaces[0].Deployments[0].Reasons)
	}
	wantWords(t, reasons(), lacks, cure)
	configure(b, monitoring.Options{Detect: true})
	wantWords(t, reasons(), lacks, "it is recorded, and comes when the Solution is deployed there again")
	if notices := must(b, add("1.0.0")).Notices; strings.Contains(strings.Join(notices, "\n"), "no Prometheus") {
		t.Errorf("it is selected, and it says %q", notices)
	}
	if left := reasons(); len(left) > 0 {
		t.Errorf("it is selected, and the status says %q", left)
	}
}

// TestBlindPrometheus checks that missing rights of the Prometheus that selects a monitor are reported, unless another one has them or the
// rights are unknown.
func TestBlindPrometheus(t *testing.T) {
	const account = "system:serviceaccount:monitoring:prometheus-k8s"
	server := func(name, account string) string {
		return "{apiVersion: monitoring.coreos.com/v1, kind: Prometheus, metadata: {name: " + name + ", namespace: monitoring}, spec: {serviceAccountName: " + account +
			", serviceMonitorSelector: {}, serviceMonitorNamespaceSelector: {}}}"
	}
	const blindNotice = "Prometheus monitoring/k8s selects ServiceMonitor " + site + "/shop and finds nothing there: its account monitoring/prometheus-k8s has no permission to list the pods of namespace " + site
	for name, test := range map[string]struct {
		may   func(user string, a authorization.ResourceAttributes) bool
		more  string
		blind bool
	}{
		"it may": {may: func(user string, a authorization.ResourceAttributes) bool {
			return user == account && a.Namespace == ""
		}},
		"it may there": {may: func(user string, a authorization.ResourceAttributes) bool {
			return user == account && a.Namespace == site
		}},
		"it may elsewhere": {may: func(_ string, a authorization.ResourceAttributes) bool { return a.Namespace == "monitoring" }, blind: true},
		"another one may": {
			may:  func(user string, _ authorization.ResourceAttributes) bool { return strings.HasSuffix(user, ":other") },
			more: server("other", "other"),
		},
		"its rights are unknown": {},
	} {
		t.Run(name, func(t *testing.T) {
			b := deployertest.New(t)
			b.MonitoringKinds("ServiceMonitor", "Prometheus")
			b.Server.Put(t, "{apiVersion: v1, kind: Namespace, metadata: {name: monitoring}}\n---\n"+server("k8s", "prometheus-k8s")+"\n---\n"+test.more)
			b.Server.OthersMay = test.may
			if test.may == nil {
				b.Server.Answer = func(w http.ResponseWriter, r *http.Request) bool {
					if !strings.HasSuffix(r.URL.Path, "/subjectaccessreviews") {
						return false
					}
					clustertest.Fail(w, apierrors.NewForbidden(kube.GroupResource{}, "", errors.New(`User "jane" cannot create resource "subjectaccessreviews" in API group "authorization.k8s.io"`)))
					return true
				}
			}
			b.Activated(shop, "1.0.0", deployertest.Content{Files: map[string]string{
				"monitoring/monitor.yaml": "apiVersion: monitoring.coreos.com/v1\nkind: ServiceMonitor\nmetadata: {name: shop}\nspec: {selector: {}, endpoints: []}\n",
			}})
			text := strings.Join(must(b, add("1.0.0")).Notices, "\n")
			if strings.Contains(text, blindNotice) != test.blind || strings.Contains(text, "finds nothing") != test.blind || strings.Contains(text, `resources: ["endpointslices"]`) != test.blind {
				t.Errorf("it says %q", text)
			}
		})
	}
}

func configure(b *deployertest.Bed, o monitoring.Options) *schema.MonitoringReport {
	b.Helper()
	done, err := b.ConfigureMonitoring(b.Context(), o)
	if err != nil {
		b.Fatal(err)
	}
	return done
}

// wantWords wants each text in one of the notices.
func wantWords(t *testing.T, notices []string, words ...string) {
	t.Helper()
	for _, want := range words {
		if !strings.Contains(strings.Join(notices, "\n"), want) {
			t.Errorf("%q is not in %q", want, notices)
		}
	}
}
