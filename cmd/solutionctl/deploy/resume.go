package deploy

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

func newResumeCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "resume [ENVIRONMENT [SOLUTION]]",
		Short: "List and finish interrupted operations",
		Long: `List every pending operation with its command, user and start, and complete it: everywhere, in one environment, or for one
Solution in it. Running the original command again has the same effect; use 'deploy resume' if you do not know the command.

Custom resources are not deleted: an operation that would have to is refused and named, and is to be run again itself.`,
		Example: "  solutionctl deploy resume --dry-run\n  solutionctl deploy resume",
	}
	v := newVerb(cmd, addClusterFlags(a, cmd))
	v.addConfigurationFlag(cmd)
	v.toChange = append(v.toChange, func() { v.addWaitFlags(cmd) })
	takesArguments(cmd, v.resume, v.completeDeployment, environmentArgument.orNone(), solutionArgument.orNone())
	return v.change()
}

func (f *verbFlags) resume(ctx context.Context, args []string) error {
	d, err := f.deployer()
	if err != nil {
		return err
	}
	result, failure := d.Resume(ctx, deployer.ResumeOptions{Options: f.options(), Environment: args[0], Solution: args[1]})
	if result == nil {
		return failure
	}
	if err := f.EmitResult(result, func(w *console.Stream) { printResumption(w, result) }); err != nil {
		return err
	}
	if failure == nil && f.exitStatus && len(result.Operations) > 0 {
		return report.Errorf(report.Changes, "there was something to finish")
	}
	return failure
}

func printResumption(w *console.Stream, r *schema.Resumption) {
	for _, o := range r.Operations {
		what := o.Operation + " " + o.Solution
		if o.Version != "" {
			what += " " + o.Version
		}
		state := w.Paint(console.Green, "finished")
		switch {
		case r.Planned:
			state = w.Paint(console.Yellow, "to be finished")
		case !o.Finished:
			state = w.Paint(console.Red, "not finished")
		}
		place := (&schema.HistoryEntry{Environment: o.Environment, Namespace: o.Namespace}).Place()
		fmt.Fprintf(w, "%s: %s, begun by %s at %s: %s\n", console.Line(place), console.Line(what), console.Line(orDash(o.User)),
			o.Started.UTC().Format(time.RFC3339), state)
	}
	if len(r.Operations) == 0 {
		fmt.Fprintln(w, "nothing to resume")
	}
}
