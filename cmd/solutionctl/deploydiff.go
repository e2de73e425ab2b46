package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/survey"
)

func newDeployDiffCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "diff [ENVIRONMENT [SOLUTION]]",
		Short: "Say how the cluster differs from what was deployed",
		Long: `Compare what was deployed with what the cluster has now: fields that were deployed and that somebody has changed, with
who and when, and objects that are gone. What others have added to an object is no difference, and neither is a number of
replicas that somebody else has set. It needs no right to change anything. The exit status is 3 when there are differences.`,
		Example: "  solutionctl deploy diff test example-solution",
	}
	f := &verbFlags{clusterFlags: a.addClusterFlags(cmd), exitStatus: true}
	takesArguments(cmd, f.diff, f.completeDeployment, argument{name: "ENVIRONMENT", optional: true}, argument{name: "SOLUTION", optional: true})
	return cmd
}

func (f *verbFlags) diff(ctx context.Context, args []string) error {
	return runVerb(ctx, f, (*deployer.Deployer).Diff, survey.Selection{Environment: args[0], Solution: args[1]})
}
