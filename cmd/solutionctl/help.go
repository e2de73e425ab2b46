package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/schema/report"
)

// newHelpCommand returns 'solutionctl help', which unlike cobra's own fails when it is asked for something unknown.
func newHelpCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND]...",
		Short:   "Help about a command or topic",
		Example: "  solutionctl help errors",
		Args:    cobra.ArbitraryArgs,
		ValidArgsFunction: cli.CompleteNames(func(cmd *cobra.Command) ([]string, error) {
			var names []string
			for _, command := range cmd.Root().Commands() {
				if command.IsAvailableCommand() || command.IsAdditionalHelpTopicCommand() {
					names = append(names, command.Name())
				}
			}
			return names, nil
		}),
		RunE: func(cmd *cobra.Command, args []string) error {
			command, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return report.Errorf(report.Usage, "no help for %q", strings.Join(args, " ")).
					WithHint("'solutionctl help' lists the commands and topics")
			}
			return command.Help()
		},
	}
}

// newErrorsTopic returns what 'solutionctl help errors' shows. A command that cannot run is a topic.
func newErrorsTopic(*app) *cobra.Command {
	var text strings.Builder
	table := &console.Table{Columns: []string{"EXIT STATUS", "CODE", "MEANING"}}
	for _, info := range report.Codes() {
		table.Add(strconv.Itoa(info.ExitStatus), string(info.Code), info.Meaning)
	}
	table.Print(&console.Stream{Writer: &text})
	return &cobra.Command{
		Use:   "errors",
		Short: "Exit statuses and error codes",
		Long: fmt.Sprintf(`A command that succeeds, or has nothing to do, exits with status 0. Otherwise the status shows the kind of failure;
the code, which --verbose and --progress json print, is exact. Both are stable, the text of messages
is not.

%s
The first interrupt (SIGINT, SIGTERM) asks a command to stop in good order; a second one ends it at once.`, text.String()),
	}
}
