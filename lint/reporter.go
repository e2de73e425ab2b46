package lint

import (
	"fmt"
	"slices"

	"github.com/solutionctl/solutionctl/schema/report"
)

// Place is where a finding stands: a file of the archive, a position in it when that is known, and a thing inside.
type Place struct {
	File         string
	Line, Column int
	Object       string // "Deployment/web: spec.replicas"
}

// InFile is a place that is a whole file.
func InFile(name string) Place { return Place{File: name} }

// Reporter collects what one rule finds.
type Reporter struct {
	rule  Rule
	found []*Found
}

// Found is a finding with the edits that would mend it.
type Found struct {
	report.Finding
	edits []Edit
}

// Edit changes one file of a project: it gives it new content, and takes it away when Data is nil.
type Edit struct {
	Path string // in the archive
	Data []byte
}

// Report adds a finding with the severity of the rule. The hint may be empty.
func (r *Reporter) Report(at Place, hint, format string, args ...any) *Found {
	return r.ReportAs(r.rule.Severity, at, hint, format, args...)
}

// ReportAs adds a finding of another severity.
func (r *Reporter) ReportAs(severity report.Severity, at Place, hint, format string, args ...any) *Found {
	f := &Found{Finding: report.Finding{
		Rule: r.rule.ID, Severity: severity, Path: at.File, Line: at.Line, Column: at.Column, Object: at.Object,
		Message: fmt.Sprintf(format, args...), Hint: hint,
	}}
	r.found = append(r.found, f)
	return f
}

// Fix attaches the edits that would mend the finding; they are applied together.
func (f *Found) Fix(edits ...Edit) { f.edits = append(f.edits, edits...) }

// Fix is what mends one finding: edits that are applied together or not at all.
type Fix []Edit

// Apply merges as many fixes as do not touch the same file, and returns the edits. After them, there may be more to fix.
func Apply(fixes []Fix) []Edit {
	var edits []Edit
	touched := map[string]bool{}
	for _, fix := range fixes {
		if slices.ContainsFunc(fix, func(e Edit) bool { return touched[e.Path] }) {
			continue
		}
		for _, edit := range fix {
			touched[edit.Path] = true
			edits = append(edits, edit)
		}
	}
	return edits
}
