// Package manual writes the manual pages of a tree of commands in mdoc(7), the language of manual pages that mandoc and groff read.
//
// Pages returns all of them. Texts come from the commands: a paragraph is filled, a part that is indented stays as it is.
package manual

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/settings"
	"github.com/solutionctl/solutionctl/schema/lazyregexp"
	"github.com/solutionctl/solutionctl/schema/report"
)

// section is that of all pages: commands of users.
const section = "1"

// Pages returns the page of root and of every command below it that help shows, by file name. All have the same date.
func Pages(root *cobra.Command, date time.Time) map[string][]byte {
	pages := map[string][]byte{}
	addPages(pages, root, date)
	return pages
}

func addPages(pages map[string][]byte, cmd *cobra.Command, date time.Time) {
	pages[pageName(cmd)+"."+section] = page(cmd, date)
	for _, child := range available(cmd) {
		addPages(pages, child, date)
	}
}

func available(cmd *cobra.Command) (commands []*cobra.Command) {
	for _, child := range cmd.Commands() {
		if child.IsAvailableCommand() && child.Name() != "help" {
			commands = append(commands, child)
		}
	}
	return commands
}

func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

func page(cmd *cobra.Command, date time.Time) []byte {
	var w writer
	w.macro("Dd", strings.Fields(date.UTC().Format("January 2, 2006"))...)
	w.macro("Dt", strings.ToUpper(pageName(cmd)), section)
	w.macro("Os")
	w.macro("Sh", "NAME")
	w.macro("Nm", pageName(cmd))
	w.macro("Nd", cmd.Short)
	synopsis(&w, cmd)
	w.macro("Sh", "DESCRIPTION")
	w.text(cmp.Or(cmd.Long, cmd.Short+"."))
	options(&w, cmd)
	commands(&w, cmd)
	if cmd.HasParent() {
		w.macro("Sh", "EXIT STATUS")
		w.text("The options and the exit statuses of")
		w.macro("Xr", cmd.Root().Name(), section)
		w.text("apply to this command as well.")
	} else {
		exitStatus(&w)
	}
	if cmd.Example != "" {
		w.macro("Sh", "EXAMPLES")
		w.literal(strings.Split(cmd.Example, "\n"))
	}
	seeAlso(&w, cmd)
	return w.Bytes()
}

// argument is one of a line of usage; one in brackets may be left out.
var argument = lazyregexp.New(`\[[^\]]*\]|[^ \[]\S*`)

// synopsis repeats the line of usage, with its parts in the roles that they have.
func synopsis(w *writer, cmd *cobra.Command) {
	w.macro("Sh", "SYNOPSIS")
	w.macro("Nm", cmd.CommandPath())
	rest := strings.TrimPrefix(cmd.UseLine(), cmd.CommandPath())
	if cmd.HasAvailableSubCommands() {
		w.macro("Ar", "command")
	}
	for _, word := range argument.FindAllString(rest, -1) {
		if inner, optional := strings.CutPrefix(word, "["); optional {
			w.macros("Op", "Ar", strings.TrimSuffix(inner, "]"))
		} else {
			w.macro("Ar", word)
		}
	}
}

// options lists flags, each with its default and the variables that set it.
func options(w *writer, cmd *cobra.Command) {
	var flags []*pflag.Flag
	cmd.NonInheritedFlags().VisitAll(func(flag *pflag.Flag) {
		if !flag.Hidden && flag.Name != "help" {
			flags = append(flags, flag)
		}
	})
	if len(flags) == 0 {
		return
	}
	w.macro("Sh", "OPTIONS")
	w.list()
	for _, flag := range flags {
		value, usage := pflag.UnquoteUsage(flag)
		item := []string{"It"}
		if flag.Shorthand != "" {
			item = append(item, "Fl", flag.Shorthand, ",")
		}
		item = append(item, "Fl", "-"+flag.Name)
		if value != "" {
			item = append(item, "Ar", value)
		}
		w.macros(item...)
		w.text(strings.ToUpper(usage[:1]) + usage[1:] + ".")
		if flag.DefValue != "" && flag.DefValue != "[]" && flag.DefValue != "false" {
			w.text("The default is " + flag.DefValue + ".")
		}
		if settings.IsSetting(flag) {
			w.text("Variables: " + strings.Join(settings.Variables(cmd, flag.Name), ", ") + ".")
		} else {
			w.text("It counts on the command line only.")
		}
	}
	w.endList()
}

// commands lists the commands below a command, by the sections of its help.
func commands(w *writer, cmd *cobra.Command) {
	below := available(cmd)
	if len(below) == 0 {
		return
	}
	w.macro("Sh", "COMMANDS")
	for _, group := range append(cmd.Groups(), &cobra.Group{}) {
		members := slices.DeleteFunc(slices.Clone(below), func(c *cobra.Command) bool { return c.GroupID != group.ID })
		if len(members) == 0 {
			continue
		}
		if group.ID != "" {
			w.macro("Ss", group.ID)
		}
		w.list()
		for _, child := range members {
			w.macros("It", "Xr", pageName(child), section)
			w.text(child.Short + ".")
		}
		w.endList()
	}
}

func exitStatus(w *writer) {
	w.macro("Sh", "EXIT STATUS")
	w.text("0 means done, or nothing to do. Each failure has a code, which is printed with --output json, and the exit status of its code:")
	w.list()
	for _, code := range report.Codes() {
		w.macro("It", fmt.Sprintf("%d %s", code.ExitStatus, code.Code))
		w.text(strings.TrimSuffix(code.Meaning, ".") + ".")
	}
	w.endList()
}

// seeAlso names the page above, and those beside it of the same section of help.
func seeAlso(w *writer, cmd *cobra.Command) {
	if !cmd.HasParent() {
		return
	}
	pages := []string{pageName(cmd.Parent())}
	for _, sibling := range available(cmd.Parent()) {
		if sibling != cmd && sibling.GroupID == cmd.GroupID {
			pages = append(pages, pageName(sibling))
		}
	}
	slices.Sort(pages)
	w.macro("Sh", "SEE ALSO")
	for i, name := range pages {
		end := []string{","}
		if i == len(pages)-1 {
			end = nil
		}
		w.macros(append([]string{"Xr", name, section}, end...)...)
	}
}
