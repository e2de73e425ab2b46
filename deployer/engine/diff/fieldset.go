package diff

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// AppliedPart returns the part of an object that solutionctl has applied, with its current values.
func AppliedPart(object *unstructured.Unstructured) *unstructured.Unstructured {
	_, text := applied(object)
	var fields map[string]any
	_ = json.Unmarshal([]byte(text), &fields) // without fields nothing is applied
	part := map[string]any{}
	if len(fields) > 0 {
		part, _ = pick(fields, object.Object).(map[string]any)
	}
	result := &unstructured.Unstructured{Object: part}
	result.SetGroupVersionKind(object.GroupVersionKind())
	result.SetNamespace(object.GetNamespace())
	result.SetName(object.GetName())
	return result
}

// pick returns the part of a value that a set of fields has: all of it if the set names no fields.
func pick(fields map[string]any, value any) any {
	within := maps.Clone(fields)
	delete(within, ".")
	if len(within) == 0 {
		return value
	}
	switch value := value.(type) {
	case map[string]any:
		part := map[string]any{}
		for name, sub := range within {
			field, ok := strings.CutPrefix(name, "f:")
			if have, there := value[field]; ok && there {
				set, _ := sub.(map[string]any)
				part[field] = pick(set, have)
			}
		}
		return part
	case []any:
		var part []any
		for _, element := range value {
			if set, key := setOf(within, element); set != nil {
				picked := pick(set, element)
				if m, ok := picked.(map[string]any); ok {
					maps.Copy(m, key)
				}
				part = append(part, picked)
			}
		}
		return part
	default:
		return value
	}
}

// Unite adds a set of fields to another one. A set that names no fields is the whole value.
func Unite(all, set map[string]any) {
	for name, field := range set {
		more, _ := field.(map[string]any)
		there, known := all[name].(map[string]any)
		within := maps.Clone(there)
		if within == nil {
			within = map[string]any{}
		}
		if Unite(within, more); name != "." && known && (len(there) == 0) != (len(more) == 0) {
			within["."] = map[string]any{}
		}
		all[name] = within
	}
}

// Without returns a value without the fields of a set that no others have. The value is not changed.
func Without(set, others map[string]any, value any) any {
	child := func(name string, sub, value any) (rest any, kept bool) {
		theirs, kept := others[name].(map[string]any)
		if fields, _ := sub.(map[string]any); kept && len(theirs) > 0 && len(fields) > 0 {
			value = Without(fields, theirs, value)
		}
		return value, kept
	}
	switch value := value.(type) {
	case map[string]any:
		rest := maps.Clone(value)
		for name, sub := range set {
			field, ok := strings.CutPrefix(name, "f:")
			if _, there := value[field]; !ok || !there {
				continue
			}
			var kept bool
			if rest[field], kept = child(name, sub, value[field]); !kept {
				delete(rest, field)
			}
		}
		return rest
	case []any:
		rest := make([]any, 0, len(value))
		for _, element := range value {
			kept := true
			if name := nameOf(set, element); name != "" {
				element, kept = child(name, set[name], element)
				kept = kept && nameOf(map[string]any{name: set[name]}, element) != "" // the server keeps no element without its key
			}
			if kept {
				rest = append(rest, element)
			}
		}
		return rest
	default:
		return value
	}
}

// nameOf returns the name of an element of a list in a set of fields; "" if the set does not have it.
func nameOf(fields map[string]any, element any) string {
	for name := range fields {
		if set, _ := setOf(map[string]any{name: fields[name]}, element); set != nil {
			return name
		}
	}
	return ""
}

// setOf returns the fields of an element of a list in a set, nil if it has none, and the key of the element.
func setOf(fields map[string]any, element any) (set, key map[string]any) {
	for name, sub := range fields {
		kind, text, _ := strings.Cut(name, ":")
		set, _ = sub.(map[string]any)
		switch m, isMap := element.(map[string]any); {
		case kind == "k" && isMap:
			key = nil
			if json.Unmarshal([]byte(text), &key) == nil && matches(m, key) {
				for field := range key {
					if value, there := m[field]; there {
						key[field] = value // JSON has another type of number
					}
				}
				return set, key
			}
		case kind == "v" && !isMap:
			if data, err := json.Marshal(element); err == nil && string(data) == text {
				return set, nil
			}
		}
	}
	return nil, nil
}

// keyDefaults are the fields of keys that the API server fills in: the element of a port without a protocol has the key with TCP.
var keyDefaults = map[string]any{"protocol": "TCP"}

// matches reports whether an element of a list has a key.
func matches(element, key map[string]any) bool {
	for field, want := range key {
		have, there := element[field]
		if !there {
			have = keyDefaults[field]
		}
		if fmt.Sprint(have) != fmt.Sprint(want) {
			return false
		}
	}
	return true
}
