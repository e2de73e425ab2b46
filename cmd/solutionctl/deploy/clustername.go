package deploy

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

func newClusterCommand(a *cli.App) *cobra.Command {
	return cli.NewGroup("cluster", "Name the cluster", newClusterNameCommand(a))
}

func newClusterNameCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "name [NAME]",
		Short: "Name the cluster, and mark the name with a colour",
		Long: `Record a name and a colour of the cluster, so that users do not take one cluster for another. 'deploy status' shows
the name, and the console shows it on every page, on the colour. Without --colour, the recorded colour stays. Without NAME, show the
recorded name.`,
		Example: `  solutionctl deploy cluster name 'Production Berlin' --colour red
  solutionctl deploy cluster name
  solutionctl deploy cluster name --remove`,
		Args: cobra.MaximumNArgs(1),
	}
	f := addClusterFlags(a, cmd)
	f.addLockWait(cmd)
	var colour string
	var remove bool
	cmd.Flags().BoolVar(&remove, "remove", false, "remove the recorded name")
	cli.AddChoice(cmd, cmd.Flags(), &colour, "colour", "", "mark of the name in the console", schema.ClusterColours()...)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case remove && (len(args) > 0 || cmd.Flags().Changed("colour")):
			return report.Errorf(report.Usage, "--remove goes with neither a NAME nor --colour")
		case len(args) > 0 && args[0] == "":
			return report.Errorf(report.Usage, "the name is empty; --remove removes the recorded one")
		case len(args) == 0 && cmd.Flags().Changed("colour"):
			return report.Errorf(report.Usage, "--colour needs a NAME")
		case !cmd.Flags().Changed("colour"):
			colour = "" // the recorded one
		}
		if remove {
			return show(f, printNoClusterName, func(d *deployer.Deployer) (struct{}, error) {
				_, err := d.NameCluster(cmd.Context(), "", "")
				return struct{}{}, err
			})
		}
		return show(f, printClusterName, func(d *deployer.Deployer) (*schema.ClusterName, error) {
			if len(args) > 0 {
				return d.NameCluster(cmd.Context(), args[0], colour)
			}
			name, err := d.Records.NameOfCluster(cmd.Context())
			if err == nil && name == nil {
				err = report.Errorf(report.NotFound, "this cluster has no recorded name").WithHint("record one: %s", report.Run("deploy cluster name", "NAME"))
			}
			return name, err
		})
	}
	return cmd
}

func printClusterName(w *console.Stream, n *schema.ClusterName) {
	fmt.Fprintln(w, console.Line(n.String()))
}

func printNoClusterName(w *console.Stream, _ struct{}) {
	fmt.Fprintln(w, "the cluster has no recorded name any more")
}
