package deploy

import (
	"context"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/schema"
)

// applyEnvironment applies an EnvironmentConfiguration. It does not need the host.
func (c *convergence) applyEnvironment(ctx context.Context, data []byte) error {
	configuration, err := schema.ParseEnvironmentConfiguration(c.file, data)
	if err != nil {
		return err
	}
	if err = c.refuse(c.ofArchives, schema.KindSolutionsConfiguration); err != nil {
		return err
	}
	o := deployer.EnsureOptions{
		Options: c.options(), Environment: configuration.Spec.Name, Others: plan.TellOthers,
		Losses: c.loss.options(c.App, configuration.Spec.Name),
	}
	if c.prune {
		o.Others = plan.RemoveOthers
	}
	ensure := func(d *deployer.Deployer, ctx context.Context, o deployer.EnsureOptions) (*schema.Operation, error) {
		var err error
		if o.Solutions, err = d.Wanted(ctx, configuration.Spec); err != nil {
			return nil, err
		}
		return d.Ensure(ctx, o)
	}
	return runVerb(ctx, &c.verbFlags, ensure, o)
}
