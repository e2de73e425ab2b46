package scaffold

import (
	"bytes"
	"strings"

	"go.yaml.in/yaml/v3"
)

// WithoutField returns a YAML document without the field that a path leads to. The rest stays as it is written where the field has a line
// of its own; otherwise the document is written anew. A document without the field is returned as it is.
func WithoutField(document []byte, path ...string) ([]byte, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(document, &root); err != nil || len(root.Content) == 0 {
		return document, err
	}
	parent := root.Content[0]
	for _, step := range path[:len(path)-1] {
		i := indexOf(parent, step)
		if i < 0 {
			return document, nil
		}
		parent = parent.Content[i+1]
	}
	i := indexOf(parent, path[len(path)-1])
	if i < 0 {
		return document, nil
	}
	key, value := parent.Content[i], parent.Content[i+1]
	if text, ok := withoutLine(document, parent, key, value); ok {
		return text, nil
	}
	parent.Content = append(parent.Content[:i], parent.Content[i+2:]...)
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(&root); err != nil {
		return nil, err
	}
	return out.Bytes(), encoder.Close()
}

// indexOf is the position of a field's key in a mapping, -1 when there is none.
func indexOf(mapping *yaml.Node, key string) int {
	if mapping.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(mapping.Content); i += 2 {
			if mapping.Content[i].Value == key {
				return i
			}
		}
	}
	return -1
}

// withoutLine removes the line of a field that has one, in a mapping with others.
func withoutLine(document []byte, parent, key, value *yaml.Node) ([]byte, bool) {
	lines := bytes.SplitAfter(document, []byte("\n"))
	at := key.Line - 1
	simple := parent.Style&yaml.FlowStyle == 0 && len(parent.Content) > 2 && value.Kind == yaml.ScalarNode && value.Line == key.Line &&
		value.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0
	if !simple || at >= len(lines) {
		return nil, false
	}
	line := strings.TrimSpace(string(lines[at]))
	if !strings.HasPrefix(line, key.Value) || !strings.Contains(line, value.Value) {
		return nil, false
	}
	return bytes.Join(append(lines[:at:at], lines[at+1:]...), nil), true
}
