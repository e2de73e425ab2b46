package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/build/archive"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/kube/powers"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

func newDiffCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "diff FROM TO",
		Short: "Show what changed between two archives",
		Long: `Say what changed from one archive to another: images, layers, CRD versions, roles and files, and what the second can do
to a cluster that the first cannot (see inspect --powers). The exit status is 0 when they have the same content and 3 when
they differ.`,
		Example:           "  solutionctl diff example-solution-1.0.0.iso example-solution-1.1.0.iso",
		Args:              cli.ExactArgs("FROM", "TO"),
		ValidArgsFunction: completeArchive(false),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.compare(cmd.Context(), args[0], args[1]) },
	}
}

func (a *app) compare(ctx context.Context, fromName, toName string) error {
	from, fromFile, err := openArchive(fromName)
	if err != nil {
		return err
	}
	defer fromFile.Close() //nolint:errcheck // read only
	to, toFile, err := openArchive(toName)
	if err != nil {
		return err
	}
	defer toFile.Close() //nolint:errcheck // read only
	content, err := archive.Compare(from, to)
	if err != nil {
		return err
	}
	d := &difference{Difference: content, Powers: []schema.Power{}}
	if !content.Empty() {
		d.Powers = powers.Uncovered(a.tryPowers(ctx, from), a.tryPowers(ctx, to))
	}
	if err = a.EmitResult(d, func(w *console.Stream) { printDifference(w, d) }); err != nil || d.Empty() {
		return err
	}
	return report.Errorf(report.Changes, "%s and %s differ", fromName, toName)
}

// difference has the changes between two archives, and the powers that only the second has.
type difference struct {
	*archive.Difference
	Powers []schema.Power `json:"powers"`
}

// tryPowers returns what an archive can do to a cluster, as far as it can be judged: a difference is shown of others, too.
func (a *app) tryPowers(ctx context.Context, opened *archive.Archive) []schema.Power {
	judged, err := a.powersOf(ctx, opened)
	if err != nil {
		return nil
	}
	return judged.Powers
}

var changeMarks = map[archive.ChangeKind]struct {
	mark  string
	style console.Style
}{
	archive.Added:   {"+", console.Green},
	archive.Removed: {"-", console.Red},
	archive.Changed: {"~", console.Yellow},
}

func printDifference(w *console.Stream, d *difference) {
	fmt.Fprintf(w, "%s → %s\n", d.From, d.To)
	if d.Empty() {
		fmt.Fprintln(w, "no differences")
		return
	}
	for _, section := range []struct {
		title   string
		changes []archive.Change
	}{{"images", d.Images}, {"CRDs", d.CRDs}, {"roles", d.Roles}, {"files", d.Files}} {
		if len(section.changes) == 0 {
			continue
		}
		fmt.Fprintf(w, "\n%s\n", w.Paint(console.Bold, section.title))
		for _, change := range section.changes {
			mark := changeMarks[change.Kind]
			text := change.Name
			if change.Detail != "" {
				text += ": " + change.Detail
			}
			fmt.Fprintf(w, "  %s %s\n", w.Paint(mark.style, mark.mark), console.Clean(text))
		}
	}
	if len(d.Powers) > 0 {
		fmt.Fprintf(w, "\n%s\n", w.Paint(console.Bold, "it can, and could not before"))
		printLines(w, powers.Summarize(d.Powers))
	}
	printReleaseNotes(w, d.ReleaseNotes, "solutionctl inspect NEW "+archive.ReleaseNotesFile)
	b := d.Blobs
	fmt.Fprintf(w, "\nlayers and configurations: %d new (%s), %d gone (%s), %d shared (%s)\n",
		b.Added, report.Bytes(b.AddedBytes), b.Removed, report.Bytes(b.RemovedBytes), b.Shared, report.Bytes(b.SharedBytes))
}
