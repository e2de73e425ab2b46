package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/build/archive"
	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/host/store"
	"github.com/solutionctl/solutionctl/schema"
)

func newActivateCommand(a *app, planOnly bool) *cobra.Command {
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
	f := a.addVerbFlags(cmd, planOnly)
	f.addReplace(cmd)
	var file configurationFlag
	file.add(cmd)
	var loss lossFlags
	loss.add(cmd)
	var clusterWide, protect bool
	cmd.Flags().BoolVar(&clusterWide, "cluster-wide", false, "approve of parts with rights on the whole cluster, or a say in changes of it")
	cmd.Flags().BoolVar(&protect, "protect-crds", false, "let nobody delete the custom resource definitions unless an annotation allows it")
	arguments := takesArguments(cmd, argument{name: "SOLUTION", flags: []string{"name"}}, argument{name: "VERSION", flags: []string{"version"}, optional: true})
	cmd.ValidArgsFunction = a.completeImported(f.clusterFlags)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		args = arguments(args)
		o := deployer.ActivateOptions{Options: f.options(), Solution: args[0], Version: args[1]}
		if cmd.Flags().Changed("cluster-wide") {
			o.ClusterWide = &clusterWide
		}
		if cmd.Flags().Changed("protect-crds") {
			o.ProtectCRDs = &protect
		}
		o.AcceptDataLoss, o.AcceptInvalid, o.Export = loss.accepted, loss.invalid, a.export(loss.export, args[0])
		return a.runVerb(cmd.Context(), f, func(ctx context.Context, d *deployer.Deployer) (*schema.Operation, error) {
			return file.around(ctx, o.DryRun, func() (*schema.Operation, error) { return d.Activate(ctx, o) }, func(active map[string]string, done *schema.Operation) {
				active[done.Solution] = done.Version
				if o.Version == schema.ActiveLatest {
					active[done.Solution] = schema.ActiveLatest
				}
			})
		})
	}
	return cmd
}

func newDeactivateCommand(a *app, planOnly bool) *cobra.Command {
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
	f := a.addVerbFlags(cmd, planOnly)
	var file configurationFlag
	file.add(cmd)
	var data dataFlags
	data.add(cmd, "keep-crds", "keep the definitions and every custom resource")
	arguments := takesArguments(cmd, argument{name: "SOLUTION", flags: []string{"name"}})
	cmd.ValidArgsFunction = a.completeImported(f.clusterFlags)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		args = arguments(args)
		o := deployer.DeactivateOptions{Options: f.options(), Solution: args[0]}
		var err error
		if o.Data, o.Export, err = a.dataPolicy(cmd.Context(), &data, o.DryRun, args[0], args[0]); err != nil {
			return err
		}
		return a.runVerb(cmd.Context(), f, func(ctx context.Context, d *deployer.Deployer) (*schema.Operation, error) {
			return file.around(ctx, o.DryRun, func() (*schema.Operation, error) { return d.Deactivate(ctx, o) }, func(active map[string]string, _ *schema.Operation) {
				delete(active, o.Solution)
			})
		})
	}
	return cmd
}

// configurationFlag is the file that tells MetalK8s which versions are active. It is kept up to date on the host that has
// one.
type configurationFlag struct{ path string }

func (f *configurationFlag) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.path, "solutions-file", store.DefaultConfiguration, "MetalK8s' configuration, a `FILE`; it is changed where it exists")
}

// around does the work between a look at the file and the change of it.
func (f *configurationFlag) around(ctx context.Context, dryRun bool, work func() (*schema.Operation, error), change func(active map[string]string, done *schema.Operation)) (*schema.Operation, error) {
	if _, err := os.Lstat(f.path); dryRun || errors.Is(err, fs.ErrNotExist) {
		return work()
	}
	configuration := &store.Configuration{Path: f.path, Identify: archive.Identify}
	if err := configuration.Check(); err != nil {
		return nil, err
	}
	done, err := work()
	if err != nil {
		return nil, err
	}
	edited, err := configuration.Edit(ctx, func(c *schema.SolutionsConfiguration) { change(c.Active, done) })
	if err != nil {
		return nil, fmt.Errorf("the cluster is changed, but not its configuration: %w", err)
	}
	done.Notices = append(done.Notices, edited.Notes...)
	return done, nil
}
