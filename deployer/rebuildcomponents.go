package deployer

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/components"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// matchComponent compares a component of a version with what is there. What the record of its Solution refers to is taken from
// there; else the component is rendered again, and a chart without its generated values and what its site has said.
func (d *Deployer) matchComponent(ctx context.Context, renderer plan.Renderer, r brokenRecord) (*candidate, error) {
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
	kept, err := d.keptContent(ctx, r, &release)
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
	if c.Match, err = d.Records.Engine.Match(ctx, release); err != nil || !r.known() || len(c.Changed) == 0 {
		return c, err
	}
	// What is on record and not as it was rendered now is left as it is: a repair would put back what it never was.
	release.Objects = slices.DeleteFunc(release.Objects, func(o *unstructured.Unstructured) bool {
		return slices.Contains(c.Changed, records.RefOf(o.GroupVersionKind(), o))
	})
	c.notices = append(c.notices, r.leftOff(c.Match)...)
	c.Match, err = d.Records.Engine.Match(ctx, release)
	return c, err
}

// keptContent takes what the record of a Solution refers to for its component, if that is still there.
func (d *Deployer) keptContent(ctx context.Context, r brokenRecord, release *engine.Release) (bool, error) {
	if r.owner.Current == nil || r.owner.Current.Version != release.Version {
		return false, nil
	}
	at := slices.IndexFunc(r.owner.Current.Components, func(c schema.ComponentRevision) bool { return c.Name == r.key.Component })
	if at < 0 {
		return false, nil
	}
	then := &schema.DeploymentRevision{Number: r.owner.Current.Number, Content: r.owner.Current.Components[at].Content}
	content, err := d.Records.Engine.Content(ctx, r.key, then)
	if report.CodeOf(err) == report.Corrupt {
		return false, nil
	}
	if err == nil {
		release.Objects, release.Tasks, release.GeneratedValues, release.Stay = content.Objects, content.Tasks, content.GeneratedValues, render.Staying(content.Objects)
	}
	return err == nil, err
}

// renderAgain renders a chart without stored values. Its generated values are recalled from the existing objects, as far as
// possible, and Secrets keep their data.
func renderAgain(ctx context.Context, renderer plan.Renderer, release *engine.Release) ([]string, error) {
	_, live, err := renderer.RecoverChart(ctx, &render.Memory{}, release, func(there *unstructured.Unstructured) bool {
		return there.GetLabels()[engine.LabelRelease] == release.ID()
	})
	if err != nil {
		return nil, err
	}
	notices := []string{fmt.Sprintf("%s: what was said with --values and --set is lost with the record: say it again with the next '%s'",
		release.Key, report.Run("deploy add"))}
	for _, object := range release.Objects {
		ref := records.RefOf(object.GroupVersionKind(), object)
		there := live[ref]
		if there == nil {
			continue
		}
		if different := render.KeepSecret(object, there); len(different) > 0 {
			notices = append(notices, fmt.Sprintf("%s: %s keeps what it has in %s; the chart would have something else there, unless --values says what",
				release.Key, ref, strings.Join(different, ", ")))
		}
	}
	return notices, nil
}

// listComponents puts the components that are there on the rebuilt record of their Solution, and into its choice.
func (d *Deployer) listComponents(ctx context.Context, p *render.Payload, r brokenRecord, release *engine.Release) error {
	if len(p.Solution.Spec.Components) == 0 || r.known() {
		return nil
	}
	states, err := d.partStates(ctx, r)
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

// partStates are the records of the components that a Solution has, those that cannot be read included.
func (d *Deployer) partStates(ctx context.Context, r brokenRecord) ([]*engine.State, error) {
	states := make([]*engine.State, len(r.parts))
	for i, name := range r.parts {
		var err error
		if states[i], err = d.Records.Engine.ReadState(ctx, engine.Key{Namespace: r.key.Namespace, Name: r.key.Name, Component: name}); err != nil {
			return nil, err
		}
	}
	return states, nil
}
