package diff

import (
	"maps"
	"reflect"
	"slices"
)

// Operation is an operation of a JSON patch.
type Operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// Patch returns the operations that turn the content of an object into another one, each of a whole field of it or of its metadata.
func Patch(before, after map[string]any) []Operation { return patchAt("", before, after) }

func patchAt(at string, before, after map[string]any) (patch []Operation) {
	names := maps.Clone(before)
	maps.Copy(names, after)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		path := at + "/" + name
		value, is := after[name]
		if path == "/metadata" {
			was, _ := before[name].(map[string]any)
			fields, _ := value.(map[string]any)
			patch = append(patch, patchAt(path, was, fields)...)
		} else if !is {
			patch = append(patch, Operation{Op: "remove", Path: path})
		} else if !reflect.DeepEqual(before[name], value) {
			patch = append(patch, Operation{"add", path, value})
		}
	}
	return patch
}
