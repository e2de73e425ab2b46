package prometheus

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/schema"
)

// evaluating are the kinds that evaluate rules, and so have alerts, with the names that their operator gives the pods.
var evaluating = map[string]struct {
	name, label, governing string // of the pods, with the name of the object, and of the Service that the operator makes
	port                   int
}{
	"Prometheus":  {"prometheus", "prometheus", "prometheus-operated", 9090},
	"ThanosRuler": {"thanos-ruler", "thanos-ruler", "thanos-ruler-operated", 10902},
}

// HasAlerts reports whether a server evaluates rules.
func HasAlerts(server *unstructured.Unstructured) bool {
	_, evaluates := evaluating[server.GetKind()]
	return evaluates
}

// ServiceOf is the Service behind which a server that has alerts answers: one of those of its namespace that selects the pods of this
// server, or else the one that its operator makes, which may be that of all of its kind in the namespace.
func ServiceOf(server *unstructured.Unstructured, services []*unstructured.Unstructured) schema.PrometheusService {
	kind := evaluating[server.GetKind()]
	s := schema.PrometheusService{Namespace: server.GetNamespace(), Service: kind.governing, Port: kind.port}
	if own, _ := at(server, "serviceName").(string); own != "" {
		s.Service = own
	}
	if prefix, _ := at(server, "routePrefix").(string); prefix != "/" {
		s.Path = strings.TrimRight(prefix, "/")
	}
	_, s.TLS, _ = unstructured.NestedMap(server.Object, "spec", "web", "tlsConfig")
	labels := map[string]string{
		"app.kubernetes.io/name": kind.name, "app.kubernetes.io/instance": server.GetName(), "app.kubernetes.io/managed-by": "prometheus-operator",
		kind.label: server.GetName(), "operator.prometheus.io/name": server.GetName(),
	}
	given, _, _ := unstructured.NestedStringMap(server.Object, "spec", "podMetadata", "labels")
	for _, service := range services {
		selector, _, _ := unstructured.NestedStringMap(service.Object, "spec", "selector")
		if port := portOf(service, cmp.Or(portName(server), "web"), kind.port); port != 0 && selects(selector, labels, given, server.GetName()) {
			s.Service, s.Port = service.GetName(), port
			break
		}
	}
	return s
}

func portName(server *unstructured.Unstructured) string {
	name, _ := at(server, "portName").(string)
	return name
}

// selects reports whether a selector matches the pods of one server, and not those of its neighbours.
func selects(selector, labels, given map[string]string, name string) bool {
	named := false
	for key, value := range selector {
		if labels[key] != value && given[key] != value {
			return false
		}
		named = named || value == name
	}
	return named
}

// portOf is the port of a Service that leads to the web interface, 0 for none.
func portOf(service *unstructured.Unstructured, name string, number int) int {
	ports, _, _ := unstructured.NestedSlice(service.Object, "spec", "ports")
	is := func(wanted func(port map[string]any) bool) func(any) bool {
		return func(p any) bool { port, _ := p.(map[string]any); return wanted(port) }
	}
	for _, wanted := range []func(map[string]any) bool{
		func(port map[string]any) bool { return port["targetPort"] == name || port["name"] == name },
		func(port map[string]any) bool {
			return port["targetPort"] == int64(number) || port["port"] == int64(number)
		},
	} {
		if i := slices.IndexFunc(ports, is(wanted)); i >= 0 {
			found, _ := ports[i].(map[string]any)["port"].(int64)
			return int(found)
		}
	}
	return 0
}
