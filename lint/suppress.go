package lint

import (
	"bytes"
	"slices"
	"strings"

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

func (s *suppression) covers(f report.Finding) bool {
	if f.Path != s.file || !slices.Contains(s.rules, f.Rule) {
		return false
	}
	if s.object != "" {
		name, _, _ := strings.Cut(f.Object, ": ")
		return name == s.object || strings.HasSuffix(name, s.object) || strings.Contains(f.Object, ": "+s.object)
	}
	return f.Line >= s.first && f.Line <= s.last
}

// suppress takes out the findings that are suppressed with a reason and judges the suppressions themselves.
func (t *subject) suppress(found []*Found, rules []Rule) *Result {
	result := &Result{Findings: []report.Finding{}, Suppressed: []schema.SuppressedFinding{}}
	suppressions := t.suppressions()
	for _, f := range found {
		i := slices.IndexFunc(suppressions, func(s *suppression) bool { return s.reason != "" && s.covers(f.Finding) })
		if i >= 0 {
			suppressions[i].used = true
			result.Suppressed = append(result.Suppressed, schema.SuppressedFinding{Finding: f.Finding, Reason: suppressions[i].reason})
			continue
		}
		result.Findings = append(result.Findings, f.Finding)
		if len(f.edits) > 0 {
			result.Fixes = append(result.Fixes, f.edits)
		}
	}
	result.Findings = append(result.Findings, judgeSuppressions(suppressions, rules)...)
	report.SortFindings(result.Findings)
	return result
}

func judgeSuppressions(suppressions []*suppression, rules []Rule) []report.Finding {
	runs := func(id string) bool { return slices.ContainsFunc(rules, func(r Rule) bool { return r.ID == id }) }
	var findings []report.Finding
	add := func(rule string, s *suppression, message, hint string) {
		if runs(rule) {
			findings = append(findings, report.Finding{
				Rule: rule, Severity: report.SeverityWarning, Path: s.file, Line: s.line, Object: s.object, Message: message, Hint: hint,
			})
		}
	}
	for _, s := range suppressions {
		names := strings.Join(s.rules, ", ")
		unknown := slices.ContainsFunc(s.rules, func(id string) bool { return !known(id) })
		switch {
		case s.reason == "":
			add(ruleSuppressReason, s, names+" is suppressed without a reason, so it is not", "write the reason behind the identifier")
		case !s.used && (unknown || slices.ContainsFunc(s.rules, runs)):
			add(ruleSuppressUnused, s, "there is no finding of "+names+" here", "remove the suppression")
		}
	}
	return findings
}

// suppressions reads the comments and annotations of every manifest.
func (t *subject) suppressions() []*suppression {
	var list []*suppression
	for _, file := range append(t.Manifests(), "manifest.yaml", registryConfigFile) {
		list = append(list, t.commentsIn(file)...)
	}
	for _, o := range t.Objects() {
		text, _ := lookup(o.Value, "metadata", "annotations", annotationIgnore).(string)
		for entry := range strings.SplitSeq(text, ";") {
			if strings.TrimSpace(entry) == "" {
				continue
			}
			ids, reason, _ := strings.Cut(entry, ":")
			list = append(list, &suppression{
				rules: identifiers(ids), reason: strings.TrimSpace(reason), file: o.File, object: o.String(),
				line: o.At("metadata.annotations").Line,
			})
		}
	}
	return list
}

var ignoreComment = lazyregexp.New(`#\s*solutionctl:ignore((?:[\s,]+SOL\d+)+)[\s:,]*(.*)$`)

func identifiers(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' || r == '\t' })
}

// commentsIn finds the comments of a file. One behind a field covers the line; one of its own covers the field below
// and its content, and before any content the file as a whole.
func (t *subject) commentsIn(file string) []*suppression {
	data, err := t.Text(file)
	if err != nil || !bytes.Contains(data, []byte("solutionctl:ignore")) {
		return nil
	}
	lines := strings.Split(string(data), "\n")
	var list []*suppression
	content := false
	for i, line := range lines {
		if match := ignoreComment.FindStringSubmatch(line); match != nil {
			s := &suppression{rules: identifiers(match[1]), reason: strings.TrimSpace(match[2]), file: file, line: i + 1, first: i + 1, last: i + 1}
			if strings.HasPrefix(strings.TrimSpace(line), "#") {
				s.first, s.last = coveredBelow(lines, i)
				if !content {
					s.first = 0
				}
			}
			list = append(list, s)
		}
		text := strings.TrimSpace(line)
		content = content || text != "" && text != "---" && text[0] != '#'
	}
	return list
}

// coveredBelow returns the numbers of the lines that a comment on line i covers: the next one with content, and those
// after it that are indented more.
func coveredBelow(lines []string, i int) (first, last int) {
	next := i + 1
	for next < len(lines) && isBlank(lines[next]) {
		next++
	}
	first, last = i+1, min(next+1, len(lines))
	if next == len(lines) {
		return first, last
	}
	for j := next + 1; j < len(lines); j++ {
		if isBlank(lines[j]) {
			continue
		}
		if indent(lines[j]) <= indent(lines[next]) {
			break
		}
		last = j + 1
	}
	return first, last
}

func isBlank(line string) bool {
	text := strings.TrimSpace(line)
	return text == "" || text[0] == '#'
}

func indent(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }
