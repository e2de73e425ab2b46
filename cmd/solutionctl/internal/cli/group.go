package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/schema/report"
)

// NewGroup returns a command that only has others below it. Called by itself it shows its help; a name that it does
// not know is an error.
func NewGroup(use, short string, commands ...*cobra.Command) *cobra.Command {
	group := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return unknownCommand(cmd, args[0])
		},
	}
	group.AddCommand(commands...)
	return group
}

// unknownCommand is the error for a name that a group does not know.
func unknownCommand(group *cobra.Command, name string) error {
	err := report.Errorf(report.Usage, "unknown command %q for %q", name, group.CommandPath())
	for _, below := range group.Commands() {
		if i := slices.IndexFunc(below.Commands(), func(c *cobra.Command) bool { return (c.Name() == name || c.HasAlias(name)) && c.IsAvailableCommand() }); i >= 0 {
			return err.WithHint("did you mean '%s'?", below.Commands()[i].CommandPath())
		}
	}
	group.SuggestionsMinimumDistance = 2
	if similar := group.SuggestionsFor(name); len(similar) > 0 {
		return err.WithHint("did you mean '%s %s'?", group.CommandPath(), similar[0])
	}
	return err.WithHint("'%s --help' lists the commands", group.CommandPath())
}

// Section is a number of commands of a group that serve one purpose. [In] makes one.
type Section[A any] struct {
	title   string
	entries []Entry[A]
}

// Entry makes one command of a group when it is needed. [Named] makes one.
type Entry[A any] struct {
	name    string
	command func(A) *cobra.Command
}

// In returns a section with its title in the help, or with none.
func In[A any](title string, entries ...Entry[A]) Section[A] { return Section[A]{title, entries} }

// Named returns the entry of a command with this name.
func Named[A any](name string, command func(A) *cobra.Command) Entry[A] {
	return Entry[A]{name, command}
}

// AddSections adds commands to a group, in the order in which people need them. Words follow the group on a command line. If the
// first one is the name of a command, only this command is made: all of them take as long as a tenth of the start of the program.
func AddSections[A any](group *cobra.Command, a A, words []string, sections ...Section[A]) {
	is := func(e Entry[A]) bool { return len(words) > 0 && e.name == words[0] }
	one := slices.ContainsFunc(sections, func(s Section[A]) bool { return slices.ContainsFunc(s.entries, is) })
	for _, section := range sections {
		if section.title != "" {
			group.AddGroup(&cobra.Group{ID: section.title, Title: section.title + ":"})
		}
		for _, entry := range section.entries {
			if one && !is(entry) {
				continue
			}
			command := entry.command(a)
			if command.Name() != entry.name {
				panic("the command " + command.Name() + " is listed as " + entry.name)
			}
			command.GroupID = section.title
			group.AddCommand(command)
		}
	}
}

// wholeTree are the commands that need all others.
var wholeTree = []string{"help", "docs", "completion", "config"}

// Words returns the first words of a command line as far as they only name a command: they end at the first flag. There are none where all
// commands are needed.
func Words(args []string) []string {
	if len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd) {
		args = args[1:max(1, len(args)-1)] // the last one is to be completed
	}
	if i := slices.IndexFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "-") }); i >= 0 {
		args = args[:i]
	}
	if len(args) > 0 && slices.Contains(wholeTree, args[0]) {
		return nil
	}
	return args
}
