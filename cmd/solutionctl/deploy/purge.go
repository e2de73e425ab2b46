package deploy

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/environments"
)

func newPurgeCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "purge",
		Short: "Remove the records that remain after all Solutions were removed",
		Long: `Remove what this program leaves in a cluster after every Solution was removed and every archive unimported: records, the
catalogue, the endpoints of the registry, locks, and the namespaces that it made. What it would remove is listed first, and
asked about.

It is refused while anything is imported, active, deployed or pending, while an environment exists, or while another operation
is running. Objects of others stay, with their namespaces, and so do the documents shared with MetalK8s. After an
interruption, run the command again.`,
		Example: "  solutionctl deploy purge --dry-run",
	}
	f := &verbFlags{clusterFlags: addClusterFlags(a, cmd)}
	f.addWaitFlags(cmd)
	f.addExpect(cmd)
	f.addRun(cmd, "only show what would be removed", "wait until the namespaces are gone")
	f.addExitStatus(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return f.purge(cmd.Context()) }
	return cmd
}

func (f *verbFlags) purge(ctx context.Context) error {
	o := environments.PurgeOptions{Options: f.options()}
	if !o.DryRun && !f.Yes {
		if err := f.confirmPurge(ctx, o); err != nil {
			return err
		}
	}
	return runVerb(ctx, f, (*deployer.Deployer).Purge, o)
}

// confirmPurge shows what would be removed and asks. What is refused, or nothing, is not asked about.
func (f *verbFlags) confirmPurge(ctx context.Context, o environments.PurgeOptions) error {
	d, err := f.deployer()
	if err != nil {
		return err
	}
	planned := o
	planned.DryRun = true
	plan, err := d.Purge(ctx, planned)
	if err != nil || plan.Empty() {
		return f.explain(err)
	}
	f.printSentence(plan)
	fmt.Fprintln(f.Err, "This will be removed:")
	for _, part := range plan.Parts {
		printChanges(f.Err, part.Changes, false)
	}
	return f.Confirm(ctx, o.Confirmation())
}
