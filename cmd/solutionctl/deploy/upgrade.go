package deploy

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

func newUpgradeCommand(a *cli.App) *verb {
	return newChangeCommand(a, records.Up, "Upgrade a Solution in an environment to a higher version",
		`Replace the version of a Solution in every namespace of an environment by a higher one: without VERSION, as with
'add', by the active version, with "latest" by the highest release that was imported.`,
		versionArgument.orNone())
}

func newDowngradeCommand(a *cli.App) *verb {
	return newChangeCommand(a, records.Down, "Downgrade a Solution in an environment to a lower version",
		"Replace the version of a Solution in every namespace of an environment by a lower one.",
		versionArgument)
}

var changeExamples = map[records.Direction]string{
	records.Up: `  solutionctl deploy upgrade test example-solution 1.1.0
  solutionctl deploy upgrade test db 2.0.0 --with app=2.0.0`,
	records.Down: "  solutionctl deploy downgrade test example-solution 1.0.0",
}

func newChangeCommand(a *cli.App, direction records.Direction, short, long string, version argument) *verb {
	cmd := &cobra.Command{
		Use:   string(direction) + " ENVIRONMENT SOLUTION " + version.usage(),
		Short: short,
		Long: long + `

Before anything changes it is checked that the version was imported and supports the cluster, that the cluster serves the
custom resources it works with (else 'solutionctl deploy activate' comes first), and that it accepts every one that is
there without losing a field. Rights that the new version has in addition are listed. How the Solution was added is kept.

Fields that the version does not know are not lost at once: its operator drops them when it writes the object. Therefore
that, too, is refused unless the loss is accepted, and then the objects are exported before.

Solutions that need new versions of each other change in one run: --with names the others. With --namespace an
environment is changed namespace by namespace. With --wait-apps the new version is ready when its custom resources are, too.
--on-failure rollback goes back when the new version does not become ready; otherwise 'solutionctl deploy rollback' does, and
running the same command again tries again.

What cannot be changed in place is named, with what replacing it would mean: --replace KIND/NAME allows that for one object.
What holds data is never replaced; a StatefulSet keeps its volume claims, which grow where their class allows it. A Job that
has ended is not run again, unless its name is given to --replace.`,
		Example: changeExamples[direction],
	}
	c := &change{verb: newClusterVerb(a, cmd)}
	c.addReplace()
	c.addWithFlag()
	cmd.Flags().StringVarP(&c.request.Namespace, "namespace", "n", "", "only in this `NAMESPACE` of the environment")
	c.rendering.add(c.verb)
	c.addAllow(cmd, c.about)
	c.loss.add(cmd)
	c.toChange = append(c.toChange, func() {
		cli.AddChoice(cmd, cmd.Flags(), &c.onFailure, "on-failure", "", "what to do when the new version does not become ready: stay or rollback", "stay", "rollback")
		cmd.Flags().BoolVar(&c.request.WaitApps, "wait-apps", false, "wait until the custom resources of the Solution are ready, too")
	})
	c.takes(c.run, c.completeDeployment, environmentArgument, solutionArgument, version)
	return c.verb
}

// change is a run of 'deploy upgrade' or 'deploy downgrade'.
type change struct {
	*verb
	onFailure string
	with      []string
	rendering renderingFlags
	loss      lossFlags
}

func (c *change) run(ctx context.Context, r deployer.Request) (err error) {
	if r.Rendering, err = c.rendering.options(); err != nil {
		return err
	}
	r.Losses = c.loss.options(c.App, r.Solution+"-"+r.Environment)
	if r.With, err = parseWith(c.with); err != nil {
		return err
	}
	if r.RollBack = c.onFailure == "rollback"; r.RollBack && r.NoWait {
		return report.Errorf(report.Usage, "--on-failure rollback needs to wait, and --no-wait does not")
	}
	if r.WaitApps && r.NoWait {
		return report.Errorf(report.Usage, "--wait-apps needs to wait, and --no-wait does not")
	}
	return c.perform(ctx, r)
}

// addWithFlag adds the flag that names Solutions to change in the same run.
func (c *change) addWithFlag() {
	c.cmd.Flags().StringSliceVar(&c.with, "with", nil, "change other Solutions in the same run: `SOLUTION=VERSION,...`")
	cli.Must(c.cmd.RegisterFlagCompletionFunc("with", func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		return completeWith(c.completeDeployment, cmd, args, prefix)
	}))
}

// parseWith reads what --with names.
func parseWith(texts []string) ([]schema.SolutionAt, error) {
	var list []schema.SolutionAt
	for _, text := range texts {
		solution, version, ok := strings.Cut(text, "=")
		if !ok || solution == "" || version == "" {
			return nil, report.Errorf(report.Usage, "--with %q is not SOLUTION=VERSION", text)
		}
		list = append(list, schema.SolutionAt{Solution: solution, Version: version})
	}
	return list, nil
}

// completeWith completes the last SOLUTION=VERSION of a list with what the arguments SOLUTION and VERSION would be completed.
func completeWith(complete cobra.CompletionFunc, cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	begin := strings.LastIndex(prefix, ",") + 1
	solution, version, chosen := strings.Cut(prefix[begin:], "=")
	ending := "="
	known, typed := args[:1], solution
	if chosen {
		begin, ending = begin+len(solution)+1, ""
		known, typed = []string{args[0], solution}, version
	}
	found, _ := complete(cmd, known, typed)
	for i := range found {
		found[i] = prefix[:begin] + found[i] + ending
	}
	return found, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}
