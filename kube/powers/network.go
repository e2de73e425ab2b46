package powers

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/schema"
)

// service judges where a Service gets requests from, and where it sends them.
func (j *judgement) service(o Object) {
	j.hosts(o, "metadata.annotations", false)
	if addresses := set(nestedStrings(o.Object, "spec", "externalIPs")); len(addresses) > 0 {
		j.place(o, "spec.externalIPs").add(schema.PowerTakesTraffic, schema.ReachTraffic, "get the traffic of every pod to "+enumerate(addresses), prefixed("address ", addresses)...)
	}
	switch kind := text(o, "spec", "type"); kind {
	case "LoadBalancer", "NodePort":
		j.place(o, "spec.type").show(schema.PowerOpensToOutside, schema.ReachOutside, "be reached from outside the cluster ("+kind+")", kind)
	case "ExternalName":
		j.externalName(o, text(o, "spec", "externalName"))
	}
}

func (j *judgement) externalName(o Object, name string) {
	name = strings.TrimSuffix(name, ".")
	address, err := netip.ParseAddr(name)
	labels := strings.Split(name, ".")
	service := slices.Index(labels, "svc")
	if service < 0 {
		service = slices.Index(labels, "pod")
	}
	switch {
	case service >= 2 && j.own[labels[service-1]]:
	case service >= 2:
		j.place(o, "spec.externalName").add(schema.PowerTakesTraffic, schema.ReachTraffic, "send traffic to namespace "+labels[service-1], "name "+name)
	case err == nil && (address.IsLinkLocalUnicast() || address.IsLoopback()), strings.HasPrefix(name, "metadata."), strings.HasSuffix(name, ".internal"), name == "localhost":
		j.place(o, "spec.externalName").add(schema.PowerTakesTraffic, schema.ReachTraffic, "send traffic to addresses of the nodes' own network ("+name+")", "name "+name)
	default:
		j.place(o, "spec.externalName").show(schema.PowerOpensToOutside, schema.ReachOutside, "send traffic outside the cluster ("+name+")", name)
	}
}

// network judges what directs, opens or closes traffic.
func (j *judgement) network(o Object) {
	j.requested(o)
	switch o.GetKind() {
	case "Ingress":
		j.ingress(o)
	case "IngressClass":
		if isDefault(o, "ingressclass.kubernetes.io/is-default-class") {
			j.byDefault(o)
		}
	case "EndpointSlice":
		j.place(o, "endpoints").add(schema.PowerTakesTraffic, schema.ReachTraffic, "send traffic to addresses of its choice", "endpoints")
	case "NetworkPolicy":
		j.place(o, "spec.podSelector").selection(schema.PowerTakesTraffic, schema.ReachTraffic, "open or close the network", nestedMap(o.Object, "spec", "podSelector"))
	case "AdminNetworkPolicy", "BaselineAdminNetworkPolicy", "ClusterNetworkPolicy", "CiliumClusterwideNetworkPolicy", "GlobalNetworkPolicy":
		j.place(o, "spec").add(schema.PowerTakesTraffic, schema.ReachTraffic, "open or close the network of the whole cluster", o.GetKind())
	case "Route":
		j.hosts(o, "spec.host", text(o, "spec", "wildcardPolicy") == "Subdomain")
	case "CiliumNetworkPolicy":
		judge := func(field string, rule map[string]any) {
			j.place(o, field+".endpointSelector").selection(schema.PowerTakesTraffic, schema.ReachTraffic, "open or close the network", nestedMap(rule, "endpointSelector"))
		}
		rules := nested(o.Object, "specs")
		if spec := nestedMap(o.Object, "spec"); spec != nil || len(rules) == 0 {
			judge("spec", spec)
		}
		for i, rule := range rules {
			judge(indexed("specs", i), rule)
		}
	case "TCPRoute", "UDPRoute":
		j.listeners(o)
		j.hosts(o, "metadata.annotations", false)
	case "HTTPRoute", "GRPCRoute", "TLSRoute":
		j.hosts(o, "spec.hostnames", len(nestedList(o.Object, "spec", "hostnames")) == 0)
	case "Gateway", "ListenerSet":
		j.hosts(o, "spec.listeners", false)
		j.allows(o, "spec.allowedListeners", nestedMap(o.Object, "spec", "allowedListeners", "namespaces"))
		for i, listener := range nested(o.Object, "spec", "listeners") {
			j.allows(o, indexed("spec.listeners", i), nestedMap(listener, "allowedRoutes", "namespaces"))
		}
	case "ReferenceGrant":
		for i, from := range nested(o.Object, "spec", "from") {
			if namespace := stringIn(from, "namespace"); !j.own[namespace] {
				j.place(o, indexed("spec.from", i)).add(schema.PowerTakesTraffic, schema.ReachTraffic, "let namespace "+namespace+" refer to its objects", namespace)
			}
		}
	default:
		j.foreign(o)
	}
}

// allows judges from which namespaces a Gateway takes routes or listeners.
func (j *judgement) allows(o Object, field string, namespaces map[string]any) {
	switch stringIn(namespaces, "from") {
	case "All":
	case "Selector":
		selector, err := selectorOf(nestedMap(namespaces, "selector"))
		if err == nil && !isOpen(selector) {
			text := metav1.FormatLabelSelector(selector)
			j.place(o, field).show(schema.PowerTakesTraffic, schema.ReachTraffic, "let namespaces answer for its addresses ("+text+")", text)
			return
		}
	default:
		return
	}
	j.place(o, field).add(schema.PowerTakesTraffic, schema.ReachTraffic, "let every namespace answer for its addresses", "All")
}

// listeners judges a route without hosts, which gets everything that the listeners get to which it is attached.
func (j *judgement) listeners(o Object) {
	var others []string
	for _, parent := range nested(o.Object, "spec", "parentRefs") {
		kind, namespace, name := cmp.Or(stringIn(parent, "kind"), "Gateway"), orOwn(o, stringIn(parent, "namespace")), stringIn(parent, "name")
		if !j.brings(cmp.Or(stringIn(parent, "group"), gatewayGroup), kind, namespace, name) {
			others = append(others, kind+"/"+namespace+"/"+name)
		}
	}
	if len(others) > 0 {
		others = set(others)
		j.place(o, "spec.parentRefs").add(schema.PowerTakesTraffic, schema.ReachTraffic, "get all traffic of listeners that the archive does not bring ("+enumerate(others)+")", others...)
	}
}

// answering are the kinds whose objects answer for hosts: they direct their requests, listen for these, or have them as DNS names.
var answering = map[kube.GroupKind]bool{
	{Group: "", Kind: "Service"}:                  true,
	{Group: "networking.k8s.io", Kind: "Ingress"}: true,
	{Group: "route.openshift.io", Kind: "Route"}:  true,
	{Group: gatewayGroup, Kind: "HTTPRoute"}:      true,
	{Group: gatewayGroup, Kind: "GRPCRoute"}:      true,
	{Group: gatewayGroup, Kind: "TLSRoute"}:       true,
	{Group: gatewayGroup, Kind: "TCPRoute"}:       true,
	{Group: gatewayGroup, Kind: "UDPRoute"}:       true,
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

// dnsAnnotations name hosts of an object, for which external-dns or kOps make DNS records. A Service has no others.
var dnsAnnotations = []string{
	"external-dns.alpha.kubernetes.io/hostname", "external-dns.alpha.kubernetes.io/internal-hostname",
	"dns.alpha.kubernetes.io/external", "dns.alpha.kubernetes.io/internal",
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
	hosts = append(hosts, aliases(o)...)
	for _, annotation := range dnsAnnotations {
		hosts = append(hosts, listed(o.GetAnnotations()[annotation])...)
	}
	for i, host := range hosts {
		hosts[i] = strings.ToLower(strings.TrimSuffix(host, "."))
	}
	return set(slices.DeleteFunc(hosts, func(host string) bool { return host == "" }))
}

// hosts judges names for which something answers.
func (j *judgement) hosts(o Object, field string, wild bool) {
	hosts := Hosts(o.Unstructured)
	wild = wild || slices.ContainsFunc(hosts, func(host string) bool { return strings.HasPrefix(host, "*") })
	hosts = slices.DeleteFunc(hosts, func(host string) bool { return j.foreignHost(o, field, host) })
	switch {
	case wild:
		j.place(o, field).add(schema.PowerTakesTraffic, schema.ReachTraffic, "answer for every host without a route of its own", append(hosts, "*")...)
	case len(hosts) > 0:
		j.place(o, field).show(schema.PowerTakesTraffic, schema.ReachTraffic, "answer for "+enumerate(hosts), hosts...)
	}
}

// prefixed returns effects of a kind. Hosts have no space: an approval of a host covers none of these.
func prefixed(kind string, list []string) []string {
	effects := make([]string, len(list))
	for i, entry := range list {
		effects[i] = kind + entry
	}
	return effects
}

// foreignHost judges a host for which something else of the cluster answers already.
func (j *judgement) foreignHost(o Object, field, host string) bool {
	if j.owner.ForeignHost == nil {
		return false
	}
	other := j.owner.ForeignHost(o.Unstructured, host)
	if other != "" {
		j.place(o, field).add(schema.PowerTakesTraffic, schema.ReachTraffic, "answer for "+host+", for which "+other+" answers", host)
	}
	return other != ""
}

func indexed(field string, i int) string { return fmt.Sprintf("%s[%d]", field, i) }
