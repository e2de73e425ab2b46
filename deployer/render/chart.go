package render

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/kube/chart"
	"github.com/solutionctl/solutionctl/kube/images"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// ChartSettings are the settings for rendering a chart, in addition to Settings.
type ChartSettings struct {
	Values    map[string]any         // of the site: they go before those of the archive, and those before the chart's own
	Generated *chart.GeneratedValues // of the rendering before; nil draws everything again
	Upgrade   bool                   // there is a rendering before

	// Properties of the cluster.
	KubeVersion string
	APIVersions []string
	Lookup      chart.LookupFunc

	StandIns bool // random values only look random: for judging a chart, and never for a cluster
	SkipCRDs bool // leave out the directories crds/, where [Definitions] are read as well
}

// ChartObjects are a component that is a chart.
type ChartObjects struct {
	Objects     []*unstructured.Unstructured
	Definitions []*unstructured.Unstructured // for the activation
	Tasks       []Task                       // tasks of the hooks, in the order of the chart, without ignored ones
	Tests       []*unstructured.Unstructured // hooks that are tests; nothing applies them
	Foreign     []images.Use                 // images that objects and tasks would pull, and that no archive has
	InParts     []images.Use                 // images that the archive has, in fields such as {repository, tag}: these keep their original names
	Lookups     []schema.Power               // powers of the templates' lookups in the cluster; not set by [Chart]

	Generated *chart.GeneratedValues // for the next rendering; secret
	Renewed   []string               // subjects of certificates that were made again
}

// Chart renders a component that is a chart. Objects are where the component may have them, as with [Component]; images of the
// archive are pinned wherever they are named.
func Chart(ctx context.Context, p *Payload, name string, s Settings, cs ChartSettings) (*ChartObjects, error) {
	c, err := p.component(name)
	if err != nil {
		return nil, err
	}
	if c.Chart == "" {
		return nil, report.Errorf(report.Usage, "component %s of %s is not a chart", name, p.Solution.ID())
	}
	if c.Scope == schema.ScopeCluster {
		s.Namespace = ComponentNamespace(p.Solution, c)
	}
	r, err := newRenderer(p, s)
	if err != nil {
		return nil, err
	}
	rendering, err := r.renderChart(ctx, c, cs)
	if err != nil {
		return nil, err
	}
	result := &ChartObjects{Generated: rendering.Generated, Renewed: rendering.Renewed}
	r.namespaces = c.Namespaces
	objects, hooks, err := r.chartObjects(c, rendering)
	if err != nil {
		return nil, err
	}
	r.renameClusterRoles(objects, c.Name)
	for i, o := range objects {
		if o.is("apiextensions.k8s.io", "CustomResourceDefinition") {
			result.Definitions = append(result.Definitions, o.Unstructured)
			continue
		}
		if hooks[i] != nil {
			result.Tasks = append(result.Tasks, hookTasks(c, hooks[i], o.Unstructured)...)
			if isTest(hooks[i]) {
				result.Tests = append(result.Tests, o.Unstructured)
			}
			continue
		}
		if err := r.add(o.document.File(), r.monitored(o.Unstructured)); err != nil {
			return nil, err
		}
	}
	result.Objects = r.objects
	r.newPinner().setForeign(result)
	return result, nil
}

// Staying are the objects of a chart that remain when its release is removed (helm.sh/resource-policy: keep).
func Staying(objects []*unstructured.Unstructured) []schema.ObjectRef {
	var staying []schema.ObjectRef
	for _, o := range objects {
		if strings.ToLower(strings.TrimSpace(o.GetAnnotations()[annotationPolicy])) == policyKeep { // as Helm reads it
			staying = append(staying, schema.ObjectRef{APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName()})
		}
	}
	return staying
}

// With this annotation a chart keeps an object when its release is removed.
const (
	annotationPolicy = "helm.sh/resource-policy"
	policyKeep       = "keep"
)

// component finds a component of the manifest.
func (p *Payload) component(name string) (*schema.Component, error) {
	i := slices.IndexFunc(p.Solution.Spec.Components, func(c schema.Component) bool { return c.Name == name })
	if i < 0 {
		return nil, report.Errorf(report.Usage, "%s has no component %s", p.Solution.ID(), name)
	}
	return &p.Solution.Spec.Components[i], nil
}

// chart reads the chart of a component, and the values that the archive has for it.
func (p *Payload) chart(c *schema.Component) (*chart.Chart, map[string]any, error) {
	data, ok := p.files[path.Clean(c.Chart)]
	if !ok {
		return nil, nil, report.Errorf(report.Invalid, "component %s of %s: %s is not in the archive", c.Name, p.Solution.ID(), c.Chart)
	}
	loaded, err := chart.Load(bytes.NewReader(data))
	if err != nil {
		return nil, nil, fmt.Errorf("component %s of %s: %s: %w", c.Name, p.Solution.ID(), c.Chart, err)
	}
	values, err := p.chartValues(c)
	return loaded, values, err
}

// renderTime bounds the rendering of a chart. The largest that are known take half a second.
const renderTime = time.Minute

func (r *renderer) renderChart(ctx context.Context, c *schema.Component, cs ChartSettings) (*chart.Rendering, error) {
	loaded, values, err := r.p.chart(c)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, renderTime)
	defer cancel()
	rendering, err := loaded.Render(ctx, chart.Options{
		Release: c.ReleaseName(), Namespace: r.s.Namespace, Upgrade: cs.Upgrade, Values: chart.MergeValues(values, cs.Values),
		KubeVersion: cs.KubeVersion, APIVersions: cs.APIVersions, Lookup: cs.Lookup, Generated: cs.Generated, Now: r.s.Now, StandIns: cs.StandIns,
		SkipCRDs: cs.SkipCRDs,
	})
	if err != nil {
		return nil, fmt.Errorf("component %s of %s: %w", c.Name, r.p.Solution.ID(), err)
	}
	return rendering, nil
}

// chartDefinitions are the CustomResourceDefinitions and Namespaces of the charts of all components, wherever they stand, with the values of the
// archive. A chart that cannot be rendered, perhaps without the values of a site, brings none: that shows when it is added. One that does not
// end is an error at once.
func (p *Payload) chartDefinitions() ([]object, error) {
	ctx, cancel := context.WithTimeout(context.Background(), renderTime)
	defer cancel()
	var definitions []object
	for i := range p.Solution.Spec.Components {
		c := &p.Solution.Spec.Components[i]
		if c.Chart == "" {
			continue
		}
		loaded, values, err := p.chart(c)
		if err != nil {
			continue
		}
		o := chart.Options{Release: c.ReleaseName(), Values: values, StandIns: true, RawCRDs: true}
		if c.Scope == schema.ScopeCluster {
			o.Namespace = ComponentNamespace(p.Solution, c) // of the Service that converts
		}
		rendering, err := loaded.Render(ctx, o)
		if report.CodeOf(err) == report.Timeout { // values of a site are unlikely to end it, and the timeout must not be spent twice
			return nil, fmt.Errorf("component %s of %s: %w", c.Name, p.Solution.ID(), err)
		}
		if err != nil {
			continue
		}
		for _, m := range rendering.Manifests {
			kind := definitionKind
			switch {
			case m.CRD:
			case m.Object["kind"] == definitionKind, m.Object["kind"] == namespaceKind:
				kind = fmt.Sprint(m.Object["kind"])
			default:
				continue
			}
			found, err := parseObjectsOf(kind, path.Clean(c.Chart)+"/"+m.Template, m.Line, m.Text)
			if err != nil {
				return nil, err
			}
			definitions = append(definitions, found...)
		}
	}
	return definitions, nil
}

// chartValues returns the archive's values for a chart. They can refer to the archive's repository.
func (p *Payload) chartValues(c *schema.Component) (map[string]any, error) {
	if c.Values == "" {
		return nil, nil
	}
	file := path.Clean(c.Values)
	data, ok := p.files[file]
	if !ok {
		return nil, report.Errorf(report.Invalid, "component %s of %s: %s is not in the archive", c.Name, p.Solution.ID(), c.Values)
	}
	var values map[string]any
	if err := schema.ReadDocument(file, data, &values); err != nil {
		return nil, fmt.Errorf("component %s of %s: %w", c.Name, p.Solution.ID(), err)
	}
	return values, nil
}

// Values describes the values that a site can set of a component that is a chart.
func (p *Payload) Values(c *schema.Component) (schema.ComponentValues, error) {
	loaded, preset, err := p.chart(c)
	if err != nil {
		return schema.ComponentValues{}, err
	}
	fields, err := loaded.Describe(preset)
	if err != nil {
		return schema.ComponentValues{}, fmt.Errorf("component %s of %s: %w", c.Name, p.Solution.ID(), err)
	}
	rules := cmp.Or(c.Site, &schema.SiteRules{})
	for _, path := range rules.Required { // templates read values without a default, too
		if !slices.ContainsFunc(fields, func(f schema.AppField) bool { return f.Path == path }) {
			fields = append(fields, schema.AppField{Path: path, Type: "any", Secret: schema.IsSecretPath(path)})
		}
	}
	slices.SortStableFunc(fields, func(a, b schema.AppField) int { return strings.Compare(a.Path, b.Path) })
	described := schema.ComponentValues{Component: c.Name, Chart: loaded.Name + "-" + loaded.Version, Values: []schema.ChartValue{}}
	for _, field := range fields {
		value := schema.ChartValue{AppField: field}
		value.Required = value.Required || slices.Contains(rules.Required, field.Path)
		value.Locked = slices.ContainsFunc(rules.Locked, func(path string) bool { return chart.IsWithin(field.Path, path) })
		described.Values = append(described.Values, value)
	}
	return described, nil
}

// CheckSite refuses values of a site that its vendor has locked, and those without the required ones.
func CheckSite(c *schema.Component, values map[string]any) error {
	locked, missing := SiteFaults(c, values)
	if len(locked) > 0 {
		return report.Errorf(report.Refused, "component %s: the vendor has locked the value %s", c.Name, locked[0]).
			WithHint("leave it out; '%s' lists what a site can set", report.Run("inspect", "ARCHIVE").With("values"))
	}
	if len(missing) > 0 {
		return report.Errorf(report.Refused, "component %s needs %s that only this site knows: %s", c.Name, report.Count(len(missing), "value"), strings.Join(missing, ", ")).
			WithHint("set each with --set %s, or all in a file with --values; secrets belong into a file", report.ShellWord(c.Name+"."+missing[0]+"=VALUE"))
	}
	return nil
}

// SiteFaults returns the paths of values that the vendor has locked and a site has set, and of required ones that it has not.
func SiteFaults(c *schema.Component, values map[string]any) (locked, missing []string) {
	rules := cmp.Or(c.Site, &schema.SiteRules{})
	for _, path := range rules.Locked {
		if chart.Overrides(values, path) {
			locked = append(locked, path)
		}
	}
	for _, path := range rules.Required {
		if value, _ := chart.ValueAt(values, path); value == nil || value == "" {
			missing = append(missing, path)
		}
	}
	return locked, missing
}

// CheckValues returns what the schemas of a component's chart do not allow of the values of a site.
func (p *Payload) CheckValues(c *schema.Component, values map[string]any) ([]chart.ValueProblem, error) {
	loaded, preset, err := p.chart(c)
	if err != nil {
		return nil, err
	}
	problems, err := loaded.CheckValues(chart.MergeValues(preset, values))
	if err != nil {
		return nil, fmt.Errorf("component %s of %s: %w", c.Name, p.Solution.ID(), err)
	}
	return problems, nil
}

// chartObjects returns the objects of a rendered chart, after checking that the component may have them, and its hooks.
func (r *renderer) chartObjects(c *schema.Component, rendering *chart.Rendering) (objects []object, hooks []*chart.Hook, err error) {
	pinner := r.newPinner()
	for _, m := range rendering.Manifests {
		text := repositoryVariable.ReplaceAllLiteral(m.Text, []byte(r.repository(r.p)))
		found, err := parseObjectsOf("", path.Clean(c.Chart)+"/"+m.Template, m.Line, text)
		if err != nil {
			return nil, nil, err
		}
		for _, o := range found {
			if r.p.isHome(c, o) {
				continue
			}
			o.Unstructured = o.DeepCopy()
			if !o.is("apiextensions.k8s.io", "CustomResourceDefinition") {
				if err := errors.Join(pinner.pin(o), r.placeComponent(c, o)); err != nil {
					return nil, nil, err
				}
			}
			r.mark(o.Unstructured)
			objects, hooks = append(objects, o), append(hooks, m.Hook)
		}
	}
	return objects, hooks, nil
}
