package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/deployer"
)

func newPurgeCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "purge",
		Short: "Remove what stays in the cluster after everything was removed",
		Long: `Remove what this program leaves in a cluster after every Solution was removed and every archive unimported: records, the
catalogue, the endpoints of the registry, locks, and the namespaces that it made. What it would remove is listed first, and
asked about.

It is refused while anything is imported, active, deployed or not finished, while an environment exists, or while somebody is
at work. What somebody else made stays, with the namespace that it is in, and so do the documents shared with MetalK8s.
One that was interrupted is simply run again.`,
		Example: "  solutionctl deploy purge --dry-run",
		Args:    exactArgs(),
	}
	f := a.addClusterFlags(cmd)
	f.addWaitFlags(cmd)
	verb := &verbFlags{clusterFlags: f}
	flags := cmd.Flags()
	flags.BoolVar(&verb.dryRun, "dry-run", false, "only say what would be removed")
	flags.BoolVar(&verb.exitStatus, "exit-status", false, "exit with status 3 when there is something to do")
	flags.BoolVar(&verb.wait, "wait", true, "wait until the namespaces are gone")
	flags.BoolVar(&verb.noWait, "no-wait", false, "the same as --wait=false")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		o := deployer.PurgeOptions{Options: verb.options()}
		if !o.DryRun && !a.yes {
			if err := a.confirmPurge(cmd.Context(), f, o); err != nil {
				return err
			}
		}
		return runVerb(cmd.Context(), a, verb, (*deployer.Deployer).Purge, o)
	}
	return cmd
}

// confirmPurge shows what would be removed and asks. What is refused, or nothing, is not asked about.
func (a *app) confirmPurge(ctx context.Context, f *clusterFlags, o deployer.PurgeOptions) error {
	d, err := a.deployer(f)
	if err != nil {
		return err
	}
	planned := o
	planned.DryRun = true
	plan, err := d.Purge(ctx, planned)
	if err != nil || plan.Empty() {
		return a.explain(err)
	}
	fmt.Fprintln(a.err, "This will be removed:")
	for _, part := range plan.Parts {
		printChanges(a.err, part.Changes)
	}
	return a.confirm(ctx, o.Confirmation())
}
