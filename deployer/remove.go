package deployer

import (
	"context"

	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/schema"
)

// RemoveOptions select the Solution to remove from an environment.
type RemoveOptions struct {
	plan.Options
	Environment, Solution string
	Namespace             string // one of the environment's; "" stands for all of them
	Data                  plan.DataPolicy
	Export                definitions.Export // where custom resources go before they are deleted
	Going                 []string           // other Solutions that leave the environment before this one: what they need is not kept for them
}

// Remove deletes a Solution from namespaces of an environment. It refuses while unrecorded objects of the Solution exist, unless o.Adopt deletes
// them, too.
func (d *Deployer) Remove(ctx context.Context, o RemoveOptions) (*schema.Operation, error) {
	run := d.begin(schema.Operation{Operation: schema.VerbRemove, Solution: o.Solution, Environment: o.Environment}, o.Options)
	run.Export = o.Export
	return run.InNamespaces(ctx, o.Namespace, func(ctx context.Context) error { return run.Remove(ctx, o.Data, o.Going...) })
}
