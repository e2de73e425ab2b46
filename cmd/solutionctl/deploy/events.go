package deploy

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

func newEventsCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "events ENVIRONMENT [SOLUTION]",
		Short: "Show what Kubernetes has reported about the objects of Solutions",
		Long: `Show the Events of Kubernetes about what was deployed in an environment and about what belongs to it, such as pods: the newest last.
Kubernetes keeps Events for an hour, unless the cluster is configured otherwise.

With --watch, continue with new ones until interrupted; with --output json, each is then a document on one line.`,
		Example: `  solutionctl deploy events test
  solutionctl deploy events test example-solution --watch`,
	}
	c := &eventsView{clusterFlags: addClusterFlags(a, cmd)}
	cmd.Flags().StringVarP(&c.o.Namespace, "namespace", "n", "", "only in this `NAMESPACE` of the environment")
	cmd.Flags().StringVar(&c.o.Component, "component", "", "only this `NAME` of what the Solution is made of")
	cmd.Flags().BoolVarP(&c.watch, "watch", "w", false, "continue with new Events until interrupted")
	takesArguments(cmd, c.run, c.completeDeployment, environmentArgument, solutionArgument.orNone())
	return cmd
}

// eventsView is a run of 'deploy events'.
type eventsView struct {
	*clusterFlags
	o     survey.Scope
	watch bool
}

func (c *eventsView) run(ctx context.Context, args []string) error {
	c.o.Environment, c.o.Solution = args[0], args[1]
	switch {
	case c.o.Component != "" && c.o.Solution == "":
		return report.Errorf(report.Usage, "--component needs the Solution: ENVIRONMENT SOLUTION")
	case c.watch && c.Output == "yaml":
		return report.Errorf(report.Usage, "--watch prints text or json")
	case !c.watch:
		return show(c.clusterFlags, c.printEventList, func(d *deployer.Deployer) (*schema.EventList, error) { return d.Survey.Events(ctx, c.o) })
	}
	d, err := c.deployer()
	if err != nil {
		return err
	}
	c.Sink.Close() // progress would be between the lines
	out := c.Out.Text()
	return d.Survey.WatchEvents(ctx, c.o, func(e schema.ObjectEvent) error {
		if c.ForMachines() {
			return json.NewEncoder(c.Out).Encode(e)
		}
		_, err := fmt.Fprintf(out, "%s  %s  %s  %s: %s\n", e.Last.UTC().Format(time.RFC3339), paintEventType(out, e.Type), console.Line(e.String()), console.Line(e.Reason), console.Line(e.Message))
		return err
	})
}

func (c *eventsView) printEventList(w *console.Stream, list *schema.EventList) {
	if len(list.Events) == 0 {
		fmt.Fprintf(w, "Kubernetes has no Events about environment %s\n", console.Line(list.Environment))
		return
	}
	if w.Width > 0 {
		c.eventsOfTerminal(list).Print(w)
		return
	}
	table := &console.Table{Columns: []string{"LAST", "TYPE", "COUNT", "OBJECT", "REASON", "MESSAGE"}}
	for _, e := range list.Events {
		table.Add(e.Last.UTC().Format(time.RFC3339), e.Type, fmt.Sprint(e.Count), e.String(), e.Reason, e.Message)
	}
	table.Print(w)
}

// eventsOfTerminal is the table with short columns: the age, and the count with the reason.
func (c *eventsView) eventsOfTerminal(list *schema.EventList) *console.Table {
	table := &console.Table{Columns: []string{"AGE", "TYPE", "OBJECT", "REASON", "MESSAGE"}}
	for _, e := range list.Events {
		reason := e.Reason
		if e.Count > 1 {
			reason += fmt.Sprintf(" ×%d", e.Count)
		}
		table.Add(duration.HumanDuration(c.Now().Sub(e.Last)), e.Type, e.String(), reason, e.Message)
	}
	return table
}

func paintEventType(w *console.Stream, kind string) string {
	if kind == "Normal" {
		return kind
	}
	return w.Paint(console.Yellow, console.Line(kind))
}
