package report

import (
	"cmp"
	"fmt"
	"slices"
)

// Severity is the weight of a finding.
type Severity string

// The severities, gravest first.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
	SeverityNote    Severity = "note"
)

// Finding is one judgement on the user's input.
//
// Path is slash-separated and relative to the root of the examined tree; Line and Column count from 1 and are 0 where they
// do not apply. Object names a thing inside the file ("Deployment/web, container app", "spec.version"). Message is one
// sentence: what was found and what was expected. Hint is the remedy.
type Finding struct {
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	Path     string   `json:"path,omitempty"`
	Line     int      `json:"line,omitempty" schema:"minimum=1"`
	Column   int      `json:"column,omitempty" schema:"minimum=1"`
	Object   string   `json:"object,omitempty"`
	Message  string   `json:"message"`
	Hint     string   `json:"hint,omitempty"`
}

// Position returns "path:line:column" with the parts that are known.
func (f Finding) Position() string {
	switch {
	case f.Line == 0:
		return f.Path
	case f.Column == 0:
		return fmt.Sprintf("%s:%d", f.Path, f.Line)
	default:
		return fmt.Sprintf("%s:%d:%d", f.Path, f.Line, f.Column)
	}
}

func (f Finding) String() string {
	text := f.Message
	if f.Object != "" {
		text = f.Object + ": " + text
	}
	if position := f.Position(); position != "" {
		text = position + ": " + text
	}
	return text
}

// SortFindings orders findings by place, then rule, then message: the order in which every output prints them.
func SortFindings(findings []Finding) {
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
			cmp.Compare(a.Object, b.Object), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Message, b.Message),
		)
	})
}

// HasErrors reports whether any finding is an error.
func HasErrors(findings []Finding) bool {
	return slices.ContainsFunc(findings, func(f Finding) bool { return f.Severity == SeverityError })
}
