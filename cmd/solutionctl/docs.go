package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/manual"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/settings"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// newDocsCommand returns the command with which the project writes its own reference.
func newDocsCommand(a *app) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:     "docs DIR",
		Short:   "Write the reference of every command, as Markdown or as manual pages",
		Example: "  solutionctl docs docs/reference",
		Hidden:  true,
		Args:    cli.ExactArgs("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			pages := referencePages(cmd.Root())
			if format == "man" {
				date, err := sourceDateEpoch(a.Getenv("SOURCE_DATE_EPOCH"))
				if err != nil {
					return err
				}
				if date == nil {
					now := a.Now()
					date = &now
				}
				pages = manual.Pages(cmd.Root(), *date)
			}
			for name, data := range pages {
				if err := os.WriteFile(filepath.Join(args[0], name), data, 0o644); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cli.AddChoice(cmd, cmd.Flags(), &format, "format", "", "Markdown, or manual pages with the date of SOURCE_DATE_EPOCH", "markdown", "man")
	return cmd
}

// referencePages returns the pages of docs/reference that come from the program.
func referencePages(root *cobra.Command) map[string][]byte {
	pages := map[string][]byte{"README.md": indexPage(root), "exit-status.md": exitStatusPage(), "states.md": statesPage(), "lint-rules.md": lintRulesPage()}
	addPages(pages, root)
	for _, kind := range schema.Kinds() {
		pages[documentPageName(kind)] = documentPage(kind)
	}
	return pages
}

// statesPage has the states of deployments and applications.
func statesPage() []byte {
	var b bytes.Buffer
	b.WriteString("# States\n\nThe health of deployments and applications, from good to bad. The worst state of its parts is that of a whole.\n\n" +
		"| state | meaning | what to do |\n|---|---|---|\n")
	for _, s := range schema.States() {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", s.Word, s.Meaning, s.Next)
	}
	return b.Bytes()
}

func pageName(cmd *cobra.Command) string {
	return strings.ReplaceAll(cmd.CommandPath(), " ", "_") + ".md"
}

// addPages adds the page of cmd and those of the commands below it.
func addPages(pages map[string][]byte, cmd *cobra.Command) {
	pages[pageName(cmd)] = commandPage(cmd)
	for _, child := range cmd.Commands() {
		if child.IsAvailableCommand() {
			addPages(pages, child)
		}
	}
}

func commandPage(cmd *cobra.Command) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s\n\n%s\n\n", cmd.CommandPath(), description(cmd))
	if cmd.Runnable() && !cmd.HasSubCommands() {
		fmt.Fprintf(&b, "```text\n%s\n```\n\n", cmd.UseLine())
	}
	if cmd.Example != "" {
		fmt.Fprintf(&b, "## Example\n\n```sh\n%s\n```\n\n", unindent(cmd.Example))
	}
	writeFlags(&b, cmd)
	writeCommands(&b, cmd)
	if cmd.HasParent() {
		fmt.Fprintf(&b, "The [global flags](%s) apply too. Failures: [exit status](exit-status.md).\n", pageName(cmd.Root()))
	}
	return append(bytes.TrimRight(b.Bytes(), "\n"), '\n')
}

// description is the long text of a command. Its indented parts are code blocks in Markdown as well.
func description(cmd *cobra.Command) string {
	if cmd.Long == "" {
		return cmd.Short + "."
	}
	lines := strings.Split(cmd.Long, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "  ") {
			lines[i] = "  " + line
		}
	}
	return strings.Join(lines, "\n")
}

func unindent(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, "  ")
	}
	return strings.Join(lines, "\n")
}

func writeFlags(b *bytes.Buffer, cmd *cobra.Command) {
	var rows strings.Builder
	cmd.NonInheritedFlags().VisitAll(func(flag *pflag.Flag) {
		if flag.Hidden || flag.Name == "help" {
			return
		}
		name := "--" + flag.Name
		if flag.Shorthand != "" {
			name = "-" + flag.Shorthand + ", " + name
		}
		value, usage := pflag.UnquoteUsage(flag)
		if value != "" {
			name += " " + value
		}
		variables := "command line only"
		if settings.IsSetting(flag) {
			variables = "`" + strings.Join(settings.Variables(cmd, flag.Name), "`, `") + "`"
		}
		fmt.Fprintf(&rows, "| `%s` | %s | %s | %s |\n", cell(name), cell(usage), codeCell(flag.DefValue), variables)
	})
	if rows.Len() > 0 {
		fmt.Fprintf(b, "## Flags\n\n| flag | meaning | default | environment |\n|---|---|---|---|\n%s\n", rows.String())
	}
}

func writeCommands(b *bytes.Buffer, cmd *cobra.Command) {
	if !cmd.HasAvailableSubCommands() {
		return
	}
	b.WriteString("## Commands\n")
	for _, section := range append(cmd.Groups(), &cobra.Group{}) {
		var rows strings.Builder
		for _, child := range cmd.Commands() {
			if child.IsAvailableCommand() && child.GroupID == section.ID {
				fmt.Fprintf(&rows, "| [%s](%s) | %s |\n", child.CommandPath(), pageName(child), cell(child.Short))
			}
		}
		if rows.Len() > 0 {
			fmt.Fprintf(b, "\n| %s | |\n|---|---|\n%s", cmp.Or(section.ID, "command"), rows.String())
		}
	}
	b.WriteString("\n")
}

func indexPage(root *cobra.Command) []byte {
	return fmt.Appendf(nil, "# Reference\n\nWritten by `make docs`; do not edit.\n\n- [%s](%s): every command\n"+
		"- [exit status](exit-status.md): how commands fail\n"+
		"- [states](states.md): the health of deployments and applications\n", root.Name(), pageName(root))
}

func exitStatusPage() []byte {
	var b bytes.Buffer
	b.WriteString("# Exit status\n\n0 means done, or nothing to do. `solutionctl help errors` prints the others:\n\n" +
		"| exit status | code | meaning |\n|---|---|---|\n")
	for _, info := range report.Codes() {
		fmt.Fprintf(&b, "| %d | `%s` | %s |\n", info.ExitStatus, info.Code, cell(info.Meaning))
	}
	return b.Bytes()
}

// cell makes a text fit into a cell of a Markdown table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ").Replace(text)
}

func codeCell(text string) string {
	if text == "" || text == "[]" {
		return ""
	}
	return "`" + cell(text) + "`"
}
