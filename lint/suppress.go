package lint

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/lint/target"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/lazyregexp"
	"github.com/solutionctl/solutionctl/schema/report"
)

const (
	ruleSuppressReason = "SOL210"
	ruleSuppressUnused = "SOL211"
)

// annotationIgnore lists the rules to suppress for one object: "SOL123: reason; SOL124: reason".
const annotationIgnore = "lint.solutionctl.io/ignore"

// suppression silences some rules in a part of a file.
type suppression struct {
	rules       []string
	reason      string
	file        string
	line        int    // of the comment, or 0
	first, last int    // the lines that it covers; 0 covers findings without a line
	object      string // "Deployment/web" for an annotation, which covers the lines of the object as well
	used        bool
}

// covers reports whether a finding of one of its rules in its file is silenced.
func (s *suppression) covers(f report.Finding) bool {
	if s.object != "" {
		name, _, _ := strings.Cut(f.Object, ": ")
		return name == s.object || strings.HasSuffix(name, s.object) || strings.Contains(f.Object, ": "+s.object)
	}
	return f.Line >= s.first && f.Line <= s.last
}

// maxSuppressed is how many rules the suppressions of one file name together. Those behind are not applied.
const maxSuppressed = 1000

// suppressions has the suppressions of a target, in the order of its files.
type suppressions struct {
	list   []*suppression
	byRule map[[2]string][]*suppression // by the file and the rule
	named  map[string]int               // rules in the suppressions of a file
}

// add enters a suppression, unless its file has too many.
func (l *suppressions) add(s *suppression) bool {
	if l.named[s.file] += max(len(s.rules), 1); l.named[s.file] > maxSuppressed {
		return false
	}
	l.list = append(l.list, s)
	for _, rule := range s.rules {
		key := [2]string{s.file, rule}
		l.byRule[key] = append(l.byRule[key], s)
	}
	return true
}

// covering returns the first suppression with a reason that covers a finding; nil if none does.
func (l *suppressions) covering(f report.Finding) *suppression {
	for _, s := range l.byRule[[2]string{f.Path, f.Rule}] {
		if s.reason != "" && s.covers(f) {
			return s
		}
	}
	return nil
}

// suppress takes out the findings that are suppressed with a reason and judges the suppressions themselves.
func (t *subject) suppress(ctx context.Context, found []*Found, rules []Rule) *Result {
	result := &Result{Findings: []report.Finding{}, Suppressed: []schema.SuppressedFinding{}}
	all := t.suppressions(ctx)
	for _, f := range found {
		if s := all.covering(f.Finding); s != nil {
			s.used = true
			result.Suppressed = append(result.Suppressed, schema.SuppressedFinding{Finding: f.Finding, Reason: s.reason})
			continue
		}
		result.Findings = append(result.Findings, f.Finding)
		if len(f.edits) > 0 {
			result.Fixes = append(result.Fixes, f.edits)
		}
	}
	result.Findings = append(result.Findings, all.judge(rules)...)
	report.SortFindings(result.Findings)
	return result
}

// judge returns the findings about suppressions: without a reason, of nothing, or too many.
func (l *suppressions) judge(rules []Rule) []report.Finding {
	runs, reporters := map[string]bool{}, map[string]*reporter{}
	for _, rule := range rules {
		runs[rule.ID] = true
		reporters[rule.ID] = &reporter{rule: rule}
	}
	add := func(rule string, at target.Place, hint, format string, args ...any) {
		if r := reporters[rule]; r != nil {
			r.Report(at, hint, format, args...)
		}
	}
	known := ruleNames()
	for _, file := range slices.Sorted(maps.Keys(l.named)) {
		if l.named[file] > maxSuppressed {
			add(ruleSuppressUnused, target.InFile(file), "disable the rules in solution.yaml", "its suppressions name more than %d rules, and the last of them are not applied", maxSuppressed)
		}
	}
	for _, s := range l.list {
		at, names := target.Place{File: s.file, Line: s.line, Object: s.object}, shorten(strings.Join(s.rules, ", "))
		unknown := slices.ContainsFunc(s.rules, func(id string) bool { return !known[id] })
		switch {
		case s.reason == "":
			add(ruleSuppressReason, at, "write the reason behind the identifier", "%s is suppressed without a reason, so it is not", names)
		case !s.used && (unknown || slices.ContainsFunc(s.rules, func(id string) bool { return runs[id] })):
			add(ruleSuppressUnused, at, "remove the suppression", "there is no finding of %s here", names)
		}
	}
	var findings []report.Finding
	for _, id := range []string{ruleSuppressReason, ruleSuppressUnused} {
		if r := reporters[id]; r != nil {
			for _, f := range r.findings() {
				findings = append(findings, f.Finding)
			}
		}
	}
	return findings
}

// suppressions reads the comments and annotations of every manifest.
func (t *subject) suppressions(ctx context.Context) *suppressions {
	all := &suppressions{byRule: map[[2]string][]*suppression{}, named: map[string]int{}}
	for _, file := range append(t.Manifests(), "manifest.yaml", registryConfigFile) {
		if ctx.Err() != nil {
			return all
		}
		t.commentsIn(file, all)
	}
	for _, o := range t.Objects() {
		text, _ := lookup(o.Value, "metadata", "annotations", annotationIgnore).(string)
		if text == "" {
			continue
		}
		line := o.At("metadata.annotations").Line
		for entry := range strings.SplitSeq(text, ";") {
			if strings.TrimSpace(entry) == "" {
				continue
			}
			ids, reason, _ := strings.Cut(entry, ":")
			if !all.add(&suppression{rules: identifiers(ids), reason: strings.TrimSpace(reason), file: o.File, object: o.String(), line: line}) {
				break
			}
		}
	}
	return all
}

var ignoreComment = lazyregexp.New(`#\s*solutionctl:ignore((?:[\s,]+SOL\d+)+)[\s:,]*(.*)$`)

func identifiers(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' || r == '\t' })
}

// covered is a field with the suppressions of the comments above it: they cover its line, and those after it that are indented more.
type covered struct {
	indent int
	list   []*suppression
}

// commentsIn finds the comments of a file. One behind a field covers the line; one of its own covers the field below
// and its content, and before any content the file as a whole.
func (t *subject) commentsIn(file string, all *suppressions) {
	data, err := t.Text(file)
	if err != nil || !bytes.Contains(data, []byte("solutionctl:ignore")) {
		return
	}
	var pending []*suppression // of comments above the next field
	var open []covered         // fields around the line, the innermost is the last one
	content, last, number := false, 0, 0
	leave := func(indent int) {
		for len(open) > 0 && open[len(open)-1].indent >= indent {
			for _, s := range open[len(open)-1].list {
				s.last = last
			}
			open = open[:len(open)-1]
		}
	}
	for line := range strings.SplitSeq(string(data), "\n") {
		number++
		text := strings.TrimSpace(line)
		blank := text == "" || text[0] == '#'
		if s := suppressionIn(line, file, number); s != nil && all.add(s) && blank {
			pending = append(pending, s)
			if !content {
				s.first = 0
			}
		}
		if blank {
			continue
		}
		indent := len(line) - len(strings.TrimLeft(line, " "))
		leave(indent)
		if pending != nil {
			open, pending = append(open, covered{indent, pending}), nil
		}
		content, last = content || text != "---", number
	}
	leave(0)
	for _, s := range pending {
		s.last = number
	}
}

// suppressionIn reads the comment of a line; nil for a line without one.
func suppressionIn(line, file string, number int) *suppression {
	if !strings.Contains(line, "solutionctl:ignore") {
		return nil
	}
	match := ignoreComment.FindStringSubmatch(line)
	if match == nil {
		return nil
	}
	return &suppression{rules: identifiers(match[1]), reason: strings.TrimSpace(match[2]), file: file, line: number, first: number, last: number}
}
