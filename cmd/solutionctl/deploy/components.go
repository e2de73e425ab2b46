package deploy

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/components"
	"github.com/solutionctl/solutionctl/schema"
)

func newComponentsCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "components ENVIRONMENT SOLUTION",
		Short: "Show the components of a Solution in an environment and their health",
		Long: `Show the components of a Solution that is deployed in an environment: what waits for what, which of them were chosen, and how
they are. Below each component stands what it waits for. With --output dot or mermaid the graph is printed for Graphviz or Mermaid.`,
		Example: `  solutionctl deploy components prod cloud
  solutionctl deploy components prod cloud -o dot | dot -Tsvg > cloud.svg`,
	}
	c := addClusterFlags(a, cmd)
	var o deployer.ComponentsOptions
	cmd.Flags().StringVarP(&o.Namespace, "namespace", "n", "", "in this `NAMESPACE` of the environment")
	cli.AddChoice(cmd, cmd.Flags(), &a.Output, "output", "o", "format of the result; dot and mermaid are for pictures", "text", "json", "yaml", "dot", "mermaid")
	takesArguments(cmd, func(ctx context.Context, args []string) error {
		o.Environment, o.Solution = args[0], args[1]
		printer := printComponents
		switch a.Output {
		case "dot":
			printer = func(w *console.Stream, g *schema.ComponentGraph) { fmt.Fprint(w, components.Dot(g)) }
		case "mermaid":
			printer = func(w *console.Stream, g *schema.ComponentGraph) { fmt.Fprint(w, components.Mermaid(g)) }
		}
		return show(c, printer, func(d *deployer.Deployer) (*schema.ComponentGraph, error) { return d.Components(ctx, o) })
	}, c.completeDeployment, environmentArgument, solutionArgument)
	return cmd
}

func printComponents(w *console.Stream, g *schema.ComponentGraph) {
	fmt.Fprintf(w, "%s\n%s\n", w.Paint(console.Bold, g.Solution+" "+g.Version), strings.Join(components.Tree(g), "\n"))
	for _, n := range g.Components {
		if n.Status == nil {
			continue
		}
		for _, reason := range n.Status.Reasons {
			fmt.Fprintf(w, "%s %s\n", w.Paint(console.Yellow, n.Name+":"), console.Line(reason.String()))
		}
	}
}
