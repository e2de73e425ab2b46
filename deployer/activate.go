package deployer

import (
	"context"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
)

// ActivateOptions select the version to activate.
type ActivateOptions struct {
	plan.Options
	definitions.Losses
	Solution string
	// Version is an imported version; "" and "latest" stand for the highest release.
	Version string
	// ClusterWide approves components that have rights on the whole cluster, or that influence changes of it. Nil keeps the
	// saved approval.
	ClusterWide *bool
	// ProtectCRDs makes the API server refuse to delete the CRDs until the user allows it. Nil keeps the saved setting.
	ProtectCRDs *bool
	// AcceptHazards has the meaning that it has in [Rendering], for cluster-wide components.
	AcceptHazards []string
	plan.Parts    // components that live in the cluster

	later      []schema.SolutionAt // other activations in the same run, with the version "" deactivations
	keepLatest bool                // as in listActivation
}

// Activate makes one imported version of a Solution the active one: it applies its CustomResourceDefinitions and its other objects of the whole
// cluster. It never removes anything that stored objects need: CRDs that only the previous version had stay.
func (d *Deployer) Activate(ctx context.Context, o ActivateOptions) (*schema.Operation, error) {
	run := d.begin(schema.Operation{Operation: schema.VerbActivate}, o.Options)
	if err := d.checkList(o.Options); err != nil {
		return nil, err
	}
	return run.Do(ctx, func(ctx context.Context) error {
		if err := run.ReadCatalog(ctx); err != nil {
			return err
		}
		if err := o.plan(ctx, run); err != nil {
			return err
		}
		d.listActivation(run, o.Version, o.keepLatest)
		return nil
	}, cluster.ClusterLock)
}

// PreviewActivation returns the plan for activating a version that is not imported yet. It changes nothing.
func (d *Deployer) PreviewActivation(ctx context.Context, i records.ImportRecord) (*schema.Operation, error) {
	o := ActivateOptions{Options: plan.Options{DryRun: true}, Solution: i.Payload.Solution.Metadata.Name, Version: i.Payload.Solution.Spec.Version}
	run := d.begin(schema.Operation{Operation: schema.VerbActivate}, o.Options)
	return run.Do(ctx, func(ctx context.Context) error {
		catalog, err := d.Records.Catalog(ctx)
		if err != nil {
			return err
		}
		if run.Catalog, err = d.Records.Foresee(ctx, catalog, i); err != nil {
			return err
		}
		return o.plan(ctx, run)
	})
}

// plan plans the activation with the catalogue of a run.
func (o *ActivateOptions) plan(ctx context.Context, run *plan.Run) error {
	run.Losses = o.Losses
	return run.Activate(ctx, plan.Activation{
		Solution: o.Solution, Version: o.Version, ProtectCRDs: o.ProtectCRDs, Later: o.later,
		Rendering: plan.Rendering{Parts: o.Parts, ClusterWide: o.ClusterWide, AcceptHazards: o.AcceptHazards},
	})
}

// DeactivateOptions select the Solution to deactivate.
type DeactivateOptions struct {
	plan.Options
	Solution string
	Data     plan.DataPolicy    // KeepData keeps the definitions and every custom resource
	Export   definitions.Export // where custom resources go before they are deleted
	// Leaves is an environment from which the same command removes the Solution before, and Going are Solutions that it deactivates before.
	// None of them counts as a user of the Solution.
	Leaves string
	Going  []string

	begun bool                // an interrupted run, whose user saw which environments have the Solution and accepted the loss of data
	later []schema.SolutionAt // other activations in the same run, with the version "" deactivations
}

// Deactivate removes the cluster-wide part of a Solution. Deleting a CustomResourceDefinition deletes every object of its
// kind, so it is refused while there are any, or while an environment has the Solution, unless o.Data keeps the CRDs or deletes the objects.
func (d *Deployer) Deactivate(ctx context.Context, o DeactivateOptions) (*schema.Operation, error) {
	run := d.begin(schema.Operation{Operation: schema.VerbDeactivate, Solution: o.Solution}, o.Options)
	run.Export = o.Export
	for _, solution := range o.Going {
		o.later = append(o.later, schema.SolutionAt{Solution: solution})
	}
	if err := d.checkList(o.Options); err != nil {
		return nil, err
	}
	return run.Do(ctx, func(ctx context.Context) error {
		if err := run.ReadCatalog(ctx); err != nil {
			return err
		}
		if err := run.Deactivate(ctx, plan.Deactivation{Data: o.Data, Resumed: o.begun, Leaves: o.Leaves, Later: o.later}); err != nil {
			return err
		}
		d.unlistDeactivation(run)
		return nil
	}, cluster.ClusterLock)
}
