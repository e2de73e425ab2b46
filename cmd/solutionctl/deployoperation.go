package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
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
	fmt.Fprintln(w, w.Paint(console.Bold, console.Clean(title(o))))
	for _, part := range o.Parts {
		place := "cluster"
		if part.Namespace != "" {
			place = "namespace " + part.Namespace
		}
		if part.Solution != "" {
			place += ", " + strings.TrimSpace(part.Solution+" "+part.Version)
		}
		if part.Resumes {
			place += ", finishing what was interrupted"
		}
		fmt.Fprintf(w, "%s: %s\n", console.Clean(place), summary(&part, o.Planned))
		if o.Planned || a.verbose {
			printChanges(w, part.Changes)
		}
	}
	switch {
	case !o.Empty():
	case o.Operation == "diff":
		fmt.Fprintln(w, "no differences")
	default:
		fmt.Fprintln(w, "nothing to do")
	}
	for _, notice := range o.Notices {
		fmt.Fprintf(w, "%s %s\n", w.Paint(console.Yellow, "note:"), console.Clean(notice))
	}
	return nil
}

// verbWords are the past tense of a verb, before the name of the Solution, and a preposition, before that of the environment.
var verbWords = map[string][2]string{
	"activate":   {"activated"},
	"deactivate": {"deactivated"},
	"add":        {"added", "to"},
	"remove":     {"removed", "from"},
	"upgrade":    {"upgraded to", "in"},
	"downgrade":  {"downgraded to", "in"},
	"repair":     {"repaired", "in"},
	"rollback":   {"rolled back to", "in"},
	"diff":       {"compared", "in"},
	"delete":     {"deleted"},
	"purge":      {"purged"},
}

// title says in one line what was done, or what would be.
func title(o *schema.Operation) string {
	words, known := verbWords[o.Operation]
	if !known {
		words = [2]string{o.Operation, "in"}
	}
	if o.Planned && o.Operation != "diff" {
		words[0] = "to " + o.Operation
	}
	parts := []string{words[0], o.Solution, o.Version}
	if o.Environment != "" {
		parts = append(parts, words[1], "environment", o.Environment)
	}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), " ")
}

// summary counts the changes of a part.
func summary(part *schema.OperationPart, planned bool) string {
	words := []struct {
		actions    []schema.Action
		will, done string
	}{
		{[]schema.Action{schema.ActionCreate}, "to create", "created"},
		{[]schema.Action{schema.ActionUpdate}, "to change", "changed"},
		{[]schema.Action{schema.ActionReplace}, "to replace", "replaced"},
		{[]schema.Action{schema.ActionAdopt}, "to take over", "taken over"},
		{[]schema.Action{schema.ActionDelete}, "to delete", "deleted"},
		{[]schema.Action{schema.ActionKeep}, "kept", "kept"},
		{[]schema.Action{schema.ActionSkip}, "skipped", "skipped"},
		{[]schema.Action{schema.ActionNone}, "unchanged", "unchanged"},
	}
	var counts []string
	for _, word := range words {
		if n := part.Count(word.actions...); n > 0 {
			text := word.done
			if planned {
				text = word.will
			}
			counts = append(counts, fmt.Sprintf("%d %s", n, text))
		}
	}
	if len(counts) == 0 {
		return "no objects"
	}
	return strings.Join(counts, ", ")
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
