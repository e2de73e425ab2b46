package deployer

import (
	"context"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/rights"
	"github.com/solutionctl/solutionctl/deployer/survey"
)

// Roles is [plan.Planner.Roles].
func (d *Deployer) Roles(ctx context.Context, o rights.RolesOptions) (*rights.Grants, error) {
	return d.planner().Roles(ctx, o)
}

// RepairRights returns the permissions that [Deployer.Repair] needs in an environment: to compare objects, and with change to restore any of
// them except CustomResourceDefinitions.
func (d *Deployer) RepairRights(ctx context.Context, environment string, change bool) ([]cluster.Permission, error) {
	states, _, _, err := d.Survey.Deployed(ctx, survey.Selection{Environment: environment})
	if err != nil {
		return nil, err
	}
	releases, _, err := d.Records.Engine.Deployed(ctx, states)
	if err != nil {
		return nil, err
	}
	return rights.Repair(ctx, d.Cluster, releases, change)
}
