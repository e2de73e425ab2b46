package deployer

import (
	"context"
	"fmt"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/dependencies"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// EnsureOptions select the Solutions of an environment.
type EnsureOptions struct {
	plan.Options
	definitions.Losses
	Environment string
	Solutions   []plan.Wanted
	Others      plan.OthersPolicy
	Going       []string // the only other ones that Others is about; nil stands for all of them
}

// Ensure adds the Solutions that an environment lacks, and gives the others the wanted version and components. All of it is one plan. A Solution
// changes once everything that it needs in its namespace is ready. o.Others is the policy for Solutions that the list does not name. Without changes
// nothing is written.
func (d *Deployer) Ensure(ctx context.Context, o EnsureOptions) (*schema.Operation, error) {
	_, done, err := o.run(ctx, d)
	return done, err
}

// PlanEnsure plans [Deployer.Ensure] without changes, and returns exactly the permissions that it needs.
func (d *Deployer) PlanEnsure(ctx context.Context, o EnsureOptions) (planned *schema.Operation, least []cluster.Permission, err error) {
	o.DryRun = true
	run, planned, err := o.run(ctx, d)
	if err != nil {
		return nil, nil, err
	}
	least, err = run.Work().Least(ctx, d.Cluster)
	return planned, least, err
}

func (o *EnsureOptions) run(ctx context.Context, d *Deployer) (*plan.Run, *schema.Operation, error) {
	run := d.begin(schema.Operation{Operation: schema.VerbEnsure, Environment: o.Environment}, o.Options)
	run.Losses = o.Losses
	done, err := run.InNamespaces(ctx, "", func(ctx context.Context) error {
		if err := run.ReadCatalog(ctx); err != nil {
			return err
		}
		return run.Ensure(ctx, o.Solutions, plan.Others{Policy: o.Others, Only: o.Going})
	})
	return run, done, err
}

// PreviewEnsure lists the objects that [Deployer.Ensure] adds, if it cannot be planned yet because the environment does not exist or the versions are
// not active. The objects are not compared with the cluster. Powers are judged as [Deployer.Ensure] judges them: o.Refuse refuses those that are not
// approved.
func (d *Deployer) PreviewEnsure(ctx context.Context, o EnsureOptions) (*schema.Operation, error) {
	ctx = cluster.WithMemory(ctx)
	o.DryRun = true
	run := d.begin(schema.Operation{Operation: schema.VerbEnsure, Environment: o.Environment, Planned: true, Parts: []schema.OperationPart{}, Notices: []string{}}, o.Options)
	err := run.ReadCatalog(ctx)
	if err != nil {
		return nil, err
	}
	run.Namespaces, err = d.Records.Namespaces(ctx, o.Environment, "")
	if report.CodeOf(err) == report.NotFound {
		run.Namespaces, err = []metalk8s.Namespace{{Name: o.Environment, Environment: o.Environment}}, nil
	}
	if err != nil {
		return nil, err
	}
	return &run.Operation, run.Preview(ctx, o.Solutions)
}

// EnsureActive activates versions with the wanted components in the cluster, in the order of their needs. A higher active version stays. Versions that
// are active already are listed in [ActiveVersions]. It returns the operations that were needed.
func (d *Deployer) EnsureActive(ctx context.Context, o plan.Options, list []plan.Wanted) ([]*schema.Operation, error) {
	run := d.begin(schema.Operation{}, o)
	if err := run.ReadCatalog(ctx); err != nil {
		return nil, err
	}
	wanted := map[schema.SolutionAt]plan.Rendering{}
	var all, unchanged []schema.SolutionAt
	for _, w := range list {
		found, err := run.Choose(ctx, w.Solution, w.Version)
		if err != nil {
			return nil, err
		}
		active, err := d.Records.Active(ctx, found.Name)
		if err != nil {
			return nil, err
		}
		if active == "" || active == found.Version || records.DirectionTo(active, found) == records.Up {
			at := schema.SolutionAt{Solution: found.Name, Version: found.Version}
			wanted[at], all = w.Rendering, append(all, at)
		} else {
			unchanged = append(unchanged, schema.SolutionAt{Solution: found.Name, Version: active})
		}
	}
	var done []*schema.Operation
	for _, at := range dependencies.InOrder(run.Catalog, all, schema.ScopeCluster) {
		a := ActivateOptions{
			Options: o, Solution: at.Solution, Version: at.Version, ClusterWide: wanted[at].ClusterWide, AcceptHazards: wanted[at].AcceptHazards,
			Parts: wanted[at].Parts, later: all, keepLatest: true,
		}
		a.AllowMore(wanted[at].Allow...)
		planned := a
		planned.DryRun = true
		operation, err := d.Activate(ctx, planned)
		if err == nil && !operation.Empty() && !o.DryRun {
			operation, err = d.Activate(ctx, a)
		}
		if err != nil {
			return done, fmt.Errorf("activate %s: %w", at.ID(), err)
		}
		if operation.Empty() {
			unchanged = append(unchanged, at)
			continue
		}
		done = append(done, operation)
	}
	listed, err := d.listActive(ctx, run, unchanged)
	return append(done, listed...), err
}
