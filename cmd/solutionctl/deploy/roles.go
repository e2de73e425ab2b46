package deploy

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/rights"
	"github.com/solutionctl/solutionctl/schema/report"
)

func newRolesCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "roles [SOLUTION]",
		Short: "Generate the RBAC roles needed to import, deploy and run a Solution",
		Long: `Write roles for users who are not administrators of the cluster, for kubectl apply: the least rights to deploy every
imported version of a Solution, and those to run its applications and nothing else.

  solutionctl-installer-SOLUTION               in the whole cluster: environments, definitions, custom resources
  solutionctl-installer-SOLUTION-environment   in the namespaces of environments: what the Solution consists of
  solutionctl-installer-SOLUTION               in solutionctl-system and metalk8s-solutions: records and locks
  solutionctl-logs-SOLUTION                    in the namespaces of environments: 'deploy logs', for those who deploy
  solutionctl-applications-SOLUTION            in the namespaces of environments: 'deploy app', for its users
  solutionctl-importer                         in the whole cluster, and in both namespaces: to import and unimport, also through the console

The last one is the same for every Solution: it is written with --importers, or where no Solution is named, before the first import.

With --environment they are bound in its namespaces to the groups that are named, and rights that an operator has in the whole
cluster can be granted, because that takes the names of its roles. Read the roles before you apply them: who installs may give
the operator the rights that its archive asks for.`,
		Example: `  solutionctl deploy roles --importers archivists
  solutionctl deploy roles example-solution --environment test --installers deployers --applications designers`,
	}
	c := addClusterFlags(a, cmd)
	var o rights.RolesOptions
	flags := cmd.Flags()
	flags.StringVar(&o.Environment, "environment", "", "bind the roles in the namespaces of this `ENVIRONMENT`")
	flags.StringVar(&o.Installers, "installers", "", "the `GROUP` that deploys the Solution")
	flags.StringVar(&o.Applications, "applications", "", "the `GROUP` that runs its applications; needs --environment")
	flags.StringVar(&o.Importers, "importers", "", "the `GROUP` that imports archives, of any Solution")
	flags.BoolVar(&o.Webhook, "webhook", false, "the operator gets a certificate for its webhooks")
	flags.BoolVar(&o.ProtectCRDs, "protect-crds", false, "the CustomResourceDefinitions are protected")
	takesArguments(cmd, func(ctx context.Context, args []string) error {
		o.Solution = args[0]
		if o.Applications != "" && o.Environment == "" {
			return report.Errorf(report.Usage, "--applications needs --environment")
		}
		if o.Solution == "" && o.Environment+o.Installers+o.Applications != "" {
			return report.Errorf(report.Usage, "name a Solution; without one, only the roles of --importers are printed")
		}
		return show(c, printGrants, func(d *deployer.Deployer) (*rights.Grants, error) { return d.Roles(ctx, o) })
	}, c.completeImported, argument{name: "SOLUTION", optional: true})
	return cmd
}

func printGrants(w *console.Stream, grants *rights.Grants) {
	text, err := grants.YAML()
	if err != nil {
		w.Fail(err)
	}
	fmt.Fprintf(w, "%s", text)
}
