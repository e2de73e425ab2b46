package powers

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/schema"
)

// service judges where a Service gets requests from, and where it sends them.
func (j *judgement) service(o Object) {
	if addresses := set(nestedStrings(o.Object, "spec", "externalIPs")); len(addresses) > 0 {
		j.add(o, schema.PowerTakesTraffic, schema.ReachTraffic, "spec.externalIPs", "get the traffic of every pod to "+enumerate(addresses), addresses...)
	}
	switch kind := text(o, "spec", "type"); kind {
	case "LoadBalancer", "NodePort":
		j.show(o, schema.PowerOpensToOutside, schema.ReachOutside, "spec.type", "be reached from outside the cluster ("+kind+")", kind)
	case "ExternalName":
		j.externalName(o, text(o, "spec", "externalName"))
	}
}

func (j *judgement) externalName(o Object, name string) {
	name = strings.TrimSuffix(name, ".")
	address, err := netip.ParseAddr(name)
	labels := strings.Split(name, ".")
	service := slices.Index(labels, "svc")
	switch {
	case service == 2 && j.own[labels[1]]:
	case service == 2:
		j.add(o, schema.PowerTakesTraffic, schema.ReachTraffic, "spec.externalName", "send traffic to Services of namespace "+labels[1], name)
	case err == nil && address.IsLinkLocalUnicast(), strings.HasPrefix(name, "metadata."), strings.HasSuffix(name, ".internal"), name == "localhost":
		j.add(o, schema.PowerTakesTraffic, schema.ReachTraffic, "spec.externalName", "send traffic to addresses of the nodes' own network ("+name+")", name)
	default:
		j.show(o, schema.PowerOpensToOutside, schema.ReachOutside, "spec.externalName", "send traffic outside the cluster ("+name+")", name)
	}
}

// network judges what directs, opens or closes traffic.
func (j *judgement) network(o Object) {
	switch o.GetKind() {
	case "Ingress":
		j.ingress(o)
	case "IngressClass":
		if isDefault(o, "ingressclass.kubernetes.io/is-default-class") {
			j.byDefault(o)
		}
	case "EndpointSlice":
		j.add(o, schema.PowerTakesTraffic, schema.ReachTraffic, "endpoints", "send traffic to addresses of its choice", "endpoints")
	case "NetworkPolicy":
		j.networkPolicy(o)
	case "AdminNetworkPolicy", "BaselineAdminNetworkPolicy", "ClusterNetworkPolicy", "CiliumClusterwideNetworkPolicy", "GlobalNetworkPolicy":
		j.add(o, schema.PowerTakesTraffic, schema.ReachTraffic, "spec", "open or close the network of the whole cluster", o.GetKind())
	case "Route":
		j.hosts(o, "spec.host", text(o, "spec", "wildcardPolicy") == "Subdomain")
	case "HTTPRoute", "GRPCRoute", "TLSRoute":
		j.hosts(o, "spec.hostnames", len(nestedList(o.Object, "spec", "hostnames")) == 0)
	case "Gateway", "ListenerSet":
		j.hosts(o, "spec.listeners", false)
		for i, listener := range nested(o.Object, "spec", "listeners") {
			if from, _, _ := unstructured.NestedString(listener, "allowedRoutes", "namespaces", "from"); from == "All" {
				j.add(o, schema.PowerTakesTraffic, schema.ReachTraffic, indexed("spec.listeners", i), "let every namespace answer for its addresses", "All")
			}
		}
	case "ReferenceGrant":
		for i, from := range nested(o.Object, "spec", "from") {
			if namespace := stringIn(from, "namespace"); !j.own[namespace] {
				j.add(o, schema.PowerTakesTraffic, schema.ReachTraffic, indexed("spec.from", i), "let namespace "+namespace+" refer to its objects", namespace)
			}
		}
	}
}

// ingress judges hosts, and annotations by which the settings of the proxy itself are written.
func (j *judgement) ingress(o Object) {
	var snippets []string
	for annotation := range o.GetAnnotations() {
		if strings.HasSuffix(annotation, "-snippet") || strings.HasSuffix(annotation, "-snippets") {
			snippets = append(snippets, annotation)
		}
	}
	if len(snippets) > 0 {
		snippets = set(snippets)
		j.add(o, schema.PowerTakesTraffic, schema.ReachCluster, "metadata.annotations", "write the settings of the proxy, which has every Secret of Ingresses ("+enumerate(snippets)+")", snippets...)
	}
	rules := nested(o.Object, "spec", "rules")
	wild := len(rules) == 0 || slices.ContainsFunc(rules, func(rule map[string]any) bool { return stringIn(rule, "host") == "" && hasRootPath(rule) })
	j.hosts(o, "spec.rules", wild)
}

// answering are the kinds whose objects answer for hosts: they direct their requests, or listen for these.
var answering = map[kube.GroupKind]bool{
	{Group: "networking.k8s.io", Kind: "Ingress"}: true,
	{Group: "route.openshift.io", Kind: "Route"}:  true,
	{Group: gatewayGroup, Kind: "HTTPRoute"}:      true,
	{Group: gatewayGroup, Kind: "GRPCRoute"}:      true,
	{Group: gatewayGroup, Kind: "TLSRoute"}:       true,
	{Group: gatewayGroup, Kind: "Gateway"}:        true,
	{Group: gatewayGroup, Kind: "ListenerSet"}:    true,
}

// gatewayGroup is the API group of the Gateway API.
const gatewayGroup = "gateway.networking.k8s.io"

// HasHosts reports whether objects of a kind answer for hosts.
func HasHosts(kind kube.GroupKind) bool { return answering[kind] }

// MatchesBelow reports whether hosts of a kind such as *.example.com include names of several levels, as in the Gateway API.
func MatchesBelow(group string) bool { return group == gatewayGroup }

// IsParent reports whether a route, or a ListenerSet, is attached to an object, and so answers through it.
func IsParent(route *unstructured.Unstructured, of schema.ObjectRef) bool {
	parents := append(nested(route.Object, "spec", "parentRefs"), nestedMap(route.Object, "spec", "parentRef"))
	group, _, _ := strings.Cut(of.APIVersion, "/")
	return slices.ContainsFunc(parents, func(parent map[string]any) bool {
		return stringIn(parent, "name") == of.Name && cmp.Or(stringIn(parent, "namespace"), route.GetNamespace()) == of.Namespace &&
			cmp.Or(stringIn(parent, "kind"), "Gateway") == of.Kind && cmp.Or(stringIn(parent, "group"), gatewayGroup) == group
	})
}

// Hosts returns the hosts that an object answers for, sorted.
func Hosts(o *unstructured.Unstructured) []string {
	hosts := append(nestedStrings(o.Object, "spec", "hostnames"), stringIn(nestedMap(o.Object, "spec"), "host"))
	for _, rule := range nested(o.Object, "spec", "rules") { // of a Gateway route they have no host
		hosts = append(hosts, stringIn(rule, "host"))
	}
	for _, listener := range nested(o.Object, "spec", "listeners") {
		hosts = append(hosts, stringIn(listener, "hostname"))
	}
	for i, host := range hosts {
		hosts[i] = strings.ToLower(strings.TrimSuffix(host, "."))
	}
	return set(slices.DeleteFunc(hosts, func(host string) bool { return host == "" }))
}

// hasRootPath reports whether a rule is about every path. One about some path of its own, for every host, takes nothing else.
func hasRootPath(rule map[string]any) bool {
	paths := nested(rule, "http", "paths")
	return len(paths) == 0 || slices.ContainsFunc(paths, func(p map[string]any) bool {
		path := stringIn(p, "path")
		return path == "" || path == "/" || path == "/*" || strings.HasPrefix(path, "/(") || strings.HasPrefix(path, "/.*")
	})
}

// hosts judges names for which something answers.
func (j *judgement) hosts(o Object, field string, wild bool) {
	hosts := Hosts(o.Unstructured)
	if wild || slices.ContainsFunc(hosts, func(host string) bool { return strings.HasPrefix(host, "*") }) {
		j.add(o, schema.PowerTakesTraffic, schema.ReachTraffic, field, "answer for every host without a route of its own", append(hosts, "*")...)
		return
	}
	hosts = slices.DeleteFunc(hosts, func(host string) bool { return j.foreignHost(o, field, host) })
	if len(hosts) > 0 {
		j.show(o, schema.PowerTakesTraffic, schema.ReachTraffic, field, "answer for "+enumerate(hosts), hosts...)
	}
}

// foreignHost judges a host for which something else of the cluster answers already.
func (j *judgement) foreignHost(o Object, field, host string) bool {
	if j.owner.ForeignHost == nil {
		return false
	}
	other := j.owner.ForeignHost(o.Unstructured, host)
	if other != "" {
		j.add(o, schema.PowerTakesTraffic, schema.ReachTraffic, field, "answer for "+host+", for which "+other+" answers", host)
	}
	return other != ""
}

// networkPolicy judges a policy that is about every pod of a namespace that is shared.
func (j *judgement) networkPolicy(o Object) {
	selector := nestedMap(o.Object, "spec", "podSelector")
	selects := len(nestedMap(selector, "matchLabels")) + len(nestedList(selector, "matchExpressions"))
	if selects == 0 && o.GetNamespace() != j.owner.Solution+"-system" {
		j.add(o, schema.PowerTakesTraffic, schema.ReachTraffic, "spec.podSelector", "open or close the network of every pod of namespace "+o.GetNamespace(), o.GetNamespace())
	}
}

// monitoring judges what Prometheus is to read, and with what.
func (j *judgement) monitoring(o Object) {
	selector := nestedMap(o.Object, "spec", "namespaceSelector")
	if any, _ := selector["any"].(bool); any {
		j.add(o, schema.PowerReadsOthersMetrics, schema.ReachNamespaces, "spec.namespaceSelector", "have metrics of every namespace collected with its settings", "*")
	}
	others := slices.DeleteFunc(nestedStrings(selector, "matchNames"), func(namespace string) bool { return j.own[namespace] })
	if others = set(others); len(others) > 0 {
		j.add(o, schema.PowerReadsOthersMetrics, schema.ReachNamespaces, "spec.namespaceSelector", "have metrics of "+placeText(others)+" collected with its settings", others...)
	}
	for _, key := range []string{"endpoints", "podMetricsEndpoints"} {
		for i, endpoint := range nested(o.Object, "spec", key) {
			if file := stringIn(endpoint, "bearerTokenFile"); file != "" {
				j.show(o, schema.PowerReadsOthersMetrics, schema.ReachNamespaces, indexed("spec."+key, i)+".bearerTokenFile", "be shown a file of Prometheus ("+file+")", file)
			}
		}
	}
	switch o.GetKind() {
	case "Prometheus", "PrometheusAgent", "Alertmanager", "ThanosRuler", "AlertmanagerConfig", "ScrapeConfig":
		j.foreign(o)
	}
}

// dashboards finds scripts in dashboards, which run in the browsers of their viewers.
func (j *judgement) dashboards(o Object) {
	if o.GetLabels()[schema.LabelDashboard] == "" {
		return
	}
	data, _, _ := unstructured.NestedFieldNoCopy(o.Object, "data")
	files, _ := data.(map[string]any)
	for name, content := range files {
		if s, ok := content.(string); ok && strings.Contains(strings.ToLower(s), `<script`) {
			j.add(o, schema.PowerReadsOthersMetrics, schema.ReachPeople, "data", "run scripts in the browsers of those who look at a dashboard ("+name+")", name)
		}
	}
}

func indexed(field string, i int) string { return fmt.Sprintf("%s[%d]", field, i) }
