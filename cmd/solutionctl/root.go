package main

import (
	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/deploy"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
)

// app is the process as the commands of this package see it; what they share beyond that are its methods.
type app struct{ *cli.App }

// newRootCommand returns the whole command line. A new command is one word here and one file beside this one.
func newRootCommand(a *app) *cobra.Command {
	root := cli.NewGroup("solutionctl", "Build, check, sign and deploy Solutions", newErrorsTopic(), newDocsCommand(a))
	cli.AddSection(root, "Make archives", newInitCommand(a), newBuildCommand(a), newLintCommand(a), newDevCommand(a), newSchemaCommand(a))
	cli.AddSection(root, "Look into archives", newInspectCommand(a), newDiffCommand(a), newAffectedCommand(a))
	cli.AddSection(root, "Pass on archives", newDeltaCommand(a), newSplitCommand(a), newPushCommand(a), newPullCommand(a))
	cli.AddSection(root, "Sign and verify", newKeygenCommand(a), newSignCommand(a), newVerifyCommand(a), newTrustCommand(a))
	cli.AddSection(root, "Deploy", deploy.NewCommand(a.App))
	help := newHelpCommand()
	root.SetHelpCommand(help)
	cli.AddSection(root, "This program", newConfigCommand(a), newCompletionCommand(a), newVersionCommand(a), help)
	root.Long = `solutionctl packs a Kubernetes application for sites without internet as one ISO file, a Solution, and carries it
the whole way: build, lint and sign where it is made, verify and deploy where it runs.

Results go to standard output, progress and errors to standard error. Every flag can also be set by an environment
variable or in a configuration file, except those that accept a loss or a risk: see 'solutionctl config --help'.`
	keepApprovals(root)
	a.Prepare(root)
	return root
}
