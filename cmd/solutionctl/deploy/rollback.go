package deploy

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/deployer"
)

func newRollbackCommand(a *cli.App) *verb {
	cmd := &cobra.Command{
		Use:   "rollback ENVIRONMENT SOLUTION",
		Short: "Return a Solution in an environment to its previous revision",
		Long: `Bring back the objects of a Solution in every namespace of an environment as they were before the last operation, or before
the one that was begun and did not end well. Solutions that changed in the same run go back together. A second time it
changes nothing; --revision names another one of 'solutionctl deploy history'.

The definitions of custom resources belong to the whole cluster and stay. It is refused when they, or custom resources that
are there, do not fit the earlier version any more.`,
		Example: "  solutionctl deploy rollback test example-solution",
	}
	v := newClusterVerb(a, cmd)
	v.addReplace()
	cmd.Flags().StringVarP(&v.request.Namespace, "namespace", "n", "", "only in this `NAMESPACE` of the environment")
	cmd.Flags().Int64Var(&v.request.Revision, "revision", 0, "go back to this revision `NUMBER` of the history")
	var loss lossFlags
	loss.add(cmd)
	v.addAllow(cmd, v.about)
	v.takes(func(ctx context.Context, r deployer.Request) error {
		r.Losses = loss.options(a, r.Solution+"-"+r.Environment)
		return v.perform(ctx, r)
	}, v.completeDeployment, environmentArgument, solutionArgument)
	return v
}
