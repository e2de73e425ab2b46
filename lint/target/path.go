package target

import "strings"

// SplitPath splits a path such as spec.containers[0].image or metadata.labels[app.kubernetes.io/name]. The part after
// an embedded document ("data[a.yaml]: spec.image") is left out.
func SplitPath(path string) []string {
	path, _, _ = strings.Cut(path, "]: ")
	var steps []string
	for path != "" {
		switch i := strings.IndexAny(path, ".["); {
		case i < 0:
			return append(steps, strings.TrimSuffix(path, "]"))
		case path[i] == '.':
			steps, path = appendStep(steps, path[:i]), path[i+1:]
		default:
			steps, path = appendStep(steps, path[:i]), path[i+1:]
			key, rest, _ := strings.Cut(path, "]")
			steps, path = append(steps, strings.Trim(key, `"'`)), rest
		}
	}
	return steps
}

// appendStep skips an empty step: between a closing bracket and the dot after it.
func appendStep(steps []string, step string) []string {
	if step == "" {
		return steps
	}
	return append(steps, step)
}
