package plan

import (
	"context"
	"slices"

	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/dependencies"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
)

// Wanted is a Solution as an environment is to have it.
type Wanted struct {
	Solution string
	Version  string // an imported one; "" stands for the active one, "latest" for the highest release
	Rendering
}

// Ensure plans that the namespaces of the run have Solutions: those that they lack are added, others get the wanted version and components.
func (r *Run) Ensure(ctx context.Context, list []Wanted, others Others) error {
	placements, all, err := r.chooseAll(ctx, list)
	if err != nil {
		return err
	}
	var changed, added []*Placement
	var replaced []Installation
	for _, p := range placements {
		change, add, here, failure := r.split(ctx, p)
		if failure != nil {
			return failure
		}
		if change != nil {
			changed, replaced = append(changed, change), append(replaced, here...)
		}
		if add != nil {
			added = append(added, add)
		}
	}
	if err = r.leave(ctx, others, all); err != nil {
		return err
	}
	if err = r.Place(ctx, append(slices.Clip(changed), added...)); err != nil {
		return err
	}
	if len(changed) == 0 {
		r.Losses = definitions.Losses{} // the same again, when all is as it is wanted
	}
	return r.judgeChanges(ctx, changed, replaced)
}

// Preview plans the releases that Ensure adds of Solutions which the namespaces of the run do not have, as the archives and the options have
// them, and reports each as a part. The cluster is not compared. Powers of the wanted versions are judged.
func (r *Run) Preview(ctx context.Context, wanted []Wanted) error {
	list, _, err := r.chooseAll(ctx, wanted)
	if err != nil {
		return err
	}
	for _, p := range list {
		p.Verb, p.Namespaces = schema.VerbAdd, r.Namespaces
		if p.renderer, err = r.Renderer(ctx, r.Catalog, p.Import); err != nil {
			return err
		}
	}
	if err = r.mergeOptions(ctx, list); err != nil {
		return err
	}
	for _, p := range list {
		have, err := r.Installed(ctx, p.Name, r.Namespaces)
		if err != nil {
			return err
		}
		own, parts, err := r.releases(ctx, p)
		if err != nil {
			return err
		}
		for _, release := range slices.Concat(own, parts) {
			r.Plans = append(r.Plans, &engine.Plan{Release: release})
			if !slices.ContainsFunc(have, func(i Installation) bool { return i.Name == release.Namespace }) {
				r.Parts = append(r.Parts, additionOf(&release))
			}
		}
	}
	return r.judgePowers(ctx, r.judgedIn(list)...)
}

// chooseAll returns the imported versions of wanted Solutions in the order of the list, and placements of them in the order of their needs.
func (r *Run) chooseAll(ctx context.Context, list []Wanted) (placements []*Placement, all []schema.SolutionAt, err error) {
	wanted := map[schema.SolutionAt]Rendering{}
	for _, w := range list {
		found, err := r.Choose(ctx, w.Solution, w.Version)
		if err != nil {
			return nil, nil, err
		}
		at := schema.SolutionAt{Solution: found.Name, Version: found.Version}
		wanted[at], all = w.Rendering, append(all, at)
	}
	for _, at := range dependencies.InOrder(r.Catalog, all, schema.ScopeEnvironment) {
		found, _ := r.Catalog.Get(at.ID())
		placements = append(placements, &Placement{Import: found, Rendering: wanted[at]})
	}
	return placements, all, nil
}

// split splits a placement: change is for the namespaces that have another version, whose installations it returns, and add for all others.
func (r *Run) split(ctx context.Context, p *Placement) (change, add *Placement, replaced []Installation, err error) {
	have, err := r.Installed(ctx, p.Name, r.Namespaces)
	if err != nil {
		return nil, nil, nil, err
	}
	replaced = slices.DeleteFunc(have, func(i Installation) bool { return i.Version == p.Version || i.Version == "" })
	rest := slices.DeleteFunc(slices.Clone(r.Namespaces), func(n metalk8s.Namespace) bool {
		return slices.ContainsFunc(replaced, func(i Installation) bool { return i.Name == n.Name })
	})
	if len(rest) > 0 {
		absent := *p
		absent.Verb, absent.Namespaces = schema.VerbAdd, rest
		add = &absent
	}
	if len(replaced) == 0 {
		return nil, add, nil, nil
	}
	p.Verb = string(records.DirectionTo(replaced[0].Version, p.Import))
	return p, add, replaced, r.replace(ctx, p, replaced)
}

// addNeeds makes releases of Solutions, and of their components, wait for the Solutions that they need and that are in the same
// namespace. Solutions that need each other do not wait.
func (r *Run) addNeeds(own, parts []engine.Release) {
	for i := range own {
		var beside []schema.SolutionAt
		for _, other := range own {
			if other.Namespace == own[i].Namespace {
				beside = append(beside, schema.SolutionAt{Solution: other.Name, Version: other.Version})
			}
		}
		at := schema.SolutionAt{Solution: own[i].Name, Version: own[i].Version}
		var needs []engine.Need
		for _, first := range dependencies.First(r.Catalog, beside, at, schema.ScopeEnvironment) {
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

// additionOf lists what a release creates where nothing of it exists: its objects, and the tasks of an installation.
func additionOf(r *engine.Release) schema.OperationPart {
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
