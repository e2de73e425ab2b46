package cli

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/solutionctl/solutionctl/build/sbom"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Question selects packages: those of a package URL with a range, or those of an advisory.
type Question struct {
	Text           string // for messages
	Package, Range string // of a package URL
	Advisory       string // a file
	LeftOut        []string
	Search         func(*schema.PackageList) *schema.AffectedArchive
}

// ReadQuestion reads an advisory, or a package URL where no advisory is named.
func ReadQuestion(advisory, text string) (*Question, error) {
	if advisory == "" {
		query, err := sbom.ParseQuery(text)
		if err != nil {
			return nil, err
		}
		q := &Question{Text: text, Package: query.Package, Range: query.Range.String(), Search: query.Search}
		if limit := query.Limit(); limit != "" {
			q.LeftOut = []string{limit}
		}
		return q, nil
	}
	data, err := readAtMost(advisory, sbom.MaxAdvisory)
	if err != nil {
		return nil, err
	}
	parsed, err := sbom.ParseAdvisory(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", advisory, err)
	}
	names := parsed.Names()
	q := &Question{Text: names[0], Advisory: filepath.Base(advisory), LeftOut: parsed.Left, Search: parsed.Search}
	if len(names) > 1 {
		q.Text += fmt.Sprintf(" and %d more", len(names)-1)
	}
	return q, nil
}

// readAtMost reads a file of at most a number of bytes, and one more to find that there are more.
func readAtMost(name string, most int64) ([]byte, error) {
	info, err := os.Stat(name) // opening a FIFO waits for a writer
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, report.Errorf(report.Invalid, "%s is not a file", name)
	}
	if info.Size() > most {
		return nil, report.Errorf(report.Invalid, "%s has %d bytes, more than %d", name, info.Size(), most)
	}
	return os.ReadFile(name)
}

// PrintLeftOut shows the packages of a question that cannot be searched for.
func PrintLeftOut(w *console.Stream, left []string) {
	const most = 10
	for _, what := range left[:min(len(left), most)] {
		fmt.Fprintf(w, "not searched for: %s\n", console.Clean(what))
	}
	if more := len(left) - most; more > 0 {
		fmt.Fprintf(w, "not searched for: %s\n", report.Count(more, "more package"))
	}
}
