package deployer_test

import (
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"

	authorization "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster/clustertest"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// operatorKinds are definitions of the Prometheus operator, as far as the API server in memory wants to know them.
func operatorKinds(t *testing.T, b *deployertest.Bed, kinds ...string) {
	t.Helper()
	for _, kind := range kinds {
		b.Server.Put(t, strings.NewReplacer("servicemonitor", strings.ToLower(kind), "ServiceMonitor", kind).Replace(serviceMonitors))
	}
	b.Cluster.Refresh()
}

// kps is the Prometheus of kube-prometheus-stack, as it comes.
const kps = `{apiVersion: v1, kind: Namespace, metadata: {name: monitoring}}
---
{apiVersion: monitoring.coreos.com/v1, kind: Prometheus, metadata: {name: kps, namespace: monitoring}, spec: {
  serviceMonitorSelector: {matchLabels: {release: kps}}, serviceMonitorNamespaceSelector: {},
  podMonitorSelector: {matchLabels: {release: kps}}, podMonitorNamespaceSelector: {},
  ruleSelector: {matchLabels: {release: kps, role: alert-rules}}, ruleNamespaceSelector: {}}}`

// monitored is a shop with a rule and a dashboard.
func monitored() deployertest.Content {
	c := rules("")
	c.Files["monitoring/dashboards/shop.json"] = `{"title": "Shop"}`
	return c
}

// TestConfigureMonitoring: what is recorded is in what is deployed from then on, and what is deployed already is told.
func TestConfigureMonitoring(t *testing.T) {
	b := deployertest.New(t)
	operatorKinds(t, b, "PrometheusRule")
	b.Server.Put(t, "{apiVersion: v1, kind: Namespace, metadata: {name: monitoring}}")
	b.Added(shop, "1.0.0", monitored())
	folder, namespace := "grafana_folder", "monitoring"
	options := deployer.MonitoringOptions{
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
	configure(b, deployer.MonitoringOptions{Labels: []string{"release-"}, Namespace: &nowhere})
	if left, err := b.Monitoring(t.Context()); err != nil || len(left.Labels) > 0 || left.RuleLabels["role"] != "alert-rules" || left.Dashboards.Namespace != "" {
		t.Errorf("left: %+v, %v", left, err)
	}
}

func TestDetectMonitoring(t *testing.T) {
	b := deployertest.New(t)
	detect := func() (*schema.MonitoringReport, error) {
		return b.ConfigureMonitoring(t.Context(), deployer.MonitoringOptions{Detect: true, DryRun: true})
	}
	_, err := detect()
	deployertest.Refused(t, err, report.NotFound, "no Prometheus object", "--label")
	operatorKinds(t, b, "Prometheus")
	b.Server.Put(t, kps)
	found, err := detect()
	if err != nil || len(found.Labels) != 1 || found.Labels["release"] != "kps" || len(found.RuleLabels) != 1 || found.RuleLabels["role"] != "alert-rules" {
		t.Fatalf("%+v, %v", found, err)
	}
	wantWords(t, found.Notices, "Prometheus monitoring/kps selects each ServiceMonitor with release=kps", "each PrometheusRule with role=alert-rules")
}

// TestDetectSidecar: Grafana's sidecar tells by its environment what it looks for, with Prometheus or without.
func TestDetectSidecar(t *testing.T) {
	grafana := func(kind, env string) string {
		return "{apiVersion: v1, kind: Namespace, metadata: {name: monitoring}}\n---\n{apiVersion: apps/v1, kind: " + kind +
			", metadata: {name: grafana, namespace: monitoring, labels: {app.kubernetes.io/name: grafana}}, spec: {template: {spec: {containers: [" +
			"{name: grafana-sc-datasources, env: [{name: LABEL, value: grafana_datasource}]}, {name: grafana-sc-dashboard, env: [" + env + "]}, {name: grafana}]}}}}"
	}
	for name, test := range map[string]struct {
		kind, env string
		want      schema.MonitoringDashboards
		words     string
		code      report.Code
	}{
		"as kube-prometheus-stack has it": {kind: "Deployment", env: "{name: LABEL, value: grafana_dashboard}, {name: LABEL_VALUE, value: '1'}, {name: NAMESPACE, value: ALL}"},
		"as MetalK8s has it": {
			kind: "Deployment", env: "{name: LABEL, value: grafana_dashboard}, {name: FOLDER_ANNOTATION, value: metalk8s.scality.com/grafana-folder-name}, {name: NAMESPACE, value: ALL}",
		},
		"all of its own": {
			kind: "StatefulSet", env: "{name: METHOD, value: WATCH}, {name: LABEL, value: dashboards}, {name: LABEL_VALUE, value: 'yes'}, {name: FOLDER_ANNOTATION, value: grafana_folder}",
			want:  schema.MonitoringDashboards{Labels: map[string]string{"dashboards": "yes"}, FolderAnnotation: "grafana_folder", Namespace: "monitoring"},
			words: "StatefulSet monitoring/grafana looks for dashboards by the label dashboards=yes, the folder in annotation grafana_folder, namespace monitoring only",
		},
		"some namespaces": {kind: "Deployment", env: "{name: LABEL, value: grafana_dashboard}, {name: NAMESPACE, value: 'a,b'}", want: schema.MonitoringDashboards{Namespace: "a"}, words: "namespace a only"},
		"no value":        {kind: "Deployment", env: "{name: LABEL, valueFrom: {configMapKeyRef: {name: a, key: b}}}", code: report.NotFound},
		"no label":        {kind: "Deployment", env: "{name: LABEL, value: a b}", code: report.Usage},
	} {
		t.Run(name, func(t *testing.T) {
			b := deployertest.New(t)
			b.Server.Put(t, grafana(test.kind, test.env))
			got, err := b.ConfigureMonitoring(t.Context(), deployer.MonitoringOptions{Detect: true, DryRun: true})
			if report.CodeOf(err) != test.code {
				t.Fatal(err)
			}
			if err == nil && (!reflect.DeepEqual(got.Dashboards, test.want) || !strings.Contains(strings.Join(got.Notices, "\n"), test.words)) {
				t.Errorf("%+v", got)
			}
		})
	}
	b := deployertest.New(t)
	operatorKinds(t, b, "Prometheus")
	b.Server.Put(t, kps)
	b.Server.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/deployments") {
			return false
		}
		clustertest.Fail(w, apierrors.NewForbidden(kube.GroupResource{}, "", errors.New(`User "jane" cannot list resource "deployments" in API group "apps"`)))
		return true
	}
	got, err := b.ConfigureMonitoring(t.Context(), deployer.MonitoringOptions{Detect: true, DryRun: true})
	if err != nil || got.Labels["release"] != "kps" || !strings.Contains(strings.Join(got.Notices, "\n"), "--dashboard-label") {
		t.Errorf("without rights: %+v, %v", got, err)
	}
}

// TestNobodySelects: what no Prometheus selects is said when it is planned, and for as long as it is so; it is well all the same.
func TestNobodySelects(t *testing.T) {
	b := deployertest.New(t)
	operatorKinds(t, b, "PrometheusRule", "Prometheus")
	b.Server.Put(t, kps)
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
		return status.Environments[0].Namespaces[0].Deployments[0].Reasons
	}
	wantWords(t, reasons(), lacks, cure)
	configure(b, deployer.MonitoringOptions{Detect: true})
	wantWords(t, reasons(), lacks, "it is recorded, and comes when the Solution is deployed there again")
	if said := must(b, add("1.0.0")).Notices; strings.Contains(strings.Join(said, "\n"), "no Prometheus") {
		t.Errorf("it is selected, and it says %q", said)
	}
	if left := reasons(); len(left) > 0 {
		t.Errorf("it is selected, and the status says %q", left)
	}
}

// TestBlindPrometheus: a monitor is of no use where whoever selects it may not see the pods, which is said with the rights that are missing,
// unless another one may, or nobody can tell.
func TestBlindPrometheus(t *testing.T) {
	const account = "system:serviceaccount:monitoring:prometheus-k8s"
	server := func(name, account string) string {
		return "{apiVersion: monitoring.coreos.com/v1, kind: Prometheus, metadata: {name: " + name + ", namespace: monitoring}, spec: {serviceAccountName: " + account +
			", serviceMonitorSelector: {}, serviceMonitorNamespaceSelector: {}}}"
	}
	const said = "Prometheus monitoring/k8s selects ServiceMonitor " + site + "/shop and finds nothing there: its account monitoring/prometheus-k8s may not list the pods of namespace " + site
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
		"nobody can tell": {},
	} {
		t.Run(name, func(t *testing.T) {
			b := deployertest.New(t)
			operatorKinds(t, b, "ServiceMonitor", "Prometheus")
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
			if strings.Contains(text, said) != test.blind || strings.Contains(text, "finds nothing") != test.blind || strings.Contains(text, `resources: ["endpointslices"]`) != test.blind {
				t.Errorf("it says %q", text)
			}
		})
	}
}

func TestMonitoringRefusals(t *testing.T) {
	b := deployertest.New(t)
	bad := "a b"
	for name, o := range map[string]deployer.MonitoringOptions{
		"neither KEY=VALUE nor KEY-":                   {Labels: []string{"release"}},
		`label "a b"`:                                  {RuleLabels: []string{"a b=c"}},
		`value of label a "b c"`:                       {DashboardLabels: []string{"a=b c"}},
		"app.kubernetes.io/part-of tells whose":        {Labels: []string{"app.kubernetes.io/part-of=kps"}},
		`annotation "a b"`:                             {FolderAnnotation: &bad},
		`namespace "a b"`:                              {Namespace: &bad},
		"label \"=kps\" is neither KEY=VALUE nor KEY-": {Labels: []string{"=kps"}},
		"label \"-\" is neither KEY=VALUE nor KEY-":    {Labels: []string{"-"}},
	} {
		_, err := b.ConfigureMonitoring(t.Context(), o)
		deployertest.Refused(t, err, report.Usage, name)
	}
	nowhere := "nowhere"
	_, err := b.ConfigureMonitoring(t.Context(), deployer.MonitoringOptions{Namespace: &nowhere})
	deployertest.Refused(t, err, report.NotFound, "namespace nowhere is not there", "Grafana")
	b.Server.Put(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: monitoring, namespace: solutionctl-system}, data: {monitoring.json: "{}"}}`)
	_, err = b.Monitoring(t.Context())
	deployertest.Refused(t, err, report.Corrupt, "ConfigMap solutionctl-system/monitoring", "kubectl delete configmap")
}

func configure(b *deployertest.Bed, o deployer.MonitoringOptions) *schema.MonitoringReport {
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
