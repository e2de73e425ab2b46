package deploy

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/schema/report"
)

func newDeactivateCommand(a *cli.App) *verb {
	cmd := &cobra.Command{
		Use:   "deactivate SOLUTION",
		Short: "Remove the cluster-wide part of a Solution",
		Long: `Remove the CustomResourceDefinitions of a Solution and what else it has for the whole cluster. Deleting a definition
deletes every object of its kind, so this is refused while there are any, or while the Solution is in an environment.

--keep-crds keeps the definitions and all data; activating a version later adopts them. --delete-data writes
every custom resource to a file that only you can read, deletes them while their operators still run, and then the
definitions; the name of the Solution has to be typed, or given with --yes.

--force-webhooks deletes the webhook configurations of the Solution and nothing else. It takes no lock, so that it works
while one of them refuses the Leases that locks are.`,
		Example: `  solutionctl deploy deactivate example-solution --keep-crds
  solutionctl deploy deactivate example-solution --force-webhooks`,
	}
	c := &deactivation{verb: newClusterVerb(a, cmd)}
	c.addConfigurationFlag(cmd)
	c.data.add(cmd, "keep-crds", "keep the definitions and every custom resource")
	cmd.Flags().BoolVar(&c.webhooks, "force-webhooks", false, "only delete its webhook configurations, without a lock")
	for _, other := range []string{"keep-crds", "delete-data", "export", "adopt", "force-conflicts"} {
		cmd.MarkFlagsMutuallyExclusive("force-webhooks", other)
	}
	c.takes(c.run, c.completeImported, solutionAlone)
	return c.verb
}

// deactivation is a run of 'deploy deactivate'.
type deactivation struct {
	*verb
	data     dataFlags
	webhooks bool
}

func (c *deactivation) run(ctx context.Context, r deployer.Request) error {
	if c.webhooks {
		return c.removeWebhooks(ctx, r.Solution)
	}
	r.Data, r.Losses.Export = c.data.policy(c.App, r.Solution)
	return c.confirmAndPerform(ctx, r)
}

func (c *deactivation) removeWebhooks(ctx context.Context, solution string) error {
	if c.common.Expect != "" {
		return report.Errorf(report.Usage, "--force-webhooks has no plan that can be expected")
	}
	o := deployer.RemoveWebhooksOptions{DryRun: c.common.DryRun, Solution: solution}
	if err := c.Confirm(ctx, o.Confirmation()); err != nil {
		return err
	}
	return runVerb(ctx, &c.verbFlags, (*deployer.Deployer).RemoveWebhooks, o)
}
