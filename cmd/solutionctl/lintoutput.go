package main

import (
	"fmt"
	"path"
	"strings"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/lint"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

func (a *app) printLint(s *lint.Report, all bool) error {
	switch a.Output {
	case "sarif":
		return a.EmitJSON(sarifOf(s, a.Version))
	case "github":
		return a.EmitText(annotations(s))
	default:
		return a.EmitResult(s.LintReport, func(w *console.Stream) { printLintText(w, s, all) })
	}
}

// printLintText prints the findings of each target. Unless all are wanted, a rule has one warning about a chart: charts of others have
// dozens that their users cannot change, and what they can change drowns in them.
func printLintText(w *console.Stream, s *lint.Report, all bool) {
	for n, t := range s.Targets {
		console.PrintEach(w, console.Green, "fixed:", t.Fixed)
		alike := map[string]int{}
		for _, f := range t.Findings {
			alike[aboutChart(f)]++
		}
		shown := map[string]bool{"": true}
		for i, f := range t.Findings {
			key := aboutChart(f)
			if shown[key] && key != "" && !all {
				continue
			}
			console.PrintFinding(w, lintPlace(t, f), s.Lines[n][i])
			if more := alike[key] - 1; more > 0 && !shown[key] && !all {
				fmt.Fprintf(w, "    and %d more of %s about this chart: solutionctl lint --all %s\n", more, f.Rule, report.ShellFile(t.Path))
			}
			shown[key] = true
		}
	}
	fmt.Fprintln(w, lintCount(s))
}

// aboutChart names the rule and the chart of a warning or a note; "" for errors, and for what is about no chart.
func aboutChart(f report.Finding) string {
	if f.Severity == report.SeverityError || path.Ext(f.Path) != ".tgz" {
		return ""
	}
	return f.Rule + " " + f.Path
}

// lintCount summarizes the findings in one line.
func lintCount(s *lint.Report) string {
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

// lintPlace is the finding with a path as editors open it, relative to the current directory; inside of an archive it
// begins with the name of the archive.
func lintPlace(t schema.LintTarget, f report.Finding) report.Finding {
	f.Path = path.Join(t.Path, f.Path)
	return f
}

// annotations returns the workflow commands that make GitHub show findings beside the lines of a change.
func annotations(s *lint.Report) string {
	var b strings.Builder
	levels := map[report.Severity]string{
		report.SeverityError: "error", report.SeverityWarning: "warning", report.SeverityNote: "notice",
	}
	for _, t := range s.Targets {
		for _, f := range t.Findings {
			f = lintPlace(t, f)
			properties := "file=" + escapeProperty(f.Path)
			if f.Line > 0 {
				properties += fmt.Sprintf(",line=%d", f.Line)
			}
			if f.Column > 0 {
				properties += fmt.Sprintf(",col=%d", f.Column)
			}
			fmt.Fprintf(&b, "::%s %s,title=%s::%s\n", levels[f.Severity], properties, f.Rule, escapeData(lintMessage(f)))
		}
	}
	return b.String()
}

// lintMessage is a finding without its place and rule.
func lintMessage(f report.Finding) string {
	text := f.Message
	if f.Object != "" {
		text = f.Object + ": " + text
	}
	if f.Hint != "" {
		text += " (" + f.Hint + ")"
	}
	return text
}

// escapeData escapes the message of a workflow command, escapeProperty the value of a property.
func escapeData(text string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(text)
}

func escapeProperty(text string) string {
	return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(escapeData(text))
}

func (a *app) explainRule(id string) error {
	rule, err := lint.Find(strings.ToUpper(id))
	if err != nil {
		return err
	}
	return a.EmitResult(rule, func(w *console.Stream) {
		fmt.Fprintf(w, "%s %s (%s, %s)\n\n%s\n\n%s\n", w.Paint(console.Bold, rule.ID), rule.Name, rule.Group, rule.Severity, rule.Summary, rule.Explanation)
		fmt.Fprintf(w, "\nbad:\n%s\n\ngood:\n%s\n", indented(rule.Bad), indented(rule.Good))
	})
}

func indented(text string) string { return "    " + strings.ReplaceAll(text, "\n", "\n    ") }

func (a *app) listRules() error {
	rules := lint.Rules()
	return a.EmitResult(rules, func(w *console.Stream) {
		table := &console.Table{Columns: []string{"ID", "SEVERITY", "GROUP", "NAME"}}
		for _, r := range rules {
			table.Add(r.ID, string(r.Severity), string(r.Group), r.Name)
		}
		table.Print(w)
	})
}
