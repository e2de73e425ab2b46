package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

func newUpgradeCommand(a *app, planOnly bool) *cobra.Command {
	return newChangeCommand(a, planOnly, deployer.Up, "Replace the version of a Solution in an environment by a higher one",
		`Replace the version of a Solution in every namespace of an environment by a higher one: without VERSION, or with
"latest", by the highest release that was imported.`,
		argument{name: "VERSION", flags: []string{"version"}, optional: true})
}

func newDowngradeCommand(a *app, planOnly bool) *cobra.Command {
	return newChangeCommand(a, planOnly, deployer.Down, "Replace the version of a Solution in an environment by a lower one",
		"Replace the version of a Solution in every namespace of an environment by a lower one.",
		argument{name: "VERSION", flags: []string{"version"}})
}

func newChangeCommand(a *app, planOnly bool, direction deployer.Direction, short, long string, version argument) *cobra.Command {
	verb := string(direction)
	cmd := &cobra.Command{
		Use:   verb + " ENVIRONMENT SOLUTION " + version.usage(),
		Short: short,
		Long: long + `

Before anything changes it is checked that the version was imported and supports the cluster, that the cluster serves the
custom resources it works with (else 'solutionctl deploy activate' comes first), and that it accepts every one that is
there without losing a field. Rights that the new version has in addition are listed. How the Solution was added is kept.

Fields that the version does not know are not lost at once: its operator drops them when it writes the object. Therefore
that, too, is refused unless the loss is accepted, and then the objects are exported before.

With --namespace an environment is changed namespace by namespace. --on-failure rollback goes back when the new version
does not become ready; otherwise 'solutionctl deploy rollback' does, and running the same command again tries again.`,
		Example: "  solutionctl deploy " + verb + " test example-solution " + map[deployer.Direction]string{deployer.Up: "1.1.0", deployer.Down: "1.0.0"}[direction],
	}
	f := a.addVerbFlags(cmd, planOnly)
	o := deployer.ChangeOptions{Direction: direction}
	var onFailure string
	cmd.Flags().StringVar(&o.Namespace, "namespace", "", "only in this `NAMESPACE` of the environment")
	rendering := addRenderingFlags(cmd)
	var loss lossFlags
	loss.add(cmd)
	if !planOnly {
		addChoice(cmd, cmd.Flags(), &onFailure, "on-failure", "", "what to do when the new version does not become ready: stay or rollback", "stay", "rollback")
	}
	arguments := takesArguments(cmd, argument{name: "ENVIRONMENT", flags: []string{"name", "environment"}},
		argument{name: "SOLUTION", flags: []string{"solution"}}, version)
	cmd.ValidArgsFunction = a.completeDeployment(f.clusterFlags)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		args = arguments(args)
		o.Options, o.Environment, o.Solution, o.Version, o.Rendering = f.options(), args[0], args[1], args[2], rendering()
		o.AcceptDataLoss, o.Export = loss.accepted, a.export(loss.export, args[1]+"-"+args[0])
		if o.RollBack = onFailure == "rollback"; o.RollBack && o.NoWait {
			return report.Errorf(report.Usage, "--on-failure rollback needs to wait, and --no-wait does not")
		}
		return a.runVerb(cmd.Context(), f, func(ctx context.Context, d *deployer.Deployer) (*schema.Operation, error) { return d.Change(ctx, o) })
	}
	return cmd
}

// usage is the argument as a usage line has it.
func (a argument) usage() string {
	if a.optional {
		return "[" + a.name + "]"
	}
	return a.name
}

func newRollbackCommand(a *app, planOnly bool) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rollback ENVIRONMENT SOLUTION",
		Short: "Go back to what an environment had before",
		Long: strings.TrimSpace(`
Bring back the objects of a Solution in every namespace of an environment as they were before the last operation, or before
the one that was begun and did not end well. A second time it changes nothing; --revision names another one of
'solutionctl deploy history'.

The definitions of custom resources belong to the whole cluster and stay. It is refused when they, or custom resources that
are there, do not fit the earlier version any more.`),
		Example: "  solutionctl deploy rollback test example-solution",
	}
	f := a.addVerbFlags(cmd, planOnly)
	var o deployer.RollbackOptions
	cmd.Flags().StringVar(&o.Namespace, "namespace", "", "only in this `NAMESPACE` of the environment")
	cmd.Flags().Int64Var(&o.Revision, "revision", 0, "go back to this revision `NUMBER` of the history")
	var loss lossFlags
	loss.add(cmd)
	arguments := takesArguments(cmd, argument{name: "ENVIRONMENT", flags: []string{"name", "environment"}}, argument{name: "SOLUTION", flags: []string{"solution"}})
	cmd.ValidArgsFunction = a.completeDeployment(f.clusterFlags)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		args = arguments(args)
		o.Options, o.Environment, o.Solution = f.options(), args[0], args[1]
		o.AcceptDataLoss, o.Export = loss.accepted, a.export(loss.export, args[1]+"-"+args[0])
		return a.runVerb(cmd.Context(), f, func(ctx context.Context, d *deployer.Deployer) (*schema.Operation, error) { return d.Rollback(ctx, o) })
	}
	return cmd
}
