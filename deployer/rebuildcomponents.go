package deployer

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/components"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// matchComponent compares a component of a version with what is there. What the record of its Solution refers to is taken from
// there; else the component is rendered again, and a chart without its generated values and what its site has said.
func (d *Deployer) matchComponent(ctx context.Context, p *render.Payload, settings render.Settings, r brokenRecord) (*candidate, error) {
	c := &candidate{Match: &engine.Match{}}
	main := &engine.Release{Key: r.owner.Key, Version: p.Solution.Spec.Version, Operation: schema.VerbRepair}
	graph, err := components.New(p.Solution, p.Parts()...)
	if err != nil {
		return nil, err
	}
	nodes := graph.Nodes()
	at := slices.IndexFunc(nodes, func(n *components.Node) bool { return n.Component != nil && n.Name == r.key.Component })
	if at < 0 && r.known() {
		return nil, report.Errorf(report.Corrupt, "its record says version %s, which has no component %s", main.Version, r.key.Component)
	}
	if at < 0 { // it was another version
		c.Release = engine.Release{Key: r.key, Version: main.Version}
		return c, nil
	}
	release, err := partOf(main, nodes[at])
	if err != nil {
		return nil, err
	}
	if inCluster(nodes[at]) {
		settings.Namespace = render.ComponentNamespace(p.Solution, nodes[at].Component)
	}
	kept, err := d.keptContent(ctx, r, &release)
	switch {
	case err != nil || kept:
	case nodes[at].Kind == schema.ComponentChart:
		c.notices, err = d.renderAgain(ctx, p, settings, &release)
	default:
		err = renderPart(p, nodes[at], settings, &release)
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
		release.Objects, release.Tasks, release.Memory, release.Stay = content.Objects, content.Tasks, content.Memory, render.Staying(content.Objects)
	}
	return err == nil, err
}

// maxRecalls bounds how often a chart is rendered to find out its generated values: each time what follows from what is known by then.
const maxRecalls = 5

// renderAgain renders a chart without stored values. Its generated values are recalled from the existing objects, as far as
// possible, and Secrets keep their data.
func (d *Deployer) renderAgain(ctx context.Context, p *render.Payload, settings render.Settings, release *engine.Release) ([]string, error) {
	_, live, err := d.renderRecalled(ctx, p, settings, &render.Memory{}, release, nil, func(there *unstructured.Unstructured) bool {
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

// renderRecalled renders a chart again and again until its generated values are recalled from the existing objects that are meant, as far
// as possible. It returns these Secrets and ConfigMaps, too.
func (d *Deployer) renderRecalled(ctx context.Context, p *render.Payload, settings render.Settings, memory *render.Memory, release *engine.Release,
	allows func(schema.Power) bool, meant func(*unstructured.Unstructured) bool,
) (rendered *render.ChartObjects, live map[schema.ObjectRef]*unstructured.Unstructured, err error) {
	for range maxRecalls {
		if rendered, err = d.renderWith(ctx, p, settings, memory, true, release, allows); err != nil {
			return nil, nil, err
		}
		if live, err = d.liveData(ctx, release, meant); err != nil {
			return nil, nil, err
		}
		recalled := false
		for _, object := range withTasks(release) {
			if there := live[records.RefOf(object.GroupVersionKind(), object)]; there != nil && render.Recall(memory.Memo, object, there) {
				recalled = true
			}
		}
		if !recalled {
			break
		}
	}
	return rendered, live, nil
}

// withTasks are the objects of a release and those of its tasks.
func withTasks(release *engine.Release) []*unstructured.Unstructured {
	objects := slices.Clone(release.Objects)
	for _, task := range release.Tasks {
		objects = append(objects, task.Object)
	}
	return objects
}

// liveData are those of a release's Secrets and ConfigMaps that are there and meant.
func (d *Deployer) liveData(ctx context.Context, release *engine.Release, meant func(*unstructured.Unstructured) bool) (map[schema.ObjectRef]*unstructured.Unstructured, error) {
	live := map[schema.ObjectRef]*unstructured.Unstructured{}
	for _, object := range withTasks(release) {
		if render.Texts(object) == nil {
			continue
		}
		there, err := d.Cluster.Get(ctx, object.GroupVersionKind(), object.GetNamespace(), object.GetName())
		if err != nil {
			return nil, err
		}
		if there != nil && meant(there) {
			live[records.RefOf(object.GroupVersionKind(), object)] = there
		}
	}
	return live, nil
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
		if here := inCluster(node) == (r.key.Namespace == ""); node.Component != nil && here && there != unchosen.Has(node.Name) && (there || node.Component.Selected() != schema.SelectAlways) {
			choice.Components[node.Name] = there
		}
	}
	if _, names := choice.Texts(); len(names) > 0 {
		release.Settings[settingComponents] = strings.Join(names, ",")
	}
	return nil
}

// partStates are the records of the components that a Solution has, those that cannot be read included.
func (d *Deployer) partStates(ctx context.Context, r brokenRecord) ([]*engine.State, error) {
	states := make([]*engine.State, len(r.parts))
	for i, name := range r.parts {
		var err error
		if states[i], err = d.Records.Engine.Look(ctx, engine.Key{Namespace: r.key.Namespace, Name: r.key.Name, Component: name}); err != nil {
			return nil, err
		}
	}
	return states, nil
}
