package engine

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/kube/crd"
	"github.com/solutionctl/solutionctl/schema"
)

// hidden stands for a value of a Secret.
const hidden = "(hidden)"

// fieldChanges returns what differs between an object and what the server would make of it, without what the server
// keeps for itself, and who owns the values that are there now.
func fieldChanges(before, after *unstructured.Unstructured) []schema.FieldChange {
	d := differ{owners: ownersOf(before), secret: before.GroupVersionKind() == cluster.SecretKind}
	d.compare(nil, withoutBookkeeping(before), withoutBookkeeping(after))
	return d.changes
}

// withoutBookkeeping is the object without its status and what the server counts and stamps.
func withoutBookkeeping(object *unstructured.Unstructured) map[string]any {
	content := maps.Clone(object.Object)
	delete(content, "status")
	if metadata, ok := content["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		for _, field := range bookkeeping {
			delete(metadata, field)
		}
		content["metadata"] = metadata
	}
	return content
}

// definitionChanges returns what a change of a CustomResourceDefinition means to those who use it; nothing for other objects.
func definitionChanges(before, after *unstructured.Unstructured) []schema.DefinitionChange {
	if before.GroupVersionKind() != cluster.DefinitionKind {
		return nil
	}
	previous, next := crd.FromObject(before.Object), crd.FromObject(after.Object)
	if previous == nil || next == nil {
		return nil
	}
	var changes []schema.DefinitionChange
	for _, c := range crd.Compare(previous, next) {
		changes = append(changes, schema.DefinitionChange{
			Kind: string(c.Kind), Severity: string(c.Severity), Version: c.Version, Path: c.Path, Message: c.Message,
		})
	}
	return changes
}

type differ struct {
	owners  []owner
	secret  bool
	changes []schema.FieldChange
}

// place is one step from the root of an object to a field: into a map by name, or into a list.
type place struct {
	field   string
	element any // of a list; nil in a map
	index   int
	label   string // of an element, such as [name=web]
}

func (d *differ) compare(at []place, before, after any) {
	switch b := before.(type) {
	case map[string]any:
		if a, ok := after.(map[string]any); ok {
			d.compareMaps(at, b, a)
			return
		}
	case []any:
		if a, ok := after.([]any); ok {
			d.compareLists(at, b, a)
			return
		}
	}
	if !reflect.DeepEqual(before, after) {
		d.report(at, before, after)
	}
}

func (d *differ) compareMaps(at []place, before, after map[string]any) {
	names := maps.Clone(before)
	maps.Copy(names, after)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		b, was := before[name]
		a, is := after[name]
		next := append(slices.Clip(at), place{field: name})
		if was && is {
			d.compare(next, b, a)
		} else {
			d.report(next, b, a)
		}
	}
}

// compareLists matches elements by the field that names them. A list whose elements have no names is one value.
func (d *differ) compareLists(at []place, before, after []any) {
	field := schema.ListKey(before, after)
	if field == "" {
		if !reflect.DeepEqual(before, after) {
			d.report(at, before, after)
		}
		return
	}
	name := func(element any) string { return fmt.Sprint(element.(map[string]any)[field]) }
	step := func(i int, element any) []place {
		return append(slices.Clip(at), place{element: element, index: i, label: "[" + field + "=" + name(element) + "]"})
	}
	find := func(list []any, wanted string) int {
		return slices.IndexFunc(list, func(element any) bool { return name(element) == wanted })
	}
	for i, b := range before {
		if j := find(after, name(b)); j >= 0 {
			d.compare(step(i, b), b, after[j])
		} else {
			d.report(step(i, b), b, nil)
		}
	}
	for i, a := range after {
		if find(before, name(a)) < 0 {
			d.report(step(i, a), nil, a)
		}
	}
}

func (d *differ) report(at []place, before, after any) {
	c := schema.FieldChange{Path: pathOf(at), From: d.show(at, before), To: d.show(at, after)}
	if before != nil {
		c.Manager, c.Since = managersOf(d.owners, at)
	}
	d.changes = append(d.changes, c)
}

func (d *differ) show(at []place, value any) string {
	if value == nil {
		return ""
	}
	if d.secret && len(at) > 0 && at[0].field != "apiVersion" && at[0].field != "kind" && at[0].field != "type" {
		return hidden // annotations may repeat the data
	}
	if text, ok := value.(string); ok {
		if summary := summarizeCompressed(text); summary != "" {
			return summary
		}
	}
	data, err := json.Marshal(withoutCompressed(value))
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(data)
}

// withoutCompressed returns a value with summaries in place of what is compressed.
func withoutCompressed(value any) any {
	switch value := value.(type) {
	case map[string]any:
		shown := make(map[string]any, len(value))
		for name, element := range value {
			shown[name] = withoutCompressed(element)
		}
		return shown
	case []any:
		shown := make([]any, len(value))
		for i, element := range value {
			shown[i] = withoutCompressed(element)
		}
		return shown
	case string:
		return cmp.Or(summarizeCompressed(value), value)
	default:
		return value
	}
}

// gzipPrefix is how base64 of what gzip has written begins: its magic number and its only method.
const gzipPrefix = "H4sI"

// summarizeCompressed returns what is shown of compressed data in base64, such as an entry of binaryData, and "" for other texts. The
// digest tells contents of one size apart, for readers and for the digest of a plan.
func summarizeCompressed(text string) string {
	if !strings.HasPrefix(text, gzipPrefix) {
		return ""
	}
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("(%d bytes, compressed, sha256:%.6x)", len(data), sha256.Sum256(data))
}

func pathOf(at []place) (path string) {
	for _, p := range at {
		if p.element != nil {
			path += p.label
		} else {
			path = schema.FieldPath(path, p.field)
		}
	}
	return path
}

// owner is a manager of fields and what it owns, as nested names: see the format FieldsV1 of the API server.
type owner struct {
	manager string
	time    *metav1.Time // of the last change of what it owns
	fields  map[string]any
}

func ownersOf(object *unstructured.Unstructured) []owner {
	var owners []owner
	for _, entry := range object.GetManagedFields() {
		fields := map[string]any{}
		if entry.FieldsV1 == nil || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		owners = append(owners, owner{entry.Manager, entry.Time, fields})
	}
	return owners
}

// managersOf returns the managers that own a field or something in it, sorted, and when the last of them changed what it
// owns, if it is somebody else.
func managersOf(owners []owner, at []place) (names string, since *time.Time) {
	deepest := 0
	for _, o := range owners {
		deepest = max(deepest, depth(o.fields, at))
	}
	var managers []string
	for _, o := range owners {
		if depth(o.fields, at) < deepest {
			continue
		}
		if !slices.Contains(managers, o.manager) {
			managers = append(managers, o.manager)
		}
		if o.manager != cluster.FieldManager && o.time != nil && (since == nil || since.Before(o.time.Time)) {
			utc := o.time.UTC()
			since = &utc
		}
	}
	slices.Sort(managers)
	return strings.Join(managers, ", "), since
}

func owns(fields map[string]any, at []place) bool { return depth(fields, at) >= 0 }

// depth is how far a set of fields leads towards a place: all the way, or to what is above it and was set as a whole. It is
// negative when the set has nothing of it.
func depth(fields map[string]any, at []place) int {
	for i, p := range at {
		if len(fields) == 0 {
			return i
		}
		if fields = descend(fields, p); fields == nil {
			return -1
		}
	}
	return len(at)
}

// takenApart tells whether somebody owns a part of what is at a place. Then nobody owns it as a whole.
func takenApart(owners []owner, at []place) bool {
	return slices.ContainsFunc(owners, func(o owner) bool {
		fields := o.fields
		for _, p := range at {
			fields = descend(fields, p)
		}
		return len(fields) > 0
	})
}

// descend follows one step in a set of fields. It returns nil when the set has nothing there.
func descend(fields map[string]any, p place) map[string]any {
	if p.element == nil {
		next, _ := fields["f:"+p.field].(map[string]any)
		return next
	}
	for name, value := range fields {
		next, ok := value.(map[string]any)
		kind, text, _ := strings.Cut(name, ":")
		if !ok || kind != "k" {
			continue
		}
		var key map[string]any
		element, isMap := p.element.(map[string]any)
		if !isMap || json.Unmarshal([]byte(text), &key) != nil {
			continue
		}
		matches := true
		for k, v := range key {
			matches = matches && fmt.Sprint(element[k]) == fmt.Sprint(v)
		}
		if matches {
			return next
		}
	}
	return nil
}

// ownFields returns the managed fields of the engine in an object, as the server writes them, "" when it owns none.
func ownFields(object *unstructured.Unstructured) string {
	version, fields := applied(object)
	return version + fields
}

// applied returns what the engine owns of an object, in the format FieldsV1, and the version of the API that this is about.
func applied(object *unstructured.Unstructured) (version, fields string) {
	for _, entry := range object.GetManagedFields() {
		if entry.Manager == cluster.FieldManager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" && entry.FieldsV1 != nil {
			return entry.APIVersion, entry.FieldsV1.GetRawString()
		}
	}
	return "", ""
}

// managedBy tells whether one of some managers owns a field.
func managedBy(object *unstructured.Unstructured, some func(manager string) bool, at ...string) bool {
	var places []place
	for _, field := range at {
		places = append(places, place{field: field})
	}
	return slices.ContainsFunc(ownersOf(object), func(o owner) bool { return some(o.manager) && owns(o.fields, places) })
}
