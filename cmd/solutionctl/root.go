package main

import (
	"github.com/spf13/cobra"
)

// newRootCommand returns the whole command line. A new command is one word here and one file beside this one.
func newRootCommand(a *app) *cobra.Command {
	root := newGroup("solutionctl", "Build, check, sign and deploy Solutions", newErrorsTopic(), newDocsCommand(a))
	addSection(root, "Make archives", newInitCommand(a), newBuildCommand(a), newLintCommand(a), newSchemaCommand(a))
	addSection(root, "Look into archives", newInspectCommand(a), newDiffCommand(a))
	addSection(root, "Sign and verify", newKeygenCommand(a), newSignCommand(a), newVerifyCommand(a), newTrustCommand(a))
	addSection(root, "Deploy", newDeployCommand(a))
	help := newHelpCommand()
	root.SetHelpCommand(help)
	addSection(root, "This program", newConfigCommand(a), newCompletionCommand(a), newVersionCommand(a), help)
	root.Long = `solutionctl packs a Kubernetes application for sites without internet as one ISO file, a Solution, and carries it
the whole way: build, lint and sign where it is made, verify and deploy where it runs.

Results go to standard output, progress and errors to standard error. Every flag can also be set by an environment
variable or in a configuration file: see 'solutionctl config --help'.`
	a.prepare(root)
	return root
}
