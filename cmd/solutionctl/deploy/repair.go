package deploy

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/rebuild"
)

func newRepairCommand(a *cli.App) *verb {
	cmd := &cobra.Command{
		Use:   "repair [ENVIRONMENT [SOLUTION]]",
		Short: "Restore objects that were changed or deleted since they were deployed",
		Long: `Restore what 'deploy diff' shows, and nothing else: reset edited fields, and create deleted objects again. Without
arguments, all deployments are repaired, in all environments and outside of them.

Fields that another tool applies are a conflict, because that tool would apply them again: --force-conflicts takes them. An
object that another process has created in place of a deployed one is left alone without --adopt. Nothing is deleted, and
CustomResourceDefinitions are never changed: 'deploy activate' does that.

With --records, repair records instead of objects: records in namespace ` + cluster.SystemNamespace + ` that are
lost or cannot be read are made again from the archives that are imported and from the objects that have our label. Only
objects that are as an imported version has them are put on record; the others are named. No object is changed.`,
		Example: `  solutionctl deploy repair test example-solution
  solutionctl deploy repair prod cloud --component network
  solutionctl deploy repair --dry-run --exit-status
  solutionctl deploy repair --records`,
	}
	v := newClusterVerb(a, cmd)
	v.addReplace()
	v.addConfigurationFlag(cmd)
	var s selection
	s.addComponents(cmd, v.clusterFlags)
	records := cmd.Flags().Bool("records", false, "make records again that are lost or cannot be read")
	cmd.MarkFlagsMutuallyExclusive("records", "component")
	v.takes(func(ctx context.Context, r deployer.Request) error {
		selected, err := s.of([]string{r.Environment, r.Solution})
		switch {
		case err != nil:
			return err
		case *records:
			return runVerb(ctx, &v.verbFlags, (*deployer.Deployer).RebuildRecords, rebuild.Options{Options: r.Options, Selection: selected})
		}
		r.Components = selected.Components
		return v.perform(ctx, r)
	}, v.completeDeployment, argument{name: environmentArgument.name, optional: true}, argument{name: solutionArgument.name, optional: true})
	return v
}
