package main

import (
	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/deploy"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
)

// app is the process as the commands of this package see it; what they share beyond that are its methods.
type app struct{ *cli.App }

// newRootCommand returns the command line: of it, the command that the first words name, or all commands. A new command is one entry here and one
// file beside this one.
func newRootCommand(a *app, words ...string) *cobra.Command {
	root := cli.NewGroup("solutionctl", "Build, check, sign and deploy Solutions")
	var below []string // those of the command line that follow "deploy"
	if len(words) > 0 && words[0] == "deploy" {
		below = words[1:]
	}
	help := newHelpCommand()
	root.SetHelpCommand(help)
	cli.AddSections(root, a, words,
		cli.In("", cli.Named("errors", newErrorsTopic), cli.Named("docs", newDocsCommand)),
		cli.In("Make archives",
			cli.Named("init", newInitCommand), cli.Named("build", newBuildCommand), cli.Named("lint", newLintCommand), cli.Named("dev", newDevCommand), cli.Named("schema", newSchemaCommand),
		),
		cli.In("Look into archives", cli.Named("inspect", newInspectCommand), cli.Named("diff", newDiffCommand), cli.Named("affected", newAffectedCommand)),
		cli.In("Pass on archives", cli.Named("delta", newDeltaCommand), cli.Named("split", newSplitCommand), cli.Named("push", newPushCommand), cli.Named("pull", newPullCommand)),
		cli.In("Sign and verify", cli.Named("keygen", newKeygenCommand), cli.Named("sign", newSignCommand), cli.Named("verify", newVerifyCommand), cli.Named("trust", newTrustCommand)),
		cli.In("Deploy", cli.Named("deploy", func(a *app) *cobra.Command { return deploy.NewCommand(a.App, below...) })),
		cli.In("This program",
			cli.Named("config", newConfigCommand), cli.Named("completion", newCompletionCommand), cli.Named("version", newVersionCommand),
			cli.Named("help", func(*app) *cobra.Command { return help }),
		),
	)
	root.Long = `solutionctl packs a Kubernetes application for sites without internet as one ISO file, a Solution, and carries it
the whole way: build, lint and sign where it is made, verify and deploy where it runs.

Results go to standard output, progress and errors to standard error. Every flag can also be set by an environment
variable or in a configuration file, except those that accept a loss or a risk: see 'solutionctl config --help'.`
	keepApprovals(root)
	var whole func() *cobra.Command
	if len(words) > 0 {
		whole = func() *cobra.Command {
			return newRootCommand(&app{cli.New(a.In, a.Out, a.Err, a.Getenv, a.Now, a.Version)})
		}
	}
	a.Prepare(root, whole)
	return root
}
