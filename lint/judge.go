package lint

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"

	"github.com/solutionctl/solutionctl/build"
	"github.com/solutionctl/solutionctl/build/media"
	"github.com/solutionctl/solutionctl/lint/target"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Request selects how projects and archives are checked. Missing settings are taken from the section lint of a project.
type Request struct {
	Enable, Disable   []string        // identifiers or groups of rules
	FailOn            report.Severity // the lowest severity that fails; by default an error
	KubernetesVersion string          // "" for those that the manifest allows
	Against           string          // path of the older version, "" for none
	Deep              bool            // read every blob
	Fix               bool            // apply automatic corrections, in projects
	Overrides         build.Overrides // change the solution.yaml of a project, as in a build of it

	more []string // where further parts of archives are
}

// Report has the findings about each path of a request, in the order of the paths.
type Report struct {
	schema.LintReport
	Lines  [][]string // of each target and each of its findings: the offending line, "" where there is none
	Failed bool       // a finding has at least the severity FailOn
}

// Judge checks each path: a project, an archive, a directory with the content of one, or the parts of one; see [media.Arguments].
func Judge(ctx context.Context, paths []string, r Request) (*Report, error) {
	older, err := openOlder(ctx, r.Against)
	if err != nil {
		return nil, err
	}
	defer older.close()
	all := &Report{}
	paths, r.more = media.Arguments(paths)
	for _, path := range paths {
		one, err := judge(ctx, path, older.Target, r)
		if err != nil {
			return nil, err
		}
		all.add(one)
	}
	return all, nil
}

// judged is a target with its findings and their fixes.
type judged struct {
	schema.LintTarget
	lines  []string
	failOn report.Severity
	fixes  []Fix
}

func (r *Report) add(j *judged) {
	r.Targets = append(r.Targets, j.LintTarget)
	r.Lines = append(r.Lines, j.lines)
	for _, f := range j.Findings {
		switch f.Severity {
		case report.SeverityError:
			r.Errors++
		case report.SeverityWarning:
			r.Warnings++
		default:
			r.Notes++
		}
		r.Failed = r.Failed || f.Severity == report.SeverityError || f.Severity == j.failOn
	}
}

// maxRounds is how often fixing one thing may uncover the next.
const maxRounds = 10

// judge judges one target and, where that is wanted, corrects it as often as there is something to correct.
func judge(ctx context.Context, path string, older *target.Target, r Request) (*judged, error) {
	var fixed []string
	for round := 0; ; round++ {
		r.Fix = r.Fix && round < maxRounds
		j, changed, err := judgeOnce(ctx, path, older, r)
		if err != nil {
			return nil, err
		}
		fixed = append(fixed, changed...)
		if len(changed) == 0 {
			slices.Sort(fixed)
			j.Fixed = slices.Compact(fixed)
			return j, nil
		}
	}
}

// judgeOnce opens a target and judges it. It returns the files that it corrected.
func judgeOnce(ctx context.Context, path string, older *target.Target, r Request) (*judged, []string, error) {
	o, err := open(ctx, path, r)
	if err != nil {
		return nil, nil, err
	}
	defer o.close()
	j, err := o.judge(ctx, older, r)
	if err != nil || !r.Fix || len(j.fixes) == 0 {
		return j, nil, inPath(path, err)
	}
	changed, err := o.write(applyFixes(j.fixes))
	return j, changed, inPath(path, err)
}

func (o *opened) judge(ctx context.Context, older *target.Target, r Request) (*judged, error) {
	r, err := o.settings(r)
	if err != nil {
		return nil, err
	}
	if r.KubernetesVersion != "" {
		if err = o.JudgeFor(r.KubernetesVersion); err != nil {
			return nil, err
		}
	}
	found, err := Run(ctx, o.Target, Options{Enable: r.Enable, Disable: r.Disable, Deep: r.Deep, Against: older})
	if err != nil {
		return nil, err
	}
	j := &judged{failOn: r.FailOn, fixes: o.fixable(found.Fixes), LintTarget: schema.LintTarget{
		Path: filepath.ToSlash(o.path), Kind: string(o.Kind),
		KubernetesVersions: []string{}, Findings: []report.Finding{}, Suppressed: []schema.SuppressedFinding{},
	}}
	for _, release := range o.Releases() {
		j.KubernetesVersions = append(j.KubernetesVersions, release.Version())
	}
	for _, f := range found.Findings {
		j.Findings = append(j.Findings, o.Locate(f))
	}
	report.SortFindings(j.Findings)
	from := lines{files: o.sources}
	for _, f := range j.Findings {
		j.lines = append(j.lines, from.line(f.Path, f.Line))
	}
	for _, s := range found.Suppressed {
		s.Finding = o.Locate(s.Finding)
		j.Suppressed = append(j.Suppressed, s)
	}
	return j, nil
}

// settings completes the request with the settings of the project.
func (o *opened) settings(r Request) (Request, error) {
	if o.Build != nil && o.Build.Lint != nil {
		own := o.Build.Lint
		r.FailOn = cmp.Or(r.FailOn, report.Severity(own.FailOn))
		r.KubernetesVersion = cmp.Or(r.KubernetesVersion, own.KubernetesVersion)
		r.Enable = slices.Concat(knownNames(own.Enable), r.Enable)
		r.Disable = slices.Concat(knownNames(own.Disable), r.Disable)
	}
	r.FailOn = cmp.Or(r.FailOn, report.SeverityError)
	if r.FailOn != report.SeverityError && r.FailOn != report.SeverityWarning {
		return r, report.Errorf(report.Usage, "--fail-on %q is unknown", r.FailOn).WithHint("choose error or warning")
	}
	return r, nil
}
