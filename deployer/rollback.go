package deployer

import (
	"context"
	"slices"

	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
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

	begun []string // the only namespaces that go back; nil stands for all of them
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
		if o.begun != nil {
			run.Namespaces = slices.DeleteFunc(run.Namespaces, func(n metalk8s.Namespace) bool { return !slices.Contains(o.begun, n.Name) })
		}
		return run.RollBack(ctx, o.Revision)
	})
}
