package cli

import (
	"slices"

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

// AddSection adds commands that serve one purpose, in the order in which people need them.
func AddSection(group *cobra.Command, title string, commands ...*cobra.Command) {
	group.AddGroup(&cobra.Group{ID: title, Title: title + ":"})
	for _, command := range commands {
		command.GroupID = title
	}
	group.AddCommand(commands...)
}
