package deploy

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/schema"
)

// printOperation prints the completed changes in a few lines, and planned ones object by object.
func (f *clusterFlags) printOperation(w *console.Stream, o *schema.Operation) error {
	fmt.Fprintln(w, w.Paint(console.Bold, console.Line(o.Title())))
	for _, part := range o.Parts {
		fmt.Fprintf(w, "%s: %s\n", console.Line(part.Place()), o.Summary(&part))
		if o.Planned || f.Verbose {
			printChanges(w, part.Changes)
		}
	}
	if o.Empty() {
		fmt.Fprintln(w, o.Nothing())
	}
	if o.Planned || f.Verbose {
		printPowers(w, o, byOption)
	}
	if err := console.PrintEach(w, console.Yellow, "note:", o.Notices); err != nil {
		return err
	}
	if o.Planned && o.Digest != "" && !o.Empty() {
		fmt.Fprintf(w, "to do exactly this: --expect %s\n", o.Digest)
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
		lines := changeLines(&change)
		for _, line := range lines[:min(len(lines), maxLines)] {
			fmt.Fprintf(w, "      %s\n", console.Line(line))
		}
		if more := len(lines) - maxLines; more > 0 {
			fmt.Fprintf(w, "      and %d more\n", more)
		}
	}
}

// maxLines are shown of what changes in one object.
const maxLines = 40

// changeLines describe the changes of an object: for a CRD, the effect on its custom resources instead of the schemas.
func changeLines(change *schema.Change) []string {
	var lines []string
	for _, c := range change.Definition {
		lines = append(lines, c.String())
	}
	for _, field := range change.Fields {
		if len(change.Definition) > 0 && strings.HasPrefix(field.Path, "spec.versions") {
			continue
		}
		leaves, _ := field.Leaves(math.MaxInt)
		for _, leaf := range leaves {
			lines = append(lines, fieldText(leaf))
		}
	}
	return lines
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
