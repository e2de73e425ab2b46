package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/solutionctl/solutionctl/lint"
)

// groupTitles say what the groups of rules are about.
var groupTitles = map[lint.Group]string{
	lint.GroupArchive: "Archive", lint.GroupDocuments: "Documents", lint.GroupKubernetes: "Kubernetes objects",
	lint.GroupOperator: "Operator", lint.GroupMonitoring: "Monitoring and user interface",
	lint.GroupCompleteness: "Completeness", lint.GroupUpgrade: "Upgrade",
}

// lintRulesPage is the catalogue of rules.
func lintRulesPage() []byte {
	var b bytes.Buffer
	b.WriteString("# Rules of `solutionctl lint`\n\nIdentifiers never change. `solutionctl lint --explain ID` prints the same text. " +
		"Rules are chosen by identifier or group with `--enable` and `--disable`, or in the section `lint` of `solution.yaml`.\n")
	for _, group := range lint.Groups() {
		fmt.Fprintf(&b, "\n## %s (`%s`)\n", groupTitles[group], group)
		for _, rule := range lint.Rules() {
			if rule.Group == group {
				writeRule(&b, rule)
			}
		}
	}
	return b.Bytes()
}

func writeRule(b *bytes.Buffer, rule lint.Rule) {
	remarks := []string{string(rule.Severity)}
	if rule.Fixable {
		remarks = append(remarks, "`--fix` corrects it")
	}
	if rule.Optional {
		remarks = append(remarks, "only with `--enable`")
	}
	fmt.Fprintf(b, "\n### %s %s\n\n*%s.* %s\n\n%s\n", rule.ID, rule.Name, strings.Join(remarks, "; "), markdown(rule.Summary), markdown(rule.Explanation))
	fmt.Fprintf(b, "\nBad:\n\n```text\n%s\n```\n\nGood:\n\n```text\n%s\n```\n", rule.Bad, rule.Good)
}

// markdown escapes what Markdown would take for markup.
func markdown(text string) string {
	return strings.NewReplacer("<", "&lt;", "*", `\*`, "_", `\_`).Replace(text)
}
