package deployer

import (
	"context"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
)

// EndpointOptions have the endpoints of the registry to add.
type EndpointOptions struct {
	More   schema.ClusterRegistry
	DryRun bool // only judge
	// Replace updates endpoints that are recorded with another authority, or with another scheme.
	Replace bool
}

// AddEndpoints adds endpoints at which nodes find images, with their authorities in More.CA, and returns the registry as it is recorded then.
// Endpoints of other hosts stay, with their authorities. The mode never changes, because the image references of everything that was deployed
// depend on it.
func (d *Deployer) AddEndpoints(ctx context.Context, o EndpointOptions) (*schema.ClusterRegistry, error) {
	return d.editRegistry(ctx, o.DryRun, func(known *schema.ClusterRegistry) (*schema.ClusterRegistry, error) {
		return records.WithEndpoints(known, o.More, o.Replace)
	})
}

// RemoveEndpointsOptions name endpoints of the registry.
type RemoveEndpointsOptions struct{ Endpoints []string }

// RemoveEndpoints removes endpoints from the registry, and the authorities that no other endpoint has.
func (d *Deployer) RemoveEndpoints(ctx context.Context, o RemoveEndpointsOptions) (*schema.ClusterRegistry, error) {
	return d.editRegistry(ctx, false, func(known *schema.ClusterRegistry) (*schema.ClusterRegistry, error) {
		return records.WithoutEndpoints(known, o.Endpoints)
	})
}

// editRegistry changes the recorded registry. A dry run takes no lock, because a lock is a change, too.
func (d *Deployer) editRegistry(ctx context.Context, dryRun bool, edit func(*schema.ClusterRegistry) (*schema.ClusterRegistry, error)) (next *schema.ClusterRegistry, err error) {
	if dryRun {
		known, failure := d.Records.Registry(ctx)
		if failure != nil {
			return nil, failure
		}
		return edit(known)
	}
	err = d.Locked(ctx, func(ctx context.Context) error {
		next, err = d.Records.EditRegistry(ctx, edit)
		return err
	}, cluster.ClusterLock)
	return next, err
}
