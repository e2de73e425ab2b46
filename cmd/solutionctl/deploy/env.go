package deploy

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/schema"
)

func newEnvCommand(a *cli.App) *cobra.Command {
	group := cli.NewGroup("env", "Create, show and delete environments",
		newEnvCreateCommand(a, "create"), newEnvListCommand(a), newEnvShowCommand(a), newEnvDeleteCommand(a, "delete"))
	group.Aliases = []string{"environment", "environments"}
	group.Long = `Create, show and delete environments: namespaces under one name, in which Solutions are deployed side by side without
getting in each other's way. MetalK8s' tools know the same environments.`
	return group
}

// asInSolutionsSh hides a command that MetalK8s' solutions.sh has under another name.
func asInSolutionsSh(cmd *cobra.Command) *cobra.Command {
	cmd.Hidden = true
	return cmd
}

func newEnvCreateCommand(a *cli.App, use string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   use + " ENVIRONMENT",
		Short: "Create an environment, or add a namespace to one",
		Long: `Create an environment with one namespace, or add another namespace to an environment. Where it is there already, nothing
is done. A namespace that exists and is not part of the environment is only taken with --adopt.

The name of the environment is that of the namespace, unless --namespace names another one.`,
		Example: `  solutionctl deploy env create test --description "For acceptance tests"
  solutionctl deploy env create test --namespace test-eu`,
	}
	f := addClusterFlags(a, cmd)
	f.addWaitFlags(cmd)
	var o metalk8s.CreateOptions
	flags := cmd.Flags()
	flags.StringVarP(&o.Namespace, "namespace", "N", "", "the `NAMESPACE` to create (default the name of the environment)")
	description := flags.StringP("description", "d", "", "what the environment is for, a `TEXT`")
	flags.BoolVar(&o.Adopt, "adopt", false, "take a namespace that exists already")
	takesArguments(cmd, func(ctx context.Context, args []string) error {
		o.Name, o.Description = args[0], cli.IfChanged(flags, "description", description)
		printTitle := func(w *console.Stream, done *schema.Operation) { fmt.Fprintln(w, done.Title()) }
		return show(f, printTitle, func(d *deployer.Deployer) (*schema.Operation, error) { return d.CreateEnvironment(ctx, o) })
	}, f.completeEnvironments, environmentArgument)
	return cmd
}
