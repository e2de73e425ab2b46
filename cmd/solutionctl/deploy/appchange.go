package deploy

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/apps"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

func newAppSetCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "set ENVIRONMENT NAME FIELD=VALUE...",
		Short: "Change values of an application and wait until it is ready with them",
		Long: "Change values of an application and wait until it is ready with them. FIELD- removes a value, and LIST[N]- an item. " +
			"N is the place of the item before the command: items are removed after all other changes.",
		Args:    cli.AtLeastArgs("ENVIRONMENT", "NAME", "FIELD=VALUE"),
		Example: "  solutionctl deploy app set test shop theme=Dark replicas=3",
	}
	f := addAppChangeFlags(a, cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return f.do(args, func(d *deployer.Deployer) (*schema.App, error) {
			return d.Apps.Set(cmd.Context(), apps.SetOptions{Options: f.o, Set: args[2:]})
		})
	}
	return cmd
}

func newAppScaleCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "scale ENVIRONMENT NAME REPLICAS", Short: "Change the number of replicas of an application",
		Args: cli.ExactArgs("ENVIRONMENT", "NAME", "REPLICAS"), Example: "  solutionctl deploy app scale test shop 3",
	}
	f := addAppChangeFlags(a, cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		replicas, err := strconv.ParseInt(args[2], 10, 32)
		if err != nil || replicas < 0 {
			return report.Errorf(report.Usage, "REPLICAS must be a number, 0 or more, not %q", args[2])
		}
		return f.do(args, func(d *deployer.Deployer) (*schema.App, error) {
			return d.Apps.Scale(cmd.Context(), apps.ScaleOptions{Options: f.o, Replicas: replicas})
		})
	}
	return cmd
}

func newAppDeleteCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "delete ENVIRONMENT NAME", Short: "Delete an application and its objects",
		Args: cli.ExactArgs("ENVIRONMENT", "NAME"), Example: "  solutionctl deploy app delete test shop --yes",
	}
	f := addAppChangeFlags(a, cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return f.do(args, func(d *deployer.Deployer) (*schema.App, error) { return f.delete(cmd.Context(), d) })
	}
	return cmd
}

// delete asks before the application goes with what came of it.
func (f *appFlags) delete(ctx context.Context, d *deployer.Deployer) (*schema.App, error) {
	one, err := d.Apps.Get(ctx, f.o)
	if err != nil {
		return nil, err
	}
	if err := f.Confirm(ctx, apps.ConfirmDeletion(one)); err != nil {
		return nil, err
	}
	f.o.UID = one.UID
	one.Health, one.Objects, one.Values, one.Shown = schema.AppDeleting, nil, nil, nil
	return one, d.Apps.Delete(ctx, f.o)
}
