package scaffold

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/solutionctl/solutionctl/kube/images"
	"github.com/solutionctl/solutionctl/kube/schemas"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/lazyregexp"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Source is the source of a component: a file or a directory of Files, or a packed chart.
type Source struct {
	Name  string // as the user names it
	Files fs.FS  // holds Path and the files that it refers to, such as the base of a kustomization
	Path  string // of a file or a directory in Files
	Chart []byte // a packed chart, instead of Files
}

// Options say how a project is made.
type Options struct {
	Solution string            // the name of the Solution
	Operator bool              // add the image of an operator, which is built later
	Values   map[string][]byte // values files of charts by the name of the component; that of "" is for all others
	// Images are the images on this host. Nil takes images from their registries.
	Images []Available
}

// Available is an image that can be taken from a file or a directory.
type Available struct {
	Origin string // its full reference
	Source string // as solution.yaml names it
}

// Project is the project of a Solution that was made of sources.
type Project struct {
	Files      []File // with solution.yaml first
	Components []Component
	Images     []string // full references
	Remarks    []string // omissions and changes, with reasons
	Version    string
}

// File is a file of the project; Path is relative to its directory.
type File struct {
	Path string
	Data []byte
}

// Component is a component and its source.
type Component struct {
	Name    string       `json:"name"`
	Kind    Kind         `json:"kind"`
	Source  string       `json:"source"`
	Detail  string       `json:"detail,omitempty"` // the name and version of a chart
	Objects int          `json:"objects"`          // without CustomResourceDefinitions
	Scope   schema.Scope `json:"scope,omitempty"`
}

// builder is a project in the making.
type builder struct {
	options    Options
	releases   []*schemas.Release // newest first
	oldest     int                // position of the oldest release that every chart accepts
	apiGroups  map[string]bool
	components []schema.Component
	names      map[string]bool // of components
	crds       map[string]document
	placed     map[string]document // objects of all components, by where they live
	objects    []map[string]any    // in which images are looked for
	version    string              // of the only chart
	charts     int
	usedValues []string // names in Options.Values
	project    Project
}

// New makes a project of sources.
func New(ctx context.Context, o Options, sources []Source) (*Project, error) {
	b := &builder{options: o, names: map[string]bool{schema.NodeOperator: true, schema.NodeUI: true}, crds: map[string]document{}, placed: map[string]document{}}
	catalogue, err := schemas.Load()
	if err != nil {
		return nil, err
	}
	versions := catalogue.Versions()
	slices.Reverse(versions)
	b.releases = make([]*schemas.Release, len(versions))
	for i, version := range versions {
		if b.releases[i], err = catalogue.Release(version); err != nil {
			return nil, err
		}
	}
	b.oldest, b.apiGroups = len(b.releases)-1, map[string]bool{}
	for _, source := range sources {
		if source.Files != nil {
			source.Files = plainFiles{source.Files, source}
		}
		if err = b.add(ctx, source); err != nil {
			return nil, err
		}
	}
	if err = b.refuseUnusedValues(); err != nil {
		return nil, err
	}
	found, err := b.images()
	if err != nil {
		return nil, err
	}
	b.addDefinitions()
	if o.Operator {
		b.apiGroups[o.Solution+".example.com"] = true
	}
	b.project.Version = "0.1.0"
	if b.charts == 1 && len(b.components) == 1 && b.version != "" {
		b.project.Version = b.version
	}
	b.project.Files = slices.Insert(b.project.Files, 0, File{"solution.yaml", b.solution(found)})
	return &b.project, nil
}

func (b *builder) add(ctx context.Context, s Source) error {
	kind, err := detect(s)
	if err != nil {
		return err
	}
	switch kind {
	case KindChart:
		return b.addChart(ctx, s)
	case KindKustomization:
		return b.addKustomization(s, kind, b.componentName(s.directoryName()))
	case KindCompose:
		return b.addCompose(ctx, s)
	case KindOperatorProject:
		return b.addOperatorProject(ctx, s)
	default:
		return b.addManifests(s, kind, b.componentName(s.sourceName()))
	}
}

// remark adds a remark of one line, whatever the names in it are.
func (b *builder) remark(format string, args ...any) {
	b.project.Remarks = append(b.project.Remarks, strings.Join(strings.FieldsFunc(fmt.Sprintf(format, args...), unicode.IsControl), " "))
}

// addComponent enters a component and its source.
func (b *builder) addComponent(c schema.Component, found Component) {
	b.components = append(b.components, c)
	found.Name, found.Scope = c.Name, c.Scope
	b.project.Components = append(b.project.Components, found)
}

// general are names of files and directories that do not describe their content.
var general = []string{
	"", "install", "manifests", "manifest", "deploy", "deployment", "config", "default", "dist", "kustomize", "k8s", "kubernetes", "compose",
	"docker-compose", "base", "bundle", "all", "chart", "yaml", "release", schema.NodeOperator, schema.NodeUI,
}

var notInName = lazyregexp.New(`[^a-z0-9]+`)

// maxComponentName leaves room for the endings that names of objects get.
const maxComponentName = 40

// componentName returns a name for a component that no other one has.
func (b *builder) componentName(wanted string) string {
	base := strings.Trim(notInName.ReplaceAllString(strings.ToLower(wanted), "-"), "-")
	if slices.Contains(general, base) {
		base = b.options.Solution
	}
	base = strings.Trim(base[:min(len(base), maxComponentName)], "-")
	name := base
	for i := 2; b.names[name]; i++ {
		name = fmt.Sprintf("%s-%d", base, i)
	}
	b.names[name] = true
	return name
}

// sourceName is the name of a source, without directories and extensions.
func (s Source) sourceName() string {
	name := path.Base(s.Path)
	return strings.TrimSuffix(name, path.Ext(name))
}

// directoryName is the name of the directory of a source.
func (s Source) directoryName() string {
	if slices.Contains(kustomizationFiles, path.Base(s.Path)) {
		return path.Base(path.Dir(s.Path))
	}
	return path.Base(s.Path)
}

// isClusterScoped reports whether objects of a kind lie outside of namespaces: by Kubernetes' own schemas, and by the definitions of the
// sources.
func (b *builder) isClusterScoped(o map[string]any) bool {
	gvk := kindOf(o)
	for _, crd := range b.crds {
		spec, _ := crd.value["spec"].(map[string]any)
		names, _ := spec["names"].(map[string]any)
		if spec["group"] == gvk.Group && names["kind"] == gvk.Kind {
			return spec["scope"] == "Cluster"
		}
	}
	for _, release := range b.releases {
		if resource, ok := release.Resource(gvk); ok {
			return !resource.Namespaced
		}
	}
	return false
}

// addDefinitions writes the CustomResourceDefinitions where activation takes them from.
func (b *builder) addDefinitions() {
	for _, name := range sortedKeys(b.crds) {
		file := path.Join("operator", "deploy", "crds", name+"_crd.yaml")
		b.project.Files = append(b.project.Files, File{file, b.crds[name].text})
	}
	if n := len(b.crds); n > 0 {
		them := "them"
		if n == 1 {
			them = "it"
		}
		b.remark("%s moved to operator/deploy/crds: activation applies %s", report.Count(n, "CustomResourceDefinition"), them)
	}
}

// addGroup enters the API group of a CustomResourceDefinition.
func (b *builder) addGroup(definition map[string]any) {
	spec, _ := definition["spec"].(map[string]any)
	if group, ok := spec["group"].(string); ok {
		b.apiGroups[group] = true
	}
}

// errNoImage refuses sources in which nothing runs.
func (b *builder) errNoImage() error {
	return report.Errorf(report.Invalid, "nothing in the sources of %s starts an image, and an archive has at least one", b.options.Solution).
		WithHint("add what runs with one more --from")
}

// needed are the references of images, in the order of their first use.
func (b *builder) needed() []images.Reference {
	var list []images.Reference
	seen := map[string]bool{}
	for _, object := range b.objects {
		definition := isDefinition(object)
		for _, use := range images.Find(object) {
			if !use.Certain && !use.Pulled() || definition && !strings.Contains("."+use.Path+".", ".default.") {
				continue
			}
			r, ok := images.ParseReference(use.Image)
			if ok && !seen[r.String()] {
				seen[r.String()] = true
				list = append(list, r)
			}
		}
	}
	return list
}
