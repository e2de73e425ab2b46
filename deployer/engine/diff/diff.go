// Package diff compares Kubernetes objects as plain values, without a cluster: fields of two objects ([Fields]), what a change of a
// CustomResourceDefinition means ([Definition]), and what others have changed since an object was applied ([Drift]).
//
// The API server keeps which manager owns which field, in a format that it calls FieldsV1. [Owners] and [AppliedPart] read it.
package diff

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/schema"
)

// Fields returns the fields in which two states of an object differ, apart from its status and [Bookkeeping], with the managers that own
// the values before. Values of Secrets are hidden.
func Fields(before, after *unstructured.Unstructured) []schema.FieldChange {
	d := differ{owners: Owners(before), secret: before.GroupVersionKind() == cluster.SecretKind}
	d.compare(nil, WithoutBookkeeping(before), WithoutBookkeeping(after))
	return d.changes
}

// Bookkeeping are the fields of metadata that the API server sets.
var Bookkeeping = []string{"creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "managedFields", "resourceVersion", "selfLink", "uid"}

// WithoutBookkeeping returns the content of an object without its status and [Bookkeeping]. The object is not changed.
func WithoutBookkeeping(object *unstructured.Unstructured) map[string]any {
	content := maps.Clone(object.Object)
	delete(content, "status")
	if metadata, ok := content["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		for _, field := range Bookkeeping {
			delete(metadata, field)
		}
		content["metadata"] = metadata
	}
	return content
}

type differ struct {
	owners  []Owner
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
