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
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
)

func newHistoryCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "history [ENVIRONMENT [SOLUTION]]",
		Short: "Show past operations with user and time",
		Long: `Show what was done to the cluster, the newest operation first: everywhere, in one environment, or with one Solution in
it. The last operations on each Solution in each namespace are remembered, with the reason of those that have failed.`,
		Example: "  solutionctl deploy history test example-solution",
	}
	f := addClusterFlags(a, cmd)
	takesArguments(cmd, f.history, f.completeDeployment, environmentArgument.orNone(), solutionArgument.orNone())
	return cmd
}

func (f *clusterFlags) history(ctx context.Context, args []string) error {
	return show(f, printHistory, func(d *deployer.Deployer) (*schema.History, error) {
		return d.Records.History(ctx, records.HistoryOptions{Environment: args[0], Solution: args[1]})
	})
}

func printHistory(w *console.Stream, history *schema.History) {
	console.PrintEach(w, console.Yellow, "problem:", history.Problems)
	if len(history.Operations)+len(history.Problems) == 0 {
		fmt.Fprintln(w, "nothing was done yet")
	}
	table := &console.Table{Columns: []string{"STARTED", "WHERE", "SOLUTION", "OPERATION", "USER"}}
	for _, o := range history.Operations {
		operation := o.Operation
		if o.Version != "" {
			operation += " " + o.Version
		}
		if o.Outcome != schema.DeploymentDone {
			operation += " (" + string(o.Outcome) + ")"
		}
		table.Add(o.Started.UTC().Format(time.RFC3339), o.Place(), o.What(), operation, orDash(o.User))
	}
	if len(table.Rows) > 0 {
		table.Print(w)
	}
	for _, o := range history.Operations {
		if o.Failure != nil {
			what := strings.TrimSpace(o.Operation+" "+o.Version) + " of " + o.What()
			fmt.Fprintf(w, "%s %s\n", w.Paint(console.Red, "failed:"),
				console.Line(fmt.Sprintf("%s, %s at %s: %s (%s)", o.Place(), what, o.Started.UTC().Format(time.RFC3339), o.Failure.Message, o.Failure.Code)))
		}
	}
}
