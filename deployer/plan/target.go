package plan

import (
	"context"
	"fmt"
	"slices"

	"github.com/solutionctl/solutionctl/deployer/components"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/rights"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// target is a placement in one namespace, or in the cluster.
type target struct {
	*Run
	of        *Placement
	wanted    Rendering // options of this run over those of an interrupted one
	namespace metalk8s.Namespace
	release   engine.Release // the Solution's own
	before    *record.State

	charts  map[record.Key]storedChart
	rotated []string // Secrets and ConfigMaps whose values are generated again, as [render.Rotations] names them
	notices []string
}

func (r *Run) target(p *Placement, n metalk8s.Namespace) *target {
	return &target{Run: r, of: p, namespace: n, wanted: p.merged[n.Name], release: engine.Release{
		Key: record.Key{Namespace: n.Name, Name: p.Name}, Version: p.Version, Operation: p.Verb, Together: p.together,
		Back: p.Verb == string(records.Down), SavedOptions: p.saved, Confined: n.Name != "",
	}}
}

func (t *target) notice(texts ...string) { t.notices = append(t.notices, texts...) }

// render renders the Solution's own release, and returns those of its components.
func (t *target) render(ctx context.Context) (parts []engine.Release, err error) {
	if t.before, err = t.Records.Engine.State(ctx, t.release.Key); err != nil {
		return nil, err
	}
	t.release.Settings = t.wanted.merge(SettingsOf(LastRevision(t.before)))
	if t.release.Objects, err = t.of.renderer.Environment(ctx, t.namespace, t.release.Settings); err != nil {
		return nil, err
	}
	if err = t.checkRoles(ctx, &t.release); err != nil {
		return nil, err
	}
	return t.components(ctx)
}

// checkRoles reports the rules of a release's roles that grant nothing.
func (t *target) checkRoles(ctx context.Context, release *engine.Release) error {
	ineffective, err := rights.IneffectiveRules(ctx, t.Cluster, release.Objects)
	t.notice(ineffective...)
	return err
}

// components renders the selected components, each as a release of its own that the Solution's own release is not complete without. Those
// that are no longer selected are removed.
func (t *target) components(ctx context.Context) (releases []engine.Release, err error) {
	payload := t.of.renderer.Payload
	had := slices.ContainsFunc(begunOf(t.before), func(r *schema.DeploymentRevision) bool { return len(r.Components) > 0 })
	if len(payload.Solution.Spec.Components) == 0 && !had && t.wanted.empty() {
		return nil, nil
	}
	selection, dropped, err := t.wanted.Select(payload, SettingsOf(LastRevision(t.before)), t.release.Settings)
	if err != nil {
		return nil, err
	}
	for _, what := range dropped {
		t.notice(fmt.Sprintf("%s has no %s any more: the choice of it is forgotten", payload.Solution.ID(), what))
	}
	nodes := slices.DeleteFunc(selection.Nodes(), func(node *components.Node) bool {
		return node.Component == nil || InCluster(node) != (t.release.Namespace == "")
	})
	if len(nodes) > fewComponents {
		if err = t.Records.Engine.ReadAhead(ctx); err != nil {
			return nil, err
		}
	}
	if err = t.readCharts(ctx, nodes); err != nil {
		return nil, err
	}
	for _, node := range nodes {
		release, failure := t.component(ctx, node)
		if failure != nil {
			return nil, failure
		}
		releases = append(releases, release)
		t.release.Parts = append(t.release.Parts, release.Key)
	}
	t.restart(releases)
	if err = t.checkForeignImages(); err != nil {
		return nil, err
	}
	gone, err := t.unselected(ctx, t.before, releases, &t.release)
	return append(releases, gone...), err
}

// fewComponents is for how many components records are read one by one.
const fewComponents = 10

// component renders one component.
func (t *target) component(ctx context.Context, node *components.Node) (engine.Release, error) {
	release, err := PartOf(&t.release, node)
	if err != nil {
		return release, err
	}
	for _, need := range node.Needs {
		if InCluster(need.Node) && !InCluster(node) {
			if err = t.checkClusterComponent(ctx, need.Name); err != nil {
				return release, err
			}
		}
	}
	if node.Kind == schema.ComponentChart {
		err = t.chart(ctx, node.Component, &release)
	} else {
		err = t.of.renderer.In(t.namespace, node.Component).Component(node, &release)
	}
	if err != nil {
		return release, err
	}
	return release, t.checkRoles(ctx, &release)
}

// checkClusterComponent refuses to deploy what needs a component of the cluster that is not there.
func (t *target) checkClusterComponent(ctx context.Context, name string) error {
	state, err := t.Records.Engine.State(ctx, record.Key{Name: t.of.Name, Component: name})
	if err != nil || state.Current != nil && state.Current.Version != "" && state.Pending == nil {
		return err
	}
	return report.Errorf(report.Refused, "component %s of %s, which others need, is not in the cluster", name, t.of.renderer.Payload.Solution.ID()).
		WithHint("%s", report.Run("deploy activate", t.of.Name, t.of.Version).With("component", name))
}
