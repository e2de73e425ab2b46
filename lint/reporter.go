package lint

import (
	"fmt"

	"github.com/solutionctl/solutionctl/lint/target"
	"github.com/solutionctl/solutionctl/schema/report"
)

// reporter collects the findings of one rule.
type reporter struct {
	rule  Rule
	found []*Found
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
	f := &Found{Finding: report.Finding{
		Rule: r.rule.ID, Severity: severity, Path: at.File, Line: at.Line, Column: at.Column, Object: at.Object,
		Message: fmt.Sprintf(format, args...), Hint: hint,
	}}
	r.found = append(r.found, f)
	return f
}

// Fix attaches the edits that would mend the finding; they are applied together.
func (f *Found) Fix(edits ...Edit) { f.edits = append(f.edits, edits...) }
