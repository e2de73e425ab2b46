package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// verbFlags are the flags of commands that deploy.
type verbFlags struct {
	*clusterFlags
	dryRun     bool
	adopt      bool
	force      bool
	wait       bool
	noWait     bool
	exitStatus bool
	replace    []string
}

// verb is a command that deploys and its twin below "plan", which never changes anything: one of change and plan makes it one.
type verb struct {
	verbFlags
	cmd      *cobra.Command
	toChange []func() // add the flags that only make sense where something changes
}

// newVerb adds the flags that both have.
func (a *app) newVerb(cmd *cobra.Command) *verb {
	v := newVerb(cmd, a.addClusterFlags(cmd))
	v.toChange = append(v.toChange, func() { v.addWaitFlags(cmd) })
	return v
}

func newVerb(cmd *cobra.Command, cluster *clusterFlags) *verb {
	v := &verb{verbFlags: verbFlags{clusterFlags: cluster}, cmd: cmd}
	flags := cmd.Flags()
	flags.BoolVar(&v.adopt, "adopt", false, "take over objects that exist already and that somebody else made")
	flags.BoolVar(&v.force, "force-conflicts", false, "take over fields that belong to somebody else")
	flags.BoolVar(&v.exitStatus, "exit-status", false, "exit with status 3 when there is something to do")
	return v
}

func (v *verb) change() *cobra.Command {
	flags := v.cmd.Flags()
	flags.BoolVar(&v.dryRun, "dry-run", false, "only say what would be done, as 'deploy plan' does")
	flags.BoolVar(&v.wait, "wait", true, "wait until what was deployed is ready")
	flags.BoolVar(&v.noWait, "no-wait", false, "the same as --wait=false")
	for _, add := range v.toChange {
		add()
	}
	return v.cmd
}

func (v *verb) plan() *cobra.Command {
	v.dryRun = true
	return v.cmd
}

// addReplace adds the flag of commands that apply objects.
func (v *verb) addReplace() {
	v.cmd.Flags().StringSliceVar(&v.replace, "replace", nil,
		"delete this `KIND/NAME` and make it anew if it cannot be changed in place, or run this Job again (may be repeated)")
}

func (f *verbFlags) options() deployer.Options {
	return deployer.Options{
		DryRun: f.dryRun, Adopt: f.adopt, Force: f.force, NoWait: f.noWait || !f.wait, Timeout: f.timeout, Replace: f.replace,
	}
}

// deployer returns the verbs on the cluster that the flags name.
func (a *app) deployer(f *clusterFlags) (*deployer.Deployer, error) {
	c, err := a.connect(f)
	if err != nil {
		return nil, err
	}
	return a.deployerOn(c, f), nil
}

func (a *app) deployerOn(c *cluster.Cluster, f *clusterFlags) *deployer.Deployer {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	user := cmp.Or(a.getenv("SUDO_USER"), a.getenv("USER"), processUser())
	return deployer.New(deployer.Config{
		Cluster: c, Sink: a.sink, Now: a.now, Version: readVersion().Version, Identity: user + "@" + host, LockWait: f.lockWait,
	})
}

// processUser names the user that this process runs as, where no variable does: in a service, or a container.
func processUser() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	if id := os.Getuid(); id >= 0 {
		return "uid " + strconv.Itoa(id)
	}
	return "unknown user"
}

// runVerb connects, runs a verb and prints what it did.
func runVerb[O any](ctx context.Context, a *app, f *verbFlags, verb func(*deployer.Deployer, context.Context, O) (*schema.Operation, error), o O) error {
	d, err := a.deployer(f.clusterFlags)
	if err != nil {
		return err
	}
	done, err := verb(d, ctx, o)
	if err != nil {
		return a.explain(err)
	}
	if err := a.emitResult(done, func(w *console.Stream) error { return a.printOperation(w, done) }); err != nil {
		return err
	}
	if f.exitStatus && !done.Empty() {
		return report.Errorf(report.Changes, "there is something to do")
	}
	return nil
}

// printOperation tells what was done in a few lines, and what would be done object by object.
func (a *app) printOperation(w *console.Stream, o *schema.Operation) error {
	fmt.Fprintln(w, w.Paint(console.Bold, console.Clean(o.Title())))
	for _, part := range o.Parts {
		fmt.Fprintf(w, "%s: %s\n", console.Clean(part.Place()), o.Summary(&part))
		if o.Planned || a.verbose {
			printChanges(w, part.Changes)
		}
	}
	if o.Empty() {
		fmt.Fprintln(w, o.Nothing())
	}
	for _, notice := range o.Notices {
		fmt.Fprintf(w, "%s %s\n", w.Paint(console.Yellow, "note:"), console.Clean(notice))
	}
	return nil
}

// actionMarks are the signs and colours of actions. Those without one are not shown.
var actionMarks = map[schema.Action]struct {
	mark  string
	style console.Style
}{
	schema.ActionCreate:  {"+", console.Green},
	schema.ActionUpdate:  {"~", console.Yellow},
	schema.ActionReplace: {"±", console.Yellow},
	schema.ActionAdopt:   {"@", console.Yellow},
	schema.ActionDelete:  {"-", console.Red},
	schema.ActionKeep:    {"=", console.Faint},
	schema.ActionSkip:    {"/", console.Faint},
}

func printChanges(w *console.Stream, changes []schema.Change) {
	for _, change := range changes {
		mark, shown := actionMarks[change.Action]
		if !shown {
			continue
		}
		text := change.Object.String()
		if change.Note != "" {
			text += " (" + change.Note + ")"
		}
		fmt.Fprintf(w, "  %s %s\n", w.Paint(mark.style, mark.mark), console.Clean(text))
		for _, field := range change.Fields {
			fmt.Fprintf(w, "      %s\n", console.Clean(fieldText(field)))
		}
	}
}

func fieldText(f schema.FieldChange) string {
	text := f.Path + ": "
	switch from, to := f.Excerpt(); {
	case from == "":
		text += to
	case to == "":
		text += from + " → nothing"
	default:
		text += from + " → " + to
	}
	if f.Manager != "" && f.Since != nil {
		text += " (set by " + f.Manager + " at " + f.Since.Format(time.RFC3339) + ")"
	}
	return text
}
