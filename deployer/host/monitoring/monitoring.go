// Package monitoring has the files with which a site's Prometheus and Grafana monitor solutionctl itself: alerts about
// the registry and the deployments, each with a remedy, and a dashboard.
//
// [Rules] and [Dashboard] are the files for Prometheus and Grafana. [Objects] returns both as Kubernetes objects, with
// a monitor for a registry outside of the cluster. The package makes no requests; packages registry, serve and survey
// write the metrics and document them.
package monitoring

import (
	"bytes"
	_ "embed" // the files
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"text/template"

	"github.com/solutionctl/solutionctl/schema"
)

// Groups of alerts: about a registry, and about deployments.
var (
	//go:embed registry.yaml
	registry string
	//go:embed operations.yaml
	operations string
)

//go:embed dashboard.json
var dashboard string

//go:embed objects.yaml
var objects string

// Rules is a rule file of Prometheus.
func Rules() []byte { return []byte(groups(registry, operations)) }

func groups(list ...string) string { return "groups:\n" + strings.Join(list, "") }

// Dashboard is a dashboard of Grafana. The data source is chosen in it.
func Dashboard() []byte { return []byte(dashboard) }

// Target is a registry as Prometheus reaches it.
type Target struct {
	Address netip.AddrPort // the zero one is none: there is nothing about a registry then
	TLS     bool
	CA      string // certificates in PEM; "" for those that Prometheus trusts already
	Name    string // that the certificate has to have, with a CA
	// Selectors are labels by which the Prometheus of the site selects monitors and rules, besides that of MetalK8s.
	Selectors map[string]string
}

// Objects are the documents, in YAML, for 'kubectl apply' in a namespace: a Service and its Endpoints, a ServiceMonitor, a
// PrometheusRule for each group, and ConfigMaps with the dashboard and with the authority of the registry. They have the labels by
// which MetalK8s, the site and the sidecar of Grafana's charts select them.
func Objects(namespace string, t Target) ([]byte, error) {
	functions := template.FuncMap{"indent": func(by int, text string) string {
		margin := strings.Repeat(" ", by)
		return margin + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n"+margin)
	}}
	parsed, err := template.New("objects").Funcs(functions).Parse(objects)
	if err != nil {
		return nil, err
	}
	labels := map[string]string{"metalk8s.scality.com/monitor": ""}
	maps.Copy(labels, t.Selectors)
	key, value, _ := strings.Cut(schema.SelectItself, "=")
	labels[key] = value
	var lines strings.Builder
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		fmt.Fprintf(&lines, "%q: %q\n", key, labels[key])
	}
	var text bytes.Buffer
	err = parsed.Execute(&text, struct {
		Target
		Namespace, Labels, Registry, Operations, Dashboard string
	}{t, namespace, lines.String(), groups(registry), groups(operations), dashboard})
	return bytes.TrimLeft(text.Bytes(), "\n"), err
}
