package deployer

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/components"
	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/lint/chart"
	"github.com/solutionctl/solutionctl/lint/images"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Parts say which components of a Solution are deployed, and with which values. What is not said stays as it was.
type Parts struct {
	Choice components.Choice
	Values map[string]SiteValues // by component
	Rotate []string              // components whose random values are drawn anew
	// Helm are the releases of Helm that components take over, by component. What is empty of one is that of the component.
	Helm map[string]HelmRelease
	// Restart accepts that pods of what is taken over start anew.
	Restart bool
}

// empty tells that nothing is said.
func (p *Parts) empty() bool {
	return len(p.Choice.Profiles)+len(p.Choice.Components)+len(p.Choice.Default)+len(p.Values)+len(p.Rotate)+len(p.Helm) == 0
}

// SiteValues are what a site says to a chart. They go before those of the archive.
type SiteValues struct {
	Values map[string]any
	Reset  bool // what the site said before counts no more
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
	earlier, forgotten := graph.Recall(earlier)
	choice := earlier.With(o.Parts.Choice)
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
	for _, name := range slices.Concat(slices.Sorted(maps.Keys(o.Parts.Values)), o.Parts.Rotate, slices.Sorted(maps.Keys(o.Parts.Helm))) {
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
	previous := lastRevision(before)
	if len(one.payload.Solution.Spec.Components) == 0 && (previous == nil || len(previous.Components) == 0) && one.Parts.empty() {
		return nil, nil, nil
	}
	selection, forgotten, err := one.selection(settingsOf(previous), main.Settings)
	if err != nil {
		return nil, nil, err
	}
	for _, what := range forgotten {
		notices = append(notices, fmt.Sprintf("%s has no %s any more: the choice of it is forgotten", one.payload.Solution.ID(), what))
	}
	nodes := selection.Nodes()
	if len(nodes) > fewComponents {
		if err := d.Records.Engine.ReadAhead(ctx); err != nil {
			return nil, nil, err
		}
	}
	for _, node := range nodes {
		if node.Component == nil || inCluster(node) != (main.Namespace == "") {
			continue
		}
		release, more, err := d.component(ctx, one, n, node, main)
		if err != nil {
			return nil, nil, err
		}
		releases, notices = append(releases, release), append(notices, more...)
		main.Closes = append(main.Closes, release.Key)
	}
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
	settings.ClusterWide = main.Settings[settingClusterWide] == "true"
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
	judged, err := d.judgeRoles(ctx, one.payload, release.Objects, acceptedHazards(main.Settings))
	return release, append(notices, judged...), err
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

// renderChart renders a component that is a chart, with what the site has said and what was drawn before.
func (d *Deployer) renderChart(ctx context.Context, one *placement, settings render.Settings, c *schema.Component, release *engine.Release) (notices []string, err error) {
	memory, upgrade, err := d.memory(ctx, release.Key)
	if err != nil {
		return nil, err
	}
	taken, err := d.takeover(ctx, one, settings.Namespace, c, release)
	if err != nil {
		return nil, err
	}
	name, remembered := c.Name, memory.Memo
	isNew := taken != nil && remembered == nil
	if isNew {
		memory.Say(taken.Values, true)
	}
	if said, ok := one.Parts.Values[name]; ok {
		memory.Say(said.Values, said.Reset)
	}
	var rendered *render.ChartObjects
	if rotate := slices.Contains(one.Parts.Rotate, name); isNew && !rotate {
		rendered, err = d.renderTaken(ctx, one, settings, memory, release, taken)
	} else {
		if rotate {
			memory.Memo = nil
		}
		rendered, err = d.renderWith(ctx, one.payload, settings, memory, upgrade || taken != nil, release)
	}
	if err != nil {
		return nil, err
	}
	if taken != nil {
		if notices, err = d.hand(ctx, taken, release, rendered); err != nil {
			return nil, err
		}
	}
	if err = one.noteDrawn(release.Key, remembered, memory); err != nil {
		return nil, err
	}
	if len(rendered.Foreign) > 0 {
		if one.foreign == nil {
			one.foreign = map[string][]images.Use{}
		}
		one.foreign[name] = rendered.Foreign
	}
	if len(rendered.Renewed) > 0 {
		notices = append(notices, fmt.Sprintf("component %s gets new certificates, as the old ones end: %s", name, strings.Join(rendered.Renewed, ", ")))
	}
	return notices, d.checkDefined(ctx, one, name, rendered.Definitions)
}

// noteDrawn notes of a component for which something was drawn anew what its objects follow from besides: they are others in each
// plan.
func (o *placement) noteDrawn(key engine.Key, remembered *chart.Memo, memory *render.Memory) error {
	if reflect.DeepEqual(remembered, memory.Memo) || remembered == nil && len(memory.Memo.Values) == 0 {
		return nil
	}
	values, err := json.Marshal(memory.Values)
	if err != nil {
		return err
	}
	if o.drawn == nil {
		o.drawn = map[engine.Key]string{}
	}
	o.drawn[key] = o.Import.Payload + " " + string(values)
	return nil
}

// renderWith renders a component that is a chart with what is remembered of it, and remembers what it draws.
func (d *Deployer) renderWith(ctx context.Context, p *render.Payload, settings render.Settings, memory *render.Memory, upgrade bool, release *engine.Release) (*render.ChartObjects, error) {
	with := render.ChartSettings{Values: memory.Values, Memo: memory.Memo, Upgrade: upgrade, Lookup: d.lookup(settings.Namespace)}
	var err error
	if with.KubeVersion, err = d.Cluster.Version(ctx); err != nil {
		return nil, err
	}
	if with.APIVersions, err = d.Cluster.APIVersions(ctx); err != nil {
		return nil, err
	}
	rendered, err := render.Chart(ctx, p, release.Component, settings, with)
	if err != nil {
		return nil, err
	}
	release.Objects, release.Stay, release.Tasks = rendered.Objects, render.Staying(rendered.Objects), tasks(rendered.Tasks)
	memory.Memo = rendered.Memo
	release.Memory, err = memory.Encode()
	return rendered, err
}

// memory is what an earlier rendering of a component left behind.
func (d *Deployer) memory(ctx context.Context, key engine.Key) (m *render.Memory, upgrade bool, err error) {
	state, err := d.Records.Engine.State(ctx, key)
	if err != nil {
		return nil, false, err
	}
	for _, r := range []*schema.DeploymentRevision{state.Pending, state.Current} {
		if r == nil || r.Version == "" {
			continue
		}
		content, err := d.Records.Engine.Content(ctx, key, r)
		if r == state.Pending && report.CodeOf(err) == report.Corrupt {
			continue // the run that began it was killed before it had stored what it drew
		}
		if err != nil {
			return nil, false, err
		}
		m, err = render.DecodeMemory(content.Memory)
		return m, state.Installed(), err
	}
	return &render.Memory{}, false, nil
}

// lookup answers the templates of a chart: with objects of its own namespace, and with those that have none. What other namespaces
// have is not for it.
func (d *Deployer) lookup(own string) func(ctx context.Context, apiVersion, kind, namespace, name string) (map[string]any, error) {
	nothing := map[string]any{}
	return func(ctx context.Context, apiVersion, kind, namespace, name string) (map[string]any, error) {
		gvk := kube.FromAPIVersionAndKind(apiVersion, kind)
		mapping, err := d.Cluster.Mapping(ctx, gvk)
		switch {
		case errors.Is(err, cluster.ErrNoKind):
			return nothing, nil
		case err != nil:
			return nil, err
		case mapping.Scope.Name() == meta.RESTScopeNameRoot:
			namespace = ""
		case namespace != own:
			return nothing, nil
		}
		if name == "" {
			return d.lookupAll(ctx, gvk, namespace)
		}
		object, err := d.Cluster.Get(ctx, gvk, namespace, name)
		if err != nil || object == nil {
			return nothing, err
		}
		return object.Object, nil
	}
}

func (d *Deployer) lookupAll(ctx context.Context, kind kube.GroupVersionKind, namespace string) (map[string]any, error) {
	items := []any{}
	for object, err := range d.Cluster.List(ctx, kind, namespace, metav1.ListOptions{}) {
		if err != nil {
			return nil, err
		}
		items = append(items, object.Object)
	}
	return map[string]any{"apiVersion": kind.GroupVersion().String(), "kind": kind.Kind + "List", "items": items}, nil
}

// checkDefined refuses a chart whose definitions are not active: with the values of the site it may have others than its archive knew.
func (d *Deployer) checkDefined(ctx context.Context, one *placement, name string, crds []*unstructured.Unstructured) error {
	var required []schema.CRDRequirement
	for _, crd := range crds {
		required = append(required, schema.CRDRequirement{Name: crd.GetName(), Versions: render.ServedVersions(crd)})
	}
	var failure error
	missing := render.MissingCRDs(required, d.Definitions.Lookup(ctx, &failure))
	if failure != nil || len(missing) == 0 {
		return failure
	}
	return report.Errorf(report.Refused, "component %s of %s brings definitions that the cluster does not serve: %s", name, one.payload.Solution.ID(), definitions.Requirements(missing)).
		WithHint("%s; what only the values of a site ask for is not part of an activation", report.Run("deploy activate", one.Name, one.Version).With("component", name))
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
	revisions := []*schema.DeploymentRevision{s.Pending, s.Current}
	for i := range s.History {
		revisions = append(revisions, &s.History[i])
	}
	for _, r := range revisions {
		if r != nil && r.Version != "" {
			return r.Needs
		}
	}
	return nil
}

// componentStates are the records of the components that a Solution has, or had when the last run was interrupted.
func (d *Deployer) componentStates(ctx context.Context, own *engine.State) ([]*engine.State, error) {
	var there []*engine.State
	for _, r := range []*schema.DeploymentRevision{own.Current, own.Pending} {
		if r == nil {
			continue
		}
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

// Add puts more values over those that are there.
func (s *SiteValues) Add(values map[string]any) { s.Values = render.MergeValues(s.Values, values) }
