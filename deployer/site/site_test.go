package site_test

import (
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/cluster/clustertest"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/site"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

func TestDetect(t *testing.T) {
	b := deployertest.New(t)
	detect := func() (*schema.MonitoringReport, error) {
		return b.Site.Configure(t.Context(), site.Options{Detect: true, DryRun: true})
	}
	_, err := detect()
	deployertest.Refused(t, err, report.NotFound, "no Prometheus object", "--label")
	b.MonitoringKinds("Prometheus")
	b.Server.Put(t, deployertest.Prometheus)
	found, err := detect()
	if err != nil || len(found.Labels) != 1 || found.Labels["release"] != "kps" || len(found.RuleLabels) != 1 || found.RuleLabels["role"] != "alert-rules" {
		t.Fatalf("%+v, %v", found, err)
	}
	for _, want := range []string{"Prometheus monitoring/kps selects each ServiceMonitor with release=kps", "each PrometheusRule with role=alert-rules"} {
		if !strings.Contains(strings.Join(found.Notices, "\n"), want) {
			t.Errorf("%q is not in %q", want, found.Notices)
		}
	}
}

// TestDetectSidecar checks that the settings of Grafana's sidecar are read from its environment, with or without Prometheus.
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
			got, err := b.Site.Configure(t.Context(), site.Options{Detect: true, DryRun: true})
			if report.CodeOf(err) != test.code {
				t.Fatal(err)
			}
			if err == nil && (!reflect.DeepEqual(got.Dashboards, test.want) || !strings.Contains(strings.Join(got.Notices, "\n"), test.words)) {
				t.Errorf("%+v", got)
			}
		})
	}
	b := deployertest.New(t)
	b.MonitoringKinds("Prometheus")
	b.Server.Put(t, deployertest.Prometheus)
	b.Server.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/deployments") {
			return false
		}
		clustertest.Fail(w, apierrors.NewForbidden(kube.GroupResource{}, "", errors.New(`User "jane" cannot list resource "deployments" in API group "apps"`)))
		return true
	}
	got, err := b.Site.Configure(t.Context(), site.Options{Detect: true, DryRun: true})
	if err != nil || got.Labels["release"] != "kps" || !strings.Contains(strings.Join(got.Notices, "\n"), "--dashboard-label") {
		t.Errorf("without rights: %+v, %v", got, err)
	}
}

func TestConfigureRefuses(t *testing.T) {
	b := deployertest.New(t)
	bad := "a b"
	for name, o := range map[string]site.Options{
		"neither KEY=VALUE nor KEY-":                   {Labels: []string{"release"}},
		`label "a b"`:                                  {RuleLabels: []string{"a b=c"}},
		`value of label a "b c"`:                       {DashboardLabels: []string{"a=b c"}},
		"app.kubernetes.io/part-of identifies":         {Labels: []string{"app.kubernetes.io/part-of=kps"}},
		`annotation "a b"`:                             {FolderAnnotation: &bad},
		`namespace "a b"`:                              {Namespace: &bad},
		"label \"=kps\" is neither KEY=VALUE nor KEY-": {Labels: []string{"=kps"}},
		"label \"-\" is neither KEY=VALUE nor KEY-":    {Labels: []string{"-"}},
	} {
		_, err := b.Site.Configure(t.Context(), o)
		deployertest.Refused(t, err, report.Usage, name)
	}
	nowhere := "nowhere"
	_, err := b.Site.Configure(t.Context(), site.Options{Namespace: &nowhere})
	deployertest.Refused(t, err, report.NotFound, "namespace nowhere is not there", "Grafana")
	b.Server.Put(t, "{apiVersion: v1, kind: Namespace, metadata: {name: solutionctl-system}}")
	b.Server.Put(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: monitoring, namespace: solutionctl-system}, data: {monitoring.json: "{}"}}`)
	_, err = b.Site.Monitoring(t.Context())
	deployertest.Refused(t, err, report.Corrupt, "ConfigMap solutionctl-system/monitoring", "kubectl delete configmap")
}
