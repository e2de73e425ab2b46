package deployer

import (
	"context"

	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/schema"
)

// RollbackOptions say what to take back.
type RollbackOptions struct {
	plan.Options
	definitions.Losses
	Environment, Solution string
	Namespace             string // one of the environment's; "" stands for all of them
	Revision              int64  // of the history; 0 stands for what was there before
}

// Rollback brings back the objects of an earlier revision, as they were rendered then: of the one before an operation that
// was not completed, else of the one before the last. Solutions that changed in the same run go back together, unless a
// revision is named. Definitions of custom resources belong to the whole cluster and are not touched; whether they serve the
// earlier version is checked first. After a rollback that was completed it changes nothing, unless a revision is named.
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
