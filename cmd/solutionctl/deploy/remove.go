package deploy

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/deployer"
)

func newRemoveCommand(a *cli.App) *verb {
	cmd := &cobra.Command{
		Use:     "remove ENVIRONMENT SOLUTION",
		Aliases: []string{"delete-solution", "remove-solution"},
		Short:   "Remove a Solution from an environment",
		Long: `Remove everything that adding a Solution put into the namespaces of an environment. This is refused while there are
custom resources of it, because their operator is removed, too.

--keep-data leaves them without an operator. --delete-data writes them to a file that only you can read and deletes them
while the operator still runs; the name of the Solution has to be typed, or given with --yes.`,
		Example: "  solutionctl deploy remove test example-solution",
	}
	v := newClusterVerb(a, cmd)
	cmd.Flags().StringVarP(&v.request.Namespace, "namespace", "N", "", "only from this `NAMESPACE` of the environment")
	var data dataFlags
	data.add(cmd, "keep-data", "leave custom resources without an operator")
	v.takes(func(ctx context.Context, r deployer.Request) error {
		r.Data, r.Losses.Export = data.policy(a, r.Solution+"-"+r.Environment)
		return v.confirmAndPerform(ctx, r)
	}, v.completeDeployment, environmentArgument, solutionArgument)
	return v
}
