package render

import (
	"context"
	"path"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/kube/powers"
	"github.com/solutionctl/solutionctl/kube/schemas"
	"github.com/solutionctl/solutionctl/schema"
)

// UnknownEnvironment stands for the namespace of an environment where there is none. No namespace can have this name.
const UnknownEnvironment = "ENVIRONMENT"

// unknownRegistry is the registry of renderings whose images nothing reads.
const unknownRegistry = "registry.invalid"

// Owner is the Solution of a payload with the namespaces of an environment, for checking the powers of its objects.
func Owner(p *Payload, namespaces ...string) (powers.Owner, error) {
	definitions, err := Definitions(p)
	if err != nil {
		return powers.Owner{}, err
	}
	name := p.Solution.Metadata.Name
	owner := powers.Owner{
		Solution: name, Namespaces: append([]string{SystemNamespace(name)}, namespaces...),
		Groups: powers.OwnGroups(name, p.Solution.Spec.CustomAPIGroups, definitions), Claimed: p.Solution.Spec.CustomAPIGroups,
	}
	for _, definition := range definitions {
		owner.Definitions = append(owner.Definitions, powers.DefinitionOf(definition))
	}
	return owner, nil
}

// Powers judges everything of an archive as it would be applied to a cluster that nothing is known of: the activation, an
// environment and each of its components, with the values of the archive. An error is that ctx has ended.
func Powers(ctx context.Context, p *Payload, now time.Time) (*schema.Powers, error) {
	return PowersIn(ctx, p, UnknownEnvironment, now)
}

// PowersIn is [Powers] in an environment with a namespace, so that its objects have their names.
func PowersIn(ctx context.Context, p *Payload, namespace string, now time.Time) (*schema.Powers, error) {
	owner, err := Owner(p, namespace)
	s := Settings{Registry: unknownRegistry, Namespace: namespace, Creates: ComponentNamespaces(p.Solution), Now: now, judged: true}
	e := everything{p: p, s: s, owner: owner, result: &schema.Powers{Solution: p.Solution.Metadata.Name, Version: p.Solution.Spec.Version, Powers: []schema.Power{}, Summary: []string{}, Unjudged: []string{}}}
	if err != nil {
		e.result.Unjudged = append(e.result.Unjudged, err.Error())
		return e.result, ctx.Err()
	}
	e.take(renderActivation(p, s))("the activation")
	e.take(renderEnvironment(p, s))("the environment")
	for i := range p.Solution.Spec.Components {
		c := &p.Solution.Spec.Components[i]
		if c.Chart != "" {
			e.chart(ctx, c)
			continue
		}
		e.take(renderComponent(p, c.Name, s))("component " + c.Name)
	}
	e.result.Powers = append(append(e.result.Powers, powers.Judge(owner, e.objects)...), e.lookups...)
	e.result.Summary = append(e.result.Summary, powers.Summarize(e.result.Powers)...)
	return e.result, ctx.Err()
}

// Files returns a function that names the file of the archive with a rendered object: of a component, or where that is "" of the Solution
// itself, in a namespace, or where that is "" in the cluster, with the site's monitoring, which places dashboards. The name is "" for objects that no file has, and for all where they cannot be
// rendered, as those that an older version of this program deployed.
func Files(p *Payload, component, namespace string, monitoring schema.Monitoring, now time.Time) (fileOf func(*unstructured.Unstructured) string) {
	if file := ChartFile(p, component); file != "" {
		return func(*unstructured.Unstructured) string { return file }
	}
	s := Settings{Registry: unknownRegistry, Namespace: namespace, Monitoring: monitoring, Now: now, judged: true}
	var (
		r   *renderer
		err error
	)
	switch {
	case component != "":
		r, err = renderComponent(p, component, s)
	case namespace == "":
		r, err = renderActivation(p, s)
	default:
		r, err = renderEnvironment(p, s)
	}
	if err != nil {
		return func(*unstructured.Unstructured) string { return "" }
	}
	return r.fileOf
}

// ChartFile returns the file of a component's chart, "" for other components.
func ChartFile(p *Payload, component string) string {
	for _, c := range p.Solution.Spec.Components {
		if c.Name == component && c.Chart != "" {
			return path.Clean(c.Chart)
		}
	}
	return ""
}

// everything collects the objects of an archive.
type everything struct {
	p       *Payload
	s       Settings
	owner   powers.Owner
	objects []powers.Object
	lookups []schema.Power
	result  *schema.Powers
}

// take returns a function that adds the rendered objects of a part, or the error with which it failed.
func (e *everything) take(r *renderer, err error) func(part string) {
	return func(part string) {
		if err != nil {
			e.result.Unjudged = append(e.result.Unjudged, part+": "+err.Error())
			return
		}
		for _, o := range r.objects {
			e.objects = append(e.objects, powers.Object{File: r.fileOf(o), Unstructured: o})
		}
	}
}

// assumedVersions returns the APIs of the newest supported Kubernetes, with their kinds, and others that clusters often have, so that
// charts render the objects that need them.
var assumedVersions = sync.OnceValues(func() ([]string, error) {
	catalogue, err := schemas.Load()
	if err != nil {
		return nil, err
	}
	all := catalogue.Versions()
	newest, err := catalogue.Release(all[len(all)-1])
	if err != nil {
		return nil, err
	}
	versions := []string{
		"monitoring.coreos.com/v1", "monitoring.coreos.com/v1/PodMonitor", "monitoring.coreos.com/v1/PrometheusRule", "monitoring.coreos.com/v1/ServiceMonitor",
		"cert-manager.io/v1", "cert-manager.io/v1/Certificate", "cert-manager.io/v1/Issuer",
	}
	for _, r := range newest.Resources() {
		versions = append(versions, r.GroupVersion().String(), r.GroupVersion().String()+"/"+r.Kind)
	}
	slices.Sort(versions)
	return slices.Compact(versions), nil
})

// chart adds the objects of a chart, including its hooks, and its lookups.
func (e *everything) chart(ctx context.Context, c *schema.Component) {
	file := path.Clean(c.Chart)
	namespace := e.s.Namespace
	if c.Scope == schema.ScopeCluster {
		namespace = ComponentNamespace(e.p.Solution, c)
	}
	versions, err := assumedVersions()
	if err != nil {
		e.result.Unjudged = append(e.result.Unjudged, "component "+c.Name+": "+err.Error())
		return
	}
	var asked []powers.Lookup
	found, err := Chart(ctx, e.p, c.Name, e.s, ChartSettings{
		APIVersions: versions, StandIns: true, SkipCRDs: true,
		Lookup: func(_ context.Context, apiVersion, kind, namespace, name string) (map[string]any, error) {
			asked = append(asked, powers.Lookup{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name})
			return map[string]any{}, nil
		},
	})
	if err != nil {
		e.result.Unjudged = append(e.result.Unjudged, "component "+c.Name+": "+err.Error())
		return
	}
	add := func(objects ...*unstructured.Unstructured) {
		for _, o := range objects {
			e.objects = append(e.objects, powers.Object{File: file, Unstructured: o})
		}
	}
	add(found.Objects...)
	for _, task := range found.Tasks {
		add(task.Object)
	}
	e.lookups = append(e.lookups, powers.JudgeLookups(e.owner, ChartRef(namespace, c.Name), file, asked)...)
}

// ChartRef stands for the chart of a component, rendered in a namespace, where its powers are named.
func ChartRef(namespace, component string) schema.ObjectRef {
	return schema.ObjectRef{APIVersion: "helm.sh/v3", Kind: "Chart", Namespace: namespace, Name: component}
}
