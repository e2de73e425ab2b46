package console

import (
	"fmt"
	"strings"

	"github.com/solutionctl/solutionctl/schema/report"
)

// PrintFindings writes findings in the order in which they come, one line each in the form that editors jump to
// (path:line:column: severity: message [rule]), hints indented below, and one line that counts them at the end. It
// writes nothing when there are none.
func PrintFindings(s *Stream, findings []report.Finding) error {
	if len(findings) == 0 {
		return nil
	}
	styles := map[report.Severity]Style{
		report.SeverityError: Red, report.SeverityWarning: Yellow, report.SeverityNote: Cyan,
	}
	var b strings.Builder
	for _, f := range findings {
		if position := f.Position(); position != "" {
			b.WriteString(s.Paint(Bold, cleanLine(position)+":") + " ")
		}
		b.WriteString(s.Paint(styles[f.Severity], string(f.Severity)+":") + " ")
		if f.Object != "" {
			b.WriteString(cleanLine(f.Object) + ": ")
		}
		fmt.Fprintf(&b, "%s %s\n", cleanLine(f.Message), s.Paint(Faint, "["+f.Rule+"]"))
		if f.Hint != "" {
			fmt.Fprintf(&b, "    %s %s\n", s.Paint(Cyan, "hint:"), cleanLine(f.Hint))
		}
	}
	b.WriteString(CountFindings(findings) + "\n")
	_, err := s.Write([]byte(b.String()))
	return err
}

// CountFindings returns a text such as "2 errors, 1 warning"; "no findings" when there are none.
func CountFindings(findings []report.Finding) string {
	count := map[report.Severity]int{}
	for _, f := range findings {
		count[f.Severity]++
	}
	var parts []string
	for _, severity := range []report.Severity{report.SeverityError, report.SeverityWarning, report.SeverityNote} {
		switch n := count[severity]; n {
		case 0:
		case 1:
			parts = append(parts, "1 "+string(severity))
		default:
			parts = append(parts, fmt.Sprintf("%d %ss", n, severity))
		}
	}
	if len(parts) == 0 {
		return "no findings"
	}
	return strings.Join(parts, ", ")
}
