package schemas

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Reason is the kind of a problem. Reasons are stable.
type Reason string

// The reasons.
const (
	UnknownKind  Reason = "unknown-kind"
	UnknownField Reason = "unknown-field"
	MissingField Reason = "missing-field"
	WrongType    Reason = "wrong-type"
	WrongValue   Reason = "wrong-value"
	Duplicate    Reason = "duplicate"
)

// Problem is one thing that is wrong with an object. Path leads to the field, or for a missing field to the map that
// lacks it; it is empty for the object itself.
type Problem struct {
	Reason   Reason
	Path     string
	Message  string
	Unquoted bool // a string is expected, and the value would be one if it were written in quotes
}

func (p Problem) String() string {
	if p.Path == "" {
		return p.Message
	}
	return p.Path + ": " + p.Message
}

// maxProblems bounds the problems of one object: an author needs no more at once.
const maxProblems = 100

// maxDepth bounds nesting; the API server refuses deeper objects.
const maxDepth = 128

// Validate returns the problems of an object, in the order of the paths. The object is a decoded YAML or JSON document:
// maps with string keys, slices and scalars. A kind that the release does not serve is one problem with the reason
// [UnknownKind]; for a List (v1) the items are validated.
func (r *Release) Validate(object map[string]any) []Problem {
	v := checker{release: r}
	v.object(object, &path{}, 0)
	r.dateFields(object, v.problems)
	slices.SortStableFunc(v.problems, func(a, b Problem) int {
		return cmp.Or(compareNatural(a.Path, b.Path), cmp.Compare(a.Message, b.Message))
	})
	return v.problems
}

// dateFields adds to unknown fields the later release that introduced them.
func (r *Release) dateFields(object map[string]any, problems []Problem) {
	unknown := map[string]int{}
	for i, p := range problems {
		if p.Reason == UnknownField {
			unknown[p.Path] = i
		}
	}
	for _, version := range r.catalogue.Versions()[r.number+1:] {
		if len(unknown) == 0 {
			return
		}
		later, err := r.catalogue.Release(version)
		if err != nil {
			return
		}
		v := checker{release: later}
		v.object(object, &path{}, 0)
		if len(v.problems) == maxProblems || slices.ContainsFunc(v.problems, func(p Problem) bool { return p.Reason == UnknownKind }) {
			return // it does not show what is known
		}
		still := map[string]bool{}
		for _, p := range v.problems {
			still[p.Path] = true
		}
		for at, i := range unknown {
			if !still[at] {
				problems[i].Message = "unknown field; known from Kubernetes " + version
				delete(unknown, at)
			}
		}
	}
}

// compareNatural orders containers[2] before containers[10].
func compareNatural(a, b string) int {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	an, _, aok := strings.Cut(a[i:], "]")
	bn, _, bok := strings.Cut(b[i:], "]")
	if aok && bok && len(an) != len(bn) && isDigits(an) && isDigits(bn) {
		return cmp.Compare(len(an), len(bn))
	}
	return cmp.Compare(a, b)
}

func isDigits(s string) bool {
	return strings.Trim(s, "0123456789") == ""
}

// checker is the work on one object.
type checker struct {
	release  *Release
	problems []Problem
}

func (v *checker) add(at *path, reason Reason, format string, args ...any) {
	v.addProblem(at, Problem{Reason: reason, Message: fmt.Sprintf(format, args...)})
}

func (v *checker) addProblem(at *path, p Problem) {
	if len(v.problems) < maxProblems {
		p.Path = at.String()
		v.problems = append(v.problems, p)
	}
}

func (v *checker) object(object map[string]any, at *path, depth int) {
	apiVersion, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	group, err := schema.ParseGroupVersion(apiVersion)
	if err != nil || apiVersion == "" || kind == "" {
		v.add(at, MissingField, "apiVersion and kind are missing: this is not a Kubernetes object")
		return
	}
	gvk := group.WithKind(kind)
	row, ok := v.release.kinds[gvk]
	switch {
	case ok:
		v.head(object, at)
		v.value(object, v.release.definition(row.Definition), at)
		v.semantics(object, gvk.GroupKind(), at)
	case apiVersion == "v1" && kind == "List" && depth == 0:
		items, _ := object["items"].([]any)
		for i, item := range items {
			entry := path{parent: &path{parent: at, key: "items"}, index: i, list: true} // depth 0: an object of its own
			if m, ok := item.(map[string]any); ok {
				v.object(m, &entry, 1)
			} else {
				v.add(&entry, WrongType, "expected an object, got %s", typeName(item))
			}
		}
	default:
		v.add(at, UnknownKind, "%s %s is not served by Kubernetes %s", apiVersion, kind, v.release.Version())
	}
}

// head checks the name that every object needs and no description requires.
func (v *checker) head(object map[string]any, at *path) {
	metadata, ok := object["metadata"].(map[string]any)
	if name, present := object["metadata"]; !ok && present && name != nil {
		return // the type is reported elsewhere
	}
	if isZero(metadata["name"]) && isZero(metadata["generateName"]) {
		v.add(at.field("metadata"), MissingField, "name is missing")
	}
}

func isZero(value any) bool { return value == nil || value == "" }

// value checks one value against its description.
func (v *checker) value(value any, n *node, at *path) {
	for n.Ref != nil {
		n = v.release.definition(*n.Ref)
	}
	if value == nil || n.Type == "" && n.Format == "" {
		return // null is decoded as absent; a description without a type takes anything
	}
	if at.depth > maxDepth {
		v.add(at, WrongValue, "is nested too deeply")
		return
	}
	switch n.Type {
	case "object":
		v.mapping(value, n, at)
	case "array":
		v.list(value, n, at)
	default:
		v.scalar(value, n, at)
	}
}

func (v *checker) mapping(value any, n *node, at *path) {
	m, ok := value.(map[string]any)
	if !ok {
		v.add(at, WrongType, "expected an object, got %s", typeName(value))
		return
	}
	for _, name := range n.Required {
		if m[name] == nil && !at.status {
			v.add(at, MissingField, "%s is missing", name)
		}
	}
	if n.Values == nil && n.Properties == nil {
		return // any fields
	}
	for _, name := range slices.Sorted(maps.Keys(m)) { // so that the problems beyond maxProblems are always the same
		if len(v.problems) == maxProblems {
			return
		}
		field, entry := m[name], at.field(name)
		switch {
		case n.Properties[name] != nil:
			v.value(field, n.Properties[name], entry)
		case n.Values != nil:
			v.value(field, n.Values, entry)
		default:
			v.add(entry, UnknownField, "%s", unknownField(name, n))
		}
	}
	if !at.status && n.Properties["managedFields"] != nil {
		v.labels(m, at)
	}
}

func (v *checker) list(value any, n *node, at *path) {
	entries, ok := value.([]any)
	if !ok {
		v.add(at, WrongType, "expected a list, got %s", typeName(value))
		return
	}
	if n.Items != nil {
		for i, entry := range entries {
			v.value(entry, n.Items, at.entry(i))
		}
	}
	if !at.status && len(entries) > 1 && (n.Set || len(n.Keys) > 0) {
		v.unique(entries, n, at)
	}
}

// unique finds entries with the same key: server-side apply refuses them.
func (v *checker) unique(entries []any, n *node, at *path) {
	item := n.Items
	for item != nil && item.Ref != nil {
		item = v.release.definition(*item.Ref)
	}
	seen := make(map[string]int, len(entries))
	for i, entry := range entries {
		key := n.entryKey(entry, item)
		if key == "" {
			continue
		}
		if first, ok := seen[key]; ok {
			v.add(at.entry(i), Duplicate, "has the same %s as entry %d", n.keyNames(), first)
			continue
		}
		seen[key] = i
	}
}

// path leads to a value; the zero path leads to the object. It becomes text only when there is a problem.
type path struct {
	parent *path
	key    string
	index  int
	list   bool
	depth  int  // below the object; an object in a List begins at 0
	status bool // in status, which the server ignores when it creates an object and which generators fill with nulls
}

func (p *path) field(key string) *path {
	return &path{parent: p, key: key, depth: p.depth + 1, status: p.status || p.depth == 0 && key == "status"}
}

func (p *path) entry(i int) *path {
	return &path{parent: p, index: i, list: true, depth: p.depth + 1, status: p.status}
}

// String renders the path as Kubernetes does: spec.ports[0].name, metadata.labels[example.com/role].
func (p *path) String() string {
	if p == nil {
		return ""
	}
	parent := p.parent.String()
	switch {
	case p.list:
		return parent + "[" + strconv.Itoa(p.index) + "]"
	case strings.ContainsAny(p.key, "./[]"):
		return parent + "[" + p.key + "]"
	case parent == "":
		return p.key
	}
	return parent + "." + p.key
}
