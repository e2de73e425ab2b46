package main

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
)

func newAddCommand(a *app) *verb {
	cmd := &cobra.Command{
		Use:     "add ENVIRONMENT SOLUTION [VERSION]",
		Aliases: []string{"add-solution"},
		Short:   "Deploy an imported version of a Solution in an environment",
		Long: `Deploy the operator of a Solution, and its user interface if it has one, in every namespace of an environment. Without
VERSION that is the active version, with "latest" the highest release.

Roles with which an operator could take over more than its namespace are refused; --accept-hazard accepts them by name.
How a Solution was added is remembered: adding it again keeps --webhook and what else was said before.`,
		Example: "  solutionctl deploy add test example-solution 1.0.0",
	}
	f := a.newVerb(cmd)
	f.addReplace()
	var o deployer.AddOptions
	cmd.Flags().StringVarP(&o.Namespace, "namespace", "N", "", "only in this `NAMESPACE` of the environment")
	rendering := addRenderingFlags(cmd)
	arguments := takesArguments(cmd, argument{name: "ENVIRONMENT", flags: []string{"name", "environment"}},
		argument{name: "SOLUTION", flags: []string{"solution"}}, argument{name: "VERSION", flags: []string{"version"}, optional: true})
	cmd.ValidArgsFunction = a.completeDeployment(f.clusterFlags)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		args = arguments(args)
		o.Options, o.Environment, o.Solution, o.Version = f.options(), args[0], args[1], args[2]
		o.Rendering = rendering()
		return runVerb(cmd.Context(), a, &f.verbFlags, (*deployer.Deployer).Add, o)
	}
	return f
}

// addRenderingFlags adds the flags that say how a Solution is deployed. The returned function reads them: what is not given
// stays as it was said before.
func addRenderingFlags(cmd *cobra.Command) func() deployer.Rendering {
	var webhook, clusterWide bool
	var class string
	var hazards []string
	flags := cmd.Flags()
	flags.BoolVar(&webhook, "webhook", false, "give the operator a certificate for its webhooks")
	flags.BoolVar(&clusterWide, "cluster-wide", false, "approve of an operator that works in every namespace")
	flags.StringVar(&class, "ingress-class", "", "`CLASS` of the Ingress of the user interface (default that of the cluster)")
	flags.StringSliceVar(&hazards, "accept-hazard", nil, "accept roles with this `HAZARD`, such as read-secrets (may be repeated)")
	return func() deployer.Rendering {
		r := deployer.Rendering{AcceptHazards: hazards}
		if flags.Changed("webhook") {
			r.Webhook = &webhook
		}
		if flags.Changed("cluster-wide") {
			r.ClusterWide = &clusterWide
		}
		if flags.Changed("ingress-class") {
			r.IngressClass = &class
		}
		return r
	}
}

func newRemoveCommand(a *app) *verb {
	cmd := &cobra.Command{
		Use:     "remove ENVIRONMENT SOLUTION",
		Aliases: []string{"delete-solution", "remove-solution"},
		Short:   "Take a Solution out of an environment",
		Long: `Remove everything that adding a Solution put into the namespaces of an environment. This is refused while there are
custom resources of it, because nobody would look after them.

--keep-data leaves them without an operator. --delete-data writes them to a file that only you can read and deletes them
while the operator still runs; the name of the Solution has to be typed, or given with --yes.`,
		Example: "  solutionctl deploy remove test example-solution",
	}
	f := a.newVerb(cmd)
	var o deployer.RemoveOptions
	cmd.Flags().StringVarP(&o.Namespace, "namespace", "N", "", "only from this `NAMESPACE` of the environment")
	var data dataFlags
	data.add(cmd, "keep-data", "leave custom resources without an operator")
	arguments := takesArguments(cmd, argument{name: "ENVIRONMENT", flags: []string{"name", "environment"}}, argument{name: "SOLUTION", flags: []string{"solution"}})
	cmd.ValidArgsFunction = a.completeDeployment(f.clusterFlags)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		args = arguments(args)
		o.Options, o.Environment, o.Solution = f.options(), args[0], args[1]
		o.Data, o.Export = data.policy(a, args[1]+"-"+args[0])
		if err := a.confirm(cmd.Context(), o.Confirmation()); err != nil {
			return err
		}
		return runVerb(cmd.Context(), a, &f.verbFlags, (*deployer.Deployer).Remove, o)
	}
	return f
}

// completeImported completes the name of an imported Solution and then its versions.
func (a *app) completeImported(f *clusterFlags) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		return a.completeFromCluster(f, func(ctx context.Context, c *cluster.Cluster) ([]string, error) {
			return a.importedNames(ctx, c, f, args)
		})(cmd, args, prefix)
	}
}

// completeDeployment completes the name of an environment, and then as completeImported does.
func (a *app) completeDeployment(f *clusterFlags) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		return a.completeFromCluster(f, func(ctx context.Context, c *cluster.Cluster) ([]string, error) {
			if len(args) > 0 {
				return a.importedNames(ctx, c, f, args[1:])
			}
			return environmentNames(ctx, c)
		})(cmd, args, prefix)
	}
}

// importedNames lists Solutions, or the versions of the one that is named already.
func (a *app) importedNames(ctx context.Context, c *cluster.Cluster, f *clusterFlags, args []string) ([]string, error) {
	catalog, err := a.deployerOn(c, f).Records.Catalog(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, i := range catalog.Imports() {
		switch {
		case len(args) == 0:
			names = append(names, i.Name)
		case len(args) == 1 && i.Name == args[0]:
			names = append(names, i.Version)
		}
	}
	return slices.Compact(names), nil
}
