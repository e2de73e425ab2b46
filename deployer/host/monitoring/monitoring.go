// Package monitoring has what lets a site's Prometheus and Grafana watch over solutionctl itself: alerts on the registry and on what is
// deployed, each with what to do, and a dashboard.
//
// [Rules] and [Dashboard] are the files as Prometheus and Grafana read them, [Objects] are both as objects of Kubernetes, with what
// makes the Prometheus operator scrape a registry outside of the cluster. The package talks to nobody; what the numbers mean is
// said where they are written, in packages registry, serve and survey.
package monitoring

import (
	"bytes"
	_ "embed" // the files
	"net/netip"
	"strings"
	"text/template"
)

//go:embed alerts.yaml
var rules string

//go:embed dashboard.json
var dashboard string

//go:embed objects.yaml
var objects string

// Rules is a rule file of Prometheus.
func Rules() []byte { return []byte(rules) }

// Dashboard is a dashboard of Grafana. The data source is chosen in it.
func Dashboard() []byte { return []byte(dashboard) }

// Target is a registry as Prometheus reaches it.
type Target struct {
	Address netip.AddrPort
	TLS     bool
	CA      string // certificates in PEM; "" are those that Prometheus trusts anyway
	Name    string // that the certificate has to have, with a CA
}

// Objects are the documents, in YAML, for 'kubectl apply' in a namespace: a Service and its Endpoints, a ServiceMonitor, a
// PrometheusRule, and ConfigMaps with the dashboard and with the authority of the registry. They have the labels by which MetalK8s
// and the sidecar of Grafana's charts select them.
func Objects(namespace string, t Target) ([]byte, error) {
	functions := template.FuncMap{"indent": func(by int, text string) string {
		margin := strings.Repeat(" ", by)
		return margin + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n"+margin)
	}}
	parsed, err := template.New("objects").Funcs(functions).Parse(objects)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	err = parsed.Execute(&text, struct {
		Target
		Namespace, Rules, Dashboard string
	}{t, namespace, rules, dashboard})
	return text.Bytes(), err
}
