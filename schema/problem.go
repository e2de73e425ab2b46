package schema

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/schema/report"
)

// maxProblems is the number of problems of one document that are reported together.
const maxProblems = 20

// invalid is the refusal of a document: everything that is wrong with it.
type invalid struct {
	findings []report.Finding
	more     int // problems beyond those
}

// newInvalid returns the refusal with the first problems, in the order of the file.
func newInvalid(findings []report.Finding) error {
	report.SortFindings(findings)
	shown := min(len(findings), maxProblems)
	return &report.Error{Code: report.Invalid, Err: &invalid{findings: findings[:shown], more: len(findings) - shown}}
}

// Error lists the problems, one per line.
func (e *invalid) Error() string {
	lines := Strings(e.findings)
	if e.more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more problems", e.more))
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives each problem its own hint for [report.Hints].
func (e *invalid) Unwrap() []error {
	var errs []error
	for _, f := range e.findings {
		errs = append(errs, &report.Error{Code: report.Invalid, Hint: f.Hint, Err: errors.New(f.String())})
	}
	return errs
}

// Problems returns what is wrong with a document that a parser of this package refused, in the order of the file; nil
// when err is something else.
func Problems(err error) []report.Finding {
	var e *invalid
	if !errors.As(err, &e) {
		return nil
	}
	return slices.Clone(e.findings)
}
