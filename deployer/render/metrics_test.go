package render_test

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/solutionctl/solutionctl/deployer/render"
)

func metricsPayload(t *testing.T, metrics string) *render.Payload {
	t.Helper()
	return newPayload(t, map[string]string{
		"manifest.yaml":             strings.Replace(dbManifest, "1.0.0", "1.0.0, operator: {metrics: "+metrics+"}", 1),
		"operator/deploy/role.yaml": roleOf("Role", "here"),
	})
}

func environment(t *testing.T, p *render.Payload, s render.Settings) []*unstructured.Unstructured {
	t.Helper()
	objects, err := render.Environment(p, s)
	if err != nil {
		t.Fatal(err)
	}
	valid(t, objects)
	return objects
}

// container is that of the operator.
func container(t *testing.T, objects []*unstructured.Unstructured) map[string]any {
	t.Helper()
	containers, _, err := unstructured.NestedSlice(find(t, objects, "Deployment", "db-operator").Object, "spec", "template", "spec", "containers")
	if err != nil || len(containers) != 1 {
		t.Fatalf("containers: %v, %v", containers, err)
	}
	return containers[0].(map[string]any)
}

func TestOperatorMetrics(t *testing.T) {
	p := metricsPayload(t, "{enabled: true}")
	objects := environment(t, p, settings())
	command := container(t, objects)["command"].([]any)
	for _, argument := range []string{"--metrics-bind-address=:8443", "--metrics-cert-path=/tmp/k8s-metrics-server/metrics-certs"} {
		if !slices.Contains(command, any(argument)) {
			t.Errorf("%s is not in the command %v", argument, command)
		}
	}
	service := find(t, objects, "Service", "db-operator-metrics")
	monitor := find(t, objects, "ServiceMonitor", "db-operator")
	if _, labelled := monitor.GetLabels()["metalk8s.scality.com/monitor"]; !labelled {
		t.Error("the ServiceMonitor has not the label by which Prometheus selects it")
	}
	secret := find(t, objects, "Secret", "db-operator-metrics-cert")
	endpoints, _, err := unstructured.NestedSlice(monitor.Object, "spec", "endpoints")
	if err != nil || len(endpoints) != 1 {
		t.Fatalf("endpoints: %v, %v", endpoints, err)
	}
	endpoint := endpoints[0].(map[string]any)
	host, _, _ := unstructured.NestedString(endpoint, "tlsConfig", "serverName")
	if want := service.GetName() + ".prod.svc"; host != want || endpoint["scheme"] != "https" || endpoint["port"] != "https" {
		t.Errorf("got endpoint %v, want server name %s", endpoint, want)
	}
	// Prometheus trusts only ca.crt of the Secret.
	key, _, _ := unstructured.NestedString(endpoint, "tlsConfig", "ca", "secret", "key")
	if err = handshake(t, secret, text(t, secret, "data", key), host, now); err != nil {
		t.Errorf("Prometheus does not trust the operator: %v", err)
	}
	if _, skips, _ := unstructured.NestedFieldNoCopy(endpoint, "tlsConfig", "insecureSkipVerify"); skips {
		t.Error("the certificate is not verified")
	}
	names, err := render.EnvironmentSecrets(p, settings())
	if err != nil || !slices.Equal(names, []string{"db-operator-metrics-cert"}) {
		t.Errorf("asks for %v, %v", names, err)
	}
	s := settings()
	s.Secrets = map[string]*unstructured.Unstructured{secret.GetName(): secret}
	if again := find(t, environment(t, p, s), "Secret", secret.GetName()); text(t, again, "data", "tls.crt") != text(t, secret, "data", "tls.crt") {
		t.Error("a good certificate was made again")
	}
}

// TestMetricsAsMetalK8s compares the rendered objects with the result of MetalK8s' templates of March 2026 for the same
// manifest. The differences listed here are intended: the authority, cluster-wide names, and the issuer of the
// certificate.
func TestMetricsAsMetalK8s(t *testing.T) {
	const cluster = "solutionctl:prod:db:operator-metrics-auth" // there db-operator-metrics-auth, which environments would share
	objects := environment(t, metricsPayload(t, "{enabled: true}"), settings())
	for _, want := range []struct {
		kind, name, field, value string
	}{
		{"Service", "db-operator-metrics", "spec", `{type: ClusterIP, selector: {app.kubernetes.io/name: db-operator}, ports: [{name: https, port: 8443, targetPort: 8443, protocol: TCP}]}`},
		{"ServiceMonitor", "db-operator", "spec", `{
			namespaceSelector: {matchNames: [prod]}, selector: {matchLabels: {app.kubernetes.io/name: db-operator}},
			endpoints: [{path: /metrics, port: https, scheme: https, bearerTokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token,
			  tlsConfig: {serverName: db-operator-metrics.prod.svc, ca: {secret: {name: db-operator-metrics-cert, key: ca.crt}}}}]}`}, // there insecureSkipVerify
		{"ClusterRole", cluster, "rules", `[{apiGroups: [authentication.k8s.io], resources: [tokenreviews], verbs: [create]}, {apiGroups: [authorization.k8s.io], resources: [subjectaccessreviews], verbs: [create]}]`},
		{"ClusterRoleBinding", cluster, "subjects", `[{kind: ServiceAccount, name: db-operator, namespace: prod}]`},
		{"ClusterRoleBinding", cluster, "roleRef", `{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "` + cluster + `"}`},
	} {
		o := find(t, objects, want.kind, want.name)
		var value any
		if err := yaml.Unmarshal([]byte(strings.ReplaceAll(want.value, "\t", "")), &value); err != nil {
			t.Fatal(err)
		}
		got, _ := json.Marshal(o.Object[want.field])
		if wanted, _ := json.Marshal(value); string(got) != string(wanted) {
			t.Errorf("%s: %s\ngot  %s\nwant %s", want.kind, want.field, got, wanted)
		}
		for label, value := range map[string]string{
			"app": "db-operator", "app.kubernetes.io/name": "db-operator", "app.kubernetes.io/instance": "db-operator", "app.kubernetes.io/version": "1.0.0",
			"app.kubernetes.io/component": "operator", "app.kubernetes.io/part-of": "db",
		} {
			if o.GetLabels()[label] != value {
				t.Errorf("%s: label %s is %q, want %q", want.kind, label, o.GetLabels()[label], value)
			}
		}
	}
	operator := container(t, objects)
	if got, _ := json.Marshal(operator["ports"]); string(got) != `[{"containerPort":8443,"name":"https","protocol":"TCP"}]` {
		t.Errorf("ports: %s", got)
	}
	if got, _ := json.Marshal(operator["volumeMounts"]); !strings.Contains(string(got), `{"mountPath":"/tmp/k8s-metrics-server/metrics-certs","name":"metrics-cert","readOnly":true}`) {
		t.Errorf("mounts: %s", got)
	}
	block, _ := pem.Decode(decoded(t, text(t, find(t, objects, "Secret", "db-operator-metrics-cert"), "data", "tls.crt")))
	if block == nil {
		t.Fatal("the Secret has no certificate")
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"db-operator-metrics.prod.svc", "db-operator-metrics.prod.svc.cluster.local"} {
		if err := certificate.VerifyHostname(name); err != nil {
			t.Error(err)
		}
	}
}

func TestMetricsOfTwoEnvironments(t *testing.T) {
	p := metricsPayload(t, "{enabled: true}")
	seen := map[string]bool{}
	for _, namespace := range []string{"prod", "staging"} {
		s := settings()
		s.Namespace = namespace
		for _, o := range environment(t, p, s) {
			if id := o.GetKind() + "/" + o.GetNamespace() + "/" + o.GetName(); seen[id] {
				t.Errorf("both environments have %s", id)
			} else {
				seen[id] = true
			}
		}
	}
	if !seen["ClusterRoleBinding//solutionctl:staging:db:operator-metrics-auth"] {
		t.Errorf("the operator may not ask who reads its metrics: %v", seen)
	}
}

func TestMetricsWithoutCertificate(t *testing.T) {
	objects := environment(t, metricsPayload(t, "{enabled: true, scheme: http, port: 9090, path: /m}"), settings())
	endpoints, _, _ := unstructured.NestedSlice(find(t, objects, "ServiceMonitor", "db-operator").Object, "spec", "endpoints")
	if endpoint := endpoints[0].(map[string]any); len(endpoint) != 2 || endpoint["path"] != "/m" || endpoint["port"] != "http" {
		t.Errorf("got endpoint %v", endpoint)
	}
	for _, name := range names(objects) {
		if strings.Contains(name, "Secret") || strings.Contains(name, "ClusterRole") {
			t.Errorf("%s is there", name)
		}
	}
	for _, off := range []string{"{}", "{enabled: false, port: 9090}"} {
		objects := environment(t, metricsPayload(t, off), settings())
		if _, ports := container(t, objects)["ports"]; ports || slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "ServiceMonitor" }) {
			t.Errorf("%s: there are metrics: %v", off, names(objects))
		}
	}
}

func TestCertificateOfAnotherOwner(t *testing.T) {
	given := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "db-operator-metrics-cert", "namespace": "prod"},
		"data": map[string]any{"tls.crt": "", "tls.key": ""},
	}}
	s := settings()
	s.Secrets = map[string]*unstructured.Unstructured{given.GetName(): given}
	objects := environment(t, metricsPayload(t, "{enabled: true}"), s)
	if slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "Secret" }) {
		t.Error("the certificate of somebody else is overwritten")
	}
	endpoints, _, _ := unstructured.NestedSlice(find(t, objects, "ServiceMonitor", "db-operator").Object, "spec", "endpoints")
	if trust := endpoints[0].(map[string]any)["tlsConfig"].(map[string]any); trust["ca"] != nil || trust["insecureSkipVerify"] != nil {
		t.Errorf("got %v: a Secret without ca.crt names no authority", trust)
	}
}
