package main

import (
	"os"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/settings"
	"github.com/solutionctl/solutionctl/schema/report"
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

// newGroup returns a command that only has others below it. Called by itself it shows its help; a name that it does
// not know is an error.
func newGroup(use, short string, commands ...*cobra.Command) *cobra.Command {
	group := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			err := report.Errorf(report.Usage, "unknown command %q for %q", args[0], cmd.CommandPath())
			cmd.SuggestionsMinimumDistance = 2
			if similar := cmd.SuggestionsFor(args[0]); len(similar) > 0 {
				return err.WithHint("did you mean '%s %s'?", cmd.CommandPath(), similar[0])
			}
			return err.WithHint("'%s --help' lists the commands", cmd.CommandPath())
		},
	}
	group.AddCommand(commands...)
	return group
}

// addSection adds commands that serve one purpose, in the order in which people need them.
func addSection(group *cobra.Command, title string, commands ...*cobra.Command) {
	group.AddGroup(&cobra.Group{ID: title, Title: title + ":"})
	for _, command := range commands {
		command.GroupID = title
	}
	group.AddCommand(commands...)
}

// defaultConfigFile returns the path of the configuration file unless --config names another one: one place for the administrator of
// a host, one for everybody else (XDG Base Directory Specification).
func defaultConfigFile(system string, user int, getenv func(string) string) string {
	switch {
	case user == 0:
		return "/etc/solutionctl/config.yaml"
	case getenv("XDG_CONFIG_HOME") != "":
		return filepath.Join(getenv("XDG_CONFIG_HOME"), "solutionctl", "config.yaml")
	case system == "windows":
		return filepath.Join(getenv("AppData"), "solutionctl", "config.yaml")
	default:
		return filepath.Join(getenv("HOME"), ".config", "solutionctl", "config.yaml")
	}
}
