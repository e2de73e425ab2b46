package deploy

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/host/store"
	"github.com/solutionctl/solutionctl/schema"
)

func newActivateCommand(a *cli.App) *verb {
	cmd := &cobra.Command{
		Use:   "activate SOLUTION [VERSION]",
		Short: "Activate an imported version in the cluster",
		Long: `Make one imported version of a Solution the active one: apply its CustomResourceDefinitions and what else belongs to the
whole cluster. Without VERSION, or with "latest", that is the highest release.

Stored objects are compared with the new definitions first; a change that would lose data is refused, unless the loss is
accepted: then all objects of the CRD are exported before. A change that makes stored objects invalid is refused, too,
because they could not be edited any more, unless that is accepted. API versions that operators in environments still use
stay served. CRDs that only the previous version had are kept.

With --protect-crds the API server refuses to delete the CRDs, for all users, until their annotation
solutionctl.io/allow-deletion is "true"; 'solutionctl deploy deactivate' sets it. The flag is saved for later activations.`,
		Example: "  solutionctl deploy activate example-solution 1.0.0",
	}
	c := &activation{verb: newClusterVerb(a, cmd)}
	c.addReplace()
	c.addConfigurationFlag(cmd)
	c.parts.add(c.verb, schema.ScopeCluster)
	c.loss.add(cmd)
	addHazardFlag(cmd.Flags(), &c.hazards)
	c.addAllow(cmd, c.about)
	cmd.Flags().BoolVar(&c.clusterWide, "cluster-wide", false, "approve of its own accounts' rights on the whole cluster, and of a say in changes of it, as this version has them")
	cmd.Flags().BoolVar(&c.protect, "protect-crds", false, "refuse deletion of the CustomResourceDefinitions unless an annotation allows it")
	c.takes(c.run, c.completeImported, solutionAlone, versionArgument.orNone())
	return c.verb
}

// activation is a run of 'deploy activate'.
type activation struct {
	*verb
	loss                 lossFlags
	parts                partsFlags
	hazards              []string
	clusterWide, protect bool
}

func (c *activation) run(ctx context.Context, r deployer.Request) (err error) {
	if r.Rendering.Parts, err = c.parts.options(); err != nil {
		return err
	}
	r.Rendering.ClusterWide, r.Rendering.AcceptHazards = cli.IfChanged(c.cmd.Flags(), "cluster-wide", &c.clusterWide), c.hazards
	r.ProtectCRDs = cli.IfChanged(c.cmd.Flags(), "protect-crds", &c.protect)
	r.Losses = c.loss.options(c.App, r.Solution)
	return c.perform(ctx, r)
}

// addConfigurationFlag adds the flag for the file from which MetalK8s reads the active versions.
func (f *clusterFlags) addConfigurationFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.configuration, "solutions-file", store.DefaultConfiguration, "MetalK8s' configuration, a `FILE`; it is changed where it exists")
}
