package deploy

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/deployer/host"
	"github.com/solutionctl/solutionctl/deployer/host/store"
	"github.com/solutionctl/solutionctl/schema"
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
	complete := cli.CompleteNames(func(cmd *cobra.Command) ([]string, error) {
		_ = a.Settings.Apply(cmd) // errors in the settings are reported when the command runs
		return storedNames(f.places.Store)
	})
	takesArguments(cmd, f.unimport, complete, argument{name: "ARCHIVE", flags: []string{"archive", "name"}}, versionArgument.orNone())
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
		fmt.Fprintf(w, "%s-%s: removed, %s freed\n", r.Solution, r.Version, console.Bytes(r.Freed))
	}
	console.PrintEach(w, console.Yellow, "note:", r.Notices)
}

// storedNames lists what the store has.
func storedNames(dir string) ([]string, error) {
	s, err := store.Open(dir)
	if err != nil {
		return nil, err
	}
	entries, err := s.Entries()
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.ID()
	}
	return names, errors.Join(err)
}
