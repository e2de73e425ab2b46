package deploy

import (
	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/apps"
	"github.com/solutionctl/solutionctl/schema"
)

// newAppCommand returns the commands for those who run applications and need not know Kubernetes.
func newAppCommand(a *cli.App) *cobra.Command {
	group := cli.NewGroup("app", "Manage the applications of an environment",
		newAppFieldsCommand(a),
		newAppCreateCommand(a),
		newAppListCommand(a),
		newAppGetCommand(a),
		newAppSetCommand(a),
		newAppScaleCommand(a),
		newAppDeleteCommand(a),
	)
	group.Aliases = []string{"apps", "application", "applications"}
	group.Long = `Create, change and look after the applications that the Solutions of an environment run: the custom resources of their
operators. What can be filled in, with which limits and defaults, comes from the Solution itself: see 'app fields'. Values
are checked before they are sent.`
	return group
}

// appFlags are the flags that all commands for applications have.
type appFlags struct {
	*clusterFlags
	o apps.Options
}

func addAppFlags(a *cli.App, cmd *cobra.Command) *appFlags {
	f := &appFlags{clusterFlags: addClusterFlags(a, cmd)}
	cmd.Flags().StringVarP(&f.o.Namespace, "namespace", "n", "", "a `NAMESPACE` of the environment, where it has several, or you can see no other one")
	cmd.Flags().StringVar(&f.o.Kind, "kind", "", "`KIND` of application, where there are several")
	cmd.ValidArgsFunction = f.completeApps
	return f
}

// addAppChangeFlags adds the flags of a command that changes an application.
func addAppChangeFlags(a *cli.App, cmd *cobra.Command) *appFlags {
	f := addAppFlags(a, cmd)
	f.addWaitFlags(cmd)
	cmd.Flags().BoolVar(&f.o.NoWait, "no-wait", false, "do not wait until it is done")
	return f
}

// do connects, does something with the application that the arguments ENVIRONMENT and NAME name, and shows it.
func (f *appFlags) do(args []string, work func(*deployer.Deployer) (*schema.App, error)) error {
	f.o.Environment, f.o.Name, f.o.Timeout = args[0], args[1], f.timeout
	return show(f.clusterFlags, printApp, work)
}
