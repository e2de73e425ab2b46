package scaffold

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"reflect"
	"slices"
	"strings"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/solutionctl/solutionctl/kube/manifest"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// document is one object as it was written.
type document struct {
	file  string // where it goes to in the component
	shown string // where it stands, for messages
	text  []byte
	value map[string]any
}

func (d document) kind() string      { return fmt.Sprint(d.value["kind"]) }
func (d document) name() string      { return field(d.value, "name") }
func (d document) namespace() string { return field(d.value, "namespace") }

// title is how messages name an object: Deployment web.
func (d document) title() string { return d.kind() + " " + d.name() }

func field(object map[string]any, name string) string {
	metadata, _ := object["metadata"].(map[string]any)
	text, _ := metadata[name].(string)
	return text
}

func kindOf(object map[string]any) runtimeschema.GroupVersionKind {
	apiVersion, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	return runtimeschema.FromAPIVersionAndKind(apiVersion, kind)
}

func isDefinition(object map[string]any) bool {
	gvk := kindOf(object)
	return gvk.Kind == "CustomResourceDefinition" && gvk.Group == "apiextensions.k8s.io"
}

// addManifests makes components of Kubernetes objects.
func (b *builder) addManifests(s Source, kind Kind, name string) error {
	files, err := s.yamlFiles()
	if err != nil {
		return err
	}
	var documents []document
	for _, file := range files {
		data, err := fs.ReadFile(s.Files, file)
		if err != nil {
			return err
		}
		found, err := b.read(s.shown(file), s.relative(file), data)
		if err != nil {
			return err
		}
		documents = append(documents, found...)
	}
	if len(documents) == 0 {
		return s.errUnknown("it has no Kubernetes object")
	}
	return b.addObjects(s, kind, name, documents)
}

// read splits a manifest into documents. Lists become their items; documents that are not objects are left out.
func (b *builder) read(shown, file string, data []byte) ([]document, error) {
	var documents []document
	for _, piece := range manifest.Split(data) {
		value, err := manifest.Value(shown, piece)
		if err != nil {
			hint := "correct the file, or leave it out"
			if bytes.Contains(piece, []byte("{{")) {
				hint = "name the directory with Chart.yaml when this is a template of a chart"
			}
			return nil, report.Errorf(report.Invalid, "%w", err).WithHint("%s", hint)
		}
		gvk := kindOf(value)
		switch {
		case len(value) == 0 && len(bytes.TrimSpace(piece)) == 0:
		case gvk.Kind == "" || gvk.Version == "":
			if len(value) > 0 {
				b.remark("left out %s: a document without apiVersion and kind is not a Kubernetes object", shown)
			}
		case gvk.Group == "kustomize.config.k8s.io":
			b.remark("left out %s: it is a kustomization; name its directory with --from", shown)
		case gvk.Group == "" && strings.HasSuffix(gvk.Kind, "List") && value["items"] != nil:
			items, err := listItems(shown, file, value)
			if err != nil {
				return nil, err
			}
			documents = append(documents, items...)
		default:
			documents = append(documents, document{file, shown, piece, value})
		}
	}
	return documents, nil
}

func listItems(shown, file string, list map[string]any) ([]document, error) {
	items, _ := list["items"].([]any)
	var documents []document
	for _, item := range items {
		value, ok := item.(map[string]any)
		if !ok {
			return nil, report.Errorf(report.Invalid, "%s: an item of a List is not an object", shown).WithHint("correct the file, or leave it out")
		}
		text, err := yaml.Marshal(value)
		if err != nil {
			return nil, err
		}
		documents = append(documents, document{file, shown, text, value})
	}
	return documents, nil
}

// addObjects makes one component of objects, or two where some belong to the whole cluster and nothing refers to a namespace.
func (b *builder) addObjects(s Source, kind Kind, name string, documents []document) error {
	documents, err := b.distinct(documents)
	if err != nil {
		return err
	}
	if documents, err = b.withoutDefinitions(documents); err != nil {
		return err
	}
	spaces := b.namespacesOf(documents)
	documents, namespaces := withoutNamespaces(documents)
	for _, d := range documents {
		b.objects = append(b.objects, d.value)
	}
	wide, inside := b.partition(documents)
	found := Component{Kind: kind, Source: s.Name, Objects: len(documents)}
	switch {
	case len(documents) == 0:
		b.dropNamespaces(namespaces)
		return nil
	case len(wide) == 0 && len(spaces) <= 1:
		b.dropNamespaces(namespaces)
		return b.addToEnvironment(name, found, spaces, inside)
	case len(spaces) <= 1 && !slices.ContainsFunc(wide, refersToNamespace):
		once := b.componentName(name + "-cluster")
		b.dropNamespaces(namespaces)
		if err := b.addToCluster(once, Component{Kind: kind, Source: s.Name, Objects: len(wide)}, nil, wide, nil); err != nil {
			return err
		}
		b.remark("component %s has what belongs to the whole cluster: %s", once, titles(wide))
		if len(inside) == 0 {
			return nil
		}
		found.Objects = len(inside)
		err := b.addToEnvironment(name, found, spaces, inside)
		b.components[len(b.components)-1].DependsOn = []schema.ComponentDependency{{Component: once}}
		return err
	default:
		b.remark("component %s lives once in the cluster, not in each environment: %s", name, whyOnce(wide, spaces))
		return b.addToCluster(name, found, spaces, documents, namespaces)
	}
}

// titles lists the first objects, and how many more there are.
func titles(documents []document) string {
	const few = 3
	var list []string
	for _, d := range documents[:min(few, len(documents))] {
		list = append(list, d.title())
	}
	if more := len(documents) - few; more > 0 {
		list = append(list, fmt.Sprintf("%d more", more))
	}
	return strings.Join(list, ", ")
}

// whyOnce explains why a component cannot live in environments.
func whyOnce(wide []document, spaces []string) string {
	if i := slices.IndexFunc(wide, refersToNamespace); i >= 0 {
		return wide[i].title() + " belongs to the cluster and refers to a namespace"
	}
	return "its objects are in the namespaces " + strings.Join(spaces, " and ")
}

// addToEnvironment makes a component of objects that live in the namespace of each environment.
func (b *builder) addToEnvironment(name string, found Component, spaces []string, documents []document) error {
	for _, space := range append([]string{"default"}, spaces...) {
		taken, err := dropNamespace(documents, space)
		if err != nil {
			return err
		}
		if taken > 0 {
			b.remark("took namespace %s out of %s: an environment has its own", space, report.Count(taken, "object"))
			b.remarkNames(documents, space)
		}
	}
	if err := conflictWithout(documents); err != nil {
		return err
	}
	if err := b.place("", documents); err != nil {
		return err
	}
	b.addComponent(schema.Component{Name: name, Manifests: path.Join("components", name)}, found)
	b.addFiles(name, documents)
	return nil
}

// dropNamespace removes a namespace from the texts of objects and returns of how many.
func dropNamespace(documents []document, space string) (dropped int, _ error) {
	for i, d := range documents {
		if d.namespace() != space {
			continue
		}
		text, err := manifest.WithoutField(d.text, "metadata", "namespace")
		if err != nil {
			return 0, report.Errorf(report.Invalid, "%s: %w", d.shown, err)
		}
		documents[i].text = text
		dropped++
	}
	return dropped, nil
}

// remarkNames reports host names of Services in a namespace that is not there any more.
func (b *builder) remarkNames(documents []document, space string) {
	for _, d := range documents {
		if bytes.Contains(d.text, []byte("."+space+".svc")) {
			b.remark("%s still names a Service in namespace %s (.%s.svc): write its name alone", d.title(), space, space)
		}
	}
}

// conflictWithout refuses objects that differ only in their namespaces.
func conflictWithout(documents []document) error {
	seen := map[string]document{}
	for _, d := range documents {
		gvk := kindOf(d.value)
		key := gvk.Group + "/" + gvk.Kind + "/" + d.name()
		if other, again := seen[key]; again && d.name() != "" {
			return errTwice(other, d)
		}
		seen[key] = d
	}
	return nil
}

// addToCluster makes a component of objects that live once, and of what is to be kept of their Namespaces.
func (b *builder) addToCluster(name string, found Component, spaces []string, documents, namespaces []document) error {
	if _, err := dropNamespace(documents, "default"); err != nil {
		return err
	}
	c := schema.Component{Name: name, Manifests: path.Join("components", name), Scope: schema.ScopeCluster}
	c.Namespace, c.Namespaces = homes(spaces, documents)
	if err := b.place(cmp.Or(c.Namespace, name), documents); err != nil {
		return err
	}
	b.addComponent(c, found)
	b.addFiles(name, slices.Concat(b.keptNamespaces(&c, namespaces), documents))
	if c.Namespace != "" {
		b.remark("component %s keeps namespace %s", name, c.Namespace)
	}
	return nil
}

// place refuses objects that another component has in the same place: the namespace of an environment, which is home "", or of the cluster.
func (b *builder) place(home string, documents []document) error {
	for _, d := range documents {
		if d.name() == "" {
			continue
		}
		gvk, space := kindOf(d.value), ""
		if home != "" && !b.isClusterScoped(d.value) {
			space = cmp.Or(d.namespace(), home)
		}
		key := strings.Join([]string{gvk.Group, gvk.Kind, space, d.name()}, "/")
		if other, again := b.placed[key]; again {
			return report.Errorf(report.Invalid, "two components have %s in the same place: %s and %s", d.title(), other.shown, d.shown).
				WithHint("leave one of them out of --from, or give one another name")
		}
		b.placed[key] = d
	}
	return nil
}

// homes returns the namespace of a component of the cluster, and the further ones. The first is the one with most objects that belongs to
// no part of the cluster itself.
func homes(spaces []string, documents []document) (home string, others []string) {
	most := 0
	for _, space := range spaces {
		n := 0
		for _, d := range documents {
			if d.namespace() == space {
				n++
			}
		}
		if n > most && !schema.IsSystemNamespace(space) {
			home, most = space, n
		}
	}
	return home, slices.DeleteFunc(slices.Clone(spaces), func(space string) bool { return space == home })
}

// addFiles writes the objects of a component to the files that they come from.
func (b *builder) addFiles(component string, documents []document) {
	var order []string
	texts := map[string][][]byte{}
	for _, d := range documents {
		if texts[d.file] == nil {
			order = append(order, d.file)
		}
		texts[d.file] = append(texts[d.file], append(bytes.TrimRight(d.text, "\n"), '\n'))
	}
	for _, file := range order {
		b.project.Files = append(b.project.Files, File{path.Join("components", component, file), bytes.Join(texts[file], []byte("---\n"))})
	}
}

// distinct leaves out objects that are there twice, and refuses those that differ.
func (b *builder) distinct(documents []document) ([]document, error) {
	seen := map[string]document{}
	var kept []document
	for _, d := range documents {
		gvk := kindOf(d.value)
		key := strings.Join([]string{gvk.Group, gvk.Kind, d.namespace(), d.name()}, "/")
		other, again := seen[key]
		switch {
		case d.name() == "" || !again:
			seen[key] = d
			kept = append(kept, d)
		case reflect.DeepEqual(other.value, d.value):
			b.remark("left out the second %s of %s: it is the same", d.title(), d.shown)
		default:
			return nil, errTwice(other, d)
		}
	}
	return kept, nil
}

func errTwice(one, other document) error {
	where := one.shown + " has two"
	if one.shown != other.shown {
		where = one.shown + " and " + other.shown + " both have"
	}
	return report.Errorf(report.Invalid, "%s %s, and they differ", where, one.title()).
		WithHint("remove one of them, or name only the files that belong together with --from")
}

// withoutDefinitions takes the CustomResourceDefinitions out.
func (b *builder) withoutDefinitions(documents []document) ([]document, error) {
	var rest []document
	for _, d := range documents {
		if !isDefinition(d.value) {
			rest = append(rest, d)
			continue
		}
		if len(validation.IsDNS1123Subdomain(d.name())) > 0 { // its file is called after it
			return nil, report.Errorf(report.Invalid, "%s: %q cannot be the name of a CustomResourceDefinition", d.shown, d.name()).
				WithHint("correct the file, or leave it out")
		}
		if version := versionTwice(d.value); version != "" {
			return nil, report.Errorf(report.Invalid, "%s of %s has version %s twice", d.title(), d.shown, version).WithHint("remove one of them")
		}
		other, again := b.crds[d.name()]
		if again && !reflect.DeepEqual(other.value, d.value) {
			return nil, errTwice(other, d)
		}
		d.text = append(bytes.TrimRight(d.text, "\n"), '\n')
		b.crds[d.name()] = d
		b.addGroup(d.value)
		b.objects = append(b.objects, d.value)
	}
	return rest, nil
}

// versionTwice returns a version that a CustomResourceDefinition has twice, else "".
func versionTwice(definition map[string]any) string {
	spec, _ := definition["spec"].(map[string]any)
	versions, _ := spec["versions"].([]any)
	seen := map[string]bool{}
	for _, item := range versions {
		version, _ := item.(map[string]any)
		name, _ := version["name"].(string)
		if seen[name] && name != "" {
			return name
		}
		seen[name] = true
	}
	return ""
}

// namespacesOf lists the namespaces of objects, sorted, without "default".
func (b *builder) namespacesOf(documents []document) []string {
	var spaces []string
	for _, d := range documents {
		if space := d.namespace(); space != "" && space != "default" && !b.isClusterScoped(d.value) {
			spaces = append(spaces, space)
		}
	}
	slices.Sort(spaces)
	return slices.Compact(spaces)
}

// partition separates cluster-scoped from namespaced objects.
func (b *builder) partition(documents []document) (wide, inside []document) {
	return separate(documents, func(d document) bool { return b.isClusterScoped(d.value) })
}

// separate returns the elements of a list that fit, and the others.
func separate[E any](list []E, fits func(E) bool) (fitting, others []E) {
	for _, element := range list {
		if fits(element) {
			fitting = append(fitting, element)
		} else {
			others = append(others, element)
		}
	}
	return fitting, others
}

// refersToNamespace reports whether an object names a namespace anywhere: that of an account or a Service.
func refersToNamespace(d document) bool { return hasNamespace(d.value) }

func hasNamespace(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		if text, ok := v["namespace"].(string); ok && text != "" {
			return true
		}
		for _, inner := range v {
			if hasNamespace(inner) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, hasNamespace)
	}
	return false
}
