package node

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/solutionctl/solutionctl/schema/report"
)

// kubeletFiles may name the runtime of the kubelet.
var kubeletFiles = []string{"/var/lib/kubelet/config.yaml", "/var/lib/kubelet/kubeadm-flags.env", "/etc/sysconfig/kubelet", "/etc/default/kubelet"}

// traces are files of a runtime, for a kubelet whose files do not name it.
var traces = map[Runtime][]string{
	Containerd: {"/etc/containerd", "/run/containerd/containerd.sock", "/usr/bin/containerd", "/usr/local/bin/containerd"},
	CRIO:       {"/etc/crio", "/run/crio/crio.sock", "/usr/bin/crio", "/usr/local/bin/crio"},
}

// distributions are the directories by which a distribution of Kubernetes is known, which brings a containerd of its own.
var distributions = map[Runtime][]string{
	K3s:      {"/etc/rancher/k3s", "/var/lib/rancher/k3s/agent", "/usr/local/bin/k3s"},
	RKE2:     {"/etc/rancher/rke2", "/var/lib/rancher/rke2", "/usr/local/bin/rke2", "/usr/bin/rke2"},
	K0s:      {"/etc/k0s", "/var/lib/k0s", "/usr/local/bin/k0s"},
	MicroK8s: {"/var/snap/microk8s/current"},
}

// Detect finds out which runtime the node below root has: that of its distribution, the one that its kubelet uses, else the only one
// that is there.
func Detect(root string) (Runtime, error) {
	s := system{root}
	switch found := s.found(distributions); len(found) {
	case 0:
	case 1:
		return found[0], nil
	default:
		return "", report.Errorf(report.Refused, "several distributions of Kubernetes are on this host: %q", found).WithHint("choose one with --runtime")
	}
	for _, name := range kubeletFiles {
		data, _ := s.read(name) // a file that cannot be read is ignored
		for line := range strings.Lines(string(data)) {
			if !isEndpoint(line) {
				continue
			}
			switch {
			case strings.Contains(line, "crio"):
				return CRIO, nil
			case strings.Contains(line, "containerd"):
				return Containerd, nil
			}
		}
	}
	found := s.found(traces)
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return "", report.Errorf(report.Refused, "there is neither containerd nor CRI-O on this host").
			WithHint("choose one with --runtime, or print the files with --print")
	}
	return "", report.Errorf(report.Refused, "both containerd and CRI-O are on this host, and no configuration of a kubelet names one").
		WithHint("choose one with --runtime")
}

// found are the runtimes of which there is a trace.
func (s system) found(traces map[Runtime][]string) (found []Runtime) {
	for _, runtime := range Runtimes() {
		if slices.ContainsFunc(traces[runtime], s.exists) {
			found = append(found, runtime)
		}
	}
	return found
}

const containerdConfig = "/etc/containerd/config.toml"

// registryPlugins are the plugins that hold the settings of registries, one for each version of containerd's configuration.
var registryPlugins = []string{"io.containerd.cri.v1.images", "io.containerd.grpc.v1.cri", "cri"}

// containerdSettings are the settings of containerd that decide whether it reads our files.
type containerdSettings struct {
	configPath, configPathFile string
	legacyFile, legacyKey      string // where registries are configured in the older way
}

// dirs are the directories from which containerd reads files per registry.
func (settings *containerdSettings) dirs() []string { return strings.Split(settings.configPath, ":") }

// check refuses a configuration with which containerd would not read our files, or not start any more.
func (settings *containerdSettings) check(c Config) error {
	dir := cmp.Or(c.CertsDir, DefaultCertsDir)
	const remedy = "set config_path = %q in the section [plugins.'io.containerd.cri.v1.images'.registry] " +
		"([plugins.\"io.containerd.grpc.v1.cri\".registry] before containerd 2) of %s, and restart containerd once"
	switch {
	case settings.legacyKey != "":
		return report.Errorf(report.Refused, "%s configures registries in the older way, by registry.%s: containerd takes either that or files per registry", settings.legacyFile, settings.legacyKey).
			WithHint("move its content to hosts.toml files, remove it, and "+remedy, dir, settings.legacyFile)
	case settings.configPath == "":
		return report.Errorf(report.Refused, "containerd does not read files per registry: %s does not set config_path", containerdConfig).
			WithHint(remedy, dir, containerdConfig)
	case !slices.ContainsFunc(settings.dirs(), func(p string) bool { return path.Clean(p) == path.Clean(dir) }):
		return report.Errorf(report.Refused, "containerd reads files per registry from %s, not from %s: %s sets config_path", settings.configPath, dir, settings.configPathFile).
			WithHint("write them there with --certs-dir, or "+remedy, dir, settings.configPathFile)
	}
	return nil
}

// readContainerd reads a configuration file and those that it imports; later ones override earlier ones.
func (s system) readContainerd(file string, settings *containerdSettings, seen map[string]bool) error {
	data, err := s.read(file)
	if err != nil || seen[file] {
		return err
	}
	seen[file] = true
	var config struct {
		Imports []string                  `toml:"imports"`
		Plugins map[string]map[string]any `toml:"plugins"`
	}
	if err := toml.Unmarshal(data, &config); err != nil {
		return report.Errorf(report.Invalid, "%s: %w", file, err).WithHint("containerd cannot read it either; correct it first")
	}
	for _, plugin := range registryPlugins {
		registry, _ := config.Plugins[plugin]["registry"].(map[string]any)
		if configPath, ok := registry["config_path"].(string); ok && configPath != "" {
			settings.configPath, settings.configPathFile = configPath, file
		}
		for _, key := range []string{"mirrors", "configs"} {
			if old, _ := registry[key].(map[string]any); conflicts(key, old) {
				settings.legacyFile, settings.legacyKey = file, key
			}
		}
	}
	for _, pattern := range config.Imports {
		if !path.IsAbs(pattern) {
			pattern = path.Join(path.Dir(file), pattern)
		}
		for _, name := range s.glob(pattern) {
			if err := s.readContainerd(name, settings, seen); err != nil {
				return fmt.Errorf("imported by %s: %w", file, err)
			}
		}
	}
	return nil
}

// conflicts reports whether containerd takes an older setting instead of files per registry: any mirror, and of the other
// settings those of TLS.
func conflicts(key string, old map[string]any) bool {
	for _, entry := range old {
		table, _ := entry.(map[string]any)
		if _, tls := table["tls"]; tls || key == "mirrors" {
			return true
		}
	}
	return false
}

// glob lists the files that match a pattern in their last element, sorted.
func (s system) glob(pattern string) []string {
	var names []string
	for _, name := range s.list(path.Dir(pattern)) {
		if ok, err := path.Match(path.Base(pattern), name); ok && err == nil {
			names = append(names, path.Join(path.Dir(pattern), name))
		}
	}
	return names
}
