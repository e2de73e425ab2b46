package schema

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/solutionctl/solutionctl/schema/report"
)

// schemas are the compiled JSON Schemas by file, and every schema in them by location. They are compiled once, when
// first needed, because that takes longer than everything else in the package.
var schemas = sync.OnceValues(func() (byFile, byLocation map[string]*jsonschema.Schema) {
	byFile, byLocation = map[string]*jsonschema.Schema{}, map[string]*jsonschema.Schema{}
	for _, d := range documents {
		byFile[d.file] = mustCompile(d.file)
		index(byFile[d.file], byLocation)
	}
	return byFile, byLocation
})

// mustCompile compiles an embedded schema; one that does not compile is a mistake in the program.
func mustCompile(file string) *jsonschema.Schema {
	data, err := Files.ReadFile(file)
	if err != nil {
		panic(err)
	}
	content, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		panic(fmt.Sprintf("schema: %s: %v", file, err))
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	location := "https://solutionctl.io/schema/v1alpha1/" + file
	if err := compiler.AddResource(location, content); err != nil {
		panic(fmt.Sprintf("schema: %s: %v", file, err))
	}
	return compiler.MustCompile(location)
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

// target follows references to the schema that says something.
func target(s *jsonschema.Schema) *jsonschema.Schema {
	for s.Ref != nil {
		s = s.Ref
	}
	return s
}

// checker judges one document.
type checker struct {
	doc      *Document
	row      document
	pruned   any // the document without unknown fields and nulls
	findings []report.Finding
}

// run fills findings. The checks beyond the schema run only on documents that decode.
func (c *checker) run() {
	defer func() { report.SortFindings(c.findings) }()
	if !c.checkKind() {
		return
	}
	byFile, _ := schemas()
	s := byFile[c.row.file]
	c.pruned = c.prune(c.doc.Value(), s, nil)
	var failure *jsonschema.ValidationError
	if errors.As(s.Validate(c.pruned), &failure) {
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
	c.findings = append(c.findings, report.Finding{
		Rule: rule, Severity: severity, Path: c.doc.file, Line: line, Column: column,
		Object: pathText(path), Message: fmt.Sprintf(format, args...), Hint: hint,
	})
}

// reported tells whether an error is known for the value at path or for something in it.
func (c *checker) reported(path []string) bool {
	text := pathText(path)
	return slices.ContainsFunc(c.findings, func(f report.Finding) bool {
		rest, ok := strings.CutPrefix(f.Object, text)
		return f.Severity == report.SeverityError && ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

// prune returns a copy of value without the fields that the schema does not know, which it reports, and without nulls,
// which Kubernetes takes for absent.
func (c *checker) prune(value any, s *jsonschema.Schema, path []string) any {
	s = target(s)
	switch value := value.(type) {
	case map[string]any:
		kept := make(map[string]any, len(value))
		for _, key := range slices.Sorted(maps.Keys(value)) {
			at := append(slices.Clone(path), key)
			property, known := s.Properties[key]
			if additional, ok := s.AdditionalProperties.(*jsonschema.Schema); ok && !known {
				property, known = additional, true
			}
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
			kept[i] = c.prune(item, s.Items2020, append(slices.Clone(path), fmt.Sprint(i)))
		}
		return kept
	default:
		return value
	}
}

func (c *checker) unknownField(path []string, s *jsonschema.Schema) {
	severity := report.SeverityError
	if c.row.foreign {
		severity = report.SeverityWarning
	}
	known := slices.Sorted(maps.Keys(s.Properties))
	hint := "the fields here are " + strings.Join(known, ", ")
	if near := nearest(path[len(path)-1], known); near != "" {
		hint = fmt.Sprintf("did you mean %s?", near)
	}
	c.addKey(severity, "unknown-field", path, hint, "unknown field")
}

// translate turns what the validator says into findings.
func (c *checker) translate(failure *jsonschema.ValidationError) {
	at := slices.Clone(failure.InstanceLocation)
	switch k := failure.ErrorKind.(type) {
	case *kind.Required:
		for _, name := range k.Missing {
			if path := append(slices.Clone(at), name); !c.reported(path) {
				c.add(report.SeverityError, "missing-field", path, "", "is missing")
			}
		}
		return
	case *kind.PropertyNames:
		_, byLocation := schemas()
		object := byLocation[strings.TrimSuffix(failure.SchemaURL, "/propertyNames")]
		c.badKey(append(at, k.Property), object)
		return
	}
	if len(failure.Causes) == 0 {
		c.badValue(at, failure)
		return
	}
	for _, cause := range failure.Causes {
		c.translate(cause)
	}
}

func (c *checker) badKey(path []string, object *jsonschema.Schema) {
	key, words := path[len(path)-1], "an allowed key"
	if object != nil && object.PropertyNames != nil {
		words = target(object.PropertyNames).Description
	}
	c.addKey(report.SeverityError, "bad-key", path, "", "key %q is not %s", key, words)
}

func (c *checker) badValue(path []string, failure *jsonschema.ValidationError) {
	_, byLocation := schemas()
	words := ""
	if s := byLocation[failure.SchemaURL]; s != nil {
		words = s.Description
	}
	rule, hint, message := "bad-value", "", ""
	switch k := failure.ErrorKind.(type) {
	case *kind.Type:
		rule = "wrong-type"
		message = fmt.Sprintf("want %s, got %s", article(k.Want[0]), article(k.Got))
		if k.Want[0] == "string" && k.Got != "object" && k.Got != "array" && k.Got != "null" {
			hint = fmt.Sprintf("write %q in quotes", c.doc.sourceText(path))
		}
	case *kind.Pattern:
		message = fmt.Sprintf("%q is not %s", k.Got, words)
		hint = patternHint(failure.SchemaURL, k.Got)
	case *kind.Format:
		message = fmt.Sprintf("%q is not %s", k.Got, cmp.Or(words, k.Want))
	case *kind.Enum:
		message, hint = enumMessage(k)
	case *kind.Const:
		message = fmt.Sprintf("want %q, got %q", k.Want, k.Got)
	case *kind.MinLength, *kind.MinItems, *kind.MinProperties:
		message = "is empty"
	case *kind.MaxLength:
		message = fmt.Sprintf("has %d characters, more than %d", k.Got, k.Want)
	case *kind.UniqueItems:
		path = append(path, fmt.Sprint(k.Duplicates[1]))
		message = fmt.Sprintf("is the same as item %d", k.Duplicates[0])
	default:
		message = failure.Error()
	}
	c.add(report.SeverityError, rule, path, hint, "%s", message)
}

// patternHint completes what is nearly a version.
func patternHint(location, got string) string {
	if strings.HasSuffix(location, "/$defs/version") {
		if _, err := ParseVersion(got); err != nil {
			return report.Hints(err)[0]
		}
	}
	if strings.HasSuffix(location, "/$defs/imageRef") && !strings.Contains(got, ":") {
		return "write it as name:tag"
	}
	return ""
}

func enumMessage(k *kind.Enum) (message, hint string) {
	var words, quoted []string
	for _, want := range k.Want {
		words = append(words, fmt.Sprint(want))
		quoted = append(quoted, fmt.Sprintf("%q", want))
	}
	got := fmt.Sprint(k.Got)
	if near := nearest(got, words); near != "" {
		hint = fmt.Sprintf("did you mean %s?", near)
	}
	return fmt.Sprintf("%q is not one of %s", got, strings.Join(quoted, ", ")), hint
}

// article says a type of JSON in words.
func article(jsonType string) string {
	switch jsonType {
	case "array":
		return "a list"
	case "object":
		return "an object"
	case "integer":
		return "a whole number"
	case "null":
		return "nothing"
	default:
		return "a " + jsonType
	}
}

func typeName(value any) string {
	switch value.(type) {
	case nil:
		return "nothing"
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	default:
		return "a number"
	}
}

// nearest returns the candidate that got is most likely a misspelling of, "" when there is none.
func nearest(got string, candidates []string) string {
	best, bestDistance := "", 3
	for _, candidate := range candidates {
		if strings.EqualFold(got, candidate) {
			return candidate
		}
		if d := distance(strings.ToLower(got), strings.ToLower(candidate)); d < bestDistance && 2*d <= len(candidate) {
			best, bestDistance = candidate, d
		}
	}
	return best
}

// distance counts the insertions, deletions and replacements that turn a into b (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
