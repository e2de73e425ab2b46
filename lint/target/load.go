package target

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"path"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/solutionctl/solutionctl/kube/chart"
	"github.com/solutionctl/solutionctl/kube/crd"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// PartOf returns the part of an archive that a file belongs to; "" for files without Kubernetes objects.
func PartOf(name string) Part {
	if extension := path.Ext(name); extension != ".yaml" && extension != ".yml" {
		return ""
	}
	switch top, rest, _ := strings.Cut(name, "/"); top {
	case "operator":
		return operatorPart(rest)
	case "operators":
		return furtherOperatorPart(rest)
	case "ui":
		return PartUI
	case "components":
		return PartComponent
	case "monitoring":
		return PartMonitoring
	}
	return ""
}

func operatorPart(name string) Part {
	switch {
	case strings.HasPrefix(name, "deploy/crds/"):
		if strings.HasSuffix(name, "_crd.yaml") {
			return PartCRD
		}
		return PartSample
	case name == "deploy/role.yaml":
		return PartRole
	case strings.HasPrefix(name, "cluster/"):
		return PartCluster
	default:
		return PartUnapplied
	}
}

// furtherOperatorPart is for <operator>/….
func furtherOperatorPart(name string) Part {
	switch _, rest, _ := strings.Cut(name, "/"); {
	case rest == "role.yaml":
		return PartRole
	case strings.HasPrefix(rest, "cluster/"):
		return PartCluster
	default:
		return PartUnapplied
	}
}

// walkFiles lists the regular files outside of images/ and blobs/.
func walkFiles(fsys fs.FS) []File {
	var files []File
	_ = fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error { // unreadable files are missing
		switch {
		case err != nil:
			return nil //nolint:nilerr // the rules of the image format report a directory that cannot be read
		case entry.IsDir() && (name == "images" || name == "blobs"):
			return fs.SkipDir
		case entry.IsDir():
			return nil
		}
		if info, err := entry.Info(); err == nil {
			files = append(files, File{name, info.Size()})
		}
		return nil
	})
	slices.SortFunc(files, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	return files
}

// Manifests lists the files that hold Kubernetes objects. A component's values are not objects.
func (t *Target) Manifests() []string {
	values := map[string]bool{}
	if t.Solution != nil {
		for _, component := range t.Solution.Spec.Components {
			values[path.Clean(component.Values)] = true
		}
	}
	var names []string
	for _, file := range t.Files() {
		if PartOf(file.Path) != "" && !values[file.Path] {
			names = append(names, file.Path)
		}
	}
	return names
}

// loadObjects reads every manifest and renders the charts.
func (t *Target) loadObjects() []*Object {
	names := t.Manifests()
	perFile := make([][]*Object, len(names))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, name := range names {
		group.Go(func() error {
			documents, _ := t.Documents(name) // a rule reports unreadable files
			for _, document := range documents {
				perFile[i] = append(perFile[i], objectsOf(name, document)...)
			}
			return nil
		})
	}
	_ = group.Wait() // nothing fails
	objects := slices.Concat(perFile...)
	for _, c := range t.Charts() {
		if c.Rendering != nil {
			objects = append(objects, objectsOfChart(c, c.Manifests)...)
		}
	}
	return objects
}

// objectsOf takes a document apart: a List holds objects, everything else that has a kind is one.
func objectsOf(name string, document *schema.Document) []*Object {
	value, ok := document.Value().(map[string]any)
	if !ok {
		return nil
	}
	part := PartOf(name)
	if part == PartUI {
		value, _ = withTemplates(value).(map[string]any)
	}
	items, isList := value["items"].([]any)
	if kind, _ := value["kind"].(string); !isList || kind != "List" {
		return []*Object{newObject(part, name, value, document)}
	}
	var objects []*Object
	for i, item := range items {
		if m, ok := item.(map[string]any); ok {
			o := newObject(part, name, m, document)
			o.prefix = []string{"items", fmt.Sprint(i)}
			objects = append(objects, o)
		}
	}
	return objects
}

func newObject(part Part, file string, value map[string]any, document *schema.Document) *Object {
	o := &Object{Part: part, File: file, Value: value, document: document}
	o.APIVersion, _ = value["apiVersion"].(string)
	o.Kind, _ = value["kind"].(string)
	metadata, _ := value["metadata"].(map[string]any)
	o.Name, _ = metadata["name"].(string)
	o.Namespace, _ = metadata["namespace"].(string)
	return o
}

func objectsOfChart(c Chart, manifests []chart.Manifest) []*Object {
	var objects []*Object
	for _, manifest := range manifests {
		o := newObject(PartChart, c.File, manifest.Object, nil)
		o.Component, o.template = c.Component, fmt.Sprintf("%s:%d", manifest.Template, manifest.Line)
		o.Test = manifest.Hook != nil && manifest.Hook.OnlyTests()
		objects = append(objects, o)
	}
	return objects
}

// definitions are the CustomResourceDefinitions, and the faults of their files.
type definitions struct {
	all      []Definition
	problems map[string][]crd.Problem
}

// loadDefinitions parses the CustomResourceDefinitions of every part, applied or not; charts bring theirs, too.
func (t *Target) loadDefinitions() definitions {
	found := definitions{problems: map[string][]crd.Problem{}}
	for _, file := range t.DefinitionFiles() {
		p := t.parse(file)
		if p.err != nil {
			continue
		}
		definition, problems := crd.Read(p.data, p.documents)
		found.problems[file] = problems
		if definition != nil {
			found.all = append(found.all, Definition{definition, file, PartCRD, t.FirstObject(file)})
		}
	}
	for _, o := range t.Objects() {
		if o.Kind == "CustomResourceDefinition" && o.Part != PartCRD {
			if definition := crd.FromObject(o.Value); definition != nil {
				found.all = append(found.all, Definition{definition, o.File, o.Part, o})
			}
		}
	}
	return found
}

// DefinitionFiles lists the files that activation takes for CustomResourceDefinitions.
func (t *Target) DefinitionFiles() []string {
	var names []string
	for _, file := range t.Files() {
		if PartOf(file.Path) == PartCRD {
			names = append(names, file.Path)
		}
	}
	return names
}

// DefinitionProblems returns the faults of a definition as a file; none where it is not even YAML.
func (t *Target) DefinitionProblems(file string) []crd.Problem {
	return t.definitions.get(t.loadDefinitions).problems[file]
}

// FirstObject returns the first object of a file, nil when there is none.
func (t *Target) FirstObject(file string) *Object {
	i := slices.IndexFunc(t.Objects(), func(o *Object) bool { return o.File == file })
	if i < 0 {
		return nil
	}
	return t.Objects()[i]
}

// loadCharts loads and renders every chart: once for each component that uses it, else with its own values.
func (t *Target) loadCharts() []Chart {
	var charts []Chart
	for _, file := range t.Files() {
		if strings.HasPrefix(file.Path, "charts/") && strings.HasSuffix(file.Path, ".tgz") {
			charts = append(charts, t.loadChart(file.Path)...)
		}
	}
	return charts
}

func (t *Target) loadChart(name string) []Chart {
	f, err := t.FS.Open(name)
	if err != nil {
		return []Chart{{File: name, Err: err}}
	}
	loaded, err := chart.Load(f)
	_ = f.Close() // read only
	if err != nil {
		return []Chart{{File: name, Err: err}}
	}
	var charts []Chart
	for _, component := range t.components(name) {
		c := Chart{File: name, Component: component.Name, Chart: loaded}
		t.render(&c, component)
		charts = append(charts, c)
	}
	return charts
}

// components returns those that use a chart; one without a name when none does.
func (t *Target) components(chart string) []schema.Component {
	var users []schema.Component
	if t.Solution != nil {
		for _, component := range t.Solution.Spec.Components {
			if path.Clean(component.Chart) == chart {
				users = append(users, component)
			}
		}
	}
	if len(users) == 0 {
		users = []schema.Component{{}}
	}
	return users
}

// timeToRender bounds the rendering of a chart: a hundred times the time of the largest ones.
const timeToRender = 30 * time.Second

// render renders a chart as a component has it.
func (t *Target) render(c *Chart, component schema.Component) {
	c.options = chart.Options{Release: component.ReleaseName(), KubeVersion: t.Kubernetes().Version(), StandIns: true}
	if component.Values != "" {
		file := path.Clean(component.Values)
		data, err := t.Text(file)
		if err != nil {
			c.Err = err
			return
		}
		if err = schema.ReadDocument(file, data, &c.options.Values); err != nil {
			c.Err = report.As(report.Invalid, err).WithHint("write one document with the values of the chart")
			return
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeToRender)
	defer cancel()
	c.Rendering, c.Err = c.Render(ctx, c.options)
}

// ConditionalObjects renders the chart once more, and returns the objects that it has only where a cluster serves more of the APIs that it asks
// for. There are none where it cannot be rendered with all of them: no cluster is known that has them.
func (c *Chart) ConditionalObjects(ctx context.Context) []*Object {
	if c.Rendering == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, timeToRender)
	defer cancel()
	found, _, err := c.Conditional(ctx, c.options, c.Rendering)
	if err != nil {
		return nil
	}
	return objectsOfChart(*c, found)
}
