package node

import (
	"maps"
	"path"
	"slices"

	"github.com/BurntSushi/toml"
	"sigs.k8s.io/yaml"

	"github.com/solutionctl/solutionctl/schema"
)

// keep fills in what a configuration leaves open with what the files have that solutionctl wrote on a node. containerd reads the files below dirs.
func (s system) keep(c *Config, dirs []string) error {
	if i := slices.IndexFunc(dirs, func(dir string) bool { return s.isWritten(path.Join(dir, c.Host, "hosts.toml")) }); c.CertsDir == "" && i >= 0 {
		c.CertsDir = dirs[i]
	}
	var err error
	if c.Peers == nil {
		if c.Peers, err = s.peers(*c); err != nil {
			return err
		}
	}
	if c.Mirrors == nil && len(c.origins()) > 0 {
		c.Mirrors, err = s.mirrors(*c)
	}
	return err
}

// isWritten reports whether a file is there and was written by solutionctl.
func (s system) isWritten(name string) bool {
	data, err := s.read(name)
	return err == nil && isOurs(data)
}

// mirrors returns the other registries in the files that solutionctl wrote on a node.
func (s system) mirrors(c Config) (mirrors []string, err error) {
	switch c.Runtime {
	case CRIO:
		list, failed := s.crioRegistries()
		for _, registry := range list {
			mirrors = append(mirrors, registry.Prefix)
		}
		err = failed
	case K3s, RKE2:
		data, failed := s.read(rancherFile(c.Runtime))
		var file registries
		if isOurs(data) && yaml.Unmarshal(data, &file) == nil { // a damaged file is replaced
			mirrors = slices.Sorted(maps.Keys(file.Mirrors))
		}
		err = failed
	default:
		mirrors = slices.DeleteFunc(s.list(c.certsDir()), func(host string) bool { return !s.isWritten(path.Join(c.certsDir(), host, "hosts.toml")) })
	}
	own := []string{c.Host, schema.RegistryHostOwn} // one with the usual name was configured before another name was given
	return slices.DeleteFunc(mirrors, func(host string) bool { return slices.Contains(own, host) }), err
}

// peers returns the peers in the files that solutionctl wrote on a node.
func (s system) peers(c Config) ([]string, error) {
	switch c.Runtime {
	case CRIO:
		return s.crioPeers(c.Host)
	case K3s, RKE2: // which have none: see checkPeers
		return nil, nil
	default:
		return s.containerdPeers(path.Join(c.certsDir(), c.Host, "hosts.toml"))
	}
}

func (s system) containerdPeers(name string) (peers []string, err error) {
	data, err := s.read(name)
	if err != nil || !isOurs(data) {
		return nil, err
	}
	var file struct {
		Host map[string]struct {
			Capabilities []string `toml:"capabilities"`
		} `toml:"host"`
	}
	meta, err := toml.Decode(string(data), &file)
	if err != nil {
		return nil, nil //nolint:nilerr // a damaged file is replaced
	}
	for _, key := range meta.Keys() { // in the order of the file
		if len(key) == 2 && key[0] == "host" && slices.Equal(file.Host[key[1]].Capabilities, []string{"pull"}) {
			peers = append(peers, key[1])
		}
	}
	return peers, nil
}

// crioRegistry is an entry of our drop-in of registries.conf.
type crioRegistry struct {
	Prefix string `toml:"prefix"`
	Mirror []struct {
		Location string `toml:"location"`
		Insecure bool   `toml:"insecure"`
		Pull     string `toml:"pull-from-mirror"`
	} `toml:"mirror"`
}

func (s system) crioRegistries() ([]crioRegistry, error) {
	data, err := s.read(crioConfig)
	if err != nil || !isOurs(data) {
		return nil, err
	}
	var file struct {
		Registry []crioRegistry `toml:"registry"`
	}
	if toml.Unmarshal(data, &file) != nil {
		return nil, nil // a damaged file is replaced
	}
	return file.Registry, nil
}

func (s system) crioPeers(host string) (peers []string, err error) {
	list, err := s.crioRegistries()
	for _, registry := range list {
		if registry.Prefix != host {
			continue
		}
		for _, mirror := range registry.Mirror {
			scheme := "https://"
			if mirror.Insecure {
				scheme = "http://"
			}
			if mirror.Pull == digestOnly {
				peers = append(peers, scheme+mirror.Location)
			}
		}
	}
	return peers, err
}
