package main

import (
	"os"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/settings"
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
	root.SilenceErrors = true
	root.SilenceUsage = true
	root.DisableSuggestions = true // newGroup makes them a hint
	a.refuseHelpOfUnknown(root)
	root.CompletionOptions.DisableDefaultCmd = true
	a.addGlobalFlags(root)
	a.settings = settings.New(root, a.getenv, defaultConfigFile(runtime.GOOS, os.Geteuid(), a.getenv))
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error { return a.setUp(cmd) }
	a.watch(root)
	return root
}

// watch makes every command below cmd tell the app that its own code is called.
func (a *app) watch(cmd *cobra.Command) {
	if work := cmd.RunE; work != nil && !cmd.HasSubCommands() {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			a.started = true
			return work(cmd, args)
		}
	}
	for _, child := range cmd.Commands() {
		a.watch(child)
	}
}

// refuseHelpOfUnknown makes --help after a name that a group does not know an error, as the name is without it.
func (a *app) refuseHelpOfUnknown(root *cobra.Command) {
	show := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if names := cmd.Flags().Args(); cmd.HasSubCommands() && len(names) > 0 {
			a.unhelpful = unknownCommand(cmd, names[0])
			return
		}
		show(cmd, args)
	})
}
