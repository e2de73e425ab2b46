package schema

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/solutionctl/solutionctl/schema/report"
)

// CheckYAML refuses text that would cost any parser of YAML too much; file is its name in the message.
func CheckYAML(file string, data []byte) error {
	_, _, err := SizeYAML(file, data)
	return err
}

// SizeYAML is [CheckYAML] that returns how many values text has at most, and bytes of keys and scalars, when aliases are replaced by what they
// stand for.
func SizeYAML(file string, data []byte) (values, text int, err error) {
	marks, line := countMarks(data)
	if line > 0 {
		return 0, 0, newInvalid([]report.Finding{tooManyMarks(file, line)})
	}
	values, text = marks, len(data)
	if hasAliases(data) {
		values, text = measureNodes(data)
	}
	if values > maxValues || text > maxText {
		return 0, 0, newInvalid([]report.Finding{{
			Rule: "yaml-size", Severity: report.SeverityError, Path: file, Hint: "write what aliases stand for once",
			Message: fmt.Sprintf("aliases make more than %d values or %d bytes of the file", maxValues, maxText),
		}})
	}
	return values, text, nil
}

func tooManyMarks(file string, line int) report.Finding {
	return report.Finding{
		Rule: "yaml-size", Severity: report.SeverityError, Path: file, Line: line, Hint: "write it as several files",
		Message: fmt.Sprintf("the file has more than %d keys, items, comments and documents", maxMarks),
	}
}

// hasAliases reports whether text may have an anchor and an alias, both where a value may begin.
func hasAliases(data []byte) bool {
	return hasSign(data, '&', func(before []byte) bool { // a tag may stand before an anchor
		return isBlank(before[len(before)-1]) || mayPrecedeValue(before)
	}) && hasSign(data, '*', func(before []byte) bool {
		before = bytes.TrimRight(before, " \t")
		return len(before) == 0 || mayPrecedeValue(before)
	})
}

// hasSign reports whether text has a sign that begins a word and follows a text that possible accepts.
func hasSign(data []byte, sign byte, possible func(before []byte) bool) bool {
	for from := 0; ; {
		i := bytes.IndexByte(data[from:], sign)
		if i < 0 {
			return false
		}
		i += from
		from = i + 1
		if from < len(data) && data[from] > ' ' && (i == 0 || possible(data[:i])) {
			return true
		}
	}
}

// mayPrecedeValue reports whether a text ends with a break, also one outside of ASCII, or with an indicator.
func mayPrecedeValue(text []byte) bool {
	last := text[len(text)-1]
	return last >= utf8.RuneSelf || bytes.IndexByte([]byte("\r\n[{,:-?"), last) >= 0
}

// measureNodes reads text for its size only. What is wrong with it is found by who reads it.
func measureNodes(data []byte) (values, text int) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var node yaml.Node
		if err := decoder.Decode(&node); err != nil {
			if errors.Is(err, io.EOF) {
				return values, text
			}
			return values, max(text, len(data))
		}
		s := yamlSizes{}.of(&node)
		values, text = min(values+s.values, limitOfSize), min(text+s.text, limitOfSize)
	}
}

// limitOfSize is where sizes end to grow.
const limitOfSize = 1 << 40

type yamlSize struct{ values, text int }

// yamlSizes maps the nodes that aliases refer to to their sizes.
type yamlSizes map[*yaml.Node]yamlSize

func (known yamlSizes) of(node *yaml.Node) yamlSize {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	s, ok := known[node]
	if ok {
		return s
	}
	if node.Anchor != "" {
		known[node] = yamlSize{} // it is in itself, which no reader takes
	}
	s = yamlSize{1, len(node.Value)}
	for _, child := range node.Content {
		inner := known.of(child)
		s.values, s.text = min(s.values+inner.values, limitOfSize), min(s.text+inner.text, limitOfSize)
	}
	if node.Anchor != "" {
		known[node] = s
	}
	return s
}
