package lint

import (
	"fmt"

	"github.com/solutionctl/solutionctl/lint/target"
	"github.com/solutionctl/solutionctl/schema/report"
)

// maxFindings is how many findings of one rule are worth reading.
const maxFindings = 200

// reporter collects the findings of one rule, [maxFindings] at most, and counts the others.
type reporter struct {
	rule  Rule
	found []*Found
	more  int
}

// Found is a finding with the edits that would mend it.
type Found struct {
	report.Finding
	edits []Edit
}

// Report adds a finding with the severity of the rule. The hint may be empty.
func (r *reporter) Report(at target.Place, hint, format string, args ...any) *Found {
	return r.ReportAs(r.rule.Severity, at, hint, format, args...)
}

// ReportAs adds a finding of another severity.
func (r *reporter) ReportAs(severity report.Severity, at target.Place, hint, format string, args ...any) *Found {
	if len(r.found) == maxFindings {
		r.more++
		return &Found{}
	}
	f := &Found{Finding: report.Finding{
		Rule: r.rule.ID, Severity: severity, Path: at.File, Line: at.Line, Column: at.Column, Object: at.Object,
		Message: fmt.Sprintf(format, args...), Hint: hint,
	}}
	r.found = append(r.found, f)
	return f
}

// findings returns what was collected, and a last finding with the number of those that were only counted.
func (r *reporter) findings() []*Found {
	if r.more == 0 {
		return r.found
	}
	last := report.Finding{Rule: r.rule.ID, Severity: r.rule.Severity, Message: fmt.Sprintf("%d more findings of this rule are not shown", r.more)}
	return append(r.found, &Found{Finding: last})
}

// Fix attaches the edits that would mend the finding; they are applied together.
func (f *Found) Fix(edits ...Edit) { f.edits = append(f.edits, edits...) }
