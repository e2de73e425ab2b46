package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/solutionctl/solutionctl/schema/lazyregexp"
	"github.com/solutionctl/solutionctl/schema/report"
)

// The limits of a YAML file. They are far above what people write and far below what hurts.
const (
	MaxSize  = 4 << 20
	MaxDepth = 64
	// maxMarks bounds what the YAML library makes nodes of, before it does: it needs microseconds and hundreds of bytes for
	// each. The largest definitions and dashboards stay far below.
	maxMarks = 150_000
	// documentMarks is the cost of a document: each is an object for all that read the file.
	documentMarks = 10
	// directiveMarks is the cost of a line that may be a directive: the library compares each with all earlier ones.
	directiveMarks = 100
	// maxValues and maxText bound the values of a file, and the bytes of its keys and scalars, after aliases were
	// replaced by what they stand for.
	maxValues = 500_000
	maxText   = 4 * MaxSize
	// keepNodes is the size of the largest file whose nodes are kept: they are an order of magnitude larger than the text.
	keepNodes = 16 << 10
	// maxObjectDepth is for Kubernetes objects: a definition with a pod template in its schema has about 60 levels.
	maxObjectDepth = 256
)

// Document is one YAML document that remembers where everything in it stands.
//
// A path into it is a list of keys and decimal indices: "spec", "images", "0".
type Document struct {
	file     string
	source   *source
	index    int // in the source
	value    any
	settings []Setting // what replaced parts of the file
}

// source is a file, and its nodes while they are needed. Those of a large file are parsed again for each position that is
// looked up.
type source struct {
	data   []byte
	above  int // lines that the file has above the data
	once   sync.Once
	nodes  []*yaml.Node
	places [][2]int // lines and columns of the documents
}

func (s *source) add(node *yaml.Node) {
	s.places = append(s.places, [2]int{node.Line, node.Column})
	if len(s.data) <= keepNodes {
		s.nodes = append(s.nodes, node)
	}
}

func (s *source) node(i int) *yaml.Node {
	s.once.Do(func() {
		decoder := yaml.NewDecoder(bytes.NewReader(s.data))
		for len(s.nodes) < len(s.places) {
			var node yaml.Node
			if err := decoder.Decode(&node); err != nil {
				break // the data was changed
			}
			s.nodes = append(s.nodes, node.Content[0])
		}
	})
	if i >= len(s.nodes) {
		return &yaml.Node{Line: s.places[i][0], Column: s.places[i][1]}
	}
	return s.nodes[i]
}

// Release drops the values of documents of one file, for callers that keep the documents only for places: [Document.Lookup] reads the file again.
// It must not run beside another method of these documents.
func Release(documents []*Document) {
	for _, d := range documents {
		d.value = nil
		d.source.nodes, d.source.once = nil, sync.Once{}
	}
}

func (d *Document) root() *yaml.Node { return d.source.node(d.index) }

// ParseYAML reads every document of a file; file is its name in messages. Documents without content are there, with a
// nil value. Aliases and merge keys are replaced by what they stand for, and keys that are not strings by their text.
// Any error is a [report.Invalid] that [Problems] takes apart. The data must not be changed while the documents are used.
func ParseYAML(file string, data []byte) ([]*Document, error) {
	return parseYAML(data, &yamlReader{file: file, maxDepth: MaxDepth})
}

// ParseKubernetes is [ParseYAML] for Kubernetes objects. It reads scalars as Kubernetes does, by YAML 1.1, so that yes
// and off are booleans, and allows for the depth of the schemas in CustomResourceDefinitions.
func ParseKubernetes(file string, data []byte) ([]*Document, error) {
	return parseYAML(data, &yamlReader{file: file, maxDepth: maxObjectDepth, kubernetes: true})
}

// ParseKubernetesAt is [ParseKubernetes] for a part of a file that begins at a line. Positions refer to the file.
func ParseKubernetesAt(file string, line int, data []byte) ([]*Document, error) {
	return parseYAML(data, &yamlReader{file: file, above: line - 1, maxDepth: maxObjectDepth, kubernetes: true})
}

// ReadDocument reads the only document of a file that has content into a value, by its JSON, with the scalars of Kubernetes. A file without one
// leaves the value as it is.
func ReadDocument(file string, data []byte, into any) error {
	documents, err := ParseKubernetes(file, data)
	documents = slices.DeleteFunc(documents, func(d *Document) bool { return d.value == nil })
	if err != nil || len(documents) == 0 {
		return err
	}
	if len(documents) > 1 {
		return report.Errorf(report.Invalid, "%s: there are %d documents, and only one is read", file, len(documents))
	}
	if data, err = documents[0].JSON(); err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		return report.Errorf(report.Invalid, "%s: %w", file, err)
	}
	return nil
}

// File returns the name that messages about the document carry.
func (d *Document) File() string { return d.file }

// Value returns the content: nil, bool, string, int, int64, uint64, float64, []any or map[string]any. Timestamps are
// strings as they were written. The caller must not change it.
func (d *Document) Value() any { return d.value }

// JSON returns the content as JSON, for types that decode it.
func (d *Document) JSON() ([]byte, error) { return json.Marshal(d.value) }

// Lookup returns the position of the value at path, or of the nearest value around it when there is none.
func (d *Document) Lookup(path ...string) (line, column int) {
	if len(path) == 0 {
		at := d.source.places[d.index]
		return d.source.above + at[0], at[1]
	}
	node, _ := d.nearest(path)
	return d.source.above + node.Line, node.Column
}

// LookupKey returns the position of the key that ends path; without such a key, that of [Document.Lookup].
func (d *Document) LookupKey(path ...string) (line, column int) {
	if len(path) == 0 {
		return d.Lookup()
	}
	around, last := path[:len(path)-1], path[len(path)-1]
	if object, ok := d.nearest(around); ok {
		if key, _ := child(object, last); key != nil {
			return d.source.above + key.Line, key.Column
		}
	}
	return d.Lookup(path...)
}

// SourceText returns a scalar as it was written.
func (d *Document) SourceText(path ...string) string {
	if node, ok := d.nearest(path); ok {
		return node.Value
	}
	return ""
}

// nearest returns the node at path, or the nearest one around it when there is none.
func (d *Document) nearest(path []string) (node *yaml.Node, ok bool) {
	node = d.root()
	for _, step := range path {
		_, value := child(node, step)
		if value == nil {
			return node, false
		}
		node = value
	}
	return node, true
}

// child finds a key or an index in a node, through aliases and merge keys; key is nil in a sequence.
func child(node *yaml.Node, step string) (key, value *yaml.Node) {
	node = aliased(node)
	switch node.Kind {
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(node.Content) {
			return nil, node.Content[i]
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			if !isMerge(node.Content[i]) && node.Content[i].Value == step {
				return node.Content[i], node.Content[i+1]
			}
		}
		for i := 0; i+1 < len(node.Content); i += 2 {
			if isMerge(node.Content[i]) {
				if key, value := child(node.Content[i+1], step); value != nil {
					return key, value
				}
			}
		}
	}
	return nil, nil
}

func isMerge(key *yaml.Node) bool {
	return key.Value == "<<" && key.Kind == yaml.ScalarNode && key.ShortTag() == "!!merge" // the tag takes long to find
}

// pathText writes a path for a person: spec.images[1].tag.
func pathText(path []string) string {
	var b strings.Builder
	for _, step := range path {
		switch _, err := strconv.Atoi(step); {
		case err == nil && b.Len() > 0:
			b.WriteString("[" + step + "]")
		case b.Len() > 0:
			b.WriteString("." + step)
		default:
			b.WriteString(step)
		}
	}
	return b.String()
}

// parseYAML reads every document with the options of a reader.
func parseYAML(data []byte, options *yamlReader) ([]*Document, error) {
	file, r := options.file, *options
	if problem := checkEncoding(file, data); problem != nil {
		return nil, r.invalid(*problem)
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if _, line := countMarks(data); line > 0 {
		return nil, r.invalid(tooManyMarks(file, line))
	}
	var documents []*Document
	text := &source{data: data, above: r.above}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var node yaml.Node
		err := decoder.Decode(&node)
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		if err != nil {
			return nil, r.invalid(syntaxFinding(file, err))
		}
		document := &Document{file: file, source: text, index: len(documents)}
		text.add(node.Content[0])
		document.value = r.read(node.Content[0])
		if len(r.found) > 0 {
			return nil, r.invalid(r.found...)
		}
		documents = append(documents, document)
	}
}

// countMarks returns how many marks text has, and the line of the first mark too many, 0 when there are few enough.
//
// A mark is a character that every item, key, document or comment of YAML needs. It counts in text, too: only a parser can
// distinguish text from structure, and a mistake here could be exploited.
func countMarks(data []byte) (marks, line int) {
	directives := 0
	for i, c := range data {
		if !mayBeMark[c] {
			continue
		}
		before, after := byte('\n'), byte('\n')
		if i > 0 {
			before = data[i-1]
		}
		if i+1 < len(data) {
			after = data[i+1]
		}
		switch {
		case isMark(before, c, after):
			marks++
			if separatesDocuments(data, i) {
				marks += documentMarks - 1
			}
		case c == '%' && startsLine(data[:i]):
			directives += directiveMarks
		}
		if marks+directives > maxMarks {
			return marks, 1 + bytes.Count(data[:i], []byte("\n"))
		}
	}
	return marks, 0
}

// mayBeMark has the bytes that marks consist of.
var mayBeMark = [256]bool{',': true, '[': true, '{': true, '-': true, '?': true, ':': true, '.': true, '%': true, '#': true}

func isMark(before, c, after byte) bool {
	switch c {
	case ',', '[', '{':
		return true
	case '-', '?':
		return isBlank(after)
	case ':':
		return isBlank(after) || before == '"' || before == '\'' || strings.IndexByte(",[]{}", after) >= 0
	case '.': // the end of a document
		return before == '\n' || before == '\r' || before >= utf8.RuneSelf
	case '#': // a comment, which the library keeps beside three nodes
		return isBlank(before)
	}
	return false
}

// separatesDocuments reports whether the mark at i is part of the line that ends or begins a document.
func separatesDocuments(data []byte, i int) bool {
	switch data[i] {
	case '-':
		return i >= 2 && data[i-1] == '-' && data[i-2] == '-' && startsLine(data[:i-2])
	case '.':
		return bytes.HasPrefix(data[i:], []byte("..."))
	}
	return false
}

// startsLine reports whether the text ends with a line break of YAML 1.1.
func startsLine(text []byte) bool {
	last, _ := utf8.DecodeLastRune(text)
	return len(text) == 0 || strings.ContainsRune("\n\r\u0085\u2028\u2029\ufeff", last)
}

// isBlank is true of white space, and of the first byte of the breaks outside of ASCII.
func isBlank(c byte) bool { return c <= ' ' || c >= utf8.RuneSelf }

func checkEncoding(file string, data []byte) *report.Finding {
	finding := report.Finding{Severity: report.SeverityError, Path: file}
	switch {
	case len(data) > MaxSize:
		finding.Rule, finding.Message = "yaml-size", fmt.Sprintf("the file has more than %d bytes", MaxSize)
	case bytes.HasPrefix(data, []byte("\xff\xfe")), bytes.HasPrefix(data, []byte("\xfe\xff")):
		finding.Rule, finding.Message, finding.Hint = "yaml-encoding", "the file is UTF-16", "save it as UTF-8"
	case !utf8.Valid(data):
		finding.Rule, finding.Message, finding.Hint = "yaml-encoding", "the file is not UTF-8", "save it as UTF-8"
		finding.Line = 1 + bytes.Count(data[:invalidUTF8(data)], []byte("\n"))
	default:
		return nil
	}
	return &finding
}

// invalidUTF8 returns the offset of the first byte that is not UTF-8.
func invalidUTF8(data []byte) int {
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size <= 1 {
			return i
		}
		i += size
	}
	return len(data)
}

var yamlErrorLine = lazyregexp.New(`^(?:yaml: )?(?:line (\d+): )?`)

// yamlParserError matches the errors of the parser, as opposed to those of the scanner below it.
var yamlParserError = lazyregexp.New(`did not find expected (?:<|node content|'-' indicator|key|',' or)`)

// syntaxFinding keeps the line that the YAML parser names and drops its prefix.
func syntaxFinding(file string, err error) report.Finding {
	text := err.Error()
	match := yamlErrorLine.FindStringSubmatch(text)
	line, _ := strconv.Atoi(match[1]) // no line is line 0
	if yamlParserError.MatchString(text) {
		line++ // the library numbers the lines of these errors from 0
	}
	return report.Finding{
		Rule: "yaml-syntax", Severity: report.SeverityError, Path: file, Line: line,
		Message: "not YAML: " + strings.TrimPrefix(text, match[0]),
	}
}
