package main

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

func newSchemaCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "schema [KIND]",
		Short: "Print the JSON Schema of a kind of document",
		Long: `Print the JSON Schema (draft 2020-12) of a kind of document, for editors and other programs. Without KIND, list the
kinds.`,
		Example:           "  solutionctl schema SolutionBuild > solution.schema.json",
		Args:              cli.OptionalArgs(nil, "KIND"),
		ValidArgsFunction: cli.CompleteNames(func(*cobra.Command) ([]string, error) { return schema.Kinds(), nil }),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.EmitResult(schema.Kinds(), func(w *console.Stream) {
					table := &console.Table{Columns: []string{"KIND", "WHAT IT IS"}}
					for _, kind := range schema.Kinds() {
						table.Add(kind, documentTitle(kind))
					}
					table.Print(w)
				})
			}
			if !slices.Contains(schema.Kinds(), args[0]) {
				return report.Errorf(report.Usage, "there is no kind %q", args[0]).WithHint("list the kinds: solutionctl schema")
			}
			return a.EmitText(string(schema.JSONSchema(args[0])))
		},
	}
}
