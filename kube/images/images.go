// Package images finds the container images that Kubernetes objects refer to.
//
// [Find] searches one object of any kind: pods and objects with a pod template, custom resources with images in fields
// of their own, environment variables such as RELATED_IMAGE_UI, arguments such as --sidecar-image=…, and documents
// inside of ConfigMaps. The less the place suggests an image, the stricter the form of the text must be: the image of a
// container always counts; in free text only a full reference with registry and tag or digest does. [Use.Certain]
// separates the two, so that a proof that no image is missing can use the former and warnings the latter.
//
// [ParseReference] parses image references as container runtimes do. The package does no I/O.
package images

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Place is the kind of field in which a reference was found.
type Place string

// The places.
const (
	Container Place = "container" // the image of a container, in whatever kind of object
	Volume    Place = "volume"    // an image volume
	Env       Place = "env"       // the value of an environment variable
	Argument  Place = "argument"  // in command or args of a container
	Field     Place = "field"     // a field whose name suggests an image
	Text      Place = "text"      // anywhere else
)

// Use is one reference to an image.
type Use struct {
	Image   string // as written; it may hold a template, as "{{ repository }}/ui:1.0.0"
	Object  string // "Deployment/web"
	Path    string // of the field, as spec.template.spec.containers[0].image; "data[a.yaml]: spec.image" inside of a document
	Place   Place
	Certain bool // the place alone proves that it is an image
}

// Pulled reports whether the image is pulled once the object exists: by a container, or by the program that reads the
// variable, the argument or the field with its full name. For a text, a note and the content of a ConfigMap that is
// unknown.
func (u Use) Pulled() bool {
	if u.Certain || u.Place == Text || strings.HasPrefix(u.Path, "metadata.") || strings.HasPrefix(u.Object, "ConfigMap/") || strings.HasPrefix(u.Object, "Secret/") {
		return u.Certain
	}
	r, ok := ParseReference(u.Image)
	return ok && (r.hasRegistry() || r.Tag != "" || r.Digest != "")
}

// The bounds of one object.
const (
	maxUses     = 10_000
	maxDepth    = 128
	maxDocument = 1 << 20 // of text that is read as a document
	maxPath     = 1 << 10 // bytes
)

// Find returns every image that the object refers to, in the order of its fields' names.
func Find(object map[string]any) []Use { return find(object, func(Use, place) {}) }

func find(object map[string]any, found func(Use, place)) []Use {
	kind, _ := object["kind"].(string)
	metadata, _ := object["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	f := finder{object: kind + "/" + name, seen: map[Use]bool{}, found: found}
	f.value(object, place{}, 0)
	return f.uses
}

// Rewrite replaces references in an object that are a whole value, or an argument behind "=". What replace refuses stays, and so do images
// in parts, in other text and in documents inside of the object.
func Rewrite(object map[string]any, replace func(Use) (image string, ok bool)) {
	var changes []func()
	find(object, func(use Use, at place) {
		if image, ok := replace(use); ok {
			changes = append(changes, func() { at.replace(object, use.Image, image) })
		}
	})
	for _, change := range changes {
		change()
	}
}

type finder struct {
	object string
	uses   []Use
	seen   map[Use]bool
	found  func(Use, place)
}

// place is the position of the walk. Paths are long and wanted for few places: they are written for those.
type place struct {
	parent *place
	key    string // the last field's name, also for the entries of a list
	index  int    // of an entry, from 1; 0 for a field
	nested int    // how many documents deep
	part   int    // of the text that is the parent, from 1, for the root of a document inside of the object
}

func (p place) field(name string) place {
	return place{parent: &p, key: name, nested: p.nested}
}

func (p place) entry(i int) place {
	return place{parent: &p, key: p.key, index: i + 1, nested: p.nested}
}

func (p place) document(part int) place {
	return place{parent: &p, nested: p.nested + 1, part: part + 1}
}

// replace puts a text in the place of another, which is the value there or its end behind "=".
func (p place) replace(root any, old, with string) {
	var up []*place
	for at := &p; at.parent != nil; at = at.parent {
		if at.part > 0 {
			return
		}
		up = append(up, at)
	}
	changed := func(value any) any {
		text, _ := value.(string)
		if before, ok := strings.CutSuffix(text, old); ok && (before == "" || strings.HasSuffix(before, "=")) {
			return before + with
		}
		return value
	}
	for i, at := range slices.Backward(up) {
		switch around := root.(type) {
		case map[string]any:
			if root = around[at.key]; i == 0 {
				around[at.key] = changed(root)
			}
		case []any:
			if root = around[at.index-1]; i == 0 {
				around[at.index-1] = changed(root)
			}
		}
	}
}

// String returns the path, with the documents inside of the object that it leads through. One that is too long loses its end.
func (p place) String() string {
	var up []*place
	for at := &p; at.parent != nil; at = at.parent {
		up = append(up, at)
	}
	var b strings.Builder
	root := true
	for _, at := range slices.Backward(up) {
		key := report.Cut(at.key, maxPath)
		switch {
		case b.Len() > maxPath:
			return report.Cut(b.String(), maxPath)
		case at.part > 1:
			fmt.Fprintf(&b, ", document %d: ", at.part)
		case at.part == 1:
			b.WriteString(": ")
		case at.index > 0:
			fmt.Fprintf(&b, "[%d]", at.index-1)
		case strings.ContainsAny(key, "./[]"):
			b.WriteString("[" + key + "]")
		default:
			if !root {
				b.WriteByte('.')
			}
			b.WriteString(key)
		}
		root = at.part > 0
	}
	return report.Cut(b.String(), maxPath)
}

func (f *finder) add(image string, at place, where Place, certain bool) {
	if len(f.uses) >= maxUses {
		return
	}
	use := Use{Image: image, Object: f.object, Path: at.String(), Place: where, Certain: certain}
	if !f.seen[use] {
		f.seen[use] = true
		f.uses = append(f.uses, use)
		f.found(use, at)
	}
}

func (f *finder) value(value any, at place, depth int) {
	if depth > maxDepth {
		return
	}
	switch v := value.(type) {
	case map[string]any:
		f.mapping(v, at, depth)
	case []any:
		for i, entry := range v {
			f.value(entry, at.entry(i), depth+1)
		}
	case string:
		f.text(v, at)
	}
}

func (f *finder) mapping(m map[string]any, at place, depth int) {
	handled := map[string]bool{}
	if image, ok := m["image"].(string); ok && isContainer(m, at) {
		handled["image"] = true
		if image != "" {
			f.add(image, at.field("image"), Container, true)
		}
	}
	if reference, ok := m["reference"].(string); ok && at.key == "image" {
		handled["reference"] = true
		f.add(reference, at.field("reference"), Volume, true)
	}
	if image, ok := assembled(m, at.key); ok {
		f.add(image, at, Field, false)
	}
	if name, ok := m["name"].(string); ok && at.key == "env" {
		if value, ok := m["value"].(string); ok {
			handled["value"] = true
			f.variable(name, value, at.field("value"))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		switch {
		case handled[key] || skipped(key):
		case key == "command" || key == "args":
			f.arguments(m[key], at.field(key))
		default:
			f.value(m[key], at.field(key), depth+1)
		}
	}
}

// isContainer reports a map with a field image that is a container: by the list that it is in, or by its name and
// another field that containers have.
func isContainer(m map[string]any, at place) bool {
	if slices.Contains([]string{"containers", "initContainers", "ephemeralContainers"}, at.key) {
		return true
	}
	if at.key == "relatedImages" {
		return true // of a ClusterServiceVersion
	}
	for _, field := range []string{"command", "args", "env", "envFrom", "ports", "volumeMounts", "resources", "imagePullPolicy", "securityContext"} {
		if _, ok := m[field]; ok {
			return true
		}
	}
	return false
}

// skipped are fields that repeat other fields of the object, or in which a text that looks like an image is none.
func skipped(key string) bool {
	return key == "kubectl.kubernetes.io/last-applied-configuration" || key == "managedFields" || key == "description"
}

// assembled joins {registry, repository, tag, digest}, the habit of charts and custom resources.
func assembled(m map[string]any, key string) (string, bool) {
	repository, ok := m["repository"].(string)
	if !ok {
		repository, ok = m["name"].(string)
		ok = ok && namesImage(key)
	}
	if !ok || repository == "" {
		return "", false
	}
	text := repository
	if registry, _ := m["registry"].(string); registry != "" {
		text = registry + "/" + repository
	}
	tag := ""
	switch value := m["tag"].(type) {
	case nil, map[string]any, []any:
	default:
		tag = fmt.Sprint(value)
	}
	digest, _ := m["digest"].(string)
	if tag != "" {
		text += ":" + tag
	}
	if digest != "" {
		text += "@" + digest
	}
	if tag == "" && digest == "" && !namesImage(key) {
		return "", false
	}
	r, ok := ParseReference(text)
	return text, ok && (namesImage(key) || r.hasRegistry())
}

// variable judges an environment variable.
func (f *finder) variable(name, value string, at place) {
	upper := strings.ToUpper(name)
	switch {
	case strings.HasPrefix(upper, "RELATED_IMAGE_") && (strings.Contains(value, "/") || !namesPart(upper)):
		if value != "" {
			f.add(value, at, Env, true)
		}
	case namesImage(name) && looksLikeImage(value):
		f.add(value, at, Env, false)
	default:
		f.free(value, at, Env)
	}
}

// namesPart reports variables beside those of images, such as RELATED_IMAGE_UI_NAME and RELATED_IMAGE_UI_TAG.
func namesPart(variable string) bool {
	words := words(variable)
	return slices.Contains([]string{"name", "tag", "version", "digest", "registry", "repository", "policy"}, words[len(words)-1])
}

// arguments judges a command line: --image=REF, --image REF, or a full reference anywhere.
func (f *finder) arguments(value any, at place) {
	list, ok := value.([]any)
	if !ok {
		f.value(value, at, 0)
		return
	}
	flag := ""
	for i, entry := range list {
		text, ok := entry.(string)
		if !ok {
			continue
		}
		here := at.entry(i)
		name, argument, joined := strings.Cut(text, "=")
		switch {
		case strings.HasPrefix(text, "-") && joined && namesImage(name):
			if looksLikeImage(argument) {
				f.add(argument, here, Argument, false)
			}
		case flag != "" && namesImage(flag) && looksLikeImage(text):
			f.add(text, here, Argument, false)
		default:
			f.free(text, here, Argument)
		}
		flag = ""
		if strings.HasPrefix(text, "-") && !joined {
			flag = text
		}
	}
}

// text judges a string in a field.
func (f *finder) text(text string, at place) {
	switch {
	case namesImage(at.key) && looksLikeImage(text):
		f.add(text, at, Field, false)
	case at.key == "image" && isBareName(text):
		f.add(text, at, Field, false)
	case strings.ContainsAny(text, "\n{") && f.document(text, at):
	default:
		f.free(text, at, Text)
	}
}

// document reads text that is a YAML or JSON document, as ConfigMaps carry them.
func (f *finder) document(text string, at place) bool {
	if at.nested >= 3 || len(text) > maxDocument {
		return false
	}
	found := false
	for i, part := range documents(text) {
		var value any
		if schema.CheckYAML("", []byte(part)) != nil || yaml.Unmarshal([]byte(part), &value) != nil {
			return false
		}
		switch value.(type) {
		case map[string]any, []any:
		default:
			continue
		}
		found = true
		f.value(value, at.document(i), 0)
	}
	return found
}

func documents(text string) []string {
	return strings.Split("\n"+text, "\n---")
}

// free finds full references in text of any kind.
func (f *finder) free(text string, at place, where Place) {
	if len(text) > maxDocument {
		text = text[:maxDocument]
	}
	if !strings.ContainsAny(text, "/@") { // neither a registry nor a digest
		return
	}
	for word := range strings.FieldsFuncSeq(text, isSeparator) {
		word = strings.Trim(word, ".:/@")
		if r, ok := ParseReference(word); ok && r.isFull() {
			f.add(word, at, where, false)
		}
	}
}

func isSeparator(r rune) bool {
	return r <= ' ' || strings.ContainsRune("\"'`=,;()[]{}<>|&$\\", r)
}
