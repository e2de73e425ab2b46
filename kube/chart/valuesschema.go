package chart

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/solutionctl/solutionctl/kube/chart/engine"
)

// Bounds of the values schemas of a chart and its subcharts, and of the work to validate values by them. They are many
// times those of the largest public charts.
const (
	maxSchemaSize   = 2 << 20    // bytes
	maxSchemaDepth  = 128        // tables and lists in each other
	maxSchemaFields = 200_000    // fields and elements
	maxSchemaPaths  = 16 << 20   // bytes of their paths, which the compiler keeps
	maxPatterns     = 200_000    // instructions of all patterns
	maxExponent     = 3          // digits
	maxSchemaWork   = 40_000_000 // about 25 nanoseconds each

	applyWork = 100 // to apply a schema to a value
	placeWork = 20  // to copy a step of the path to a value
	maxNested = 2000
)

// schemaBudget is the budget that remains for the schemas of one chart.
type schemaBudget struct {
	size, fields, paths int
	patterns, work      int64
	compared            map[*jsonschema.Schema]int64 // the size of the values that a schema compares with
	programs            map[string]int64             // the sizes of patterns
	problems            []ValueProblem               // that were found
}

func newSchemaBudget() *schemaBudget {
	return &schemaBudget{
		size: maxSchemaSize, fields: maxSchemaFields, paths: maxSchemaPaths, patterns: maxPatterns, work: maxSchemaWork,
		compared: map[*jsonschema.Schema]int64{}, programs: map[string]int64{},
	}
}

// checkSchema validates values against a schema.
func (b *schemaBudget) checkSchema(schema []byte, values map[string]any) error {
	compiled, err := b.compile(schema)
	if err == nil {
		err = b.apply(compiled, values, 0, 0)
	}
	if err != nil {
		return fmt.Errorf("values.schema.json: %w", err)
	}
	err = compiled.Validate(values)
	if failure, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
		return violations(failure)
	}
	return err
}

func (b *schemaBudget) compile(schema []byte) (*jsonschema.Schema, error) {
	if b.size -= len(schema); b.size < 0 {
		return nil, fmt.Errorf("schemas have more than %d MiB", maxSchemaSize>>20)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return nil, err
	}
	if err = b.document(document, "", 0, 0); err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(noLoader{})
	if err = compiler.AddResource("chart:///values.schema.json", document); err != nil {
		return nil, err
	}
	return compiler.Compile("chart:///values.schema.json")
}

// document refuses a schema that would take the compiler too much time or memory. path is the length of the path of the
// value.
func (b *schemaBudget) document(value any, key string, path, depth int) error {
	b.fields--
	b.paths -= path
	switch {
	case depth > maxSchemaDepth:
		return fmt.Errorf("the schema is nested deeper than %d levels", maxSchemaDepth)
	case b.fields < 0 || b.paths < 0:
		return fmt.Errorf("schemas have more than %d fields or %d MiB of their paths", maxSchemaFields, maxSchemaPaths>>20)
	}
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			if key == "patternProperties" {
				b.patterns -= b.program(name)
			}
			if err := b.document(inner, name, path+len(name)+1, depth+1); err != nil {
				return err
			}
		}
	case []any:
		for _, inner := range value {
			if err := b.document(inner, "", path+2, depth+1); err != nil {
				return err
			}
		}
	case string:
		switch key {
		case "pattern":
			b.patterns -= b.program(value)
		case "$dynamicRef", "$recursiveRef": // their targets are known only during validation
			return fmt.Errorf("%s is not supported: write $ref", key)
		}
	case json.Number:
		_, exponent, _ := strings.Cut(strings.ToLower(value.String()), "e")
		if len(strings.TrimLeft(exponent, "+-0")) > maxExponent {
			return fmt.Errorf("a number has an exponent of more than %d digits", maxExponent)
		}
	}
	if b.patterns < 0 {
		return errors.New("the patterns of schemas are too large: they repeat too much")
	}
	return nil
}

// apply counts the work to apply a schema to a value, with all its parts: which ones the validator skips is known only
// afterwards. nested counts schemas in each other, place the tables and lists around the value.
func (b *schemaBudget) apply(s *jsonschema.Schema, value any, nested, place int) error {
	if s == nil {
		return nil
	}
	if b.work -= applyWork + int64(place)*placeWork + b.comparisons(s, value); b.work < 0 || nested > maxNested {
		return errors.New("validating the values takes more time than a chart may take")
	}
	inner, err := nested+1, error(nil)
	also := func(s *jsonschema.Schema, value any, place int) {
		if err == nil {
			err = b.apply(s, value, inner, place)
		}
	}
	for _, list := range [][]*jsonschema.Schema{{s.Ref, s.Not, s.If, s.Then, s.Else}, s.AllOf, s.AnyOf, s.OneOf} {
		for _, part := range list {
			also(part, value, place)
		}
	}
	for _, part := range s.DependentSchemas {
		also(part, value, place)
	}
	for _, part := range s.Dependencies {
		schema, _ := part.(*jsonschema.Schema)
		also(schema, value, place)
	}
	switch value := value.(type) {
	case map[string]any:
		additional, _ := s.AdditionalProperties.(*jsonschema.Schema)
		for key, field := range value {
			also(s.PropertyNames, key, place)
			also(s.Properties[key], field, place+1)
			also(additional, field, place+1)
			also(s.UnevaluatedProperties, field, place+1)
			for pattern, part := range s.PatternProperties {
				b.work -= int64(len(key)) * b.program(pattern.String())
				also(part, field, place+1)
			}
		}
	case []any:
		items, _ := s.Items.(*jsonschema.Schema)
		tuple, _ := s.Items.([]*jsonschema.Schema)
		additional, _ := s.AdditionalItems.(*jsonschema.Schema)
		tuple = slices.Concat(tuple, s.PrefixItems)
		for i, element := range value {
			for _, part := range []*jsonschema.Schema{items, additional, s.Items2020, s.Contains, s.UnevaluatedItems} {
				also(part, element, place+1)
			}
			if i < len(tuple) {
				also(tuple[i], element, place+1)
			}
		}
	}
	return err
}

// comparisons is the work of comparing a value with constants of a schema.
func (b *schemaBudget) comparisons(s *jsonschema.Schema, value any) int64 {
	work, known := b.compared[s]
	if !known {
		work = int64(len(s.Required) + len(s.DependentRequired) + len(s.Dependencies))
		if s.Enum != nil {
			work += sizeOf(s.Enum.Values)
		}
		if s.Const != nil {
			work += sizeOf(*s.Const)
		}
		b.compared[s] = work
	}
	switch value := value.(type) {
	case []any:
		if s.UniqueItems {
			work += 20 * sizeOf(value)
		}
	case string:
		if s.Pattern != nil {
			work += int64(len(value)) * b.program(s.Pattern.String())
		}
		if s.Format != nil {
			work += int64(len(value))
			if s.Format.Name == "regex" {
				work += engine.PatternSize(value) * 10
			}
		}
	}
	return work
}

// program is the size of a compiled pattern.
func (b *schemaBudget) program(pattern string) int64 {
	size, known := b.programs[pattern]
	if !known {
		size = engine.PatternSize(pattern)
		b.programs[pattern] = size
	}
	return size
}

// sizeOf is about how long it takes to compare a value with another one.
func sizeOf(value any) int64 {
	size := int64(1)
	switch value := value.(type) {
	case map[string]any:
		for _, inner := range value {
			size += 1 + sizeOf(inner)
		}
	case []any:
		for _, inner := range value {
			size += sizeOf(inner)
		}
	case string:
		size += int64(len(value)) / 16
	case json.Number:
		size += 20
	}
	return size
}
