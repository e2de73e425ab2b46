package deploy

import (
	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
)

func newPlanCommand(a *cli.App) *cobra.Command {
	group := cli.NewGroup("plan", "Show what a command would do, object by object",
		newActivateCommand(a).plan(), newAddCommand(a).plan(), newApplyCommand(a).plan(), newUpgradeCommand(a).plan(), newDowngradeCommand(a).plan(),
		newRollbackCommand(a).plan(), newRepairCommand(a).plan(), newRemoveCommand(a).plan(), newDeactivateCommand(a).plan())
	group.Long = `Show what a command would do, object by object and field by field, and change nothing:

  + created   ~ changed   ± deleted and created   @ adopted      - deleted   = kept   / skipped

The API server checks what would be sent to it. With --exit-status the exit status is 3 when there is something to do.`
	return group
}
