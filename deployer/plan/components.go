package plan

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/solutionctl/solutionctl/deployer/components"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// LastRevision returns the revision that was begun last; nil where there is none.
func LastRevision(s *record.State) *schema.DeploymentRevision { return cmp.Or(s.Pending, s.Current) }

// SettingsOf returns the settings of a revision, which may be nil.
func SettingsOf(r *schema.DeploymentRevision) map[string]string {
	if r == nil {
		return nil
	}
	return r.Settings
}

// tasksOf returns the tasks of a component as the engine has them.
func tasksOf(rendered []render.Task) []engine.Task {
	list := make([]engine.Task, len(rendered))
	for i, t := range rendered {
		list[i] = engine.Task(t)
	}
	return list
}

// InCluster reports whether a node is a component that is deployed once in the cluster, and not in each environment.
func InCluster(n *components.Node) bool {
	return n.Component != nil && n.Component.Scope == schema.ScopeCluster
}

// PartOf returns the release of a component beside its Solution's own one, without objects.
func PartOf(main *engine.Release, node *components.Node) (engine.Release, error) {
	c := node.Component
	release := engine.Release{
		Key:     record.Key{Namespace: main.Namespace, Name: main.Name, Component: c.Name},
		Version: main.Version, Operation: main.Operation, Together: main.Together, Back: main.Back, Ready: c.ReadyWhen,
		Complete: true, OptionalKinds: c.OptionalKinds, Confined: main.Confined, Tolerated: c.OnFailure == schema.FailureContinues,
	}
	for _, need := range node.Needs {
		key := main.Key
		if need.Component != nil {
			key.Component = need.Name
		}
		if InCluster(need.Node) == InCluster(node) {
			release.Needs = append(release.Needs, engine.Need{Key: key, Until: need.Until})
		}
	}
	if InCluster(node) { // what it is about may be in a namespace of the Solution, or of kinds of its own
		release.Needs = append(release.Needs, engine.Need{Key: main.Key, Until: schema.UntilReady})
	}
	var err error
	if c.Timeout != "" {
		if release.Timeout, err = time.ParseDuration(c.Timeout); err != nil {
			return release, report.Errorf(report.Invalid, "component %s: timeout: %w", c.Name, err)
		}
	}
	return release, nil
}

// unselected returns releases that remove recorded components which are no longer wanted: after everything else, those first that need
// others. The release main is not complete without them.
func (p *Planner) unselected(ctx context.Context, before *record.State, wanted []engine.Release, main *engine.Release) ([]engine.Release, error) {
	there, err := p.componentStates(ctx, before)
	if err != nil {
		return nil, err
	}
	there = slices.DeleteFunc(there, func(s *record.State) bool {
		return slices.ContainsFunc(wanted, func(w engine.Release) bool { return w.Component == s.Component })
	})
	releases := Removals(there, main.Operation)
	for i := range releases {
		for _, w := range wanted {
			releases[i].Needs = append(releases[i].Needs, engine.Need{Key: w.Key, Until: schema.UntilReady})
		}
		main.Parts = append(main.Parts, releases[i].Key)
	}
	return releases, nil
}

// needsOf returns the components that one was deployed after when it last was. A removal waits the other way round.
func needsOf(s *record.State) []string {
	for _, r := range s.Revisions() {
		if r.Version != "" {
			return r.Needs
		}
	}
	return nil
}

// Graph returns the components of a version, and which of them a choice selects over the one in the settings of a revision.
func (p *Planner) Graph(ctx context.Context, solution, version string, settings map[string]string, choice components.Choice) (*schema.ComponentGraph, error) {
	payload, err := p.payload(ctx, solution, version)
	if err != nil {
		return nil, err
	}
	parts := Parts{Choice: choice}
	selection, _, err := parts.Select(payload, settings, map[string]string{})
	if err != nil {
		return nil, err
	}
	return selection.Document(), nil
}

// componentStates returns the records of the components that a Solution has, or had when runs were interrupted.
func (p *Planner) componentStates(ctx context.Context, own *record.State) ([]*record.State, error) {
	var there []*record.State
	for _, r := range begunOf(own) {
		for _, c := range r.Components {
			if slices.ContainsFunc(there, func(s *record.State) bool { return s.Component == c.Name }) {
				continue
			}
			state, err := p.Records.Engine.State(ctx, record.Key{Namespace: own.Namespace, Name: own.Name, Component: c.Name})
			if err != nil {
				return nil, err
			}
			if LastRevision(state) != nil {
				there = append(there, state)
			}
		}
	}
	return there, nil
}

// begunOf returns the revisions of which there may be objects: the current one, and those that were begun since, whatever their outcome.
func begunOf(s *record.State) (begun []*schema.DeploymentRevision) {
	var since int64
	if s.Current != nil {
		begun, since = append(begun, s.Current), s.Current.Number
	}
	if s.Pending != nil {
		begun = append(begun, s.Pending)
	}
	for i := range s.History {
		if s.History[i].Number > since {
			begun = append(begun, &s.History[i])
		}
	}
	return begun
}

// Removals returns releases that remove what is recorded: each component after those that need it, and the Solution's own part after its
// components, as its operator may clean up behind them.
func Removals(states []*record.State, operation string) []engine.Release {
	releases := make([]engine.Release, len(states))
	for i, s := range states {
		releases[i] = engine.Release{Key: s.Key, Operation: operation}
		for _, other := range states {
			if other.Namespace != s.Namespace || other.Name != s.Name || other.Component == s.Component {
				continue
			}
			if s.Component == "" {
				releases[i].Parts = append(releases[i].Parts, other.Key)
			}
			if s.Component == "" || slices.Contains(needsOf(other), s.Component) {
				releases[i].Needs = append(releases[i].Needs, engine.Need{Key: other.Key, Until: schema.UntilApplied})
			}
		}
	}
	return releases
}

// recordComponents puts the components of each Solution on its record.
func recordComponents(plans []*engine.Plan) error {
	byKey := map[record.Key]*engine.Plan{}
	for _, p := range plans {
		byKey[p.Release.Key] = p
	}
	for _, p := range plans {
		p.Release.Components = nil
		for _, key := range p.Release.Parts {
			part := byKey[key]
			if part == nil || part.Release.Version == "" {
				continue
			}
			content, err := part.Content()
			if err != nil {
				return err
			}
			p.Release.Components = append(p.Release.Components, schema.ComponentRevision{Name: key.Component, Content: content})
		}
		slices.SortFunc(p.Release.Components, func(a, b schema.ComponentRevision) int { return strings.Compare(a.Name, b.Name) })
	}
	return nil
}
