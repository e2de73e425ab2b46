package deploy

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/deployer/host"
	"github.com/solutionctl/solutionctl/deployer/host/store"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

func newUnimportCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "unimport ARCHIVE|SOLUTION [VERSION]",
		Short: "Remove an imported archive from this host and the cluster",
		Long: `Remove an imported version: its entry in the cluster and in MetalK8s' configuration, its mount, and its file in the
store. It is named by SOLUTION and VERSION, by SOLUTION-VERSION, or by the path it was imported from or lies at.

A version that is active or in an environment stays. Of a version that is not there nothing is to be removed, and that is no
error: the same command again finishes one that was interrupted.`,
		Example: "  solutionctl deploy unimport example-solution 1.0.0",
	}
	f := addHostFlags(a, cmd)
	f.addNoCluster(cmd)
	takesArguments(cmd, f.unimport, f.completeStored(), argument{name: "ARCHIVE", flags: []string{"archive", "name"}}, versionArgument.orNone())
	return cmd
}

func (f *hostFlags) unimport(ctx context.Context, words []string) error {
	h, _, err := f.open()
	if err != nil {
		return orWithoutCluster(err)
	}
	done, err := h.Unimport(ctx, host.UnimportOptions{Archive: words[0], Version: words[1]})
	return cli.Emit(f.App, done, err, printUnimport)
}

func printUnimport(w *console.Stream, r *schema.UnimportReport) {
	if r.Solution == "" {
		fmt.Fprintln(w, "nothing to remove")
	} else if r.Path == "" {
		fmt.Fprintf(w, "%s-%s: nothing to remove\n", console.Clean(r.Solution), console.Clean(r.Version))
	} else {
		fmt.Fprintf(w, "%s-%s: removed, %s freed\n", r.Solution, r.Version, report.Bytes(r.Freed))
	}
	console.PrintEach(w, console.Yellow, "note:", r.Notices)
}

// completeStored completes what the store has.
func (f *hostFlags) completeStored() cobra.CompletionFunc {
	return cli.CompleteNames(func(cmd *cobra.Command) (names []string, err error) {
		_ = f.Settings.Apply(cmd) // errors in the settings are reported when the command runs
		s, err := store.Open(f.places.Store)
		if err != nil {
			return nil, err
		}
		entries, err := s.Entries()
		for _, e := range entries {
			names = append(names, e.ID())
		}
		return names, err
	})
}
