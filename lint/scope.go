package lint

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/lint/target"
	"github.com/solutionctl/solutionctl/schema"
)

// releaseNamespace is the namespace in which charts are rendered for checks: it stands for that of the component.
const releaseNamespace = "default"

// checkScope finds refusals of a deployment in advance.
func checkScope(_ context.Context, t *subject, r *reporter) {
	for i := range t.Solution.Spec.Components {
		c := &t.Solution.Spec.Components[i]
		before := len(r.found)
		for _, o := range t.objectsOf(c) {
			t.reportScope(r, c, o)
		}
		t.fixScope(c, r.found[before:])
	}
}

func (t *subject) reportScope(r *reporter, c *schema.Component, o *target.Object) {
	homes := []string{""}
	if c.Scope == schema.ScopeCluster {
		homes = append(slices.Clone(c.Namespaces), "", render.ComponentNamespace(t.Solution, c))
	}
	if o.Rendered() {
		homes = append(homes, releaseNamespace)
	}
	switch outside := t.clusterScoped(o); {
	case o.IsDefinition() && o.Rendered(): // goes through activation
	case o.IsDefinition():
		r.Report(o.AtKey("kind"), render.DefinitionHint(o.Name), "a component cannot bring a definition")
	case outside && c.Scope != schema.ScopeCluster:
		r.Report(o.AtKey("kind"), "write scope: cluster for the component, or take the object out",
			"component %s lives in an environment, which cannot have an object of the whole cluster", c.Name)
	case outside || slices.Contains(homes, o.Namespace):
	case c.Scope != schema.ScopeCluster:
		r.Report(o.At("metadata.namespace"), "leave the namespace out",
			"component %s lives in the namespace of an environment, and not in %s", c.Name, o.Namespace)
	default:
		r.Report(o.At("metadata.namespace"), "add it to namespaces of the component", "component %s does not name namespace %s", c.Name, o.Namespace)
	}
}

// objectsOf returns the objects of a component that is a chart, manifests or a job.
func (t *subject) objectsOf(c *schema.Component) []*target.Object {
	kind, source := c.Source()
	source = path.Clean(source)
	return slices.DeleteFunc(slices.Clone(t.Objects()), func(o *target.Object) bool {
		if kind == schema.ComponentChart {
			return o.Part != target.PartChart || o.File != source || o.Component != c.Name
		}
		return o.Part != target.PartComponent || o.File != source && !strings.HasPrefix(o.File, source+"/")
	})
}

// clusterScoped reports whether an object has no namespace, as far as that is known.
func (t *subject) clusterScoped(o *target.Object) bool {
	if d := t.definitionFor(o); d != nil {
		return d.Spec.Scope == "Cluster"
	}
	for _, release := range t.Releases() {
		if resource, ok := release.Resource(gvk(o)); ok {
			return !resource.Namespaced
		}
	}
	return false
}
