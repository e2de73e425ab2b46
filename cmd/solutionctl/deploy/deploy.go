// Package deploy has the commands below "solutionctl deploy": each is a constructor in a file of its own, which binds flags to a
// struct, calls one function of package deployer or host and prints the result.
package deploy

import (
	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
)

// NewCommand returns the commands that talk to a cluster or prepare a host for one.
func NewCommand(a *cli.App) *cobra.Command {
	group := cli.NewGroup("deploy", "Deploy Solutions to a Kubernetes cluster",
		asInSolutionsSh(newEnvCreateCommand(a, "create-env")),
		asInSolutionsSh(newEnvDeleteCommand(a, "delete-env")),
	)
	cli.AddSection(group, "Prepare a site", newInstallCommand(a), newImportCommand(a), newSearchCommand(a), newServeCommand(a), newPushCommand(a), newRegistryCommand(a), newStoreCommand(a), newNodeCommand(a), newClusterCommand(a), newMonitoringCommand(a), newRolesCommand(a), newHostCommand(a))
	cli.AddSection(group, "Deploy",
		newPlanCommand(a), newActivateCommand(a).change(), newEnvCommand(a), newAddCommand(a).change(), newApplyCommand(a).change(), newLoaderCommand(a))
	cli.AddSection(group, "Run", newAppCommand(a), newStatusCommand(a), newOpenCommand(a), newLogsCommand(a), newEventsCommand(a), newAlertsCommand(a), newComponentsCommand(a), newValuesCommand(a), newHistoryCommand(a), newUICommand(a), newHostdCommand(a))
	cli.AddSection(group, "Change versions",
		newCompatibilityCommand(a), newUpgradeCommand(a).change(), newDowngradeCommand(a).change(), newRollbackCommand(a).change())
	cli.AddSection(group, "Find and fix problems",
		newDoctorCommand(a), newNotifyCommand(a), newAffectedCommand(a), newDeployDiffCommand(a), newRepairCommand(a).change(), newResumeCommand(a), newSupportBundleCommand(a))
	cli.AddSection(group, "Remove", newUninstallCommand(a), newRemoveCommand(a).change(), newDeactivateCommand(a).change(), newUnimportCommand(a), newPurgeCommand(a))
	group.Long = `Import Solutions into a cluster without internet, activate them and deploy them in environments. 'deploy install' does all of it
on a site with one host, and 'deploy uninstall' undoes it.

A command that changes the cluster reads, checks and plans first. If the check fails, it changes nothing. If it is interrupted, run
the same command again. The commands and flags of MetalK8s' solutions.sh are accepted, too.`
	return group
}

// newHostCommand returns the group of the commands that run on a host with archives or on a node. Each of them is below "deploy" as well.
func newHostCommand(a *cli.App) *cobra.Command {
	group := cli.NewGroup("host", "Manage a host that keeps archives, and the nodes",
		newImportCommand(a), newUnimportCommand(a), newServeCommand(a), newPushCommand(a), newRegistryCommand(a), newStoreCommand(a), newNodeCommand(a), newHostdCommand(a))
	group.Long = `The commands that run on the host that keeps archives and serves their images, and on nodes. They are the same as the commands of
these names below 'solutionctl deploy'.`
	return group
}
