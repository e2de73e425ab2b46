package main

import (
	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/settings"
)

func newConfigCommand(a *app) *cobra.Command {
	var changed bool
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Print every setting and the source of its value",
		Long: `Print every setting, its value and where the value came from.

Every flag of every command is a setting, except those that accept a loss or a risk, such as --allow, --adopt or
--delete-data: they count on the command line only. The value of a setting is, in this order:

  1. the command line;
  2. the environment variable SOLUTIONCTL_<COMMAND>_<FLAG>, else SOLUTIONCTL_<FLAG>;
  3. the key of that name in the configuration file: in the mapping named after the command, else at the top;
  4. the default.

The configuration file is /etc/solutionctl/config.yaml for root and ~/.config/solutionctl/config.yaml
($XDG_CONFIG_HOME) for others, unless --config or SOLUTIONCTL_CONFIG names another:

  progress: plain          # --progress plain, for every command
  config:                  # flags of 'solutionctl config' only
    changed: true

A key that does not exist is an error. An empty environment variable counts as unset.`,
		Example: "  SOLUTIONCTL_PROGRESS=plain solutionctl config --changed",
		RunE: func(*cobra.Command, []string) error {
			list, err := a.Settings.List()
			if err != nil {
				return err
			}
			if changed {
				list = notDefault(list)
			}
			return a.EmitResult(list, func(w *console.Stream) { printSettings(w, list) })
		},
	}
	cmd.Flags().BoolVar(&changed, "changed", false, "only settings that do not have their default value")
	return cmd
}

func notDefault(list []settings.Setting) []settings.Setting {
	changed := []settings.Setting{}
	for _, setting := range list {
		if setting.Source != settings.Default {
			changed = append(changed, setting)
		}
	}
	return changed
}

func printSettings(w *console.Stream, list []settings.Setting) {
	table := &console.Table{Columns: []string{"SETTING", "VALUE", "FROM"}}
	for _, setting := range list {
		table.Add(setting.Key, setting.Value, setting.Origin)
	}
	table.Print(w)
}
