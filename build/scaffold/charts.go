package scaffold

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/kube/chart"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// releaseNamespace stands for the namespace of a component while its chart is rendered: an object in another one names it itself.
const releaseNamespace = "namespace-of-the-release"

// addChart makes a component of a chart.
func (b *builder) addChart(ctx context.Context, s Source) error {
	packed, loaded, err := s.loadChart()
	if err != nil {
		return report.Errorf(report.CodeOf(err), "%s: %w", s.Name, err)
	}
	name := b.componentName(loaded.Name)
	file := loaded.Name + "-" + loaded.Version + ".tgz"
	component := schema.Component{Name: name, Chart: path.Join("charts", file)}
	if err = b.addChartFile(s, component.Chart, packed); err != nil {
		return err
	}
	values, err := b.values(&component)
	if err != nil {
		return err
	}
	rendering, err := b.render(ctx, loaded, chart.Options{Release: name, Namespace: releaseNamespace, Values: values, StandIns: true})
	if err != nil {
		if report.CodeOf(err) != report.Invalid {
			return err
		}
		if len(report.Hints(err)) > 0 { // another reason than values
			return report.Errorf(report.Invalid, "%s cannot be rendered: %w", s.Name, err)
		}
		return report.Errorf(report.Invalid, "%s cannot be rendered, perhaps because it needs values: %w", s.Name, err).
			WithHint("write the values that it needs to a file, and add: --values %s=FILE", name)
	}
	if b.version = loaded.Version; !validVersion(b.version) {
		b.version = ""
	}
	b.charts++
	objects := b.placeChart(&component, rendering)
	b.addConditional(ctx, name, loaded, values, rendering)
	b.addComponent(component, Component{Kind: KindChart, Source: s.Name, Detail: loaded.Name + " " + loaded.Version, Objects: objects})
	return nil
}

// addConditional adds the objects of a chart that depend on APIs of the cluster, for the sake of their images.
func (b *builder) addConditional(ctx context.Context, name string, c *chart.Chart, values map[string]any, plain *chart.Rendering) {
	o := chart.Options{Release: name, Namespace: releaseNamespace, Values: values, StandIns: true, KubeVersion: b.releases[min(b.oldest, len(b.releases)-1)].Version()}
	found, apis, err := c.Conditional(ctx, o, plain)
	if err != nil {
		b.remark("chart %s cannot be rendered for clusters with %s: if yours has them, compare the list of images with its objects", name, strings.Join(apis, ", "))
		return
	}
	before := len(b.needed())
	for _, m := range found {
		b.objects = append(b.objects, m.Object)
	}
	if more := len(b.needed()) - before; more > 0 {
		b.remark("chart %s starts %s only where the cluster has some of %s", name, report.Count(more, "image"), strings.Join(apis, ", "))
	}
}

// render renders a chart for the oldest release of Kubernetes that it accepts, which becomes the oldest of the Solution.
func (b *builder) render(ctx context.Context, c *chart.Chart, o chart.Options) (rendering *chart.Rendering, err error) {
	for i, v := range slices.Backward(b.releases) {
		o.KubeVersion = v.Version()
		if rendering, err = c.Render(ctx, o); err == nil {
			if i < len(b.releases)-1 {
				b.oldest = min(b.oldest, i)
			}
			return rendering, nil
		}
		if c.KubeVersion == "" {
			break
		}
	}
	return nil, err
}

func packDirectory(files fs.FS, dir string) ([]byte, *chart.Chart, error) {
	sub, err := fs.Sub(files, dir)
	if err != nil {
		return nil, nil, err
	}
	return chart.Pack(sub)
}

// loadChart reads a chart, and packs one that is a directory.
func (s Source) loadChart() ([]byte, *chart.Chart, error) {
	if s.Chart == nil {
		info, err := fs.Stat(s.Files, s.Path)
		if err != nil {
			return nil, nil, err
		}
		dir := s.Path
		if !info.IsDir() && path.Base(dir) == "Chart.yaml" {
			dir = path.Dir(dir)
		}
		if info.IsDir() || dir != s.Path {
			return packDirectory(s.Files, dir)
		}
		if s.Chart, err = fs.ReadFile(s.Files, s.Path); err != nil {
			return nil, nil, err
		}
	}
	loaded, err := chart.Load(bytes.NewReader(s.Chart))
	return s.Chart, loaded, err
}

// addChartFile writes the package, and the signature of Helm beside it.
func (b *builder) addChartFile(s Source, name string, packed []byte) error {
	i := slices.IndexFunc(b.project.Files, func(f File) bool { return f.Path == name })
	if i >= 0 && !bytes.Equal(b.project.Files[i].Data, packed) {
		return report.Errorf(report.Invalid, "%s and another source are one chart in one version, and they differ", s.Name).WithHint("leave one of them out")
	}
	if i >= 0 {
		return nil
	}
	b.project.Files = append(b.project.Files, File{name, packed})
	if s.Files == nil || !strings.HasSuffix(s.Path, ".tgz") {
		return nil
	}
	provenance, err := fs.ReadFile(s.Files, s.Path+".prov")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	b.project.Files = append(b.project.Files, File{name + ".prov", provenance})
	return err
}

// values are the values of the site for a chart. They become a file of the component.
func (b *builder) values(c *schema.Component) (map[string]any, error) {
	key := c.Name
	if _, named := b.options.Values[key]; !named {
		key = ""
	}
	data, ok := b.options.Values[key]
	if !ok {
		return nil, nil
	}
	b.usedValues = append(b.usedValues, key)
	var values map[string]any
	if err := schema.ReadDocument("values of "+c.Name, data, &values); err != nil {
		return nil, report.Errorf(report.Invalid, "values of %s: %w", c.Name, err).WithHint("write a YAML document with the values of the chart")
	}
	c.Values = path.Join("components", c.Name+"-values.yaml")
	b.project.Files = append(b.project.Files, File{c.Values, data})
	return values, nil
}

// refuseUnusedValues refuses values that are for no chart of the project.
func (b *builder) refuseUnusedValues() error {
	for _, key := range sortedKeys(b.options.Values) {
		if slices.Contains(b.usedValues, key) {
			continue
		}
		var charts []string
		for _, c := range b.components {
			if c.Chart != "" {
				charts = append(charts, c.Name)
			}
		}
		switch {
		case len(charts) == 0:
			return report.Errorf(report.Usage, "--values is for charts, and no source is one").WithHint("leave --values out")
		case key == "":
			return report.Errorf(report.Usage, "each chart has values of its own, and nothing takes those of --values without a name").WithHint("leave them out")
		}
		return report.Errorf(report.Usage, "--values names %s, and no chart is called so", key).WithHint("write: --values %s=FILE", strings.Join(charts, "=FILE, or --values "))
	}
	return nil
}

// placeChart decides where a chart lives, and returns how many objects it has.
func (b *builder) placeChart(c *schema.Component, r *chart.Rendering) (objects int) {
	var wide string
	for _, m := range r.Manifests {
		if m.Hook != nil && slices.Contains(m.Hook.Events, "test") {
			continue
		}
		b.objects = append(b.objects, m.Object)
		space := field(m.Object, "namespace")
		switch {
		case isDefinition(m.Object):
			b.addGroup(m.Object)
			continue
		case isNamespace(m.Object): // activation creates it, with its Pod Security labels
			if name := field(m.Object, "name"); name != releaseNamespace && !slices.Contains(c.Namespaces, name) {
				c.Namespaces = append(c.Namespaces, name)
			}
			wide = document{value: m.Object}.title()
		case b.isClusterScoped(m.Object):
			wide = document{value: m.Object}.title()
		case space != "" && space != releaseNamespace && !slices.Contains(c.Namespaces, space):
			c.Namespaces = append(c.Namespaces, space)
		}
		objects++
	}
	slices.Sort(c.Namespaces)
	switch {
	case wide != "":
		c.Scope = schema.ScopeCluster
		b.remark("chart %s lives once in the cluster, not in each environment: %s belongs to the cluster", c.Name, wide)
	case len(c.Namespaces) > 0:
		c.Scope = schema.ScopeCluster
		b.remark("chart %s lives once in the cluster, not in each environment: it has objects in namespace %s", c.Name, strings.Join(c.Namespaces, " and "))
	}
	return objects
}

func validVersion(text string) bool {
	_, err := schema.ParseVersion(text)
	return err == nil
}
