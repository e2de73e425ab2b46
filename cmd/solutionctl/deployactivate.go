package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/host"
	"github.com/solutionctl/solutionctl/deployer/host/store"
	"github.com/solutionctl/solutionctl/schema"
)

func newActivateCommand(a *app) *verb {
	cmd := &cobra.Command{
		Use:   "activate SOLUTION [VERSION]",
		Short: "Make an imported version the active one of the cluster",
		Long: `Make one imported version of a Solution the active one: apply its CustomResourceDefinitions and what else belongs to the
whole cluster. Without VERSION, or with "latest", that is the highest release.

Stored objects are compared with the new definitions first; a change that would lose data is refused, unless the loss is
accepted: then all objects of the definition are exported before. So is one that makes stored objects invalid, as nobody
could change them any more, until that is accepted. API versions that operators in environments still work
with stay served. Definitions that only the version before had are kept.

With --protect-crds the API server refuses to delete the definitions, whoever asks, until their annotation
solutionctl.io/allow-deletion is "true"; 'solutionctl deploy deactivate' sees to that itself. It is remembered.`,
		Example: "  solutionctl deploy activate example-solution 1.0.0",
	}
	c := &activation{app: a, verb: a.newVerb(cmd)}
	c.addReplace()
	addConfigurationFlag(cmd, &c.configuration)
	c.loss.add(cmd)
	cmd.Flags().BoolVar(&c.clusterWide, "cluster-wide", false, "approve of parts with rights on the whole cluster, or a say in changes of it")
	cmd.Flags().BoolVar(&c.protect, "protect-crds", false, "let nobody delete the custom resource definitions unless an annotation allows it")
	arguments := takesArguments(cmd, argument{name: "SOLUTION", flags: []string{"name"}}, argument{name: "VERSION", flags: []string{"version"}, optional: true})
	cmd.ValidArgsFunction = a.completeImported(c.clusterFlags)
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), arguments(args)) }
	return c.verb
}

// activation is a run of 'deploy activate'.
type activation struct {
	*app
	*verb
	configuration        string
	loss                 lossFlags
	clusterWide, protect bool
}

func (c *activation) run(ctx context.Context, args []string) error {
	o := deployer.ActivateOptions{
		Options: c.options(), Solution: args[0], Version: args[1],
		AcceptDataLoss: c.loss.accepted, AcceptInvalid: c.loss.invalid, Export: c.export(c.loss.export, args[0]),
	}
	if c.cmd.Flags().Changed("cluster-wide") {
		o.ClusterWide = &c.clusterWide
	}
	if c.cmd.Flags().Changed("protect-crds") {
		o.ProtectCRDs = &c.protect
	}
	activate := func(d *deployer.Deployer, ctx context.Context, o deployer.ActivateOptions) (*schema.Operation, error) {
		return host.Active{Verbs: d, Configuration: c.configuration}.Activate(ctx, o)
	}
	return runVerb(ctx, c.app, &c.verbFlags, activate, o)
}

func newDeactivateCommand(a *app) *verb {
	cmd := &cobra.Command{
		Use:   "deactivate SOLUTION",
		Short: "Remove the cluster-wide part of a Solution",
		Long: `Remove the CustomResourceDefinitions of a Solution and what else it has for the whole cluster. Deleting a definition
deletes every object of its kind, so this is refused while there are any, or while the Solution is in an environment.

--keep-crds keeps the definitions and all data; activating a version later takes them over again. --delete-data writes
every custom resource to a file that only you can read, deletes them while their operators still run, and then the
definitions; the name of the Solution has to be typed, or given with --yes.`,
		Example: "  solutionctl deploy deactivate example-solution --keep-crds",
	}
	f := a.newVerb(cmd)
	var file string
	addConfigurationFlag(cmd, &file)
	var data dataFlags
	data.add(cmd, "keep-crds", "keep the definitions and every custom resource")
	arguments := takesArguments(cmd, argument{name: "SOLUTION", flags: []string{"name"}})
	cmd.ValidArgsFunction = a.completeImported(f.clusterFlags)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		args = arguments(args)
		o := deployer.DeactivateOptions{Options: f.options(), Solution: args[0]}
		o.Data, o.Export = data.policy(a, args[0])
		if err := a.confirm(cmd.Context(), o.Confirmation()); err != nil {
			return err
		}
		deactivate := func(d *deployer.Deployer, ctx context.Context, o deployer.DeactivateOptions) (*schema.Operation, error) {
			return host.Active{Verbs: d, Configuration: file}.Deactivate(ctx, o)
		}
		return runVerb(cmd.Context(), a, &f.verbFlags, deactivate, o)
	}
	return f
}

// addConfigurationFlag adds the flag for the file that tells MetalK8s which versions are active.
func addConfigurationFlag(cmd *cobra.Command, path *string) {
	cmd.Flags().StringVar(path, "solutions-file", store.DefaultConfiguration, "MetalK8s' configuration, a `FILE`; it is changed where it exists")
}
