package render

import (
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/schema"
)

// metricsDirectory is where an operator finds the certificate for its metrics, by the contract of MetalK8s.
const metricsDirectory = "/tmp/k8s-metrics-server/metrics-certs"

// metricsSecret is the name of the Secret with that certificate.
func metricsSecret(p *Payload) string { return p.Solution.Metadata.Name + "-operator-metrics-cert" }

// metricsObjects renders the objects for scraping the metrics of the operator, as MetalK8s does. In addition,
// Prometheus gets the authority of the certificate, and names of cluster-wide objects contain the namespace.
func (r *operator) metricsObjects() error {
	m, service := r.metrics, shorten(r.name+"-metrics", 63)
	endpoint := map[string]any{"path": m.Path, "port": m.Scheme}
	if m.Scheme == schema.SchemeHTTPS {
		authority, err := r.metricsCertificate()
		if err != nil {
			return err
		}
		trust := map[string]any{"serverName": service + "." + r.s.Namespace + ".svc"}
		if authority {
			trust["ca"] = map[string]any{"secret": map[string]any{"name": metricsSecret(r.p), "key": keyAuthority}}
		}
		endpoint["scheme"], endpoint["tlsConfig"] = m.Scheme, trust
		endpoint["bearerTokenFile"] = "/var/run/secrets/kubernetes.io/serviceaccount/token"
		if err := r.add(generated, r.metricsAuthorization()...); err != nil {
			return err
		}
	}
	selector := map[string]any{labelName: r.name}
	port := map[string]any{"name": m.Scheme, "port": int64(m.Port), "targetPort": int64(m.Port), "protocol": "TCP"}
	return r.add(generated,
		r.make("v1", "Service", service, map[string]any{"spec": map[string]any{
			"type": "ClusterIP", "selector": selector, "ports": []any{port},
		}}),
		r.monitored(r.make(monitoringGroup+"/v1", "ServiceMonitor", r.name, map[string]any{"spec": map[string]any{
			"namespaceSelector": map[string]any{"matchNames": []any{r.s.Namespace}},
			"selector":          map[string]any{"matchLabels": selector},
			"endpoints":         []any{endpoint},
		}})))
}

// metricsCertificate renders the certificate, unless another owner manages it, and reports whether its Secret contains
// the authority. A new one needs no restart of pods: operators that follow the convention of MetalK8s read it again,
// and Prometheus continues to trust the last one.
func (r *operator) metricsCertificate() (authority bool, err error) {
	secret, err := r.certificate(metricsSecret(r.p), r.s.Namespace)
	if err != nil {
		return false, err
	}
	if secret == nil {
		given := r.s.Secrets[metricsSecret(r.p)]
		return len(secretData(given)[keyAuthority]) > 0, nil
	}
	return true, r.add(generated, secret)
}

// metricsAuthorization lets the operator ask the API server who reads its metrics, and whether they may.
func (r *operator) metricsAuthorization() []*unstructured.Unstructured {
	name := clusterRoleName(r.s.Namespace, r.p.Solution.Metadata.Name, "operator-metrics-auth")
	ask := func(group, resource string) any {
		return map[string]any{"apiGroups": []any{group}, "resources": []any{resource}, "verbs": []any{"create"}}
	}
	role := r.make(rbacAPIVersion, "ClusterRole", name, map[string]any{"rules": []any{
		ask("authentication.k8s.io", "tokenreviews"), ask("authorization.k8s.io", "subjectaccessreviews"),
	}})
	unstructured.RemoveNestedField(role.Object, "metadata", "namespace")
	return []*unstructured.Unstructured{role, r.binding("ClusterRoleBinding", name, "ClusterRole", name)}
}

// serveMetrics starts the operator so that it serves them.
func (r *operator) serveMetrics(container map[string]any) (mounts, volumes []any) {
	m := r.metrics
	command := append([]any{}, container["command"].([]any)...)
	command = append(command, "--metrics-bind-address=:"+strconv.Itoa(m.Port))
	container["ports"] = []any{map[string]any{"name": m.Scheme, "containerPort": int64(m.Port), "protocol": "TCP"}}
	if m.Scheme == schema.SchemeHTTPS {
		command = append(command, "--metrics-cert-path="+metricsDirectory)
		mounts = []any{map[string]any{"name": "metrics-cert", "mountPath": metricsDirectory, "readOnly": true}}
		volumes = []any{map[string]any{"name": "metrics-cert", "secret": map[string]any{"secretName": metricsSecret(r.p)}}}
	}
	container["command"] = command
	return mounts, volumes
}
