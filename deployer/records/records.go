// Package records knows what is recorded to be deployed: which versions were imported, which is active, and where each is.
//
// A [Records] reads one cluster. [Records.Catalog] is what was imported, [Records.Payload] what was in the archive of a
// version, [Records.Active] which version has its cluster-wide part there, and [Records.Deployments] where its operators are,
// whether our records say so or only the cluster does: what has our label and is on no record is found by [Records.Lost].
// [Records.Registry] says where nodes find images, [Records.Monitoring] what the site's
// Prometheus and Grafana look for.
//
// What it writes are entries: of the catalogue, of the registry, and of the documents that are shared with MetalK8s. It renders
// nothing, applies nothing and takes no lock; whoever changes an entry holds the lock of the cluster.
package records

import (
	"time"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
)

// Records are those of one cluster. All fields are required. They may be used by several goroutines at once.
type Records struct {
	Cluster   *cluster.Cluster
	Engine    *engine.Engine
	Documents *metalk8s.Documents
	Now       func() time.Time // the wall clock, for what people read
	Version   string           // of this program

	payloads contents
}
