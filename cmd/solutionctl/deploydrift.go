package main

import (
	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
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
		Args:    optionalArgs(nil, "ENVIRONMENT", "SOLUTION"),
	}
	f := &verbFlags{clusterFlags: a.addClusterFlags(cmd), exitStatus: true}
	cmd.ValidArgsFunction = a.completeDeployment(f.clusterFlags)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		args = append(args, "", "")
		return runVerb(cmd.Context(), a, f, (*deployer.Deployer).Diff, survey.Selection{Environment: args[0], Solution: args[1]})
	}
	return cmd
}

func newRepairCommand(a *app) *verb {
	cmd := &cobra.Command{
		Use:   "repair [ENVIRONMENT [SOLUTION]]",
		Short: "Bring back what was changed since it was deployed",
		Long: `Bring back what 'deploy diff' shows, and nothing else: fields that were deployed and that somebody has edited, and objects
that are gone. Without arguments everything that was deployed is repaired, in all environments and outside of them.

Fields that another tool applies again and again are a conflict, as that tool would take them back: --force-conflicts takes
them over. An object that somebody else has made in place of one that was deployed is left alone without --adopt. Nothing
is deleted, and CustomResourceDefinitions are never touched: 'deploy activate' changes them.

With --records, repair what is written down instead of what runs: records in namespace ` + cluster.SystemNamespace + ` that are
lost or cannot be read are made again from the archives that are imported and from the objects that have our label. Only
objects that are as an imported version has them are put on record; the others are named. No object is changed.`,
		Example: `  solutionctl deploy repair test example-solution
  solutionctl deploy repair --dry-run --exit-status
  solutionctl deploy repair --records`,
		Args: optionalArgs(nil, "ENVIRONMENT", "SOLUTION"),
	}
	f := a.newVerb(cmd)
	f.addReplace()
	var records bool
	cmd.Flags().BoolVar(&records, "records", false, "make records again that are lost or cannot be read")
	cmd.ValidArgsFunction = a.completeDeployment(f.clusterFlags)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		args = append(args, "", "")
		repair := (*deployer.Deployer).Repair
		if records {
			repair = (*deployer.Deployer).RebuildRecords
		}
		return runVerb(cmd.Context(), a, &f.verbFlags, repair, deployer.RepairOptions{Options: f.options(), Environment: args[0], Solution: args[1]})
	}
	return f
}
