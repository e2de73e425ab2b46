package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// enoughAsOne is the length up to which a value is read as a whole, however much is in it.
const enoughAsOne = 80

// Leaves takes a change of a long value apart: into what differs in it, or what is in it where it is new or gone. It returns the
// first of these changes, and how many more there are. What is short, or no JSON, stays as it is.
func (f FieldChange) Leaves(most int) (leaves []FieldChange, more int) {
	from, fromOK := parsed(f.From)
	to, toOK := parsed(f.To)
	if max(len(f.From), len(f.To)) <= enoughAsOne || !fromOK || !toOK {
		leaves = []FieldChange{f}
	} else {
		l := leafing{change: f}
		l.compare(f.Path, from, to)
		leaves = l.leaves
	}
	if more = len(leaves) - most; more > 0 {
		return leaves[:most], more
	}
	return leaves, 0
}

// absent marks a missing value; null is a value.
type absent struct{}

func parsed(text string) (any, bool) {
	if text == "" {
		return absent{}, true
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var value any
	return value, decoder.Decode(&value) == nil && !decoder.More()
}

// leafing collects the leaves of a change.
type leafing struct {
	change FieldChange
	leaves []FieldChange
}

func (l *leafing) compare(path string, from, to any) {
	if reflect.DeepEqual(from, to) {
		return
	}
	fromMap, isFrom := from.(map[string]any)
	toMap, isTo := to.(map[string]any)
	fromList, wasList := from.([]any)
	toList, isList := to.([]any)
	_, isNew := from.(absent)
	_, isGone := to.(absent)
	text := written(from) + written(to)
	switch {
	case (isNew || isGone) && len(text) <= enoughAsOne:
		l.leaf(path, from, to)
	case (isFrom || isNew) && (isTo || isGone):
		names := map[string]any{}
		maps.Copy(names, fromMap)
		maps.Copy(names, toMap)
		for _, name := range slices.Sorted(maps.Keys(names)) {
			l.compare(FieldPath(path, name), valueAt(fromMap, name), valueAt(toMap, name))
		}
	case (wasList || isNew) && (isList || isGone):
		l.compareLists(path, fromList, toList)
	default:
		l.leaf(path, from, to)
	}
}

func valueAt(m map[string]any, name string) any {
	if value, ok := m[name]; ok {
		return value
	}
	return absent{}
}

// compareLists matches elements by their names. Of a list without names it leaves out what both begin and end with.
func (l *leafing) compareLists(path string, from, to []any) {
	if key := ListKey(from, to); key != "" {
		name := func(element any) string { return fmt.Sprint(element.(map[string]any)[key]) }
		find := func(list []any, wanted string) any {
			if i := slices.IndexFunc(list, func(element any) bool { return name(element) == wanted }); i >= 0 {
				return list[i]
			}
			return absent{}
		}
		at := func(element any) string { return path + "[" + key + "=" + name(element) + "]" }
		for _, element := range from {
			l.compare(at(element), element, find(to, name(element)))
		}
		for _, element := range to {
			if find(from, name(element)) == (absent{}) {
				l.compare(at(element), absent{}, element)
			}
		}
		return
	}
	start, end := 0, 0
	for start < min(len(from), len(to)) && reflect.DeepEqual(from[start], to[start]) {
		start++
	}
	for end < min(len(from), len(to))-start && reflect.DeepEqual(from[len(from)-1-end], to[len(to)-1-end]) {
		end++
	}
	from, to = from[start:len(from)-end], to[start:len(to)-end]
	for i := range max(len(from), len(to)) {
		var a, b any = absent{}, absent{}
		if i < len(from) {
			a = from[i]
		}
		if i < len(to) {
			b = to[i]
		}
		l.compare(fmt.Sprintf("%s[%d]", path, start+i), a, b)
	}
}

func (l *leafing) leaf(path string, from, to any) {
	leaf := l.change // who owns it, and since when
	leaf.Path, leaf.From, leaf.To = path, written(from), written(to)
	l.leaves = append(l.leaves, leaf)
}

func written(value any) string {
	if value == (absent{}) {
		return ""
	}
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(data)
}

// FieldPath is the path of a field in what another path leads to.
func FieldPath(parent, field string) string {
	switch {
	case strings.ContainsAny(field, "./[]"):
		return parent + "[" + field + "]"
	case parent == "":
		return field
	default:
		return parent + "." + field
	}
}

// listKeys identify elements of lists, in the order in which they are tried.
var listKeys = []string{"name", "key", "type", "ip", "mountPath", "devicePath", "containerPort", "port", "topologyKey", "uid"}

// ListKey returns the field whose values name every element of the lists, "" when there is none.
func ListKey(lists ...[]any) string {
	for _, key := range listKeys {
		if !slices.ContainsFunc(lists, func(list []any) bool { return !named(list, key) }) {
			return key
		}
	}
	return ""
}

// named reports whether every element is a map with the field, each with a different value.
func named(list []any, key string) bool {
	seen := map[any]bool{}
	for _, element := range list {
		m, ok := element.(map[string]any)
		if !ok {
			return false
		}
		switch value := m[key].(type) {
		case string, int64, json.Number:
			if seen[value] {
				return false
			}
			seen[value] = true
		default:
			return false
		}
	}
	return true
}
