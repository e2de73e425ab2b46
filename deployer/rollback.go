package deployer

import (
	"context"

	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/schema"
)

// RollbackOptions select the Solution to roll back.
type RollbackOptions struct {
	plan.Options
	definitions.Losses
	Environment, Solution string
	Namespace             string // one of the environment's; "" stands for all of them
	Revision              int64  // of the history; 0 stands for the one before
}

// Rollback restores the objects of an earlier revision as they were rendered then: of the revision before an interrupted operation, else of the one
// before the last. Solutions that changed in the same run are rolled back together, unless a revision is named. CRDs belong to the whole cluster and do
// not change; it first checks that they serve the earlier version. After a completed rollback it changes nothing, unless a revision is named.
func (d *Deployer) Rollback(ctx context.Context, o RollbackOptions) (*schema.Operation, error) {
	run := d.begin(schema.Operation{Operation: schema.VerbRollback, Solution: o.Solution, Environment: o.Environment}, o.Options)
	run.Losses = o.Losses
	return run.InNamespaces(ctx, o.Namespace, func(ctx context.Context) error {
		if err := run.ReadCatalog(ctx); err != nil {
			return err
		}
		return run.RollBack(ctx, o.Revision)
	})
}
