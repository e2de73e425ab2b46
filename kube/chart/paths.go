package chart

import (
	"iter"
	"maps"
	"slices"
	"strings"
)

// escapes are for keys in paths. A replacer prepares its table when it is used first.
var escapes = strings.NewReplacer(`\`, `\\`, ".", `\.`)

// joinKeys returns the path of a value of keys. A dot in a key has a backslash before it.
func joinKeys(keys ...string) string {
	escaped := make([]string, len(keys))
	for i, key := range keys {
		escaped[i] = escapes.Replace(key)
	}
	return strings.Join(escaped, ".")
}

// ValueAt returns the value at a path of keys joined by dots, with a backslash before a dot in a key, and whether it was set: with nothing
// but tables above it.
func ValueAt(values map[string]any, path string) (value any, set bool) {
	value = values
	for _, key := range SplitPath(path) {
		table, ok := value.(map[string]any)
		if !ok {
			return nil, false
		}
		if value, ok = table[key]; !ok {
			return nil, false
		}
	}
	return value, true
}

// Overrides reports whether values change the one at a path: they set it, one below it, or something else in place of a table around it.
func Overrides(values map[string]any, path string) bool {
	var value any = values
	for _, key := range SplitPath(path) {
		table, ok := value.(map[string]any)
		if !ok {
			return true
		}
		if value, ok = table[key]; !ok {
			return false
		}
	}
	return true
}

// Paths returns the paths of values, sorted. A table that is not empty has only those of the values in it.
func Paths(values map[string]any) (paths []string) {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		table, _ := values[key].(map[string]any)
		if len(table) == 0 {
			paths = append(paths, joinKeys(key))
		}
		for _, inner := range Paths(table) {
			paths = append(paths, joinKeys(key)+"."+inner)
		}
	}
	return paths
}

// IsWithin reports whether a path is that of a value, or of one in its table.
func IsWithin(path, table string) bool { return path == table || strings.HasPrefix(path, table+".") }

// TablesAround yields the paths of the tables that a path is within, the outermost first.
func TablesAround(path string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i, r := range path {
			if r == '.' && !yield(path[:i]) {
				return
			}
		}
	}
}

// SplitPath returns the keys of a path, in which a dot of a key has a backslash before it.
func SplitPath(path string) (keys []string) {
	var key strings.Builder
	escaped := false
	for _, r := range path {
		switch {
		case !escaped && r == '\\':
			escaped = true
			continue
		case !escaped && r == '.':
			keys = append(keys, key.String())
			key.Reset()
		default:
			key.WriteRune(r)
		}
		escaped = false
	}
	return append(keys, key.String())
}

// SetValue returns values with another one at a path, in place of anything but tables above it. The argument is not changed.
func SetValue(values map[string]any, path string, value any) map[string]any {
	keys := SplitPath(path)
	for _, key := range slices.Backward(keys) {
		value = map[string]any{key: value}
	}
	table, _ := value.(map[string]any)
	return setTable(values, table, len(keys))
}

// setTable is [MergeValues] down to a depth: what is below that is replaced.
func setTable(under, over map[string]any, depth int) map[string]any {
	result := copyValues(under)
	for key, value := range over {
		if table, ok := value.(map[string]any); ok && depth > 1 {
			below, _ := result[key].(map[string]any)
			value = setTable(below, table, depth-1)
		}
		result[key] = value
	}
	return result
}

// RemoveValue returns values without the one at a path, and without tables that are empty then. The argument is not changed.
func RemoveValue(values map[string]any, path string) map[string]any {
	return removeValue(values, SplitPath(path))
}

func removeValue(values map[string]any, keys []string) map[string]any {
	result := copyValues(values)
	table, isTable := result[keys[0]].(map[string]any)
	switch {
	case len(keys) == 1:
		delete(result, keys[0])
	case isTable:
		if inner := removeValue(table, keys[1:]); len(inner) > 0 {
			result[keys[0]] = inner
		} else {
			delete(result, keys[0])
		}
	}
	return result
}
