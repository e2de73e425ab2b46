package node

import (
	"fmt"
	"path"
	"slices"

	"github.com/BurntSushi/toml"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// digestOnly is the value of pull-from-mirror in registries.conf with which a mirror is never asked for a tag.
const digestOnly = "digest-only"

// dragonflyRegistry is the header by which Dragonfly's client learns where to get what no node has. Without it, the client takes the name of the
// registry that containerd sends as "ns", which is that of image references: it has no address. Other peers ignore the header.
const dragonflyRegistry = "X-Dragonfly-Registry"

// originOfPeers returns the first endpoint that has the repositories by the names that a peer is asked for, or nothing.
func originOfPeers(endpoints []string) string {
	for _, endpoint := range endpoints {
		if !schema.IsPushedTo(endpoint) {
			return endpoint
		}
	}
	return ""
}

// checkPeers refuses what cannot be a peer, and runtimes that would ask a peer for tags: its answer could be any image.
func (c Config) checkPeers() error {
	if len(c.Peers) > 0 && (c.Runtime == K3s || c.Runtime == RKE2) {
		return report.Errorf(report.Usage, "registries.yaml of %s cannot restrict a peer to digests: it could answer for a tag with any image", c.Runtime).
			WithHint("leave out --peer. Where every node is trusted, set 'embedded-registry: true' in %s/config.yaml of the servers: it brings Spegel", rancherDirs[c.Runtime])
	}
	endpoints := spread(c.Endpoints, "")
	for _, text := range c.Peers {
		peer, err := schema.ParseEndpoint(text)
		switch {
		case err != nil:
			return fmt.Errorf("peer: %w", err)
		case schema.IsPushedTo(peer):
			return report.Errorf(report.Usage, "peer %s has a path, and a peer has the repositories of the registry", text)
		case slices.Contains(endpoints, peer):
			return report.Errorf(report.Usage, "peer %s is an endpoint of the registry as well", text).
				WithHint("remove the peers of the node: '%s', or leave the endpoint out", report.Run("deploy node config").With("peer", "none"))
		}
	}
	return nil
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

func (s system) crioPeers(host string) (peers []string, err error) {
	data, err := s.read(crioConfig)
	if err != nil || !isOurs(data) {
		return nil, err
	}
	var file struct {
		Registry []struct {
			Prefix string `toml:"prefix"`
			Mirror []struct {
				Location string `toml:"location"`
				Insecure bool   `toml:"insecure"`
				Pull     string `toml:"pull-from-mirror"`
			} `toml:"mirror"`
		} `toml:"registry"`
	}
	if toml.Unmarshal(data, &file) != nil {
		return nil, nil // a damaged file is replaced
	}
	for _, registry := range file.Registry {
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
	return peers, nil
}
