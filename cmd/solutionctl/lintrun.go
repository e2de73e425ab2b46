package main

import (
	"context"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/lint"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// lintResult is what is said about one target, and what it takes to show that.
type lintResult struct {
	schema.LintTarget
	lines  []string // the offending line of each finding, as far as there is one
	failOn report.Severity
}

// lintSummary is the result of `solutionctl lint`.
type lintSummary struct {
	schema.LintReport
	results []lintResult
	failed  bool
}

func (s *lintSummary) add(r lintResult) {
	s.Targets = append(s.Targets, r.LintTarget)
	s.results = append(s.results, r)
	for _, f := range r.Findings {
		switch f.Severity {
		case report.SeverityError:
			s.Errors++
		case report.SeverityWarning:
			s.Warnings++
		default:
			s.Notes++
		}
		s.failed = s.failed || f.Severity == report.SeverityError || f.Severity == r.failOn
	}
}

func (s *lintSummary) fails() bool { return s.failed }

func (s *lintSummary) count() string {
	var all []report.Finding
	suppressed := 0
	for _, t := range s.Targets {
		all = append(all, t.Findings...)
		suppressed += len(t.Suppressed)
	}
	text := console.CountFindings(all)
	if suppressed > 0 {
		text += fmt.Sprintf(", %d suppressed", suppressed)
	}
	return text
}

// maxFixRounds is how often fixing one thing may uncover the next.
const maxFixRounds = 10

// lintOne judges one target; with --fix, as often as there is something to correct.
func (a *app) lintOne(ctx context.Context, name string, older *lint.Target, f lintFlags) (*lintResult, error) {
	var fixed []string
	for round := 0; ; round++ {
		target, err := a.openLintTarget(ctx, name)
		if err != nil {
			return nil, err
		}
		result, fixes, err := target.judge(ctx, older, f)
		if err == nil && f.fix && len(fixes) > 0 && target.preview != nil && round < maxFixRounds {
			var changed []string
			changed, err = target.writeEdits(lint.Apply(fixes))
			fixed = append(fixed, changed...)
			target.close()
			if err == nil && len(changed) > 0 {
				continue
			}
		}
		target.close()
		if err != nil {
			return nil, err
		}
		slices.Sort(fixed)
		result.Fixed = slices.Compact(fixed)
		return result, nil
	}
}

func (t *lintTarget) judge(ctx context.Context, older *lint.Target, f lintFlags) (*lintResult, []lint.Fix, error) {
	f, err := t.settings(f)
	if err != nil {
		return nil, nil, err
	}
	if f.kubernetesVersion != "" {
		if err = t.JudgeFor(f.kubernetesVersion); err != nil {
			return nil, nil, err
		}
	}
	t.Deep, t.Against = f.deep, older
	found, err := lint.Run(ctx, t.Target, f.Options)
	if err != nil {
		return nil, nil, err
	}
	r := &lintResult{failOn: report.Severity(f.failOn), LintTarget: schema.LintTarget{
		Path: filepath.ToSlash(t.path), Kind: string(t.Kind),
		KubernetesVersions: []string{}, Findings: []report.Finding{}, Suppressed: []schema.SuppressedFinding{},
	}}
	for _, release := range t.Releases() {
		r.KubernetesVersions = append(r.KubernetesVersions, release.Version())
	}
	for _, f := range found.Findings {
		r.Findings = append(r.Findings, t.Locate(f))
	}
	report.SortFindings(r.Findings)
	for _, f := range r.Findings {
		r.lines = append(r.lines, t.sourceLine(f.Path, f.Line))
	}
	for _, s := range found.Suppressed {
		s.Finding = t.Locate(s.Finding)
		r.Suppressed = append(r.Suppressed, s)
	}
	return r, t.fixable(found.Fixes), nil
}

// maxSource is how far into a file an offending line is looked for.
const maxSource = 4 << 20

// sourceLine returns a line of a file as the user knows it; "" when there is none.
func (t *lintTarget) sourceLine(name string, number int) string {
	if name == "" || number == 0 {
		return ""
	}
	f, err := t.sources.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close() //nolint:errcheck // read only
	data, err := io.ReadAll(io.LimitReader(f, maxSource))
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(data)) {
		if number--; number == 0 {
			return strings.TrimRight(line, "\r\n")
		}
	}
	return ""
}

// place is the path of a finding as editors open it, relative to the current directory; inside of an archive it begins
// with the name of the archive.
func (r lintResult) place(f report.Finding) report.Finding {
	f.Path = path.Join(r.Path, f.Path)
	return f
}
