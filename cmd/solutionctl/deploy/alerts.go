package deploy

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
)

func newAlertsCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "alerts [ENVIRONMENT [SOLUTION]]",
		Short: "Show the alerts of Prometheus about Solutions",
		Long: `Show the alerts that fire, or are about to, for Solutions, environments and solutionctl itself: everywhere, in one environment, or
for one Solution in it. Other alerts of the cluster are not shown.

The Prometheus of the cluster is found by the objects of its operator, or is that of 'deploy monitoring config --prometheus'. It is
asked through the API server, with your own rights, and for two seconds at most; where none answers, the command fails.`,
		Example: `  solutionctl deploy alerts
  solutionctl deploy alerts test example-solution --output json`,
	}
	f := addClusterFlags(a, cmd)
	var o survey.AlertOptions
	cmd.Flags().StringVarP(&o.Namespace, "namespace", "n", "", "only this `NAMESPACE`, for a user who cannot list those of the environment")
	takesArguments(cmd, func(ctx context.Context, args []string) error {
		o.Environment, o.Solution = args[0], args[1]
		return show(f, printAlerts, func(d *deployer.Deployer) (*schema.AlertList, error) { return d.Survey.Alerts(ctx, o) })
	}, f.completeDeployment, environmentArgument.orNone(), solutionArgument.orNone())
	return cmd
}

func printAlerts(w *console.Stream, list *schema.AlertList) {
	if len(list.Alerts) == 0 {
		fmt.Fprintf(w, "no alert according to %s\n", console.Line(strings.Join(list.Asked, ", ")))
	} else {
		alertTable(list.Alerts).Print(w)
	}
	printUnseen(w, list.Unseen)
	console.PrintEach(w, console.Yellow, "problem:", list.Problems)
}

func alertTable(alerts []schema.Alert) *console.Table {
	table := &console.Table{Columns: []string{"STATE", "SINCE", "ALERT", "SEVERITY", "ENVIRONMENT", "SOLUTION", "SUMMARY"}}
	for _, a := range alerts {
		table.Add(string(a.State), a.Since.Format(time.RFC3339), a.Name, orDash(a.Severity), orDash(a.Environment), orDash(a.Solution), a.Summary)
	}
	return table
}
