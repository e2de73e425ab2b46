package schema

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/solutionctl/solutionctl/schema/lazyregexp"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Monitoring holds the labels and annotations by which the Prometheus and the Grafana of a site select objects. An empty
// field keeps the value of each Solution.
type Monitoring struct {
	// Labels are put on every monitor and every PrometheusRule of Solutions.
	Labels map[string]string `json:"labels,omitempty"`
	// RuleLabels are put on every PrometheusRule besides.
	RuleLabels map[string]string    `json:"ruleLabels,omitempty"`
	Dashboards MonitoringDashboards `json:"dashboards"`
	// Prometheus lists the services that are queried for alerts; without any, they are found through the Prometheus
	// operator's objects.
	Prometheus []PrometheusService `json:"prometheus,omitempty"`
}

// PrometheusService is a Service of the cluster behind which a Prometheus answers.
type PrometheusService struct {
	Namespace string `json:"namespace" schema:"name"`
	Service   string `json:"service" schema:"name"`
	Port      int    `json:"port" schema:"minimum=1 maximum=65535"`
	TLS       bool   `json:"tls,omitempty"` // its certificate is not verified: the API server proxies the request
	// Path is the prefix of /api/v1, which may be empty.
	Path string `json:"path,omitempty" schema:"pathprefix"`
}

// String is the service as a URL inside the cluster.
func (s PrometheusService) String() string {
	scheme := "http"
	if s.TLS {
		scheme = "https"
	}
	return fmt.Sprintf("%s://%s.%s:%d%s", scheme, s.Service, s.Namespace, s.Port, s.Path)
}

// ParsePrometheusService reads a URL inside the cluster, as Grafana's data sources have it: http://SERVICE.NAMESPACE:PORT, with
// .svc.cluster.local after the namespace perhaps, and a path.
func ParsePrometheusService(text string) (PrometheusService, error) {
	u, err := url.Parse(text)
	wrong := func(why string) error {
		shown := text
		if err == nil {
			shown = u.Redacted()
		}
		return report.Errorf(report.Usage, "%q is not a URL like http://SERVICE.NAMESPACE:PORT: %s", shown, why)
	}
	if err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Scheme != "http" && u.Scheme != "https" {
		return PrometheusService{}, wrong("it takes a scheme, http or https, a host, a port and nothing else but a path")
	}
	names := strings.Split(u.Hostname(), ".")
	if len(names) < 2 || len(names) > 2 && names[2] != "svc" {
		return PrometheusService{}, wrong("the host has to be the names of a Service and of its namespace")
	}
	s := PrometheusService{Service: names[0], Namespace: names[1], TLS: u.Scheme == "https", Path: strings.TrimRight(u.Path, "/")}
	port := u.Port()
	switch {
	case port == "" && s.TLS:
		port = "443"
	case port == "":
		port = "80"
	}
	s.Port, _ = strconv.Atoi(port) // 0 is none
	if problem := s.problem(); problem != "" {
		return PrometheusService{}, wrong(problem)
	}
	return s, nil
}

// IsValid reports whether the fields are safe in the path of a request to the API server.
func (s PrometheusService) IsValid() bool { return s.problem() == "" }

func (s PrometheusService) problem() string {
	switch {
	case !dnsLabel.MatchString(s.Service) || !dnsLabel.MatchString(s.Namespace):
		return "the host has to be the names of a Service and of its namespace"
	case s.Port < 1 || s.Port > 65535:
		return "the port has to be a number from 1 to 65535"
	case !pathPrefix.MatchString(s.Path):
		return "the path may have letters, digits, '-', '_' and '.' between slashes"
	}
	return ""
}

var (
	dnsLabel   = lazyregexp.New(`^[0-9a-z]([0-9a-z-]{0,61}[0-9a-z])?$`)
	pathPrefix = lazyregexp.New(`^(/[0-9A-Za-z_-][0-9A-Za-z._-]*)*$`)
)

// MonitoringDashboards specifies how Grafana finds the ConfigMaps of dashboards.
type MonitoringDashboards struct {
	Labels map[string]string `json:"labels,omitempty"`
	// FolderAnnotation is the annotation in which Grafana's sidecar looks for the folder.
	FolderAnnotation string `json:"folderAnnotation,omitempty"`
	// Namespace is where all of them go; empty for that of each Solution.
	Namespace string `json:"namespace,omitempty"`
}

// ClusterMonitoring holds the monitoring settings for all Solutions of a cluster. It is stored in the ConfigMap
// solutionctl-system/monitoring, key monitoring.json.
type ClusterMonitoring struct {
	Stamp
	Monitoring
}

// MonitoringReport holds what is recorded of the monitoring of a cluster. `solutionctl deploy monitoring` prints it.
type MonitoringReport struct {
	Monitoring
	// Notices are remarks for the user, one sentence each.
	Notices []string `json:"notices"`
}
