package deployer

import (
	"context"

	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/schema"
)

// AddOptions select the version to add to an environment.
type AddOptions struct {
	plan.Options
	Environment, Solution string
	// Version is an imported version; "" stands for the active one and "latest" for the highest release.
	Version string
	// Namespace is one of the environment's; "" stands for all of them.
	Namespace string
	plan.Rendering
}

// Add deploys an imported version of a Solution in the namespaces of an environment.
func (d *Deployer) Add(ctx context.Context, o AddOptions) (*schema.Operation, error) {
	run := d.begin(schema.Operation{Operation: schema.VerbAdd, Solution: o.Solution, Environment: o.Environment}, o.Options)
	return run.InNamespaces(ctx, o.Namespace, func(ctx context.Context) error {
		if err := run.ReadCatalog(ctx); err != nil {
			return err
		}
		found, err := run.Choose(ctx, o.Solution, o.Version)
		if err != nil {
			return err
		}
		run.Solution, run.Version = found.Name, found.Version
		if err = run.CheckAbsent(ctx, found); err != nil {
			return err
		}
		return run.Place(ctx, []*plan.Placement{{Import: found, Verb: schema.VerbAdd, Namespaces: run.Namespaces, Rendering: o.Rendering}})
	})
}
