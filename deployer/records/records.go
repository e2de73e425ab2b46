// Package records reads and writes the records in the cluster: which versions were imported, which one is active, and
// where each is deployed.
//
// A [Records] reads one cluster. [Records.Catalog] returns the imported versions, [Records.Payload] the payload of one,
// [Records.Active] the active version and [Records.Deployments] the namespaces with operators, recorded or not.
// [Records.Lost] finds objects that have our label and are on no record. [Records.Registry] returns the endpoints for
// images, [Records.Monitoring] the labels that the site's Prometheus and Grafana select.
//
// It writes entries of the catalogue, of the registry, and of the documents shared with MetalK8s. It renders nothing,
// applies nothing and takes no lock: the caller of a change holds the lock of the cluster.
package records

import (
	"context"
	"time"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
)

// Records reads and writes the records of one cluster. All fields are required. It is safe for concurrent use.
type Records struct {
	Cluster   *cluster.Cluster
	Engine    *engine.Engine
	Documents *metalk8s.Documents
	Now       func() time.Time // the wall clock, for times that people read
	Version   string           // of this program

	payloads contents
	catalogs lastCatalog
}

// ReadAhead reads the catalogue, the records with the keys and the named documents of this tool at the same time into the memory of the context,
// see [cluster.WithMemory]. What cannot be read is read again where it is needed, which reports the error.
func (r *Records) ReadAhead(ctx context.Context, documents []string, keys ...record.Key) {
	secrets := []string{ImportsName}
	for _, key := range keys {
		secrets = append(secrets, key.SecretName())
	}
	_ = cluster.All(len(secrets)+len(documents), func(i int) (err error) {
		if i < len(secrets) {
			_, err = r.Cluster.Get(ctx, cluster.SecretKind, cluster.SystemNamespace, secrets[i])
		} else {
			_, err = r.Cluster.Get(ctx, cluster.ConfigMapKind, cluster.SystemNamespace, documents[i-len(secrets)])
		}
		return err
	})
}
