package deploy

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/deployer/logs"
	"github.com/solutionctl/solutionctl/schema"
)

// defaultTail is how many lines of each log are printed unless the user asks for others.
const defaultTail = 100

func newLogsCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "logs ENVIRONMENT SOLUTION",
		Short: "Show the logs of a Solution",
		Long: `Show what the containers of a Solution have written: of all pods that were deployed for it, and of those that its operator has
made for custom resources. Each line has its pod and container in front.

With --follow, continue with new lines, also of pods that start later, until interrupted. A container that has not
started is shown with the reason, on standard error. With --output json, each line is a JSON document with the time.

Control characters are shown as such and not obeyed, on a terminal and in a file; JSON has them as they were written.`,
		Example: `  solutionctl deploy logs test example-solution
  solutionctl deploy logs test example-solution --follow --since 10m
  solutionctl deploy logs test example-solution --previous --tail -1`,
	}
	c := &logsView{clusterFlags: addClusterFlags(a, cmd)}
	flags := cmd.Flags()
	flags.StringVarP(&c.o.Namespace, "namespace", "n", "", "only in this `NAMESPACE` of the environment")
	flags.StringVar(&c.o.Component, "component", "", "only this `NAME` of what the Solution is made of")
	flags.StringVar(&c.o.Pod, "pod", "", "only the pod `NAME`")
	flags.StringVar(&c.o.Container, "container", "", "only containers called `NAME`")
	flags.BoolVarP(&c.o.Follow, "follow", "f", false, "continue until interrupted, and wait for pods that have not started")
	flags.BoolVar(&c.o.Previous, "previous", false, "show what containers wrote before they were started again")
	flags.DurationVar(&c.o.Since, "since", 0, "only lines of the last `DURATION`, such as 10m")
	flags.IntVar(&c.o.Tail, "tail", defaultTail, "the last `N` lines of each container, -1 for all; all with --since")
	cli.AddChoice(cmd, flags, &a.Output, "output", "o", "format of each line", "text", "json")
	cli.Must(cmd.RegisterFlagCompletionFunc("component", c.completeSelected()))
	takesArguments(cmd, func(ctx context.Context, args []string) error {
		if c.o.Since > 0 && !flags.Changed("tail") {
			c.o.Tail = -1
		}
		c.o.Environment, c.o.Solution = args[0], args[1]
		return c.run(ctx)
	}, c.completeDeployment, environmentArgument, solutionArgument)
	return cmd
}

// logsView is a run of 'deploy logs'.
type logsView struct {
	*clusterFlags
	o logs.Options
}

func (c *logsView) run(ctx context.Context) error {
	d, err := c.deployer()
	if err != nil {
		return err
	}
	out, note := c.Out.Text(), c.Err.Text()
	reader := logs.Reader{
		Survey: d.Survey, Now: c.Now,
		Line: func(l schema.LogLine) error { return printLogLine(out, l) },
		Note: func(text string) { fmt.Fprintln(note, note.Paint(console.Yellow, "note:"), console.Line(text)) },
	}
	if c.ForMachines() {
		reader.Line = func(l schema.LogLine) error { return json.NewEncoder(c.Out).Encode(l) }
	}
	c.Sink.Close() // progress would be between the lines
	return reader.Run(ctx, c.o)
}

// logStyles are the colours that distinguish pods.
var logStyles = []console.Style{console.Cyan, console.Green, console.Yellow, console.Faint}

func printLogLine(w *console.Stream, l schema.LogLine) error {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(l.Pod + l.Container)) // never fails
	style := logStyles[hash.Sum32()%uint32(len(logStyles))]
	_, err := fmt.Fprintf(w, "%s %s\n", w.Paint(style, console.Line(l.Pod+"/"+l.Container)), console.Clean(l.Text))
	return err
}
