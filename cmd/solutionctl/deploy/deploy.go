// Package deploy has the commands below "solutionctl deploy": each is a constructor in a file of its own, which binds flags to a
// struct, calls one function of package deployer or host and prints the result.
package deploy

import (
	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
)

// NewCommand returns the commands that talk to a cluster or prepare a host for one: the one that the first word names, or all of them.
func NewCommand(a *cli.App, words ...string) *cobra.Command {
	group := cli.NewGroup("deploy", "Deploy Solutions to a Kubernetes cluster")
	cli.AddSections(group, a, words,
		cli.In("",
			cli.Named("create-env", func(a *cli.App) *cobra.Command { return asInSolutionsSh(newEnvCreateCommand(a, "create-env")) }),
			cli.Named("delete-env", func(a *cli.App) *cobra.Command { return asInSolutionsSh(newEnvDeleteCommand(a, "delete-env")) }),
		),
		cli.In("Prepare a site",
			cli.Named("install", newInstallCommand), cli.Named("import", newImportCommand), cli.Named("search", newSearchCommand), cli.Named("serve", newServeCommand),
			cli.Named("push", newPushCommand), cli.Named("registry", newRegistryCommand), cli.Named("store", newStoreCommand), cli.Named("node", newNodeCommand),
			cli.Named("cluster", newClusterCommand), cli.Named("monitoring", newMonitoringCommand), cli.Named("roles", newRolesCommand), cli.Named("host", newHostCommand),
		),
		cli.In("Deploy",
			cli.Named("plan", newPlanCommand), cli.Named("activate", changing(newActivateCommand)), cli.Named("env", newEnvCommand), cli.Named("add", changing(newAddCommand)),
			cli.Named("apply", changing(newApplyCommand)), cli.Named("loader", newLoaderCommand),
		),
		cli.In("Run",
			cli.Named("app", newAppCommand), cli.Named("status", newStatusCommand), cli.Named("open", newOpenCommand), cli.Named("logs", newLogsCommand), cli.Named("events", newEventsCommand),
			cli.Named("alerts", newAlertsCommand), cli.Named("components", newComponentsCommand), cli.Named("values", newValuesCommand), cli.Named("history", newHistoryCommand),
			cli.Named("ui", newUICommand), cli.Named("hostd", newHostdCommand),
		),
		cli.In("Change versions",
			cli.Named("compatibility", newCompatibilityCommand), cli.Named("upgrade", changing(newUpgradeCommand)), cli.Named("downgrade", changing(newDowngradeCommand)),
			cli.Named("rollback", changing(newRollbackCommand)),
		),
		cli.In("Find and fix problems",
			cli.Named("doctor", newDoctorCommand), cli.Named("notify", newNotifyCommand), cli.Named("affected", newAffectedCommand), cli.Named("diff", newDeployDiffCommand),
			cli.Named("repair", changing(newRepairCommand)), cli.Named("resume", newResumeCommand), cli.Named("support-bundle", newSupportBundleCommand),
		),
		cli.In("Remove",
			cli.Named("uninstall", newUninstallCommand), cli.Named("remove", changing(newRemoveCommand)), cli.Named("deactivate", changing(newDeactivateCommand)),
			cli.Named("unimport", newUnimportCommand), cli.Named("purge", newPurgeCommand),
		),
	)
	group.Long = `Import Solutions into a cluster without internet, activate them and deploy them in environments. 'deploy install' does all of it
on a site with one host, and 'deploy uninstall' undoes it.

A command that changes the cluster reads, checks and plans first. If the check fails, it changes nothing. If it is interrupted, run
the same command again. The commands and flags of MetalK8s' solutions.sh are accepted, too.`
	return group
}

// changing makes the command of a verb that changes the cluster.
func changing(newVerb func(*cli.App) *verb) func(*cli.App) *cobra.Command {
	return func(a *cli.App) *cobra.Command { return newVerb(a).change() }
}

// newHostCommand returns the group of the commands that run on a host with archives or on a node. Each of them is below "deploy" as well.
func newHostCommand(a *cli.App) *cobra.Command {
	group := cli.NewGroup("host", "Manage a host that keeps archives, and the nodes",
		newImportCommand(a), newUnimportCommand(a), newServeCommand(a), newPushCommand(a), newRegistryCommand(a), newStoreCommand(a), newNodeCommand(a), newHostdCommand(a))
	group.Long = `The commands that run on the host that keeps archives and serves their images, and on nodes. They are the same as the commands of
these names below 'solutionctl deploy'.`
	return group
}
