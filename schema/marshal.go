package schema

import (
	"bytes"
	"encoding"
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/solutionctl/solutionctl/schema/report"
)

// Marshal writes the canonical YAML form: the same bytes for the same value.
func (s *Solution) Marshal() ([]byte, error) { return marshal(s) }

// Marshal writes the canonical YAML form: the same bytes for the same value.
func (b *SolutionBuild) Marshal() ([]byte, error) { return marshal(b) }

// Marshal writes the canonical YAML form: the same bytes for the same value. It refuses the older form, which would make
// MetalK8s unmount every archive; convert it with [SolutionsConfiguration.Flat] first.
func (c *SolutionsConfiguration) Marshal() ([]byte, error) {
	if c.IsOlder() {
		return nil, report.Errorf(report.Invalid, "write %s: it is in the older form, which MetalK8s does not read", KindSolutionsConfiguration)
	}
	return marshal(c)
}

// Marshal writes the canonical YAML form: the same bytes for the same value.
func (c *OperatorConfig) Marshal() ([]byte, error) { return marshal(c) }

// Marshal writes the canonical YAML form: the same bytes for the same value.
func (c *LoaderConfiguration) Marshal() ([]byte, error) { return marshal(c) }

// Marshal returns the document as YAML.
func (c *EnvironmentConfiguration) Marshal() ([]byte, error) { return marshal(c) }

// marshal writes fields in the order of the type and the keys of maps sorted by bytes.
func marshal(value any) ([]byte, error) {
	node, err := encode(reflect.ValueOf(value))
	if err != nil {
		return nil, err
	}
	return encodeNode(node)
}

func encodeNode(node *yaml.Node) ([]byte, error) {
	var b bytes.Buffer
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	if err := encoder.Encode(node); err != nil {
		return nil, fmt.Errorf("write YAML: %w", err)
	}
	if err := encoder.Close(); err != nil {
		return nil, fmt.Errorf("write YAML: %w", err)
	}
	return escapeInvisible(b.Bytes()), nil
}

func encode(v reflect.Value) (*yaml.Node, error) {
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if text, ok := reflect.TypeAssert[encoding.TextMarshaler](v); ok {
		data, err := text.MarshalText()
		return stringNode(string(data)), err
	}
	if wish, ok := reflect.TypeAssert[ComponentWish](v); ok && wish != ComponentDefault {
		return encode(reflect.ValueOf(wish == ComponentWanted))
	}
	switch v.Kind() {
	case reflect.Float64:
		return numberNode(v.Float()), nil
	case reflect.String:
		return stringNode(v.String()), nil
	case reflect.Bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(v.Bool())}, nil
	case reflect.Int:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.FormatInt(v.Int(), 10)}, nil
	case reflect.Interface:
		return encodeInterface(v)
	case reflect.Slice:
		return encodeSlice(v)
	case reflect.Map:
		return encodeMap(v)
	case reflect.Struct:
		return encodeStruct(v)
	default:
		return nil, fmt.Errorf("write YAML: type %s is not part of any document", v.Type())
	}
}

// numberNode writes a number of values without a schema, where all numbers are floats.
func numberNode(f float64) *yaml.Node {
	if f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.FormatFloat(f, 'f', -1, 64)}
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!float", Value: strconv.FormatFloat(f, 'g', -1, 64)}
}

func encodeSlice(v reflect.Value) (*yaml.Node, error) {
	node := &yaml.Node{Kind: yaml.SequenceNode}
	if v.Len() == 0 {
		node.Style = yaml.FlowStyle
	}
	for i := range v.Len() {
		item, err := encode(v.Index(i))
		if err != nil {
			return nil, err
		}
		node.Content = append(node.Content, item)
	}
	return node, nil
}

func encodeMap(v reflect.Value) (*yaml.Node, error) {
	node := &yaml.Node{Kind: yaml.MappingNode}
	if v.Len() == 0 {
		node.Style = yaml.FlowStyle
	}
	entries := map[string]*yaml.Node{}
	for iter := v.MapRange(); iter.Next(); {
		key, err := encode(iter.Key())
		if err != nil {
			return nil, err
		}
		if entries[key.Value], err = encode(iter.Value()); err != nil {
			return nil, err
		}
	}
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		node.Content = append(node.Content, stringNode(key), entries[key])
	}
	return node, nil
}

func encodeStruct(v reflect.Value) (*yaml.Node, error) {
	node := &yaml.Node{Kind: yaml.MappingNode}
	for _, field := range reflect.VisibleFields(v.Type()) {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		value := v.FieldByIndex(field.Index)
		if options == "omitempty" && isEmpty(value) || options == "omitzero" && value.IsZero() {
			continue
		}
		item, err := encode(value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		node.Content = append(node.Content, stringNode(name), item)
	}
	if len(node.Content) == 0 {
		node.Style = yaml.FlowStyle
	}
	return node, nil
}

// isEmpty reports whether encoding/json leaves out a field with omitempty.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map, reflect.String:
		return v.Len() == 0
	default:
		return v.IsZero()
	}
}

// stringNode returns a string, in quotes where a reader of YAML 1.1 or 1.2 would take it for something else.
func stringNode(s string) *yaml.Node {
	node := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	if yaml11(s) != "" || strings.ContainsFunc(s, isInvisible) {
		node.Style = yaml.DoubleQuotedStyle
	}
	return node
}

// isInvisible reports whether a character changes how others are shown, such as one that reverses the direction of text.
func isInvisible(r rune) bool { return unicode.Is(unicode.Cf, r) }

// escapeInvisible writes such characters as YAML has them in double quotes, where [stringNode] puts what has any.
func escapeInvisible(text []byte) []byte {
	if !bytes.ContainsFunc(text, isInvisible) {
		return text
	}
	var b bytes.Buffer
	for _, r := range string(text) {
		if isInvisible(r) {
			fmt.Fprintf(&b, `\U%08X`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.Bytes()
}

// yaml11Types are the plain scalars that YAML 1.1 takes for something other than a string, as PyYAML reads them. Compiling
// them would make every start of the program slower.
var yaml11Types = sync.OnceValue(func() []yaml11Type {
	return []yaml11Type{
		{"a boolean", regexp.MustCompile(`^(?:yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)$`)},
		{"a number", regexp.MustCompile(`^(?:[-+]?(?:[0-9][0-9_]*)\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?` +
			`|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$`)},
		{"a number", regexp.MustCompile(`^(?:[-+]?0b[0-1_]+|[-+]?0[0-7_]+|[-+]?(?:0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+` +
			`|[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+)$`)},
		{"a merge", regexp.MustCompile(`^<<$`)},
		{"null", regexp.MustCompile(`^(?:~|null|Null|NULL|)$`)},
		{"a timestamp", regexp.MustCompile(`^(?:[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{4}-[0-9][0-9]?-[0-9][0-9]?(?:[Tt]|[ \t]+)[0-9][0-9]?` +
			`:[0-9]{2}:[0-9]{2}(?:\.[0-9]*)?(?:[ \t]*(?:Z|[-+][0-9][0-9]?(?::[0-9]{2})?))?)$`)},
		{"a value", regexp.MustCompile(`^=$`)},
	}
})

type yaml11Type struct {
	name    string
	pattern *regexp.Regexp
}

// yaml11 returns the type of a plain scalar to a reader of YAML 1.1, "" for a string.
func yaml11(s string) string {
	for _, t := range yaml11Types() {
		if t.pattern.MatchString(s) {
			return t.name
		}
	}
	return ""
}

// JSONToYAML writes a JSON document as YAML, with its fields in the same order.
func JSONToYAML(data []byte) ([]byte, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(data, &document); err != nil { // JSON is YAML
		return nil, fmt.Errorf("read JSON: %w", err)
	}
	inBlocks(&document)
	return encodeNode(&document)
}

// inBlocks gives nodes the style of documents that people write. Empty lists and maps have no other than theirs.
func inBlocks(node *yaml.Node) {
	switch {
	case node.Kind == yaml.ScalarNode && node.Tag == "!!str":
		*node = *stringNode(node.Value)
	case len(node.Content) > 0 || node.Kind == yaml.ScalarNode:
		node.Style = 0
	}
	for _, child := range node.Content {
		inBlocks(child)
	}
}
