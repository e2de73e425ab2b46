package deploy

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/schema"
)

func newAddCommand(a *cli.App) *verb {
	cmd := &cobra.Command{
		Use:     "add ENVIRONMENT SOLUTION [VERSION]",
		Aliases: []string{"add-solution"},
		Short:   "Deploy an imported version of a Solution in an environment",
		Long: `Deploy the operator of a Solution, and its user interface if it has one, in every namespace of an environment. Without
VERSION that is the active version, with "latest" the highest release.

Components come up in the order in which they need each other. --component and --profile choose them, --values and --set say
what the site wants of their charts; 'solutionctl deploy components' shows them. --adopt-helm makes a component of what Helm has
installed: with its values and passwords, and without a pod that starts again.

What it can do to the cluster beyond its own namespace is refused until it is approved: 'solutionctl deploy plan add'
shows it, and --allow approves. That is recorded; a version that can do more asks again.
The options of an added Solution are saved: adding it again keeps --webhook and the others.`,
		Example: `  solutionctl deploy add test example-solution 1.0.0
  solutionctl deploy add prod cloud 2.0.0 --profile small --component metrics --values site.yaml`,
	}
	v := newClusterVerb(a, cmd)
	v.addReplace()
	cmd.Flags().StringVarP(&v.request.Namespace, "namespace", "N", "", "only in this `NAMESPACE` of the environment")
	var rendering renderingFlags
	rendering.add(v)
	v.addAllow(cmd, v.about)
	v.takes(func(ctx context.Context, r deployer.Request) (err error) {
		if r.Rendering, err = rendering.options(); err != nil {
			return err
		}
		return v.perform(ctx, r)
	}, v.completeDeployment, environmentArgument, solutionArgument, versionArgument.orNone())
	return v
}

// renderingFlags specify how a Solution is deployed. Flags that are not set keep their saved values.
type renderingFlags struct {
	flags                *pflag.FlagSet
	webhook, clusterWide bool
	class                string
	hazards              []string
	parts                partsFlags
}

func (f *renderingFlags) add(v *verb) {
	f.flags = v.cmd.Flags()
	f.flags.BoolVar(&f.webhook, "webhook", false, "give the operator a certificate for its webhooks")
	f.flags.BoolVar(&f.clusterWide, "cluster-wide", false, "approve of an operator that works in every namespace, with the rights that this version gives it")
	f.flags.StringVar(&f.class, "ingress-class", "", "`CLASS` of the Ingress of the user interface (default that of the cluster)")
	addHazardFlag(f.flags, &f.hazards)
	f.parts.add(v, schema.ScopeEnvironment)
}

// addHazardFlag adds the flag that accepts what is refused for the sake of safety.
func addHazardFlag(flags *pflag.FlagSet, hazards *[]string) {
	flags.StringSliceVar(hazards, "accept-hazard", nil,
		"the same as --allow for the rights with this `HAZARD` that roles and bindings give, such as escalate; with "+plan.HazardForeignImages+" accept images that the archive does not have (may be repeated)")
}

func (f *renderingFlags) options() (plan.Rendering, error) {
	parts, err := f.parts.options()
	return plan.Rendering{
		Webhook: cli.IfChanged(f.flags, "webhook", &f.webhook), ClusterWide: cli.IfChanged(f.flags, "cluster-wide", &f.clusterWide),
		IngressClass: cli.IfChanged(f.flags, "ingress-class", &f.class), AcceptHazards: f.hazards, Parts: parts,
	}, err
}
