package deployer

import (
	"context"
	"fmt"
	"slices"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/dependencies"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// EnsureOptions say which Solutions an environment is to have.
type EnsureOptions struct {
	Options
	Environment string
	Solutions   []Wanted
	Others      OthersPolicy
	Going       []string // the only other ones that Others is about; nil stands for all of them
	// AcceptDataLoss, AcceptInvalid and Export are as in [ChangeOptions].
	AcceptDataLoss []string
	AcceptInvalid  []string
	Export         definitions.Export
}

// Wanted is a Solution as an environment is to have it.
type Wanted struct {
	Solution string
	Version  string // an imported one; "" stands for the active one, "latest" for the highest release
	Rendering
}

// Ensure makes an environment have Solutions: those that it lacks are added, others get the version and the components that are
// wanted. All of it is one plan, judged as it will be, and a Solution is touched when everything that it needs in its namespace is
// ready. What becomes of Solutions that are not named o.Others says. Where nothing is to be done, nothing is written.
func (d *Deployer) Ensure(ctx context.Context, o EnsureOptions) (*schema.Operation, error) {
	return d.inNamespaces(ctx, o.Options, o.Environment, "", func(ctx context.Context, namespaces []metalk8s.Namespace) (*task, error) {
		return d.planEnsure(ctx, o, namespaces)
	})
}

// PlanEnsure plans what [Deployer.Ensure] would do, and tells with which rights: least is all that somebody needs who does exactly
// this, and nothing beside it.
func (d *Deployer) PlanEnsure(ctx context.Context, o EnsureOptions) (plan *schema.Operation, least []cluster.Permission, err error) {
	o.DryRun = true
	var planned *task
	plan, err = d.inNamespaces(ctx, o.Options, o.Environment, "", func(ctx context.Context, namespaces []metalk8s.Namespace) (t *task, err error) {
		planned, err = d.planEnsure(ctx, o, namespaces)
		return planned, err
	})
	if err != nil {
		return nil, nil, err
	}
	least, err = planned.work().Least(ctx, d.Cluster)
	return plan, least, err
}

func (d *Deployer) planEnsure(ctx context.Context, o EnsureOptions, namespaces []metalk8s.Namespace) (*task, error) {
	catalog, err := d.Records.Catalog(ctx)
	if err != nil {
		return nil, err
	}
	t := &task{Operation: schema.Operation{Operation: schema.VerbEnsure, Environment: o.Environment}, export: o.Export}
	wanted, all, err := d.chooseAll(ctx, t, catalog, o.Solutions)
	if err != nil {
		return nil, err
	}
	var changed, added []*placement
	var there []installation
	for _, at := range dependencies.InOrder(catalog, all, schema.ScopeEnvironment) {
		found, _ := catalog.Get(at.ID())
		change, add, here, err := d.placed(ctx, catalog, o, placement{Import: found, Rendering: wanted[at]}, namespaces)
		if err != nil {
			return nil, err
		}
		if change != nil {
			changed, there = append(changed, change), append(there, here...)
		}
		if add != nil {
			added = append(added, add)
		}
	}
	if err = d.planUnlisted(ctx, t, catalog, o, all, namespaces); err != nil {
		return nil, err
	}
	list := append(slices.Clip(changed), added...)
	if err = d.planPlacements(ctx, t, catalog, list, o.Options); err != nil {
		return nil, err
	}
	accepted := definitions.Accepted{Loss: o.AcceptDataLoss, Invalid: o.AcceptInvalid}
	if len(changed) == 0 {
		accepted = definitions.Accepted{} // the same again, when all is as it is wanted
	}
	return t, d.judgeChanges(ctx, t, catalog, changed, there, accepted)
}

// chooseAll returns the imported versions of the wanted Solutions in the order of the list, and how each is rendered.
func (d *Deployer) chooseAll(ctx context.Context, t *task, catalog *records.Catalog, list []Wanted) (map[schema.SolutionAt]Rendering, []schema.SolutionAt, error) {
	wanted := map[schema.SolutionAt]Rendering{}
	var all []schema.SolutionAt
	for _, w := range list {
		found, notice, err := d.choose(ctx, catalog, w.Solution, w.Version)
		if err != nil {
			return nil, nil, err
		}
		if notice != "" {
			t.notice(notice)
		}
		at := schema.SolutionAt{Solution: found.Name, Version: found.Version}
		wanted[at], all = w.Rendering, append(all, at)
	}
	return wanted, all, nil
}

// placed plans one Solution: change for the namespaces that have another version of it, add for all others.
func (d *Deployer) placed(ctx context.Context, catalog *records.Catalog, o EnsureOptions, one placement, namespaces []metalk8s.Namespace) (change, add *placement, there []installation, err error) {
	have, err := d.installed(ctx, one.Name, namespaces)
	if err != nil {
		return nil, nil, nil, err
	}
	there = slices.DeleteFunc(have, func(i installation) bool { return i.version == one.Version || i.version == "" })
	rest := slices.DeleteFunc(slices.Clone(namespaces), func(n metalk8s.Namespace) bool {
		return slices.ContainsFunc(there, func(i installation) bool { return i.Name == n.Name })
	})
	if len(rest) > 0 {
		absent := one
		absent.operation, absent.namespaces = schema.VerbAdd, rest
		add = &absent
	}
	if len(there) == 0 {
		return nil, add, nil, nil
	}
	payload, err := d.Records.Payload(ctx, one.Import)
	if err != nil {
		return nil, nil, nil, err
	}
	direction := records.DirectionTo(there[0].version, one.Import)
	as := ChangeOptions{Options: o.Options, Environment: o.Environment, Solution: one.Name, Direction: direction}
	for _, i := range there {
		if err = i.mayBecome(one.Import, as, payload, catalog); err != nil {
			return nil, nil, nil, err
		}
		one.namespaces = append(one.namespaces, i.Namespace)
	}
	one.operation = string(direction)
	return &one, add, there, nil
}

// needOthers makes releases of Solutions, and of their parts, wait for the Solutions that they need and that are in the same
// namespace. Solutions that need each other do not wait.
func needOthers(catalog *records.Catalog, own, parts []engine.Release) {
	for i := range own {
		var beside []schema.SolutionAt
		for _, other := range own {
			if other.Namespace == own[i].Namespace {
				beside = append(beside, schema.SolutionAt{Solution: other.Name, Version: other.Version})
			}
		}
		at := schema.SolutionAt{Solution: own[i].Name, Version: own[i].Version}
		var needs []engine.Need
		for _, first := range dependencies.First(catalog, beside, at, schema.ScopeEnvironment) {
			for _, other := range slices.Concat(own, parts) {
				if other.Namespace == own[i].Namespace && other.Name == first.Solution && other.Version != "" {
					needs = append(needs, engine.Need{Key: other.Key, Until: schema.UntilReady})
				}
			}
		}
		own[i].Needs = append(own[i].Needs, needs...)
		for at := range parts {
			if parts[at].Name == own[i].Name && parts[at].Namespace == own[i].Namespace {
				parts[at].Needs = append(parts[at].Needs, needs...)
			}
		}
	}
}

// resumeTogether finishes to add Solutions that were added in one run.
func (d *Deployer) resumeTogether(ctx context.Context, p unfinished, o Options) error {
	ensure := EnsureOptions{Options: o, Environment: p.Environment, Solutions: []Wanted{{Solution: p.Solution, Version: p.Version}}}
	for _, at := range p.revision.Together {
		ensure.Solutions = append(ensure.Solutions, Wanted{Solution: at.Solution, Version: at.Version})
	}
	_, err := d.Ensure(ctx, ensure)
	if report.CodeOf(err) == report.NotFound {
		return report.Errorf(report.NotFound, "%w", err).WithHint("or add it alone: %s", report.Run("deploy add", p.Environment, p.Solution, p.Version))
	}
	return err
}

// EnsureActive makes versions active and their components in the cluster the wanted ones, in the order of their needs. A higher
// version that is active stays. What comes back is what was to be done.
func (d *Deployer) EnsureActive(ctx context.Context, o Options, list []Wanted) ([]*schema.Operation, error) {
	catalog, err := d.Records.Catalog(ctx)
	if err != nil {
		return nil, err
	}
	wanted := map[schema.SolutionAt]Rendering{}
	var all []schema.SolutionAt
	for _, w := range list {
		found, _, err := d.choose(ctx, catalog, w.Solution, w.Version)
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
		}
	}
	var done []*schema.Operation
	for _, at := range dependencies.InOrder(catalog, all, schema.ScopeCluster) {
		a := ActivateOptions{
			Options: o, Solution: at.Solution, Version: at.Version, ClusterWide: wanted[at].ClusterWide, AcceptHazards: wanted[at].AcceptHazards,
			Parts: wanted[at].Parts, later: all,
		}
		a.AllowMore(wanted[at].Allow...)
		plan := a
		plan.DryRun = true
		operation, err := d.Activate(ctx, plan)
		if err == nil && !operation.Empty() && !o.DryRun {
			operation, err = d.Activate(ctx, a)
		}
		if err != nil {
			return done, fmt.Errorf("activate %s: %w", at.ID(), err)
		}
		if !operation.Empty() {
			done = append(done, operation)
		}
	}
	return done, nil
}
