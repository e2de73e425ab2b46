package schema

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/solutionctl/solutionctl/schema/report"
)

// Setting overrides one value of a document before it is judged.
type Setting struct {
	// Path is a list of keys and decimal indices; an index equal to the length of a list appends to it.
	Path []string
	// Value is the text itself where the document wants a string, else YAML.
	Value string
	// Source stands in place of the file name in messages about the value, such as "--version".
	Source string
}

// ParseSetting reads "spec.images[0].tag=1.0.0". A dot that is part of a key is written "\."; a list is also indexed as
// in "spec.images.0.tag".
func ParseSetting(source, s string) (Setting, error) {
	left, value, found := strings.Cut(s, "=")
	if !found || left == "" {
		return Setting{}, report.Errorf(report.Usage, "%s %q is not path=value", source, s).
			WithHint("write it as %s spec.version=1.0.0", source)
	}
	var path []string
	var step strings.Builder
	for i := 0; i < len(left); i++ {
		switch ch := left[i]; {
		case ch == '\\' && i+1 < len(left):
			i++
			step.WriteByte(left[i])
		case ch == '.' || ch == '[':
			path = append(path, step.String())
			step.Reset()
		case ch == ']' && (i+1 == len(left) || left[i+1] == '.' || left[i+1] == '['):
		default:
			step.WriteByte(ch)
		}
	}
	path = append(path, step.String())
	if slices.Contains(path, "") {
		return Setting{}, report.Errorf(report.Usage, "%s %q: the path has an empty part", source, s)
	}
	return Setting{Path: path, Value: value, Source: source}, nil
}

// apply puts the setting into the document.
func (d *Document) apply(s Setting, root *jsonschema.Schema) error {
	value, err := s.value(root)
	if err != nil {
		return err
	}
	replaced, ok := replace(d.value, s.Path, value)
	if !ok {
		return report.Errorf(report.Usage, "%s: there is no place %s in %s", s.Source, pathText(s.Path), d.file)
	}
	d.value = replaced
	d.settings = append(d.settings, s)
	return nil
}

// value reads the text by what the schema wants at the path.
func (s Setting) value(root *jsonschema.Schema) (any, error) {
	wanted := schemaAt(root, s.Path)
	if wanted != nil && wanted.Types != nil && slices.Contains(wanted.Types.ToStrings(), "string") {
		return s.Value, nil
	}
	documents, err := parseYAML([]byte(s.Value), &yamlReader{file: s.Source, strict: true, maxDepth: MaxDepth})
	if err != nil {
		return nil, report.Errorf(report.Usage, "%s: %s: %s", s.Source, pathText(s.Path), Problems(err)[0].Message)
	}
	if len(documents) != 1 {
		return nil, nil // the empty text is the empty value
	}
	return documents[0].Value(), nil
}

// schemaAt returns the schema of the value at path, nil when the schema does not know it.
func schemaAt(s *jsonschema.Schema, path []string) *jsonschema.Schema {
	for _, step := range path {
		s = target(s)
		property := s.Properties[step]
		if additional, ok := s.AdditionalProperties.(*jsonschema.Schema); ok && property == nil {
			property = additional
		}
		if s.Items2020 != nil {
			property = s.Items2020
		}
		if property == nil {
			return nil
		}
		s = property
	}
	return target(s)
}

// replace returns a copy of value in which path has another value; it reports false where a list has no such index or
// something that is neither list nor object is in the way.
func replace(value any, path []string, with any) (any, bool) {
	if len(path) == 0 {
		return with, true
	}
	switch value := value.(type) {
	case nil:
		if path[0] == "0" {
			return replace([]any{}, path, with)
		}
		return replace(map[string]any{}, path, with)
	case map[string]any:
		inner, ok := replace(value[path[0]], path[1:], with)
		changed := maps.Clone(value)
		changed[path[0]] = inner
		return changed, ok
	case []any:
		i, err := strconv.Atoi(path[0])
		if err != nil || i < 0 || i > len(value) {
			return nil, false
		}
		changed := append(slices.Clone(value), nil)[:max(len(value), i+1)]
		inner, ok := replace(changed[i], path[1:], with)
		changed[i] = inner
		return changed, ok
	default:
		return nil, false
	}
}

// settingOf returns the source of the last setting that put the value at path there, "" when the file did.
func (d *Document) settingOf(path []string) string {
	for _, s := range slices.Backward(d.settings) {
		if len(path) >= len(s.Path) && slices.Equal(path[:len(s.Path)], s.Path) {
			return s.Source
		}
	}
	return ""
}
