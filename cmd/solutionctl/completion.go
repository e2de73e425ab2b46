package main

import (
	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/schema/report"
)

func newCompletionCommand(a *app) *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Print the script that completes commands in a shell",
		Long: `Print the script that makes a shell complete commands, flags and names. To have it in every new shell:

  bash:        solutionctl completion bash > /etc/bash_completion.d/solutionctl
  zsh:         solutionctl completion zsh > "${fpath[1]}/_solutionctl"
  fish:        solutionctl completion fish > ~/.config/fish/completions/solutionctl.fish
  powershell:  solutionctl completion powershell >> $PROFILE`,
		Example:           "  source <(solutionctl completion bash)",
		Args:              cli.ExactArgs("SHELL"),
		ValidArgsFunction: cli.CompleteNames(func(*cobra.Command) ([]string, error) { return shells, nil }),
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(a.Out, true)
			case "zsh":
				return root.GenZshCompletion(a.Out)
			case "fish":
				return root.GenFishCompletion(a.Out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(a.Out)
			}
			return report.Errorf(report.Usage, "no completion for the shell %q", args[0]).
				WithHint("use one of bash, zsh, fish, powershell")
		},
	}
}
