package deploy

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/schema"
)

func newValuesCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "values ENVIRONMENT SOLUTION",
		Short: "Show what the site can set of a Solution's charts, and what it has set",
		Long: `Show the values of the charts of a Solution that is deployed in an environment: path, type, default and description, from the
chart's schema and the comments of its values.yaml. A star marks what this site has set; secrets are not shown.

Change one with 'solutionctl deploy upgrade ENVIRONMENT SOLUTION VERSION --set COMPONENT.PATH=VALUE'. To edit several, print what the
site has set with --file, edit it, and pass it to --values. That file has the secrets, too.`,
		Example: `  solutionctl deploy values prod cloud
  solutionctl deploy values prod cloud --component database --changed
  (umask 077; solutionctl deploy values prod cloud --file > values.yaml)`,
	}
	f := addClusterFlags(a, cmd)
	var o deployer.ValuesOptions
	flags := cmd.Flags()
	flags.StringVarP(&o.Namespace, "namespace", "n", "", "in this `NAMESPACE` of the environment")
	flags.BoolVar(&o.Changed, "changed", false, "only what the site has set")
	file := flags.Bool("file", false, "print what the site has set as a file for --values, with secrets")
	flags.StringSliceVar(&o.Components, "component", nil, "only the values of this `COMPONENT` (may be repeated)")
	cli.Must(cmd.RegisterFlagCompletionFunc("component", f.completeParts(schema.ScopeEnvironment, partNames["rotate"])))
	cmd.MarkFlagsMutuallyExclusive("file", "component")
	takesArguments(cmd, func(ctx context.Context, args []string) error {
		o.Environment, o.Solution = args[0], args[1]
		if !*file {
			return show(f, cli.PrintValues, func(d *deployer.Deployer) (*schema.SolutionValues, error) { return d.Values(ctx, o) })
		}
		return show(f, printSiteValues, func(d *deployer.Deployer) (map[string]map[string]any, error) {
			return d.SiteValues(ctx, o.ComponentsOptions)
		})
	}, f.completeDeployment, environmentArgument, solutionArgument)
	return cmd
}
