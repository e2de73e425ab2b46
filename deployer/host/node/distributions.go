package node

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"path"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
	"sigs.k8s.io/yaml"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Places where distributions of Kubernetes keep the configuration of their containerd.
const (
	k0sConfig        = "/etc/k0s/containerd.d/solutionctl.toml"
	k0sCertsDir      = "/etc/k0s/certs.d"
	k0sContainerd    = "/etc/k0s/containerd.toml" // k0s writes it when it starts
	k0sProgram       = "/usr/local/bin/k0s"
	microK8sCertsDir = "/var/snap/microk8s/current/args/certs.d" // MicroK8s sets config_path itself
)

// k0sSettings make k0s' containerd read hosts.toml files. k0s 1.36 brings containerd 2 and refuses to start with files of version 2; before,
// it brings containerd 1.7, which does not know version 3.
func (c Config) k0sSettings() string {
	version, plugin := "# k0s before 1.36 needs version 2 and the section io.containerd.grpc.v1.cri.\nversion = 3", "io.containerd.cri.v1.images"
	if c.containerd1 {
		version, plugin = "version = 2", "io.containerd.grpc.v1.cri"
	}
	return fmt.Sprintf("%s\n\n[plugins.%q.registry]\nconfig_path = %q\n", version, plugin, k0sCertsDir)
}

// hasContainerd1 reports whether k0s brings containerd 1: by the modules in its program, which an upgrade has replaced before k0s starts
// again, else by the configuration that it has written. Without either, it is a new one.
func (s system) hasContainerd1() bool {
	const module = "github.com/containerd/containerd"
	if file, err := s.join(k0sProgram); err == nil {
		if info, err := buildinfo.ReadFile(file); err == nil {
			has := func(path string) bool {
				return slices.ContainsFunc(info.Deps, func(m *debug.Module) bool { return m.Path == path })
			}
			if has(module + "/v2") {
				return false
			}
			if has(module) {
				return true
			}
		}
	}
	var config struct {
		Version int `toml:"version"`
	}
	data, err := s.read(k0sContainerd)
	return err == nil && toml.Unmarshal(data, &config) == nil && config.Version == 2
}

// rancherDirs hold registries.yaml, from which K3s and RKE2 write the configuration of containerd when they start.
var rancherDirs = map[Runtime]string{K3s: "/etc/rancher/k3s", RKE2: "/etc/rancher/rke2"}

func rancherFile(r Runtime) string { return path.Join(rancherDirs[r], "registries.yaml") }

// isShared reports whether others have files in a directory: it stays when it is empty.
func isShared(dir string) bool {
	return slices.Contains([]string{path.Dir(crioConfig), path.Dir(k0sConfig), rancherDirs[K3s], rancherDirs[RKE2]}, dir)
}

// registries is registries.yaml of K3s and RKE2.
type registries struct {
	Mirrors map[string]mirror         `json:"mirrors"`
	Configs map[string]registryConfig `json:"configs,omitempty"`
}

type mirror struct {
	Endpoint []string `json:"endpoint"`
}

type registryConfig struct {
	TLS registryTLS `json:"tls"`
}

type registryTLS struct {
	CAFile string `json:"ca_file"`
}

// rancher renders registries.yaml.
func (c Config) rancher(hosts, endpoints []string) []File {
	ca := path.Join(rancherDirs[c.Runtime], caFile)
	r := registries{Mirrors: map[string]mirror{}, Configs: map[string]registryConfig{}}
	for _, host := range hosts {
		m := mirror{Endpoint: []string{}}
		for _, endpoint := range c.endpointsOf(host, endpoints) {
			m.Endpoint = append(m.Endpoint, address(endpoint)) // one with a path is used as it is, as with override_path
		}
		r.Mirrors[host] = m
	}
	var files []File
	if len(c.CA) > 0 && slices.ContainsFunc(endpoints, isTLS) {
		files = append(files, File{ca, c.authorities()})
		for _, endpoint := range endpoints {
			if isTLS(endpoint) {
				r.Configs[hostOf(endpoint)] = registryConfig{TLS: registryTLS{CAFile: ca}}
			}
		}
	}
	return append(files, File{rancherFile(c.Runtime), append([]byte(header), marshal(r)...)})
}

// marshal writes a value of this package as YAML.
func marshal(value any) []byte {
	data, err := yaml.Marshal(value)
	if err != nil {
		panic(err) // plain data
	}
	return data
}

// hasRegistries reports whether registries.yaml of the site, in have, has every entry of ours, in want.
func hasRegistries(have, want []byte) bool {
	var site, ours map[string]any
	if yaml.Unmarshal(have, &site) != nil || yaml.Unmarshal(want, &ours) != nil {
		return false
	}
	return contains(site, ours)
}

// contains reports whether a value has everything that another one has.
func contains(have, want any) bool {
	fields, ok := want.(map[string]any)
	if !ok {
		return fmt.Sprint(have) == fmt.Sprint(want)
	}
	mine, ok := have.(map[string]any)
	if !ok {
		return false
	}
	for name, value := range fields {
		if !contains(mine[name], value) {
			return false
		}
	}
	return true
}

// addByHand refuses to change registries.yaml of the site, and prints the lines that belong into it.
func addByHand(file File) error {
	lines := strings.TrimPrefix(string(bytes.TrimSpace(file.Content)), header)
	return report.Errorf(report.Conflict, "%s has other content, which is not changed", file.Path).
		WithHint("add these lines to it, then run the command again:\n%s", Indent(lines, 2))
}

// talos is the part of Talos' machine configuration that is about registries.
type talos struct {
	Machine struct {
		Registries struct {
			Mirrors map[string]talosMirror `json:"mirrors"`
			Config  map[string]talosConfig `json:"config,omitempty"`
		} `json:"registries"`
	} `json:"machine"`
}

type talosMirror struct {
	Endpoints    []string `json:"endpoints"`
	SkipFallback bool     `json:"skipFallback"`
	OverridePath bool     `json:"overridePath,omitempty"` // then every endpoint has its whole path
}

type talosConfig struct {
	TLS talosTLS `json:"tls"`
}

type talosTLS struct {
	CA []byte `json:"ca"` // base64, as Talos has it
}

// Talos writes a patch for the machine configuration of Talos, which has no files to write: for 'talosctl patch machineconfig'.
func Talos(c Config) ([]byte, error) {
	c.Runtime = Containerd
	if err := c.check(); err != nil {
		return nil, err
	}
	if len(c.Peers) > 0 {
		return nil, report.Errorf(report.Usage, "the machine configuration of Talos cannot restrict a peer to digests: it could answer for a tag with any image").
			WithHint("leave out --peer")
	}
	endpoints := spread(c.Endpoints, c.Node)
	var t talos
	registries := &t.Machine.Registries
	registries.Mirrors, registries.Config = map[string]talosMirror{}, map[string]talosConfig{}
	for _, host := range append([]string{c.Host}, c.Mirrors...) {
		m := talosMirror{Endpoints: c.endpointsOf(host, endpoints), SkipFallback: true}
		if m.OverridePath = slices.ContainsFunc(m.Endpoints, schema.IsPushedTo); m.OverridePath {
			for i, endpoint := range m.Endpoints {
				m.Endpoints[i] = schema.EndpointPath(endpoint)
			}
		}
		registries.Mirrors[host] = m
	}
	for _, endpoint := range endpoints {
		if isTLS(endpoint) && len(c.CA) > 0 {
			registries.Config[hostOf(endpoint)] = talosConfig{TLS: talosTLS{CA: c.CA}}
		}
	}
	return marshal(t), nil
}

// Registries writes registries.yaml of K3s or RKE2, with the certificates in a comment: their file has to be there as well.
func Registries(c Config) ([]byte, error) {
	files, err := Files(c)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	for _, file := range files {
		if path.Base(file.Path) == caFile {
			fmt.Fprintf(&b, "# %s has to hold:\n", file.Path)
			for line := range strings.Lines(string(c.CA)) {
				b.WriteString("# " + line)
			}
			continue
		}
		b.Write(file.Content)
	}
	return b.Bytes(), nil
}

// restarts make a runtime read its configuration. containerd alone needs nothing.
var restarts = map[Runtime]string{
	CRIO: reload,
	K3s:  "systemctl restart k3s # on agents: k3s-agent",
	RKE2: "systemctl restart rke2-server # on agents: rke2-agent",
	K0s:  "systemctl restart k0scontroller # on workers: k0sworker",
}

// notes list the remaining steps of the user after files were changed.
func (c Config) notes(p *Plan) (notes []string) {
	if !p.Changed() {
		return nil
	}
	switch c.Runtime {
	case CRIO:
		notes = append(notes, "CRI-O reads it after a reload: "+restarts[CRIO])
	case K3s, RKE2:
		notes = append(notes, "restart it once, which leaves pods alone: "+restarts[c.Runtime])
		if len(c.Mirrors) > 0 {
			notes = append(notes, "start it with --disable-default-registry-endpoint: without it, what the registry does not have is asked of "+strings.Join(c.Mirrors, ", "))
		}
	case K0s:
		if slices.ContainsFunc(p.Changes, func(change Change) bool { return change.Path == k0sConfig && change.Action != schema.NodeKeep }) {
			notes = append(notes, "restart it once, which leaves pods alone: "+restarts[K0s])
		}
		if c.containerd1 {
			notes = append(notes, "k0s 1.36 and later refuses "+k0sConfig+" as it is: after an upgrade to it, and before k0s starts again, run this command again")
		}
	}
	return notes
}
