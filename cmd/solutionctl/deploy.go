package main

import (
	"github.com/spf13/cobra"
)

// newDeployCommand returns the commands that talk to a cluster or prepare a host for one.
func newDeployCommand(a *app) *cobra.Command {
	group := newGroup("deploy", "Deploy Solutions to a Kubernetes cluster",
		newActivateCommand(a, false),
		newAddCommand(a, false),
		newAppCommand(a),
		newApplyCommand(a, false),
		newCompatibilityCommand(a),
		newDeactivateCommand(a, false),
		newDeployDiffCommand(a),
		newDoctorCommand(a),
		newDowngradeCommand(a, false),
		newEnvCommand(a),
		newHistoryCommand(a),
		newImportCommand(a),
		newNodeCommand(a),
		newPlanCommand(a),
		newRegistryCommand(a),
		newRemoveCommand(a, false),
		newRepairCommand(a, false),
		newResumeCommand(a),
		newRollbackCommand(a, false),
		newSearchCommand(a),
		newServeCommand(a),
		newStatusCommand(a),
		newSupportBundleCommand(a),
		newUnimportCommand(a),
		newUpgradeCommand(a, false),

		asInSolutionsSh(newEnvCreateCommand(a, "create-env")),
		asInSolutionsSh(newEnvDeleteCommand(a, "delete-env")),
	)
	group.Long = `Import Solutions into a cluster without internet, activate them and deploy them in environments.

Commands that change the cluster first read, judge and plan, and change nothing when anything stands against it. One that
was interrupted is simply run again. The commands and flags of MetalK8s' solutions.sh are understood, too.`
	return group
}
