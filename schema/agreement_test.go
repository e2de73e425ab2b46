package schema_test

import (
	"bytes"
	"encoding"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// node is the part of a JSON Schema that these tests compare.
type node struct {
	Ref         string           `json:"$ref"`
	Type        string           `json:"type"`
	Description string           `json:"description"`
	Pattern     string           `json:"pattern"`
	Format      string           `json:"format"`
	Properties  map[string]*node `json:"properties"`
	Required    []string         `json:"required"`
	Additional  json.RawMessage  `json:"additionalProperties"`
	Items       *node            `json:"items"`
	Defs        map[string]*node `json:"$defs"`
}

func parseNode(t *testing.T, data []byte) *node {
	t.Helper()
	root := new(node)
	if err := json.Unmarshal(data, root); err != nil {
		t.Fatal(err)
	}
	return root
}

var types = map[string]reflect.Type{
	schema.KindSolution:               reflect.TypeFor[schema.Solution](),
	schema.KindSolutionBuild:          reflect.TypeFor[schema.SolutionBuild](),
	schema.KindSolutionsConfiguration: reflect.TypeFor[schema.SolutionsConfiguration](),
	schema.KindOperatorConfig:         reflect.TypeFor[schema.OperatorConfig](),
	schema.KindLoaderConfiguration:    reflect.TypeFor[schema.LoaderConfiguration](),

	schema.KindEnvironmentConfiguration: reflect.TypeFor[schema.EnvironmentConfiguration](),
}

func storedSchema(t *testing.T, name string) []byte {
	t.Helper()
	data, err := schema.Files.ReadFile("stored/" + name + ".schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestTypesAndSchemasAgree compares the schemas that are written by hand with the types; the others are generated from them.
func TestTypesAndSchemasAgree(t *testing.T) {
	for _, kind := range schema.Kinds() {
		t.Run(kind, func(t *testing.T) {
			root := parseNode(t, schema.JSONSchema(kind))
			agree(t, root, root, types[kind], kind)
		})
	}
}

// agree compares a type with a schema, in both directions.
func agree(t *testing.T, root, n *node, typ reflect.Type, at string) {
	t.Helper()
	for n.Ref != "" {
		n = root.Defs[strings.TrimPrefix(n.Ref, "#/$defs/")]
	}
	if typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	want := "object"
	switch {
	case typ == reflect.TypeFor[schema.ComponentWish]():
		want = "" // of two types
	case typ.Implements(reflect.TypeFor[encoding.TextMarshaler]()), typ.Kind() == reflect.String:
		want = "string"
	case typ.Kind() == reflect.Bool:
		want = "boolean"
	case typ.Kind() == reflect.Int, typ.Kind() == reflect.Int64:
		want = "integer"
	case typ.Kind() == reflect.Slice:
		want = "array"
		agree(t, root, n.Items, typ.Elem(), at+"[]")
	case typ == reflect.TypeFor[map[string]any](): // its content is defined elsewhere
	case typ.Kind() == reflect.Map:
		inner := new(node)
		if err := json.Unmarshal(n.Additional, inner); err != nil {
			t.Errorf("%s: additionalProperties: %v", at, err)
			return
		}
		agree(t, root, inner, typ.Elem(), at+"{}")
	case typ.Kind() == reflect.Struct:
		agreeStruct(t, root, n, typ, at)
	}
	if n.Type != want {
		t.Errorf("%s: the schema has type %q, the Go type %s is %q", at, n.Type, typ, want)
	}
}

// mayBeLeftOut are the fields that are always written and need not be there to be read.
var mayBeLeftOut = []string{"SolutionsConfiguration.archives", "SolutionsConfiguration.active"}

func agreeStruct(t *testing.T, root, n *node, typ reflect.Type, at string) {
	t.Helper()
	if string(n.Additional) != "false" {
		t.Errorf("%s: additionalProperties is not false", at)
	}
	fields := map[string]bool{}
	for _, field := range reflect.VisibleFields(typ) {
		if field.Anonymous {
			continue // its fields are visible themselves
		}
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		fields[name] = true
		if n.Properties[name] == nil {
			t.Errorf("%s.%s: the schema has no such property", at, name)
			continue
		}
		optional := options == "omitempty" || options == "omitzero" || slices.Contains(mayBeLeftOut, at+"."+name)
		if optional == slices.Contains(n.Required, name) {
			t.Errorf("%s.%s: omitempty is %t and required is %t", at, name, optional, slices.Contains(n.Required, name))
		}
		agree(t, root, n.Properties[name], field.Type, at+"."+name)
	}
	for name := range n.Properties {
		if !fields[name] {
			t.Errorf("%s.%s: the Go type %s has no such field", at, name, typ)
		}
	}
}

// TestSharedDefinitionsAreEqual keeps the schemas, each of which stands alone for the sake of editors, from drifting apart.
func TestSharedDefinitionsAreEqual(t *testing.T) {
	seen := map[string]string{}
	for _, kind := range schema.Kinds() {
		var s struct {
			Defs map[string]json.RawMessage `json:"$defs"`
		}
		if err := json.Unmarshal(schema.JSONSchema(kind), &s); err != nil {
			t.Fatal(err)
		}
		for _, name := range slices.Sorted(maps.Keys(s.Defs)) {
			text := string(s.Defs[name])
			if before, ok := seen[name]; ok && before != text {
				t.Errorf("%s: definition %s differs from that of another schema", kind, name)
			}
			seen[name] = text
		}
	}
}

// TestPatternsHaveWords makes sure that no message shows a bare regular expression.
func TestPatternsHaveWords(t *testing.T) {
	var walk func(n *node, at string)
	walk = func(n *node, at string) {
		if n == nil {
			return
		}
		if (n.Pattern != "" || n.Format != "") && n.Description == "" {
			t.Errorf("%s has a pattern or format without a description", at)
		}
		for name, property := range n.Properties {
			walk(property, at+"."+name)
		}
		for name, definition := range n.Defs {
			walk(definition, at+"$"+name)
		}
		walk(n.Items, at+"[]")
	}
	for _, kind := range schema.Kinds() {
		walk(parseNode(t, schema.JSONSchema(kind)), kind)
	}
}

// TestSchemasAreValid compiles every embedded schema against its own meta-schema and checks its name.
func TestSchemasAreValid(t *testing.T) {
	check := func(name string, data []byte) {
		t.Helper()
		content, err := jsonschema.UnmarshalJSON(strings.NewReader(string(data)))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		object, _ := content.(map[string]any)
		id, _ := object["$id"].(string)
		if object["$schema"] != "https://json-schema.org/draft/2020-12/schema" || !strings.HasPrefix(id, "https://solutionctl.io/schema/v1alpha1/") {
			t.Errorf("%s: $schema %v, $id %v", name, object["$schema"], id)
		}
		// Unlike the parsers, this also checks the schema against its meta-schema.
		compiler := jsonschema.NewCompiler()
		compiler.UseLoader(embeddedSchemas{})
		if err := compiler.AddResource(id, content); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := compiler.Compile(id); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, kind := range schema.Kinds() {
		check(kind, schema.JSONSchema(kind))
	}
	for _, name := range schema.Outputs() {
		check(name, schema.OutputSchema(name))
	}
	for _, name := range schema.StoredDocuments() {
		check(name, storedSchema(t, name))
	}
	if schema.JSONSchema("Other") != nil || schema.OutputSchema("other") != nil {
		t.Error("a schema for what does not exist")
	}
}

func TestValidateOutput(t *testing.T) {
	good, err := json.Marshal(report.Finding{Rule: "r", Severity: report.SeverityNote, Message: "m", Path: "p", Line: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.ValidateOutput("finding", good); err != nil {
		t.Error(err)
	}
	for name, bad := range map[string]string{
		"unknown field": `{"rule": "r", "severity": "note", "message": "m", "extra": 1}`,
		"missing field": `{"rule": "r", "severity": "note"}`,
		"bad value":     `{"rule": "r", "severity": "fatal", "message": "m"}`,
		"not JSON":      `{`,
	} {
		if schema.ValidateOutput("finding", []byte(bad)) == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if schema.ValidateOutput("other", good) == nil {
		t.Error("an output without a schema was accepted")
	}
}

// TestPatternsAgreeWithParsers feeds the same texts to the patterns of the schemas and to the parsers of the types.
func TestPatternsAgreeWithParsers(t *testing.T) {
	definitions := parseNode(t, schema.JSONSchema(schema.KindSolutionBuild)).Defs
	maps.Copy(definitions, parseNode(t, schema.JSONSchema(schema.KindSolution)).Defs)
	for _, test := range []struct {
		definition string
		parse      func(string) error
		texts      []string
	}{
		{"version", func(s string) error { _, err := schema.ParseVersion(s); return err }, versionTexts},
		{"imageRef", func(s string) error { _, err := schema.ParseImageRef(s); return err }, imageTexts},
		{"platform", func(s string) error { _, err := schema.ParsePlatform(s); return err }, platformTexts},
	} {
		compiler := jsonschema.NewCompiler()
		content := map[string]any{"pattern": definitions[test.definition].Pattern}
		if err := compiler.AddResource("https://example.com/s", content); err != nil {
			t.Fatal(err)
		}
		compiled := compiler.MustCompile("https://example.com/s")
		for _, text := range test.texts {
			byPattern, byParser := compiled.Validate(text) == nil, test.parse(text) == nil
			if byPattern != byParser {
				t.Errorf("%s %q: the pattern says %t, the parser %t", test.definition, text, byPattern, byParser)
			}
		}
	}
}

// embeddedSchemas loads what schemas refer to.
type embeddedSchemas struct{}

func (embeddedSchemas) Load(url string) (any, error) {
	data, err := schema.Files.ReadFile(strings.TrimPrefix(url, "https://solutionctl.io/schema/v1alpha1/"))
	if err != nil {
		return nil, err
	}
	return jsonschema.UnmarshalJSON(bytes.NewReader(data))
}
