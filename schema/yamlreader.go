package schema

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/solutionctl/solutionctl/schema/report"
)

// yamlReader turns nodes into values and collects what is wrong with them.
type yamlReader struct {
	file   string
	above  int  // lines of the file above the text
	strict bool // no aliases, string keys only
	// kubernetes is true when scalars are read by YAML 1.1.
	kubernetes bool
	maxDepth   int
	values     int // of all documents, as text is
	text       int
	depth      int
	stopped    bool // what follows is not worth reading
	found      []report.Finding
}

func (r *yamlReader) fail(node *yaml.Node, rule, hint, format string, args ...any) {
	r.found = append(r.found, report.Finding{
		Rule: rule, Severity: report.SeverityError, Path: r.file, Line: node.Line, Column: node.Column,
		Message: fmt.Sprintf(format, args...), Hint: hint,
	})
}

// invalid returns the error of findings in the text.
func (r *yamlReader) invalid(found ...report.Finding) error {
	for i := range found {
		if found[i].Line > 0 {
			found[i].Line += r.above
		}
	}
	return newInvalid(found)
}

// read returns the value of a node. After the first problem that stops it, it returns nil for everything.
func (r *yamlReader) read(node *yaml.Node) any {
	if r.stopped || len(r.found) >= maxProblems {
		return nil
	}
	r.depth++
	defer func() { r.depth-- }()
	if r.depth > r.maxDepth {
		r.stop(node, "yaml-depth", "nested deeper than %d levels", r.maxDepth)
		return nil
	}
	if r.values++; r.values > maxValues {
		r.stop(node, "yaml-size", "the file has more than %d values", maxValues)
		return nil
	}
	if r.text += len(node.Value); r.text > maxText {
		r.stop(node, "yaml-size", "aliases make more than %d bytes of the file", maxText)
		return nil
	}
	switch node.Kind {
	case yaml.MappingNode:
		return r.mapping(node)
	case yaml.SequenceNode:
		list := make([]any, 0, len(node.Content))
		for _, item := range node.Content {
			list = append(list, r.read(item))
		}
		return list
	case yaml.AliasNode:
		if r.strict {
			r.fail(node, "yaml-alias", "write the value out", "alias *%s: aliases are not allowed in this document", node.Value)
			return nil
		}
		return r.read(node.Alias)
	default:
		return r.scalar(node)
	}
}

// stop reports a problem after which reading on would be a waste.
func (r *yamlReader) stop(node *yaml.Node, rule, format string, args ...any) {
	r.fail(node, rule, "", format, args...)
	r.stopped = true
}

func (r *yamlReader) mapping(node *yaml.Node) any {
	result := make(map[string]any, len(node.Content)/2)
	var merges []*yaml.Node
	for i := 0; i+1 < len(node.Content) && len(r.found) < maxProblems; i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if isMerge(key) && !r.strict {
			merges = append(merges, value)
			continue
		}
		name, ok := r.key(key)
		if !ok {
			continue
		}
		if _, twice := result[name]; twice {
			r.fail(key, "yaml-duplicate-key", duplicateHint(name), "key %q stands on line %d already", name, r.above+r.lineOf(node, name))
			continue
		}
		r.text += len(name)
		result[name] = r.read(value)
	}
	for _, merge := range merges {
		r.merge(result, merge)
	}
	return result
}

// duplicateHint returns the hint for a duplicate key. A key that every object begins with means that a separator between two
// objects is missing.
func duplicateHint(name string) string {
	if name == "apiVersion" || name == "kind" || name == "metadata" || name == "spec" {
		return "separate two objects by a line with ---, or keep one of them"
	}
	return "keep one of them"
}

// lineOf returns the line of the first key of a mapping that has a name.
func (r *yamlReader) lineOf(node *yaml.Node, name string) int {
	for i := 0; i < len(node.Content); i += 2 {
		key := node.Content[i]
		if (r.strict || !isMerge(key)) && r.keyText(key) == name {
			return key.Line
		}
	}
	return 0
}

func (r *yamlReader) key(key *yaml.Node) (string, bool) {
	if !r.strict {
		key = aliased(key)
	}
	if key.Kind != yaml.ScalarNode {
		r.fail(key, "yaml-key", "", "a key is not a string")
		return "", false
	}
	if r.strict && key.ShortTag() != "!!str" {
		r.fail(key, "yaml-key", fmt.Sprintf("write %q in quotes", key.Value), "key %s is %s, not a string", key.Value, tagName(key.ShortTag()))
		return "", false
	}
	return r.keyText(key), true
}

func (r *yamlReader) keyText(key *yaml.Node) string {
	key = aliased(key)
	if value, ok := r.boolean(key); ok {
		return strconv.FormatBool(value)
	}
	return key.Value
}

func aliased(node *yaml.Node) *yaml.Node {
	for node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	return node
}

// boolean reads what only YAML 1.1 takes for a boolean.
func (r *yamlReader) boolean(node *yaml.Node) (value, ok bool) {
	if !r.kubernetes || node.Style != 0 {
		return false, false
	}
	switch node.Value {
	case "y", "Y", "yes", "Yes", "YES", "on", "On", "ON":
		return true, true
	case "n", "N", "no", "No", "NO", "off", "Off", "OFF":
		return false, true
	}
	return false, false
}

// merge adds what << brings; keys that are there stay as they are.
func (r *yamlReader) merge(into map[string]any, node *yaml.Node) {
	value := r.read(node)
	objects, isList := value.([]any)
	if !isList {
		objects = []any{value}
	}
	for _, item := range objects {
		object, _ := item.(map[string]any)
		for k, v := range object {
			if _, there := into[k]; !there {
				into[k] = v
			}
		}
	}
}

func (r *yamlReader) scalar(node *yaml.Node) any {
	if value, ok := r.boolean(node); ok {
		return value
	}
	switch tag := node.ShortTag(); tag {
	case "!!str", "!!timestamp":
		return node.Value
	case "!!null", "!!bool", "!!int", "!!float":
		var value any
		if err := node.Decode(&value); err != nil {
			r.fail(node, "yaml-value", "", "%q is not %s", node.Value, tagName(tag))
			return nil
		}
		if f, ok := value.(float64); ok && (math.IsNaN(f) || math.IsInf(f, 0)) {
			r.fail(node, "yaml-value", "", "%s is not a number that JSON can hold", node.Value)
			return nil
		}
		return value
	default:
		r.fail(node, "yaml-tag", "remove the tag", "tag %s is not supported", tag)
		return nil
	}
}

// tagName returns in words the type that YAML gives a scalar.
func tagName(tag string) string {
	switch tag {
	case "!!null":
		return "null"
	case "!!bool":
		return "a boolean"
	case "!!int", "!!float":
		return "a number"
	case "!!timestamp":
		return "a timestamp"
	default:
		return "of type " + strings.TrimPrefix(tag, "!!")
	}
}
