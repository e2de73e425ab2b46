package lint

import (
	"context"

	"github.com/solutionctl/solutionctl/schema/report"
)

// Options choose rules.
type Options struct {
	Enable  []string // identifiers or groups of optional rules
	Disable []string // identifiers or groups
}

// Result is what a run found.
type Result struct {
	Findings []report.Finding // paths are those of the archive
	Edits    []Edit           // what would mend some of them
}

// Run judges the target by every rule that the options choose.
func Run(ctx context.Context, t *Target, o Options) Result {
	var result Result
	for _, rule := range Rules() {
		r := &Reporter{rule: rule}
		rule.Check(ctx, t, r)
		for _, f := range r.found {
			result.Findings = append(result.Findings, f.Finding)
			result.Edits = append(result.Edits, f.edits...)
		}
	}
	report.SortFindings(result.Findings)
	return result
}
