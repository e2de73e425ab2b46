package deploy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// verbFlags are the flags of commands that deploy.
type verbFlags struct {
	*clusterFlags
	common           plan.Options
	wait, exitStatus bool
}

// addRun adds the flags that say whether a verb is carried out, and whether to wait for what comes of it.
func (f *verbFlags) addRun(cmd *cobra.Command, dryRun, wait string) {
	flags := cmd.Flags()
	flags.BoolVar(&f.common.DryRun, "dry-run", false, dryRun)
	flags.BoolVar(&f.wait, "wait", true, wait)
	flags.BoolVar(&f.common.NoWait, "no-wait", false, "the same as --wait=false")
}

func (f *verbFlags) addExitStatus(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.exitStatus, "exit-status", false, "exit with status 3 when there is something to do")
}

// checkDone is an error if a plan is not empty and --exit-status asks for that.
func (f *verbFlags) checkDone(plan interface{ Empty() bool }) error {
	if f.exitStatus && !plan.Empty() {
		return report.Errorf(report.Changes, "there is something to do")
	}
	return nil
}

// addExpect adds the flag of a command that carries out a reviewed plan.
func (f *verbFlags) addExpect(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.common.Expect, "expect", "", "apply only if the plan still has this `DIGEST` (last line of 'deploy plan')")
}

func (f *verbFlags) options() plan.Options {
	o := f.common
	o.NoWait, o.Timeout = o.NoWait || !f.wait, f.timeout
	return o
}

// verb is a command that deploys and its twin below "plan", which never changes anything: one of change and plan makes it one.
type verb struct {
	verbFlags
	cmd      *cobra.Command
	toChange []func() // add the flags that only make sense where something changes

	request   deployer.Request // some flags set its fields
	arguments []argument
}

// newClusterVerb returns a verb on the cluster that its flags name.
func newClusterVerb(a *cli.App, cmd *cobra.Command) *verb {
	v := newVerb(cmd, addClusterFlags(a, cmd))
	v.request.Verb = cmd.Name()
	v.toChange = append(v.toChange, func() {
		v.addWaitFlags(cmd)
		v.addExpect(cmd)
	})
	return v
}

func newVerb(cmd *cobra.Command, cluster *clusterFlags) *verb {
	v := &verb{verbFlags: verbFlags{clusterFlags: cluster}, cmd: cmd}
	flags := cmd.Flags()
	flags.BoolVar(&v.common.Adopt, "adopt", false, "adopt objects that exist already and that another field manager created")
	flags.BoolVar(&v.common.Force, "force-conflicts", false, "take ownership of fields that belong to another field manager")
	v.addExitStatus(cmd)
	return v
}

func (v *verb) change() *cobra.Command {
	v.addRun(v.cmd, "show the plan and change nothing, as 'deploy plan' does", "wait until what was deployed is ready")
	for _, add := range v.toChange {
		add()
	}
	return v.cmd
}

func (v *verb) plan() *cobra.Command {
	v.common.DryRun = true
	name := v.cmd.Name()
	v.cmd.Example = strings.NewReplacer("deploy "+name, "deploy plan "+name, " --dry-run", "").Replace(v.cmd.Example)
	return v.cmd
}

// takes makes the command take the arguments and run with a request that names what they name.
func (v *verb) takes(run func(context.Context, deployer.Request) error, complete cobra.CompletionFunc, arguments ...argument) {
	v.arguments = arguments
	takesArguments(v.cmd, func(ctx context.Context, args []string) error {
		r := v.about(args)
		r.Options = v.options()
		return run(ctx, r)
	}, complete, arguments...)
}

// about returns the request for the arguments, of which the last may be missing.
func (v *verb) about(args []string) deployer.Request {
	r := v.request
	for i, value := range args[:min(len(args), len(v.arguments))] {
		switch v.arguments[i].name {
		case environmentArgument.name:
			r.Environment = value
		case solutionArgument.name:
			r.Solution = value
		case versionArgument.name:
			r.Version = value
		}
	}
	return r
}

// perform carries out a request and prints what was done.
func (v *verb) perform(ctx context.Context, r deployer.Request) error {
	return runVerb(ctx, &v.verbFlags, (*deployer.Deployer).Perform, r)
}

// confirmAndPerform asks for the confirmation of a request, after its consequences, and carries it out.
func (v *verb) confirmAndPerform(ctx context.Context, r deployer.Request) error {
	c := r.Confirmation()
	if c.Question != "" && v.Interactive && !v.Yes {
		v.printConsequencesOf(ctx, r)
	}
	if err := v.Confirm(ctx, c); err != nil {
		return err
	}
	return v.perform(ctx, r)
}

// printConsequencesOf prints the consequences of a request for a user who is going to be asked. A refusal is left to the run itself.
func (f *verbFlags) printConsequencesOf(ctx context.Context, r deployer.Request) {
	d, err := f.deployer()
	if err != nil {
		return
	}
	r.DryRun = true
	planned, err := d.Perform(ctx, r)
	if err != nil {
		return
	}
	f.printSentence(planned)
}

// printSentence prints the consequences of a plan for a user who is going to be asked.
func (f *verbFlags) printSentence(planned *schema.Operation) {
	if text := planned.ConsequencesText(); text != "" {
		fmt.Fprintf(f.Err, "%s.\n", console.Line(report.Capitalized(text)))
	}
}

// addReplace adds the flag of commands that apply objects.
func (v *verb) addReplace() {
	v.cmd.Flags().StringSliceVar(&v.common.Replace, "replace", nil,
		"delete this `KIND/NAME` and make it again if it cannot be changed in place, or run this Job again (may be repeated)")
}

// runVerb connects, runs a verb and prints what it did.
func runVerb[O any](ctx context.Context, f *verbFlags, verb func(*deployer.Deployer, context.Context, O) (*schema.Operation, error), o O) error {
	d, err := f.deployer()
	if err != nil {
		return err
	}
	done, err := verb(d, ctx, o)
	if again, failure := f.askPowers(ctx, err, &o); failure != nil {
		return failure
	} else if again {
		done, err = verb(d, ctx, o)
	}
	if changed, ok := errors.AsType[*plan.ChangedError](err); ok {
		return cmp.Or(cli.Emit(f.App, changed.Plan, nil, f.printOperation), err) // what would be done now is the result
	}
	if err = cli.Emit(f.App, done, f.explain(err), f.printOperation); err != nil {
		return err
	}
	return f.checkDone(done)
}
