package deploy

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/host"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
)

func newSearchCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "search [TERM]",
		Short: "Search imported versions of Solutions",
		Long: `Find imported versions of Solutions, and archives that this host has, by a part of their name, their display name, their
version or the name of one of their images, as it is in the archive or where it came from. Without TERM, list all.`,
		Example: "  solutionctl deploy search storage",
		Args:    cli.OptionalArgs(nil, "TERM"),
	}
	f := addClusterFlags(a, cmd)
	var dir string
	addStoreFlag(cmd, &dir)
	cmd.ValidArgsFunction = f.completeImported
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return show(f, printSearch, func(d *deployer.Deployer) (*schema.SearchResult, error) {
			return d.Records.Search(cmd.Context(), records.SearchOptions{Term: strings.Join(args, ""), Stored: host.StoredArchives(dir, a.Sink)})
		})
	}
	return cmd
}

func printSearch(w *console.Stream, result *schema.SearchResult) {
	console.PrintEach(w, console.Yellow, "problem:", result.Problems)
	if len(result.Versions)+len(result.Problems) == 0 {
		fmt.Fprintln(w, "nothing was found")
	}
	versions := &console.Table{Columns: []string{"SOLUTION", "VERSION", "STATE", "ENVIRONMENTS", "NAME"}}
	images := &console.Table{Columns: []string{"IMAGE", "IN", "FROM"}}
	for _, v := range result.Versions {
		versions.Add(v.Name, v.Version, foundState(v), orDash(strings.Join(v.Environments, ", ")), v.DisplayName)
		for _, i := range v.Images {
			if i.Matches {
				images.Add(i.Image, v.ID, i.Origin)
			}
		}
	}
	if len(versions.Rows) > 0 {
		versions.Print(w)
	}
	if len(images.Rows) > 0 {
		fmt.Fprintln(w)
		images.Print(w)
	}
}

func foundState(v schema.FoundVersion) string {
	switch {
	case v.Active:
		return "active"
	case v.Imported:
		return "imported"
	default:
		return "on this host"
	}
}
