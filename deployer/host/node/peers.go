package node

import (
	"fmt"
	"slices"

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
