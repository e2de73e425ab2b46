package render

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Component returns the objects of a component that is an operator, manifests or a job. That of an environment lives in
// Settings.Namespace, that of the cluster in [ComponentNamespace]. For a chart there is [Chart].
func Component(p *Payload, name string, s Settings) ([]*unstructured.Unstructured, error) {
	return renderedBy(renderComponent(p, name, s))
}

func renderComponent(p *Payload, name string, s Settings) (*renderer, error) {
	c, err := p.component(name)
	if err != nil {
		return nil, err
	}
	if c.Scope == schema.ScopeCluster {
		s.Namespace = ComponentNamespace(p.Solution, c)
	}
	r, err := newRenderer(p, s)
	switch kind, _ := c.Source(); {
	case err != nil:
	case s.Namespace == "":
		err = report.Errorf(report.Usage, "render component %s of %s: no namespace is given", name, p.Solution.ID())
	case kind == schema.ComponentOperator:
		err = r.componentOperator(c)
	case kind == schema.ComponentManifests || kind == schema.ComponentJob:
		err = r.componentObjects(c)
	default:
		err = report.Errorf(report.Usage, "component %s of %s is a %s: it is rendered with values", name, p.Solution.ID(), kind)
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// ComponentNamespace is where a component of the cluster lives.
func ComponentNamespace(s *schema.Solution, c *schema.Component) string {
	if c.Namespace != "" {
		return c.Namespace
	}
	return SystemNamespace(s.Metadata.Name)
}

// ComponentNamespaces are the namespaces, sorted, in which cluster components have objects, without that of the Solution and those of the
// cluster itself.
func ComponentNamespaces(s *schema.Solution) []string {
	var names []string
	for _, c := range s.Spec.Components {
		if c.Scope == schema.ScopeCluster {
			names = append(append(names, ComponentNamespace(s, &c)), c.Namespaces...)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return slices.DeleteFunc(names, func(name string) bool {
		return name == SystemNamespace(s.Metadata.Name) || schema.IsSystemNamespace(name)
	})
}

// componentOperator renders an additional operator. Its image starts with the configured command, since one image can
// contain several operators.
func (r *renderer) componentOperator(c *schema.Component) error {
	return (&operator{
		renderer: r, name: c.Name, image: r.p.Solution.ComponentImage(c), setting: "the image of component " + c.Name,
		roleFile: path.Join(c.Operator, "role.yaml"), owner: []string{r.name, c.Name},
		start: map[string]any{"args": []any{configArgument}},
	}).render()
}

// componentObjects renders manifests and jobs.
func (r *renderer) componentObjects(c *schema.Component) error {
	objects, err := r.componentFiles(c)
	if err != nil {
		return err
	}
	r.namespaces = c.Namespaces
	for _, o := range objects {
		if err := r.placeComponent(c, o); err != nil {
			return err
		}
		r.mark(o.Unstructured)
	}
	r.renameClusterRoles(objects, c.Name)
	for _, o := range objects {
		if err := r.add(o.document.File(), r.monitored(o.Unstructured)); err != nil {
			return err
		}
	}
	return nil
}

// componentFiles reads the objects of a component, images pinned.
func (r *renderer) componentFiles(c *schema.Component) ([]object, error) {
	kind, source := c.Source()
	objects, err := r.readFiles(r.p.componentManifests(c))
	switch {
	case err != nil:
		return nil, err
	case len(objects) == 0:
		return nil, report.Errorf(report.Invalid, "component %s of %s: there is no object in %s", c.Name, r.p.Solution.ID(), path.Clean(source))
	case kind == schema.ComponentJob && (len(objects) > 1 || !objects[0].is("batch", "Job")):
		odd := objects[0]
		if odd.is("batch", "Job") {
			odd = objects[1]
		}
		return nil, odd.refuse(report.Invalid, []string{"kind"}, "a component that is a job has one Job and nothing else").
			WithHint("make a component of its own of the rest, with manifests")
	}
	return slices.DeleteFunc(objects, func(o object) bool { return r.p.isHome(c, o) }), nil
}

// componentManifests lists the files of a component that is manifests or a job.
func (p *Payload) componentManifests(c *schema.Component) []string {
	_, source := c.Source()
	source = path.Clean(source)
	if _, ok := p.files[source]; ok {
		return []string{source}
	}
	return slices.DeleteFunc(p.below(source), func(name string) bool { return path.Ext(name) != ".yaml" })
}

// placeComponent puts an object where the component may have it.
func (r *renderer) placeComponent(c *schema.Component, o object) error {
	wide := c.Scope == schema.ScopeCluster
	namespace := o.GetNamespace()
	switch {
	case o.is("apiextensions.k8s.io", "CustomResourceDefinition"):
		return o.refuse(report.Refused, []string{"kind"}, "a component cannot bring a definition").
			WithHint("%s", DefinitionHint(o.GetName()))
	case r.isClusterScoped(o) && wide:
		return r.placeInCluster(o)
	case r.isClusterScoped(o):
		return o.refuse(report.Refused, []string{"kind"}, "component %s lives in an environment, which cannot have an object of the whole cluster", c.Name).
			WithHint("write scope: cluster for the component, or take the object out")
	case namespace == "" || namespace == r.s.Namespace:
		namespace = r.s.Namespace
	case !wide:
		return o.refuse(report.Refused, []string{"metadata", "namespace"}, "component %s lives in the namespace of an environment, and not in %s", c.Name, namespace).
			WithHint("leave the namespace out")
	case namespace != r.s.Namespace && !slices.Contains(r.namespaces, namespace):
		return o.refuse(report.Refused, []string{"metadata", "namespace"}, "component %s does not name namespace %s", c.Name, namespace).
			WithHint("add it to namespaces of the component, which has: %s", strings.Join(append([]string{r.s.Namespace}, r.namespaces...), ", "))
	}
	o.SetNamespace(namespace)
	moveSubjects(o.Unstructured, r.s.Namespace, r.namespaces...)
	if !wide {
		return r.scopeRules(o)
	}
	if o.is(monitoringGroup, "PrometheusRule") {
		r.labelClusterRules(o)
	}
	return nil
}

// DefinitionHint is the hint where the archive should have a CustomResourceDefinition that is among the manifests of a
// component.
func DefinitionHint(name string) string {
	file, _, _ := strings.Cut(name, ".")
	if file == "" {
		file = "NAME"
	}
	return fmt.Sprintf("move it to operator/deploy/crds/%s_crd.yaml, a file of its own: activation applies it from there, and the Solution needs no operator for it", file)
}
