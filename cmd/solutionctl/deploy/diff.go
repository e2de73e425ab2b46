package deploy

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/deployer"
)

func newDeployDiffCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "diff [ENVIRONMENT [SOLUTION]]",
		Short: "Show differences between the cluster and what was deployed",
		Long: `Compare the cluster with what was deployed. List deployed fields that were changed since, with the field manager and the
time, and objects that were deleted. Fields that others have added are not a difference, and neither is a number of replicas
that an autoscaler or administrator has set. The command needs no write permission. The exit status is 3 when there are differences.`,
		Example: `  solutionctl deploy diff test example-solution
  solutionctl deploy diff prod cloud --component network`,
	}
	f := &verbFlags{clusterFlags: addClusterFlags(a, cmd), exitStatus: true}
	var s selection
	s.addComponents(cmd, f.clusterFlags)
	takesArguments(cmd, func(ctx context.Context, args []string) error {
		selected, err := s.of(args)
		if err != nil {
			return err
		}
		return runVerb(ctx, f, (*deployer.Deployer).Diff, selected)
	}, f.completeDeployment, argument{name: "ENVIRONMENT", optional: true}, argument{name: "SOLUTION", optional: true})
	return cmd
}
