// Package node writes the configuration by which a node's container runtime pulls from the registry of Solutions.
//
// Image references name the registry by a host that does not exist, so that they stay the same wherever it runs. What
// stands for that host is decided on each node, once: [Files] renders the files for containerd and for CRI-O, with the
// registry's endpoints in an order that differs from node to node, and with the registry itself as the last resort, so that
// no pull ever leaves the site. [NewPlan] compares them with what a node has, and [Plan.Apply] writes them atomically.
//
// The first line of each written file marks it; no other file is ever changed or removed. The runtime's own
// configuration is read only, to refuse what would leave our files without effect.
package node

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"hash/fnv"
	"path"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Runtime is a container runtime.
type Runtime string

// The runtimes, by themselves and as Kubernetes distributions bring them, each with files in places of its own.
const (
	Containerd Runtime = "containerd"
	CRIO       Runtime = "crio"
	K3s        Runtime = "k3s"
	RKE2       Runtime = "rke2"
	K0s        Runtime = "k0s"
	MicroK8s   Runtime = "microk8s"
)

// Runtimes are all of them.
func Runtimes() []Runtime { return []Runtime{Containerd, CRIO, K3s, RKE2, K0s, MicroK8s} }

// DefaultCertsDir is the usual directory of containerd's hosts.toml files.
const DefaultCertsDir = "/etc/containerd/certs.d"

// Config is the configuration of a node: the registry and its endpoints.
type Config struct {
	Runtime Runtime
	// Host is the name of the registry in image references.
	Host string
	// Endpoints are the URLs behind it, as https://10.0.0.1:5000, or https://registry.example.com/solutions where the images
	// were pushed to repositories below a path.
	Endpoints []string
	// CA are the certificates, in PEM, by which the endpoints are trusted; none where the node trusts them anyway.
	CA []byte
	// Mirrors are other registries, as docker.io, whose images come from ours as well, and from nowhere else. [NewPlan] keeps those that a
	// node has where this is nil.
	Mirrors []string
	// Peers are the URLs of caches on the site, as http://10.0.0.7:30020 for Spegel, that are asked before the registry. They are not
	// trusted: they are asked by digest only. [NewPlan] keeps those that a node has where this is nil.
	Peers []string
	// Node is the name of the node, which decides with which endpoint it begins. Without it, the order is kept.
	Node string
	// CertsDir is containerd's config_path. Where it is empty, [NewPlan] keeps the one that a node has; else it is that of the runtime.
	CertsDir string

	containerd1 bool // k0s brings containerd 1
}

// File is a file of a node.
type File struct {
	Path    string // absolute
	Content []byte
}

// header is the first line of every file that is written here.
const header = "# Written by 'solutionctl deploy node config', which replaces or removes it. Do not edit.\n"

// caFile is the name of the file with the certificates: no other program uses it.
const caFile = "solutionctl-ca.crt"

// Files returns the files that a node needs, in the order in which they have to be written.
func Files(c Config) ([]File, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	endpoints := spread(c.Endpoints, c.Node)
	c.Peers = spread(c.Peers, "") // in their order, as they are written
	hosts := slices.Concat([]string{c.Host}, sorted(c.Mirrors))
	switch c.Runtime {
	case CRIO:
		return c.crio(hosts, endpoints), nil
	case K3s, RKE2:
		return c.rancher(hosts, endpoints), nil
	case K0s:
		return append(c.containerd(hosts, endpoints), File{k0sConfig, []byte(header + c.k0sSettings())}), nil
	}
	return c.containerd(hosts, endpoints), nil
}

// certsDir is the directory of the hosts.toml files that the runtime reads.
func (c Config) certsDir() string {
	switch {
	case c.CertsDir != "":
		return c.CertsDir
	case c.Runtime == K0s:
		return k0sCertsDir
	case c.Runtime == MicroK8s:
		return microK8sCertsDir
	}
	return DefaultCertsDir
}

func (c Config) check() error {
	if !slices.Contains(Runtimes(), c.Runtime) {
		return report.Errorf(report.Usage, "%q is not a container runtime: want one of %q", c.Runtime, Runtimes())
	}
	for _, host := range append([]string{c.Host}, c.Mirrors...) {
		if !schema.ValidRegistryHost(host) {
			return report.Errorf(report.Usage, "registry %q is not HOST or HOST:PORT", host)
		}
	}
	if len(c.Endpoints) == 0 {
		return report.Errorf(report.Usage, "no endpoint of the registry is given").
			WithHint("give the URL that '%s' listens on with --endpoint", report.Run("deploy serve"))
	}
	for _, endpoint := range c.Endpoints {
		if _, err := schema.ParseEndpoint(endpoint); err != nil {
			return err
		}
	}
	if len(c.Mirrors) > 0 && len(c.origins()) == 0 {
		return report.Errorf(report.Usage, "no endpoint has images by their original names: those that were pushed to a registry of the site have the names of Solutions only").
			WithHint("leave out --mirror, or add an endpoint where '%s --mirror-origins' runs", report.Run("deploy serve"))
	}
	if len(c.CA) > 0 {
		if block, _ := pem.Decode(c.CA); block == nil || block.Type != "CERTIFICATE" {
			return report.Errorf(report.Usage, "the CA is not a certificate in PEM")
		}
	}
	if c.CertsDir != "" && !path.IsAbs(c.CertsDir) {
		return report.Errorf(report.Usage, "%s is not an absolute path", c.CertsDir)
	}
	return c.checkPeers()
}

// spread begins with another endpoint on each node, and continues with another one: runtimes try them in order and balance nothing, and the nodes
// of an endpoint that fails are shared by all others.
func spread(endpoints []string, node string) []string {
	var each []string
	for _, text := range endpoints {
		if endpoint, err := schema.ParseEndpoint(text); err == nil && !slices.Contains(each, endpoint) {
			each = append(each, endpoint)
		}
	}
	if node == "" {
		return each
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(node)) // never fails
	order, left := make([]string, 0, len(each)), hash.Sum32()
	for n := uint32(len(each)); n > 0; n-- {
		first := left % n
		left /= n
		order, each = append(order, each[first]), slices.Concat(each[first+1:], each[:first])
	}
	return order
}

func sorted(list []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(list)))
}

// encrypted are the hosts of the endpoints with TLS.
func encrypted(endpoints []string) (hosts []string) {
	for _, endpoint := range endpoints {
		if isTLS(endpoint) {
			hosts = append(hosts, hostOf(endpoint))
		}
	}
	return hosts
}

// origins are the endpoints that may have images by their original names: images are pushed by those of Solutions only.
func (c Config) origins() []string {
	return slices.DeleteFunc(slices.Clone(c.Endpoints), schema.IsPushedTo)
}

// endpointsOf returns those of the ordered endpoints that have images of a registry: all have the images of Solutions.
func (c Config) endpointsOf(host string, ordered []string) []string {
	if host == c.Host {
		return ordered
	}
	return slices.DeleteFunc(slices.Clone(ordered), schema.IsPushedTo)
}

// address is an endpoint as containerd is given it: with the whole path where repositories have a prefix.
func address(endpoint string) string {
	if schema.IsPushedTo(endpoint) {
		return schema.EndpointPath(endpoint)
	}
	return endpoint
}

func isTLS(endpoint string) bool { return strings.HasPrefix(endpoint, "https://") }

// containerd renders hosts.toml files. They are read at every pull, without a restart.
func (c Config) containerd(hosts, endpoints []string) []File {
	dir := c.certsDir()
	ca := path.Join(dir, c.Host, caFile)
	var files []File
	withCA := len(c.CA) > 0 && slices.ContainsFunc(endpoints, isTLS)
	if withCA {
		files = append(files, File{ca, c.authorities()})
	}
	for _, host := range hosts {
		own := c.endpointsOf(host, endpoints)
		var b bytes.Buffer
		b.WriteString(header)
		settings := func(endpoint, indent string) {
			fmt.Fprintf(&b, "%scapabilities = [\"pull\", \"resolve\"]\n", indent)
			if schema.IsPushedTo(endpoint) {
				fmt.Fprintf(&b, "%soverride_path = true\n", indent)
			}
			if withCA && isTLS(endpoint) {
				fmt.Fprintf(&b, "%sca = %q\n", indent, ca)
			}
			// What drops packets is left after this, instead of half a minute for each layer. Older ones than 2.0 ignore it.
			fmt.Fprintf(&b, "%sdial_timeout = \"1s\"\n", indent)
		}
		// containerd asks the server last. Without this line that would be the host itself.
		last := len(own) - 1
		fmt.Fprintf(&b, "server = %q\n", address(own[last]))
		settings(own[last], "")
		for _, peer := range c.Peers {
			fmt.Fprintf(&b, "\n[host.%q]\n  capabilities = [\"pull\"]\n  dial_timeout = \"200ms\"\n", peer)
			if origin := originOfPeers(own); origin != "" {
				fmt.Fprintf(&b, "\n  [host.%q.header]\n    %s = %q\n", peer, dragonflyRegistry, origin)
			}
		}
		for _, endpoint := range own[:max(1, last)] { // containerd refuses a file without a host
			fmt.Fprintf(&b, "\n[host.%q]\n", address(endpoint))
			settings(endpoint, "  ")
		}
		files = append(files, File{path.Join(dir, host, "hosts.toml"), b.Bytes()})
	}
	return files
}

// Places that CRI-O, like podman and skopeo, reads.
const (
	crioConfig   = "/etc/containers/registries.conf.d/50-solutionctl.conf"
	crioCertsDir = "/etc/containers/certs.d"
)

// crio renders a drop-in of registries.conf. Its last resort is the location, so that it is the last endpoint.
func (c Config) crio(hosts, endpoints []string) []File {
	var files []File
	if len(c.CA) > 0 {
		for _, host := range sorted(encrypted(endpoints)) {
			files = append(files, File{path.Join(crioCertsDir, host, caFile), c.authorities()})
		}
	}
	var b bytes.Buffer
	b.WriteString(header)
	for i, host := range hosts {
		own := c.endpointsOf(host, endpoints)
		suffix := ""
		if i > 0 { // the registry has images under their original names, too, with the original registry in front
			suffix = "/" + strings.ToLower(strings.ReplaceAll(host, ":", "_")) // as registry.OriginRepository does
		}
		last := len(own) - 1
		fmt.Fprintf(&b, "\n[[registry]]\nprefix = %q\n", host)
		location(&b, own[last], suffix)
		for _, peer := range c.Peers {
			b.WriteString("\n[[registry.mirror]]\n")
			location(&b, peer, suffix)
			fmt.Fprintf(&b, "pull-from-mirror = %q\n", digestOnly)
		}
		for _, endpoint := range own[:last] {
			b.WriteString("\n[[registry.mirror]]\n")
			location(&b, endpoint, suffix)
		}
	}
	return append(files, File{crioConfig, b.Bytes()})
}

func location(b *bytes.Buffer, endpoint, suffix string) {
	fmt.Fprintf(b, "location = %q\n", schema.EndpointPlace(endpoint)+suffix)
	if !isTLS(endpoint) {
		b.WriteString("insecure = true\n")
	}
}

func hostOf(endpoint string) string {
	registry, _ := schema.SplitEndpoint(endpoint)
	return schema.EndpointPlace(registry)
}

// authorities is the file with the certificates. Programs skip what is before the first one.
func (c Config) authorities() []byte {
	return append([]byte(header), c.CA...)
}
