package rebuild

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/components"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// matchComponent compares a component of a version with the cluster. It uses the content that the record of its Solution refers to. Without
// that it renders the component again; a chart then lacks the values of its site.
func (r *Record) matchComponent(ctx context.Context, renderer plan.Renderer) (*candidate, error) {
	c := &candidate{Match: &engine.Match{}}
	main := &engine.Release{Key: r.owner.Key, Version: renderer.Payload.Solution.Spec.Version, Operation: schema.VerbRepair}
	graph, err := components.New(renderer.Payload.Solution, renderer.Payload.Parts()...)
	if err != nil {
		return nil, err
	}
	nodes := graph.Nodes()
	at := slices.IndexFunc(nodes, func(n *components.Node) bool { return n.Component != nil && n.Name == r.key.Component })
	if at < 0 && r.known() {
		return nil, report.Errorf(report.Corrupt, "its record has version %s, which has no component %s", main.Version, r.key.Component)
	}
	if at < 0 { // it was another version
		c.Release = engine.Release{Key: r.key, Version: main.Version}
		return c, nil
	}
	release, err := plan.PartOf(main, nodes[at])
	if err != nil {
		return nil, err
	}
	renderer = renderer.In(r.namespace, nodes[at].Component)
	kept, err := r.keptContent(ctx, &release)
	switch {
	case err != nil || kept:
	case nodes[at].Kind == schema.ComponentChart:
		c.notices, err = renderAgain(ctx, renderer, &release)
	default:
		err = renderer.Component(nodes[at], &release)
	}
	if err != nil {
		return nil, err
	}
	if c.Match, err = r.Records.Engine.Match(ctx, release); err != nil || !r.known() || len(c.Changed) == 0 {
		return c, err
	}
	// Recorded objects that differ from this rendering stay off the record: a repair would give them a state that they never had.
	release.Objects = slices.DeleteFunc(release.Objects, func(o *unstructured.Unstructured) bool {
		return slices.Contains(c.Changed, records.RefOf(o.GroupVersionKind(), o))
	})
	c.notices = append(c.notices, r.differences(c.Match)...)
	c.Match, err = r.Records.Engine.Match(ctx, release)
	return c, err
}

// keptContent fills a release with the stored content that the record of its Solution refers to, and reports whether that exists.
func (r *Record) keptContent(ctx context.Context, release *engine.Release) (bool, error) {
	if r.owner.Current == nil || r.owner.Current.Version != release.Version {
		return false, nil
	}
	at := slices.IndexFunc(r.owner.Current.Components, func(c schema.ComponentRevision) bool { return c.Name == r.key.Component })
	if at < 0 {
		return false, nil
	}
	then := &schema.DeploymentRevision{Number: r.owner.Current.Number, Content: r.owner.Current.Components[at].Content}
	content, err := r.Records.Engine.Content(ctx, r.key, then)
	if report.CodeOf(err) == report.Corrupt {
		return false, nil
	}
	if err == nil {
		release.Objects, release.Tasks, release.GeneratedValues, release.Stay = content.Objects, content.Tasks, content.GeneratedValues, render.Staying(content.Objects)
	}
	return err == nil, err
}

// renderAgain renders a chart without stored values. Its generated values are recovered from the existing objects, as far as
// possible, and Secrets keep their data.
func renderAgain(ctx context.Context, renderer plan.Renderer, release *engine.Release) ([]string, error) {
	_, live, err := renderer.RecoverChart(ctx, &render.ChartValues{}, release, func(there *unstructured.Unstructured) bool {
		return there.GetLabels()[schema.LabelRelease] == release.ID()
	})
	if err != nil {
		return nil, err
	}
	notices := []string{fmt.Sprintf("%s: the values of --values and --set are lost with the record: pass them again to the next '%s'",
		release.Key, report.Run("deploy add"))}
	for _, object := range release.Objects {
		ref := records.RefOf(object.GroupVersionKind(), object)
		there := live[ref]
		if there == nil {
			continue
		}
		if different := render.KeepSecret(object, there); len(different) > 0 {
			notices = append(notices, fmt.Sprintf("%s: %s keeps its values in %s; the chart has others there, unless --values sets the same",
				release.Key, ref, strings.Join(different, ", ")))
		}
	}
	return notices, nil
}

// listComponents adds the components in the cluster to the rebuilt record of their Solution, and to its selection.
func (r *Record) listComponents(ctx context.Context, p *render.Payload, release *engine.Release) error {
	if len(p.Solution.Spec.Components) == 0 || r.known() {
		return nil
	}
	states, err := r.partStates(ctx)
	if err != nil {
		return err
	}
	for _, s := range states {
		if s.Current != nil && s.Current.Version != "" {
			release.Components = append(release.Components, schema.ComponentRevision{Name: s.Component, Content: s.Current.Content})
		}
	}
	graph, err := components.New(p.Solution, p.Parts()...)
	if err != nil {
		return err
	}
	unchosen, err := graph.Select(components.Choice{})
	if err != nil {
		return err
	}
	choice := components.Choice{Components: map[string]bool{}}
	for _, node := range graph.Nodes() {
		there := slices.Contains(r.parts, node.Name)
		if here := plan.InCluster(node) == (r.key.Namespace == ""); node.Component != nil && here && there != unchosen.Has(node.Name) && (there || node.Component.Selected() != schema.SelectAlways) {
			choice.Components[node.Name] = there
		}
	}
	if _, names := choice.Texts(); len(names) > 0 {
		release.Settings[plan.SettingComponents] = strings.Join(names, ",")
	}
	return nil
}

// partStates returns the records of the components of a Solution, also of those that cannot be read.
func (r *Record) partStates(ctx context.Context) ([]*record.State, error) {
	states := make([]*record.State, len(r.parts))
	for i, name := range r.parts {
		var err error
		if states[i], err = r.Records.Engine.ReadState(ctx, record.Key{Namespace: r.key.Namespace, Name: r.key.Name, Component: name}); err != nil {
			return nil, err
		}
	}
	return states, nil
}
