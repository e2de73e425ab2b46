package deploy

import (
	"fmt"
	"strings"
	"time"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// printOperation prints the completed changes in a few lines, and planned ones object by object, after their consequences. What a person
// cannot read or need not is folded, unless --verbose is given.
func (f *clusterFlags) printOperation(w *console.Stream, o *schema.Operation) {
	fmt.Fprintln(w, w.Paint(console.Bold, console.Line(o.Title())))
	if o.Planned && !o.Empty() {
		printConsequences(w, o)
	}
	if o.Planned || f.Verbose {
		printPowers(w, o, byOption)
	}
	if o.Planned && !o.Empty() {
		printPreflight(w, o.Preflight)
	}
	for _, part := range o.Parts {
		fmt.Fprintf(w, "%s: %s\n", console.Line(part.Place()), o.Summary(&part))
		if o.Planned || f.Verbose {
			printChanges(w, part.Changes, !f.Verbose && o.Operation != "diff")
		}
	}
	if o.Empty() {
		fmt.Fprintln(w, o.Nothing())
	}
	console.PrintEach(w, console.Yellow, "note:", o.Remarks())
	if o.Planned && o.Digest != "" && !o.Empty() {
		fmt.Fprintf(w, "to do exactly this: --expect %s\n", o.Digest)
	}
}

// printConsequences prints what a plan means for its users.
func printConsequences(w *console.Stream, o *schema.Operation) {
	if text := o.ConsequencesText(); text != "" {
		fmt.Fprintln(w, console.Line(text))
	}
	for _, s := range o.Signers {
		line := console.Line(s.String())
		if !s.IsTrusted() {
			line = w.Paint(console.Yellow, line)
		}
		fmt.Fprintln(w, line)
	}
	if o.Consequences != nil {
		printLines(w, console.Yellow, "new permissions:", o.Consequences.Permissions)
	}
}

// preflightMarks are the words and colours of the verdicts of checks.
var preflightMarks = map[schema.PreflightResult]struct {
	word  string
	style console.Style
}{
	schema.PreflightWarning: {"check, warning:", console.Yellow},
	schema.PreflightFail:    {"check FAILED:", console.Red},
	schema.PreflightUnknown: {"check:", console.Faint},
}

// printPreflight prints the checks of a plan: those that passed in one line.
func printPreflight(w *console.Stream, checks []schema.PreflightCheck) {
	var passed []string
	for _, c := range checks {
		if c.Result == schema.PreflightPass {
			passed = append(passed, c.String())
		}
	}
	if len(passed) > 0 {
		fmt.Fprintf(w, "%s %s\n", w.Paint(console.Green, "checks passed:"), console.Line(strings.Join(passed, "; ")))
	}
	for _, c := range checks {
		mark, notable := preflightMarks[c.Result]
		if !notable {
			continue
		}
		fmt.Fprintf(w, "%s %s\n", w.Paint(mark.style, mark.word), console.Line(c.String()))
		if c.Hint != "" {
			fmt.Fprintf(w, "  %s\n", console.Line(c.Hint))
		}
	}
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

// printChanges prints changes object by object. With fold, objects that get other labels only are counted.
func printChanges(w *console.Stream, changes []schema.Change, fold bool) {
	labels := 0
	for _, change := range changes {
		if fold && change.OnlyLabels() {
			labels++
			continue
		}
		mark, shown := actionMarks[change.Action]
		if change.Action == schema.ActionNone && change.Note != "" && change.Object.Kind == "Job" { // why it is not run
			mark, shown = actionMarks[schema.ActionKeep], true
		}
		if !shown {
			continue
		}
		text := change.Object.String()
		if change.Note != "" {
			text += " (" + change.Note + ")"
		}
		fmt.Fprintf(w, "  %s %s\n", w.Paint(mark.style, mark.mark), console.Line(text))
		lines := changeLines(&change, fold)
		for _, line := range lines[:min(len(lines), maxLines)] {
			fmt.Fprintf(w, "      %s\n", console.Line(line))
		}
		if more := len(lines) - maxLines; more > 0 {
			fmt.Fprintf(w, "      and %d more\n", more)
		}
	}
	if labels > 0 {
		mark := actionMarks[schema.ActionUpdate]
		fmt.Fprintf(w, "  %s %s: labels only\n", w.Paint(mark.style, mark.mark), report.Count(labels, "object"))
	}
}

// maxLines are shown of what changes in one object.
const maxLines = 40

// changeLines describe the changes of an object: for a CRD, the effect on its custom resources instead of the schemas.
func changeLines(change *schema.Change, fold bool) []string {
	lines := schema.Strings(change.Definition)
	leaves, values := change.Leaves(), schema.FieldChange.Excerpt
	if fold {
		leaves, values = change.Brief(), schema.FieldChange.Brief
	}
	for _, leaf := range leaves {
		from, to := values(leaf)
		lines = append(lines, fieldText(leaf, from, to))
	}
	return lines
}

func fieldText(f schema.FieldChange, from, to string) string {
	text := f.Path + ": "
	switch {
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
