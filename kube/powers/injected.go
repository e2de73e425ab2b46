package powers

import (
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/solutionctl/solutionctl/schema"
)

// injecting are annotations by which a webhook or a runtime adds volumes, images or settings to a pod that are not in its spec. A * stands
// for any text.
var injecting = []string{
	"*/userVolume", "*/userVolumeMount", "*/proxyImage", "inject.istio.io/templates", "proxy.istio.io/overrides", // Istio
	"config.linkerd.io/*image", "vault.hashicorp.com/agent-image", "vault.hashicorp.com/agent-*json-patch", "dapr.io/sidecar-image",
	"io.kubernetes.cri-o.Devices", "io.katacontainers.config.*",
}

// templatesOfIstio come with each Istio. They add its proxy, and nothing else.
var templatesOfIstio = []string{"sidecar", "gateway", "grpc-agent", "grpc-simple", "waypoint"}

// addressing are annotations by which a network plugin gives a pod an address, or a network, that others can have.
var addressing = []string{
	"cni.projectcalico.org/ipAddrs", "cni.projectcalico.org/ipAddrsNoIpam", "cni.projectcalico.org/floatingIPs", "cni.projectcalico.org/hwAddr",
	"*.kubernetes.io/ip_address", "*.kubernetes.io/ip_pool", "*.kubernetes.io/mac_address", "*.kubernetes.io/logical_switch", // Kube-OVN
	"k8s.ovn.org/*", "ipam.antrea.io/pod-ips",
}

// matchesOne reports whether a name matches one of the patterns, which have one * at most.
func matchesOne(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		start, end, open := strings.Cut(pattern, "*")
		return pattern == name || open && len(name) >= len(start)+len(end) && strings.HasPrefix(name, start) && strings.HasSuffix(name, end)
	})
}

// annotated judges annotations of a pod, or of a namespace for its pods, that others act upon.
func (p place) annotated(annotations map[string]string) {
	var injected, addressed []string
	for name, value := range annotations {
		switch {
		case name == "inject.istio.io/templates" && !slices.ContainsFunc(listed(value), func(t string) bool { return !slices.Contains(templatesOfIstio, t) }):
		case matchesOne(injecting, name):
			injected = append(injected, name+"="+shortened(value, "SHA-256 "))
		case matchesOne(addressing, name), name == "k8s.v1.cni.cncf.io/networks" && p.isForeignNetwork(value), name == "v1.multus-cni.io/default-network" && p.isForeignNetwork(value):
			addressed = append(addressed, name+"="+shortened(value, "SHA-256 "))
		}
	}
	if len(injected) > 0 {
		injected = set(injected)
		p.add(schema.PowerPodOnNode, schema.ReachNode, "have volumes, images or settings added to pods that the archive does not bring ("+enumerate(injected)+")", injected...)
	}
	if len(addressed) > 0 {
		addressed = set(addressed)
		p.add(schema.PowerTakesTraffic, schema.ReachTraffic, "have addresses or networks that others can have ("+enumerate(addressed)+")", addressed...)
	}
}

// isForeignNetwork reports whether networks of Multus are of other namespaces, or whether a pod chooses its address in them.
func (p place) isForeignNetwork(value string) bool {
	var networks []map[string]any
	if strings.HasPrefix(strings.TrimSpace(value), "[") {
		if json.Unmarshal([]byte(value), &networks) != nil {
			return true
		}
	} else {
		for _, name := range listed(value) {
			if namespace, _, ok := strings.Cut(name, "/"); ok {
				networks = append(networks, map[string]any{"namespace": namespace})
			}
		}
	}
	return slices.ContainsFunc(networks, func(network map[string]any) bool {
		namespace := orOwn(p.o, stringIn(network, "namespace"))
		return !p.own[namespace] || network["ips"] != nil || network["mac"] != nil
	})
}

// missingVolumes judges mounts of volumes that the pod does not have: the API server refuses them unless a webhook adds these.
func (p pod) missingVolumes() {
	has := map[string]bool{}
	for _, v := range p.spec.Volumes {
		has[v.Name] = true
	}
	for _, template := range nested(p.o.Object, "spec", "volumeClaimTemplates") {
		has[stringIn(nestedMap(template, "metadata"), "name")] = true
	}
	var missing []string
	p.containers(func(c corev1.Container) {
		for _, mount := range c.VolumeMounts {
			if !has[mount.Name] {
				missing = append(missing, mount.Name)
			}
		}
	})
	if len(missing) > 0 {
		missing = set(missing)
		p.add(schema.PowerPodOnNode, schema.ReachNode, "mount volumes that the pod does not have, and that others add ("+enumerate(missing)+")", prefixed("volume ", missing)...)
	}
}
