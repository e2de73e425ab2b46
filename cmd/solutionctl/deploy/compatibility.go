package deploy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/schema"
)

func newCompatibilityCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "compatibility SOLUTION",
		Short: "Show which versions can be active beside the deployed ones",
		Long: `Show what would become of the operators in all environments, and of the objects that are stored, with each imported
version as the active one. All versions share the custom resource definitions of the cluster.

  yes         the operator works with what the version has
  keeps ...   these API versions stay served for it, besides those of the version
  no          it would have to do without what it works with: activation is refused

The last line is about the objects: whether they would lose data or become invalid, so that activation is refused
unless that is accepted, or whether the API server never accepts such a change. The changes are listed below it.
The active version has a star.`,
		Example: "  solutionctl deploy compatibility example-solution",
	}
	f := addClusterFlags(a, cmd)
	takesArguments(cmd, f.compatibility, f.completeImported, solutionAlone)
	return cmd
}

func (f *clusterFlags) compatibility(ctx context.Context, args []string) error {
	return show(f, printCompatibility, func(d *deployer.Deployer) (*schema.Compatibility, error) {
		return d.Definitions.Compatibility(ctx, definitions.CompatibilityOptions{Solution: args[0]})
	})
}

// explain prints what stands behind a refusal in front of it: all versions, and the environments that hold one up.
func (f *clusterFlags) explain(err error) error {
	refused, ok := errors.AsType[*definitions.IncompatibleError](err)
	if !ok || refused.Compatibility == nil || f.ForMachines() {
		return err
	}
	f.Sink.Close()
	return errors.Join(err, f.Out.Print(func(w *console.Stream) { printCompatibility(w, refused.Compatibility) }))
}

// printCompatibility prints a row for each operator and a column for each version, and then the reasons.
func printCompatibility(w *console.Stream, c *schema.Compatibility) {
	table := &console.Table{Columns: []string{"ENVIRONMENT", "NAMESPACE", "HAS"}}
	for _, v := range c.Versions {
		name := v.Version
		if name == c.Active {
			name += "*"
		}
		table.Columns = append(table.Columns, name)
	}
	for row, o := range c.Versions[0].Operators {
		cells := []string{o.Environment, o.Namespace, o.Version}
		for _, v := range c.Versions {
			cells = append(cells, operatorCell(v.Operators[row]))
		}
		table.Add(cells...)
	}
	objects := []string{"stored objects", "", ""}
	for _, v := range c.Versions {
		cell := "kept"
		switch {
		case len(v.Refusals) > 0:
			cell = "refused"
		case len(v.Losses) > 0:
			cell = "lose data"
		}
		objects = append(objects, cell)
	}
	table.Add(objects...)
	table.Print(w)
	for _, v := range c.Versions {
		printReasonsOf(w, v)
	}
}

func operatorCell(o schema.OperatorCompatibility) string {
	if o.Verdict != schema.CompatibilityKeeps {
		return string(o.Verdict)
	}
	var versions []string
	for _, kept := range o.Kept {
		versions = append(versions, kept.Versions...)
	}
	return "keeps " + strings.Join(versions, ", ")
}

func printReasonsOf(w *console.Stream, v schema.VersionCompatibility) {
	var lines []string
	for _, o := range v.Operators {
		for _, reason := range o.Reasons {
			lines = append(lines, fmt.Sprintf("environment %s, namespace %s: %s", o.Environment, o.Namespace, reason))
		}
	}
	lines = slices.Concat(lines, v.Refusals, v.Losses, v.Notices)
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s:\n", console.Line(v.Version))
	for _, line := range lines {
		fmt.Fprintf(w, "  %s\n", console.Line(line))
	}
}
