package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/host"
	"github.com/solutionctl/solutionctl/schema"
)

func newDeactivateCommand(a *app) *verb {
	cmd := &cobra.Command{
		Use:   "deactivate SOLUTION",
		Short: "Remove the cluster-wide part of a Solution",
		Long: `Remove the CustomResourceDefinitions of a Solution and what else it has for the whole cluster. Deleting a definition
deletes every object of its kind, so this is refused while there are any, or while the Solution is in an environment.

--keep-crds keeps the definitions and all data; activating a version later takes them over again. --delete-data writes
every custom resource to a file that only you can read, deletes them while their operators still run, and then the
definitions; the name of the Solution has to be typed, or given with --yes.`,
		Example: "  solutionctl deploy deactivate example-solution --keep-crds",
	}
	c := &deactivation{verb: a.newVerb(cmd)}
	addConfigurationFlag(cmd, &c.configuration)
	c.data.add(cmd, "keep-crds", "keep the definitions and every custom resource")
	takesArguments(cmd, c.run, c.completeImported, solutionAlone)
	return c.verb
}

// deactivation is a run of 'deploy deactivate'.
type deactivation struct {
	*verb
	configuration string
	data          dataFlags
}

func (c *deactivation) run(ctx context.Context, args []string) error {
	o := deployer.DeactivateOptions{Options: c.options(), Solution: args[0]}
	o.Data, o.Export = c.data.policy(c.app, args[0])
	if err := c.confirm(ctx, o.Confirmation()); err != nil {
		return err
	}
	deactivate := func(d *deployer.Deployer, ctx context.Context, o deployer.DeactivateOptions) (*schema.Operation, error) {
		return host.Active{Verbs: d, Configuration: c.configuration}.Deactivate(ctx, o)
	}
	return runVerb(ctx, &c.verbFlags, deactivate, o)
}
