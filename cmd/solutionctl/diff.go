package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/build/archive"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/schema/report"
)

func newDiffCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "diff FROM TO",
		Short: "Say what changed between two archives",
		Long: `Say what changed from one archive to another: images, layers, CRD versions, roles and files. The exit status is 0
when they have the same content and 3 when they differ.`,
		Example:           "  solutionctl diff example-solution-1.0.0.iso example-solution-1.1.0.iso",
		Args:              exactArgs("FROM", "TO"),
		ValidArgsFunction: completeArchive(false),
		RunE:              func(_ *cobra.Command, args []string) error { return a.compare(args[0], args[1]) },
	}
}

func (a *app) compare(fromName, toName string) error {
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
	difference, err := archive.Compare(from, to)
	if err = emit(a, difference, err, printDifference); err != nil || difference.Empty() {
		return err
	}
	return report.Errorf(report.Changes, "%s and %s differ", fromName, toName)
}

var changeMarks = map[archive.ChangeKind]struct {
	mark  string
	style console.Style
}{
	archive.Added:   {"+", console.Green},
	archive.Removed: {"-", console.Red},
	archive.Changed: {"~", console.Yellow},
}

func printDifference(w *console.Stream, d *archive.Difference) error {
	fmt.Fprintf(w, "%s → %s\n", d.From, d.To)
	if d.Empty() {
		_, err := fmt.Fprintln(w, "no differences")
		return err
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
	b := d.Blobs
	_, err := fmt.Fprintf(w, "\nlayers and configurations: %d new (%s), %d gone (%s), %d shared (%s)\n",
		b.Added, console.Bytes(b.AddedBytes), b.Removed, console.Bytes(b.RemovedBytes), b.Shared, console.Bytes(b.SharedBytes))
	return err
}
