// Package manifest takes files with Kubernetes objects apart and edits them: the rest keeps its text and its comments.
package manifest

import (
	"bytes"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/solutionctl/solutionctl/schema"
)

// WithoutField returns a YAML document without the field that a path leads to. The rest stays as it is written where the field has a line
// of its own; otherwise the document is written again. What others refer to moves to the first of them. A document without the field is
// returned as it is.
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
	text, ok := withoutLine(document, parent, key, value)
	parent.Content = append(parent.Content[:i], parent.Content[i+2:]...)
	if moved := moveAnchors(&root, key, value); ok && !moved {
		return text, nil
	}
	return encode(&root)
}

// moveAnchors moves what is removed to its first alias in the rest of a document, and reports whether there is one.
func moveAnchors(rest *yaml.Node, removed ...*yaml.Node) bool {
	anchored := map[*yaml.Node]bool{}
	walk(func(n *yaml.Node) { anchored[n] = n.Anchor != "" }, removed...)
	moved := false
	walk(func(n *yaml.Node) {
		if n.Kind == yaml.AliasNode && anchored[n.Alias] {
			delete(anchored, n.Alias) // further aliases refer to it by its name
			*n, moved = *n.Alias, true
		}
	}, rest)
	return moved
}

// walk visits nodes and what is in them.
func walk(visit func(*yaml.Node), nodes ...*yaml.Node) {
	for _, n := range nodes {
		visit(n)
		walk(visit, n.Content...)
	}
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

// Document is a piece of a YAML file with several documents.
type Document struct {
	Text  []byte
	Value map[string]any // nil when it is no mapping
}

// Parse cuts a file into its documents.
func Parse(name string, data []byte) ([]Document, error) {
	var documents []Document
	for _, text := range Split(data) {
		value, err := Value(name, text)
		if err != nil {
			return nil, err
		}
		documents = append(documents, Document{text, value})
	}
	return documents, nil
}

// Value reads the only document of a text; it is nil when that is no mapping.
func Value(name string, text []byte) (map[string]any, error) {
	documents, err := schema.ParseKubernetes(name, text)
	if err != nil || len(documents) == 0 {
		return nil, err
	}
	value, _ := documents[0].Value().(map[string]any)
	return value, nil
}

// Split cuts a file where a line begins with ---, and leaves out what is empty.
func Split(data []byte) [][]byte {
	data = bytes.ReplaceAll(bytes.TrimPrefix(data, []byte("\ufeff")), []byte("\r\n"), []byte("\n"))
	var pieces [][]byte
	var piece []byte
	for line := range bytes.Lines(data) {
		if bytes.HasPrefix(line, []byte("---")) {
			pieces, piece = append(pieces, piece), bytes.TrimLeft(line, "- \n")
			continue
		}
		piece = append(piece, line...)
	}
	pieces = append(pieces, piece)
	return slices.DeleteFunc(pieces, func(p []byte) bool { return len(bytes.TrimSpace(p)) == 0 })
}

// Join makes a file of documents.
func Join(documents []Document) []byte {
	var texts [][]byte
	for _, d := range documents {
		texts = append(texts, append(bytes.TrimRight(d.Text, "\n"), '\n'))
	}
	return bytes.Join(texts, []byte("---\n"))
}

// AddItems adds items, each a line in flow style such as {name: web}, to the list that a path leads to. The rest stays as it is written
// where each item has lines of its own; otherwise the document is written again. A document without the list is returned as it is.
func AddItems(document []byte, lines []string, path ...string) ([]byte, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(document, &root); err != nil {
		return document, err
	}
	list := listAt(&root, path)
	if list == nil {
		return document, nil
	}
	if text, ok := withLines(document, list, lines); ok {
		var changed yaml.Node
		if err := yaml.Unmarshal(text, &changed); err == nil {
			if longer := listAt(&changed, path); longer != nil && len(longer.Content) == len(list.Content)+len(lines) {
				return text, nil
			}
		}
	}
	for _, line := range lines {
		var item yaml.Node
		if err := yaml.Unmarshal([]byte(line), &item); err != nil {
			return nil, err
		}
		list.Content = append(list.Content, item.Content[0])
	}
	return encode(&root)
}

// listAt is the list that a path leads to, nil for none.
func listAt(root *yaml.Node, path []string) *yaml.Node {
	if len(root.Content) == 0 {
		return nil
	}
	list := root.Content[0]
	for _, step := range path {
		i := indexOf(list, step)
		if i < 0 {
			return nil
		}
		list = list.Content[i+1]
	}
	if list.Kind != yaml.SequenceNode {
		return nil
	}
	return list
}

// withLines adds items as lines behind those of a list's last item, if that begins a line.
func withLines(document []byte, list *yaml.Node, lines []string) ([]byte, bool) {
	if list.Style&yaml.FlowStyle != 0 || len(list.Content) == 0 {
		return nil, false
	}
	text := bytes.SplitAfter(document, []byte("\n"))
	last := list.Content[len(list.Content)-1]
	first := text[last.Line-1]
	dash := bytes.IndexByte(first, '-')
	if dash < 0 || len(bytes.TrimSpace(first[:dash])) > 0 {
		return nil, false
	}
	var added [][]byte
	for _, line := range lines {
		added = append(added, append(bytes.Clone(first[:dash]), "- "+line+"\n"...))
	}
	end := endOfItem(text, last.Line-1, dash)
	if before := text[end-1]; !bytes.HasSuffix(before, []byte("\n")) {
		text[end-1] = append(bytes.Clone(before), '\n')
	}
	return bytes.Join(slices.Concat(text[:end], added, text[end:]), nil), true
}

// endOfItem is the line behind a list's last item, which begins at a line with the dash in a column: everything below it is indented more,
// except for comments.
func endOfItem(lines [][]byte, first, dash int) int {
	end := first + 1
	for i := first + 1; i < len(lines); i++ {
		text := bytes.TrimLeft(lines[i], " ")
		switch {
		case len(bytes.TrimSpace(text)) == 0:
		case len(lines[i])-len(text) > dash:
			end = i + 1
		case text[0] != '#':
			return end
		}
	}
	return end
}

func encode(root *yaml.Node) ([]byte, error) {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(root); err != nil {
		return nil, err
	}
	return out.Bytes(), encoder.Close()
}
