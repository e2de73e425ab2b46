package deployer

import (
	"context"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/records"
)

// RecordImport makes a version known to the cluster: its payload is stored, the catalogue and MetalK8s' ConfigMap get an
// entry. Recording the same archive again changes nothing; another archive of the same version is refused while the
// first one is in use, unless it is a pre-release: then notices name the deployments that keep the first one.
func (d *Deployer) RecordImport(ctx context.Context, r records.ImportRecord) (notices []string, err error) {
	err = d.Locked(ctx, func(ctx context.Context) error {
		catalog, failure := d.Records.CatalogOrDamage(ctx)
		if failure != nil {
			return failure
		}
		if notices, failure = d.Records.CheckImport(ctx, catalog, r); failure != nil {
			return failure
		}
		return d.Records.Import(ctx, catalog, r)
	}, cluster.ClusterLock)
	return notices, err
}

// UnimportOptions name an imported version by its id.
type UnimportOptions struct{ ID string }

// RecordUnimport deletes a version from the catalogue, unless it is in use. An unknown version is not an error: the work is done.
func (d *Deployer) RecordUnimport(ctx context.Context, o UnimportOptions) error {
	return d.Locked(ctx, func(ctx context.Context) error { return d.Records.Unimport(ctx, o.ID) }, cluster.ClusterLock)
}
