package deployer

import (
	"context"
	"slices"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/dependencies"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// PreviewEnsure lists the objects that [Deployer.Ensure] adds of Solutions that an environment does not have, where it cannot be planned
// yet: the environment does not exist, or the versions are not active. They are as the archives and the options have them, and are not
// compared with the cluster. What the wanted versions can do is judged as [Deployer.Ensure] judges it: with o.Refuse, powers that are not
// approved are refused.
func (d *Deployer) PreviewEnsure(ctx context.Context, o EnsureOptions) (*schema.Operation, error) {
	ctx = cluster.WithMemory(ctx)
	catalog, err := d.Records.Catalog(ctx)
	if err != nil {
		return nil, err
	}
	namespaces, err := d.Records.Namespaces(ctx, o.Environment, "")
	if report.CodeOf(err) == report.NotFound {
		namespaces, err = []metalk8s.Namespace{{Name: o.Environment, Environment: o.Environment}}, nil
	}
	if err != nil {
		return nil, err
	}
	t := &task{Operation: schema.Operation{Operation: schema.VerbEnsure, Environment: o.Environment, Planned: true, Parts: []schema.OperationPart{}, Notices: []string{}}}
	list, err := d.previewed(ctx, t, catalog, o, namespaces)
	if err != nil {
		return nil, err
	}
	if err = d.giveAll(ctx, list, o.Options); err != nil {
		return nil, err
	}
	for _, one := range list {
		have, err := d.installed(ctx, one.Name, namespaces)
		if err != nil {
			return nil, err
		}
		own, parts, err := d.releases(ctx, t, one)
		if err != nil {
			return nil, err
		}
		for _, r := range slices.Concat(own, parts) {
			t.plans = append(t.plans, &engine.Plan{Release: r})
			if !slices.ContainsFunc(have, func(i installation) bool { return i.Name == r.Namespace }) {
				t.Parts = append(t.Parts, additionOf(r))
			}
		}
	}
	o.DryRun = true
	return &t.Operation, d.judgePowers(ctx, t, o.Options, judgedIn(list, o.Options)...)
}

// previewed are the wanted Solutions, each in all of the namespaces.
func (d *Deployer) previewed(ctx context.Context, t *task, catalog *records.Catalog, o EnsureOptions, namespaces []metalk8s.Namespace) ([]*placement, error) {
	wanted, all, err := d.chooseAll(ctx, t, catalog, o.Solutions)
	if err != nil {
		return nil, err
	}
	var list []*placement
	for _, at := range dependencies.InOrder(catalog, all, schema.ScopeEnvironment) {
		found, _ := catalog.Get(at.ID())
		one := &placement{Import: found, operation: schema.VerbAdd, namespaces: namespaces, Rendering: wanted[at]}
		var err error
		if one.payload, one.settings, err = d.settings(ctx, catalog, found); err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return list, nil
}

// additionOf lists what is made of a release where nothing is of it: its objects, and the tasks of an installation.
func additionOf(r engine.Release) schema.OperationPart {
	part := schema.OperationPart{Namespace: r.Namespace, Solution: r.Name, Version: r.Version, Component: r.Component, Changes: []schema.Change{}}
	for _, object := range r.Objects {
		part.Changes = append(part.Changes, schema.Change{Action: schema.ActionCreate, Object: records.RefOf(object.GroupVersionKind(), object)})
	}
	for _, task := range r.Tasks {
		if slices.Contains(task.On, schema.OccasionInstall) {
			ref := records.RefOf(task.Object.GroupVersionKind(), task.Object)
			part.Changes = append(part.Changes, schema.Change{Action: schema.ActionCreate, Object: ref, Task: task.When})
		}
	}
	return part
}
