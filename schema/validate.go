package schema

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/solutionctl/solutionctl/schema/lazyregexp"
	"github.com/solutionctl/solutionctl/schema/report"
)

// compiled is a JSON Schema that is ready for use, with every schema in it by location.
type compiled struct {
	root       *jsonschema.Schema
	byLocation map[string]*jsonschema.Schema
}

// compile returns a function that compiles the schema of a kind when it is first called, because that takes longer than everything
// else in the package.
func compile(kind string) func() compiled {
	return sync.OnceValue(func() compiled {
		c := compiled{root: mustCompile(schemaFile(kind)), byLocation: map[string]*jsonschema.Schema{}}
		index(c.root, c.byLocation)
		return c
	})
}

// schemaURL is the beginning of the $id of every JSON Schema. Nothing is ever fetched from there.
const schemaURL = "https://solutionctl.io/schema/v1alpha1/"

// embedded loads schemas, and what they refer to, from [Files] and from nowhere else.
type embedded struct{}

func (embedded) Load(url string) (any, error) {
	data, err := Files.ReadFile(strings.TrimPrefix(url, schemaURL))
	if err != nil {
		return nil, err
	}
	return jsonschema.UnmarshalJSON(bytes.NewReader(data))
}

// mustCompile compiles an embedded schema; one that does not compile is a mistake in the program. Its patterns are compiled when a text is
// compared with them: most documents need few.
func mustCompile(file string) *jsonschema.Schema {
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(embedded{})
	compiler.UseRegexpEngine(func(text string) (jsonschema.Regexp, error) { return lazyregexp.New(text), nil })
	compiler.AssertFormat()
	return compiler.MustCompile(schemaURL + file)
}

// index records a schema and those below it.
func index(s *jsonschema.Schema, byLocation map[string]*jsonschema.Schema) {
	if s == nil || byLocation[s.Location] != nil {
		return
	}
	byLocation[s.Location] = s
	index(s.Ref, byLocation)
	index(s.PropertyNames, byLocation)
	index(s.Items2020, byLocation)
	if additional, ok := s.AdditionalProperties.(*jsonschema.Schema); ok {
		index(additional, byLocation)
	}
	for _, property := range s.Properties {
		index(property, byLocation)
	}
}

// target follows references to the schema with the constraints.
func target(s *jsonschema.Schema) *jsonschema.Schema {
	for s.Ref != nil {
		s = s.Ref
	}
	return s
}

// maxFindings bounds the work that a document with a problem on every line can cause.
const maxFindings = 200

// checker judges one document.
type checker struct {
	doc      *Document
	row      document
	pruned   any // the document without unknown fields and nulls
	findings []report.Finding
}

// run fills findings: the schema first, then what a schema cannot express.
func (c *checker) run() {
	defer func() { report.SortFindings(c.findings) }()
	if !c.checkKind() {
		return
	}
	s := c.row.schema().root
	c.pruned = c.prune(c.doc.Value(), s, nil)
	if failure, ok := errors.AsType[*jsonschema.ValidationError](s.Validate(c.pruned)); ok {
		c.translate(failure)
	}
	c.row.check(c)
	if c.row.salt {
		c.checkYAML11()
	}
}

// checkKind makes sure that the document claims to be what the caller wants; judging it further would only confuse.
func (c *checker) checkKind() bool {
	object, ok := c.doc.Value().(map[string]any)
	if !ok {
		c.add(report.SeverityError, "wrong-type", nil, "", "want a document of kind %s, got %s", c.row.kind, typeName(c.doc.Value()))
		return false
	}
	if found, ok := object["kind"].(string); ok && found != c.row.kind {
		c.add(report.SeverityError, "wrong-kind", []string{"kind"}, "", "want %q, got %q", c.row.kind, found)
		return false
	}
	if found, ok := object["apiVersion"].(string); ok && !slices.Contains(c.row.apiVersions, found) {
		c.add(report.SeverityError, "wrong-kind", []string{"apiVersion"}, "", "want %q, got %q", c.row.apiVersions[0], found)
		return false
	}
	return true
}

// add records a finding at the value of path.
func (c *checker) add(severity report.Severity, rule string, path []string, hint, format string, args ...any) {
	line, column := c.doc.Lookup(path...)
	c.addAt(line, column, severity, rule, path, hint, format, args...)
}

// addKey records a finding at the key that ends path.
func (c *checker) addKey(severity report.Severity, rule string, path []string, hint, format string, args ...any) {
	line, column := c.doc.LookupKey(path...)
	c.addAt(line, column, severity, rule, path, hint, format, args...)
}

func (c *checker) addAt(line, column int, severity report.Severity, rule string, path []string, hint, format string, args ...any) {
	if len(c.findings) >= maxFindings {
		return
	}
	file := c.doc.file
	if source := c.doc.settingOf(path); source != "" {
		file, line, column = source, 0, 0
	}
	c.findings = append(c.findings, report.Finding{
		Rule: rule, Severity: severity, Path: file, Line: line, Column: column,
		Object: pathText(path), Message: fmt.Sprintf(format, args...), Hint: hint,
	})
}

// reported reports whether the value at path, or a value in it, already has an error.
func (c *checker) reported(path []string) bool {
	text := pathText(path)
	return slices.ContainsFunc(c.findings, func(f report.Finding) bool {
		rest, ok := strings.CutPrefix(f.Object, text)
		return f.Severity == report.SeverityError && ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

// prune returns a copy of value without the fields that the schema does not know, which it reports, and without nulls,
// which Kubernetes takes for absent. An object of any content, such as the values of a chart, keeps them.
func (c *checker) prune(value any, s *jsonschema.Schema, path []string) any {
	s = target(s)
	switch value := value.(type) {
	case map[string]any:
		if s.Properties == nil && s.AdditionalProperties == nil {
			return value
		}
		kept := make(map[string]any, len(value))
		for _, key := range slices.Sorted(maps.Keys(value)) {
			at := append(slices.Clone(path), key)
			property, known := s.Properties[key]
			if additional, ok := s.AdditionalProperties.(*jsonschema.Schema); ok && !known {
				property, known = additional, true
			}
			c.checkKey(at, s)
			switch {
			case !known && s.AdditionalProperties == false:
				c.unknownField(at, s)
			case value[key] == nil && slices.Contains(s.Required, key):
				c.addKey(report.SeverityError, "missing-field", at, "", "has no value")
			case value[key] == nil:
			case known:
				kept[key] = c.prune(value[key], property, at)
			default:
				kept[key] = value[key]
			}
		}
		return kept
	case []any:
		if s.Items2020 == nil {
			return value
		}
		kept := make([]any, len(value))
		for i, item := range value {
			kept[i] = c.prune(item, s.Items2020, append(slices.Clone(path), strconv.Itoa(i)))
		}
		return kept
	default:
		return value
	}
}
