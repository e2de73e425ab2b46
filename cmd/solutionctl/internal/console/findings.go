package console

import (
	"fmt"
	"strings"

	"github.com/solutionctl/solutionctl/schema/report"
)

// PrintFinding writes a finding in the form that editors jump to (path:line:column: severity: message [rule]), the
// offending source line with a mark below the column, where there is one, and the hint.
func PrintFinding(s *Stream, f report.Finding, source string) {
	styles := map[report.Severity]Style{
		report.SeverityError: Red, report.SeverityWarning: Yellow, report.SeverityNote: Cyan,
	}
	var b strings.Builder
	if position := f.Position(); position != "" {
		b.WriteString(s.Paint(Bold, Line(position)+":") + " ")
	}
	b.WriteString(s.Paint(styles[f.Severity], string(f.Severity)+":") + " ")
	if f.Object != "" {
		b.WriteString(Line(f.Object) + ": ")
	}
	fmt.Fprintf(&b, "%s %s\n", Line(f.Message), s.Paint(Faint, "["+f.Rule+"]"))
	if strings.TrimSpace(source) != "" {
		b.WriteString(excerpt(s, f, source, styles[f.Severity]))
	}
	if f.Hint != "" {
		fmt.Fprintf(&b, "    %s %s\n", s.Paint(Cyan, "hint:"), Line(f.Hint))
	}
	fmt.Fprint(s, b.String())
}

// PrintEach writes remarks, one a line, each after a word for its kind, such as "note:".
func PrintEach(s *Stream, style Style, word string, remarks []string) {
	for _, remark := range remarks {
		fmt.Fprintf(s, "%s %s\n", s.Paint(style, word), Clean(remark))
	}
}

// maxExcerpt is the length of an excerpt of a line, in characters.
const maxExcerpt = 120

// excerpt shows a source line and marks the column.
func excerpt(s *Stream, f report.Finding, source string, style Style) string {
	line := []rune(strings.ReplaceAll(strings.ToValidUTF8(source, "?"), "\t", " "))
	column := f.Column
	if start := column - maxExcerpt/2; len(line) > maxExcerpt && start > 0 {
		start = min(start, len(line)-1)
		line, column = line[start:], column-start
	}
	if len(line) > maxExcerpt {
		line = append(line[:maxExcerpt:maxExcerpt], '…')
	}
	number := fmt.Sprintf("%6d | ", f.Line)
	text := s.Paint(Faint, number) + Line(string(line)) + "\n"
	if column > 0 && column <= len(line)+1 {
		text += s.Paint(Faint, "       | ") + strings.Repeat(" ", column-1) + s.Paint(style, "^") + "\n"
	}
	return text
}

// CountFindings returns a text such as "2 errors, 1 warning"; "no findings" when there are none.
func CountFindings(findings []report.Finding) string {
	count := map[report.Severity]int{}
	for _, f := range findings {
		count[f.Severity]++
	}
	var parts []string
	for _, severity := range []report.Severity{report.SeverityError, report.SeverityWarning, report.SeverityNote} {
		if n := count[severity]; n > 0 {
			parts = append(parts, report.Count(n, string(severity)))
		}
	}
	if len(parts) == 0 {
		return "no findings"
	}
	return strings.Join(parts, ", ")
}
