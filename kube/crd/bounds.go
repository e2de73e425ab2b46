package crd

import (
	"fmt"
	"regexp/syntax"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Bounds of a definition that is checked or compared. They are many times those of the largest public definitions; the
// code of the API server needs milliseconds for each place with rules.
const (
	maxVersions     = 30
	maxNames        = 1000   // entries of each list beside schemas, of all versions
	maxFields       = 60_000 // fields, and entries of their lists, of all versions
	maxRules        = 1000   // rules of all versions
	maxRulePlaces   = 300    // fields with rules, which are compiled one by one
	maxRuleText     = 128 << 10
	maxInstructions = 200_000 // of the programs of all patterns
	maxProblems     = 20      // of one definition, that are reported together

	maxSteps   = 500_000 // pairs of fields, when definitions are compared
	maxChanges = 20_000
)

// size is the amount of time and memory that a CRD needs.
type size struct {
	names, fields, rules, places, ruleText int
	instructions                           int64
}

// tooLarge returns why a definition takes too much to be judged, "" when it does not.
func (d *Definition) tooLarge() string {
	s := size{names: len(d.Spec.Names.ShortNames) + len(d.Spec.Names.Categories)}
	if len(d.Spec.Versions) > maxVersions {
		return fmt.Sprintf("the definition has %d versions, at most %d are judged", len(d.Spec.Versions), maxVersions)
	}
	for _, v := range d.Spec.Versions {
		s.names += len(v.SelectableFields) + len(v.AdditionalPrinterColumns)
		if v.Schema != nil && v.Schema.OpenAPIV3Schema != nil {
			s.add(v.Schema.OpenAPIV3Schema)
		}
	}
	for _, bound := range []struct {
		got, most int64
		what      string
	}{
		{int64(s.names), maxNames, "names, columns and selectable fields"},
		{int64(s.fields), maxFields, "fields and entries of their lists"},
		{int64(s.rules), maxRules, "validation rules"},
		{int64(s.places), maxRulePlaces, "fields with validation rules"},
		{int64(s.ruleText), maxRuleText, "bytes of validation rules"},
		{s.instructions, maxInstructions, "steps in its patterns, with what they repeat"},
	} {
		if bound.got > bound.most {
			return fmt.Sprintf("the definition has more than %d %s: it is not judged", bound.most, bound.what)
		}
	}
	return ""
}

// full reports that the rest does not matter.
func (s *size) full() bool { return s.fields > maxFields || s.instructions > maxInstructions }

func (s *size) add(schema *props) {
	s.fields += 1 + len(schema.Enum) + len(schema.Required) + len(schema.XListMapKeys)
	if len(schema.XValidations) > 0 {
		s.places++
		s.rules += len(schema.XValidations)
		for _, rule := range schema.XValidations {
			s.ruleText += len(rule.Rule) + len(rule.MessageExpression)
		}
	}
	if schema.Pattern != "" {
		if tree, err := syntax.Parse(schema.Pattern, syntax.Perl); err == nil {
			s.instructions += instructions(tree)
		}
	}
	if !s.full() {
		eachInside(schema, s.add)
	}
}

// eachInside calls see with each schema that is part of another one.
func eachInside(schema *props, see func(*props)) {
	for _, table := range []map[string]props{schema.Properties, schema.PatternProperties, schema.Definitions} {
		for _, inner := range table {
			see(&inner)
		}
	}
	for _, list := range [][]props{schema.AllOf, schema.AnyOf, schema.OneOf} {
		for i := range list {
			see(&list[i])
		}
	}
	if schema.Not != nil {
		see(schema.Not)
	}
	for _, either := range []*apiextensionsv1.JSONSchemaPropsOrBool{schema.AdditionalProperties, schema.AdditionalItems} {
		if either != nil && either.Schema != nil {
			see(either.Schema)
		}
	}
	if schema.Items != nil {
		if schema.Items.Schema != nil {
			see(schema.Items.Schema)
		}
		for i := range schema.Items.JSONSchemas {
			see(&schema.Items.JSONSchemas[i])
		}
	}
	for _, either := range schema.Dependencies {
		if either.Schema != nil {
			see(either.Schema)
		}
	}
}

// instructions is how large the program of a pattern is at most.
func instructions(tree *syntax.Regexp) int64 {
	count := int64(1 + len(tree.Rune))
	for _, inner := range tree.Sub {
		count += instructions(inner)
	}
	if tree.Op == syntax.OpRepeat {
		count *= int64(max(tree.Min, tree.Max, 1))
	}
	return min(count, 1<<40)
}
