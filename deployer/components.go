package deployer

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/solutionctl/solutionctl/deployer/components"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/deployer/rights"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Parts say which components of a Solution are deployed, and with which values. What is not said stays as it was.
type Parts struct {
	Choice components.Choice     `json:"choice,omitzero"`
	Values map[string]SiteValues `json:"values,omitempty"` // by component
	Rotate []string              `json:"rotate,omitempty"` // components whose random values are generated again
	// Helm are the releases of Helm that components take over, by component. What is empty of one is that of the component.
	Helm map[string]HelmRelease `json:"helm,omitempty"`
	// Restart accepts that pods of what is taken over start again.
	Restart bool `json:"restart,omitempty"`
}

// empty tells that nothing is said.
func (p *Parts) empty() bool {
	return len(p.Choice.Profiles)+len(p.Choice.Components)+len(p.Choice.Default)+len(p.Values)+len(p.Rotate)+len(p.Helm) == 0
}

// Settings in which the choice of components is recorded with a revision.
const (
	settingProfiles   = "profiles"
	settingComponents = "components"
)

// selection decides which components belong to a deployment, and writes the choice into its settings. A part of an earlier choice
// that this version does not have is forgotten, and told.
func (o *placement) selection(previous, settings map[string]string) (*components.Selection, []string, error) {
	graph, err := components.New(o.payload.Solution, o.payload.Parts()...)
	if err != nil {
		return nil, nil, err
	}
	earlier, err := components.ParseChoice(listed(previous[settingProfiles]), listed(previous[settingComponents]))
	if err != nil {
		return nil, nil, err
	}
	earlier, forgotten := graph.Restrict(earlier)
	choice := earlier.With(o.Choice)
	selection, err := graph.Select(choice)
	if err != nil {
		return nil, nil, err
	}
	choice.Default = nil // nothing is on record of it any more
	profiles, names := choice.Texts()
	for name, list := range map[string][]string{settingProfiles: profiles, settingComponents: names} {
		if len(list) > 0 {
			settings[name] = strings.Join(list, ",")
		}
	}
	return selection, forgotten, o.checkParts(selection)
}

func listed(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// checkParts refuses values for what takes none, or is not there.
func (o *placement) checkParts(s *components.Selection) error {
	charts := map[string]bool{}
	var names []string
	for _, n := range s.Nodes() {
		if n.Kind == schema.ComponentChart {
			charts[n.Name] = true
			names = append(names, n.Name)
		}
	}
	slices.Sort(names)
	for _, name := range slices.Concat(slices.Sorted(maps.Keys(o.Values)), o.Rotate, slices.Sorted(maps.Keys(o.Helm))) {
		if charts[name] {
			continue
		}
		err := report.Errorf(report.Usage, "no chart %q that takes values is among the selected components of %s", name, o.payload.Solution.ID())
		if near := report.Nearest(name, names); near != "" {
			return err.WithHint("did you mean %s?", near)
		}
		if len(names) == 0 {
			return err.WithHint("none of the components that are selected is a chart")
		}
		return err.WithHint("its charts are %s", strings.Join(names, ", "))
	}
	return nil
}

// components renders the components of a version in a namespace, or in the cluster, each as a release of its own that the Solution's
// own release there, main, is not complete without. Those that no longer belong to it are removed.
func (d *Deployer) components(ctx context.Context, one *placement, n metalk8s.Namespace, main *engine.Release, before *engine.State) (releases []engine.Release, notices []string, err error) {
	had := slices.ContainsFunc(begunOf(before), func(r *schema.DeploymentRevision) bool { return len(r.Components) > 0 })
	if len(one.payload.Solution.Spec.Components) == 0 && !had && one.empty() {
		return nil, nil, nil
	}
	selection, forgotten, err := one.selection(settingsOf(lastRevision(before)), main.Settings)
	if err != nil {
		return nil, nil, err
	}
	for _, what := range forgotten {
		notices = append(notices, fmt.Sprintf("%s has no %s any more: the choice of it is forgotten", one.payload.Solution.ID(), what))
	}
	nodes := slices.DeleteFunc(selection.Nodes(), func(node *components.Node) bool {
		return node.Component == nil || inCluster(node) != (main.Namespace == "")
	})
	if len(nodes) > fewComponents {
		if err := d.Records.Engine.ReadAhead(ctx); err != nil {
			return nil, nil, err
		}
	}
	if one.memories, err = d.memories(ctx, main.Key, nodes); err != nil {
		return nil, nil, err
	}
	for _, node := range nodes {
		release, more, err := d.component(ctx, one, n, node, main)
		if err != nil {
			return nil, nil, err
		}
		releases, notices = append(releases, release), append(notices, more...)
		main.Closes = append(main.Closes, release.Key)
	}
	restarts, err := one.restart(append([]engine.Release{*main}, releases...))
	if err != nil {
		return nil, nil, err
	}
	notices = append(notices, restarts...)
	accepted, err := one.judgeImages(acceptedHazards(main.Settings))
	if err != nil {
		return nil, nil, err
	}
	notices = append(notices, accepted...)
	gone, err := d.unselected(ctx, before, releases, main)
	return append(releases, gone...), notices, err
}

// fewComponents is for how many components records are read one by one.
const fewComponents = 10

// lastRevision is the one that was begun last.
func lastRevision(s *engine.State) *schema.DeploymentRevision { return cmp.Or(s.Pending, s.Current) }

func settingsOf(r *schema.DeploymentRevision) map[string]string {
	if r == nil {
		return nil
	}
	return r.Settings
}

// component renders one component.
func (d *Deployer) component(ctx context.Context, one *placement, n metalk8s.Namespace, node *components.Node, main *engine.Release) (engine.Release, []string, error) {
	release, err := partOf(main, node)
	if err != nil {
		return release, nil, err
	}
	for _, need := range node.Needs {
		if inCluster(need.Node) && !inCluster(node) {
			if err := d.checkClusterComponent(ctx, one, need.Name); err != nil {
				return release, nil, err
			}
		}
	}
	settings := one.settings
	settings.Namespace, settings.Environment = n.Name, n.Environment
	if inCluster(node) {
		settings.Namespace = render.ComponentNamespace(one.payload.Solution, node.Component)
	}
	var notices []string
	if node.Kind == schema.ComponentChart {
		notices, err = d.renderChart(ctx, one, settings, node.Component, &release)
	} else {
		err = renderPart(one.payload, node, settings, &release)
	}
	if err != nil {
		return release, nil, err
	}
	idle, err := rights.IneffectiveRules(ctx, d.Cluster, one.payload, release.Objects)
	return release, append(notices, idle...), err
}

// renderPart renders a component that is no chart.
func renderPart(p *render.Payload, node *components.Node, settings render.Settings, release *engine.Release) (err error) {
	if release.Objects, err = render.Component(p, node.Name, settings); err == nil && node.Kind == schema.ComponentJob {
		release.Tasks, release.Objects = tasks([]render.Task{render.JobTask(node.Component, release.Objects[0])}), nil
	}
	return err
}

// tasks are those of a component as the engine has them.
func tasks(rendered []render.Task) []engine.Task {
	list := make([]engine.Task, len(rendered))
	for i, t := range rendered {
		list[i] = engine.Task(t)
	}
	return list
}

func inCluster(n *components.Node) bool {
	return n.Component != nil && n.Component.Scope == schema.ScopeCluster
}

// partOf is the release of a component beside its Solution's own one, without objects.
func partOf(main *engine.Release, node *components.Node) (engine.Release, error) {
	c := node.Component
	release := engine.Release{
		Key:     engine.Key{Namespace: main.Namespace, Name: main.Name, Component: c.Name},
		Version: main.Version, Operation: main.Operation, Together: main.Together, Back: main.Back, Ready: c.ReadyWhen,
		Complete: true, OptionalKinds: c.OptionalKinds, Tolerated: c.OnFailure == schema.FailureContinues,
	}
	for _, need := range node.Needs {
		key := main.Key
		if need.Component != nil {
			key.Component = need.Name
		}
		if inCluster(need.Node) == inCluster(node) {
			release.Needs = append(release.Needs, engine.Need{Key: key, Until: need.Until})
		}
	}
	if inCluster(node) { // what it is about may be in a namespace of the Solution, or of kinds of its own
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

func acceptedHazards(settings map[string]string) []string { return listed(settings[settingHazards]) }

// checkClusterComponent refuses to deploy what needs a component of the cluster that is not there.
func (d *Deployer) checkClusterComponent(ctx context.Context, one *placement, name string) error {
	state, err := d.Records.Engine.State(ctx, engine.Key{Name: one.Name, Component: name})
	if err != nil || state.Current != nil && state.Current.Version != "" && state.Pending == nil {
		return err
	}
	return report.Errorf(report.Refused, "component %s of %s, which others need, is not in the cluster", name, one.payload.Solution.ID()).
		WithHint("%s", report.Run("deploy activate", one.Name, one.Version).With("component", name))
}

// unselected removes components that are on record and no longer wanted: after everything else, those first that need others.
func (d *Deployer) unselected(ctx context.Context, before *engine.State, wanted []engine.Release, main *engine.Release) ([]engine.Release, error) {
	there, err := d.componentStates(ctx, before)
	if err != nil {
		return nil, err
	}
	there = slices.DeleteFunc(there, func(s *engine.State) bool {
		return slices.ContainsFunc(wanted, func(w engine.Release) bool { return w.Component == s.Component })
	})
	releases := removals(there, main.Operation)
	for i := range releases {
		for _, w := range wanted {
			releases[i].Needs = append(releases[i].Needs, engine.Need{Key: w.Key, Until: schema.UntilReady})
		}
		main.Closes = append(main.Closes, releases[i].Key)
	}
	return releases, nil
}

// needsOf are the components that one was brought up after when it last was. What a removal waits for is the other way round.
func needsOf(s *engine.State) []string {
	for _, r := range s.Revisions() {
		if r.Version != "" {
			return r.Needs
		}
	}
	return nil
}

// componentStates are the records of the components that a Solution has, or had when runs were interrupted.
func (d *Deployer) componentStates(ctx context.Context, own *engine.State) ([]*engine.State, error) {
	var there []*engine.State
	for _, r := range begunOf(own) {
		for _, c := range r.Components {
			if slices.ContainsFunc(there, func(s *engine.State) bool { return s.Component == c.Name }) {
				continue
			}
			state, err := d.Records.Engine.State(ctx, engine.Key{Namespace: own.Namespace, Name: own.Name, Component: c.Name})
			if err != nil {
				return nil, err
			}
			if lastRevision(state) != nil {
				there = append(there, state)
			}
		}
	}
	return there, nil
}

// begunOf are the revisions of which there may be something: the current one, and those that were begun since, whatever became of them.
func begunOf(s *engine.State) (begun []*schema.DeploymentRevision) {
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

// removals take what is on records away: each component after those that need it, and what is a Solution's own after its components,
// as its operator may clean up behind them.
func removals(states []*engine.State, operation string) []engine.Release {
	releases := make([]engine.Release, len(states))
	for i, s := range states {
		releases[i] = engine.Release{Key: s.Key, Operation: operation}
		for _, other := range states {
			if other.Namespace != s.Namespace || other.Name != s.Name || other.Component == s.Component {
				continue
			}
			if s.Component == "" {
				releases[i].Closes = append(releases[i].Closes, other.Key)
			}
			if s.Component == "" || slices.Contains(needsOf(other), s.Component) {
				releases[i].Needs = append(releases[i].Needs, engine.Need{Key: other.Key, Until: schema.UntilApplied})
			}
		}
	}
	return releases
}

// noteComponents puts on the record of each Solution what its components are.
func noteComponents(plans []*engine.Plan) error {
	byKey := map[engine.Key]*engine.Plan{}
	for _, p := range plans {
		byKey[p.Release.Key] = p
	}
	for _, p := range plans {
		p.Release.Components = nil
		for _, key := range p.Release.Closes {
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
