package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/schema"
)

func newPlanCommand(a *app) *cobra.Command {
	group := newGroup("plan", "Say what a command would do, object by object",
		newActivateCommand(a, true),
		newAddCommand(a, true),
		newApplyCommand(a, true),
		newDeactivateCommand(a, true),
		newDowngradeCommand(a, true),
		newRemoveCommand(a, true),
		newRollbackCommand(a, true),
		newUpgradeCommand(a, true),
	)
	group.Long = `Say what a command would do, object by object and field by field, and change nothing:

  + created   ~ changed   ± deleted and created   @ taken over   - deleted   = kept   / skipped

The API server checks what would be sent to it. With --exit-status the exit status is 3 when there is something to do.`
	return group
}

func newDeployDiffCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "diff [ENVIRONMENT [SOLUTION]]",
		Short: "Say how the cluster differs from what was deployed",
		Long: `Compare what was deployed with what the cluster has now, field by field: what would have to be done to have it again as
it was. The exit status is 3 when there are differences.`,
		Example: "  solutionctl deploy diff test example-solution",
		Args:    optionalArgs(nil, "ENVIRONMENT", "SOLUTION"),
	}
	f := &verbFlags{clusterFlags: a.addClusterFlags(cmd), exitStatus: true}
	cmd.ValidArgsFunction = a.completeDeployment(f.clusterFlags)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		args = append(args, "", "")
		return a.runVerb(cmd.Context(), f, func(ctx context.Context, d *deployer.Deployer) (*schema.Operation, error) {
			return d.Diff(ctx, deployer.DiffOptions{Environment: args[0], Solution: args[1]})
		})
	}
	return cmd
}
