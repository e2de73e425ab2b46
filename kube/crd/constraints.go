package crd

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/crdify/pkg/config"
	"sigs.k8s.io/crdify/pkg/validations"
	"sigs.k8s.io/crdify/pkg/validations/property"
)

type props = apiextensionsv1.JSONSchemaProps

// verdict grades the change of one schema field whose values differ, in one sentence.
type verdict func(a, b *props) (Severity, string)

// constraint is a field of a schema and how its change is judged.
type constraint struct {
	field string
	judge verdict
}

// constraints is the table of all constraints of a schema. crdify judges the ones that it knows; the others are ours.
// crdify's own walk over schemas is not used: it files allOf, anyOf, oneOf and not under the path of their parent,
// where they hide each other and the parent.
func constraints() []constraint {
	return []constraint{
		{"Type", judgeType},
		{"Enum", judgeEnum},
		{"Maximum", withCRDify(&property.Maximum{})},
		{"Minimum", withCRDify(&property.Minimum{})},
		{"MaxLength", withCRDify(&property.MaxLength{})},
		{"MinLength", withCRDify(&property.MinLength{})},
		{"MaxItems", withCRDify(&property.MaxItems{})},
		{"MinItems", withCRDify(&property.MinItems{})},
		{"MaxProperties", withCRDify(&property.MaxProperties{})},
		{"MinProperties", withCRDify(&property.MinProperties{})},
		{"ExclusiveMaximum", switchedOn(func(p *props) bool { return p.ExclusiveMaximum }, Breaking, "the maximum itself is no longer allowed")},
		{"ExclusiveMinimum", switchedOn(func(p *props) bool { return p.ExclusiveMinimum }, Breaking, "the minimum itself is no longer allowed")},
		{"UniqueItems", switchedOn(func(p *props) bool { return p.UniqueItems }, Breaking, "entries must be unique")},
		{"Nullable", switchedOff(func(p *props) bool { return p.Nullable }, Breaking, "null is no longer allowed")},
		{"XPreserveUnknownFields", switchedOff(preserves, Lossy, "fields that the schema does not have are no longer kept")},
		{"XEmbeddedResource", judgeEmbedded},
		{"XIntOrString", switchedOff(func(p *props) bool { return p.XIntOrString }, Breaking, "it must no longer be either a number or a string")},
		{"Pattern", loosenedWhen(func(p *props) bool { return p.Pattern == "" }, "the pattern changed; values that matched the old one might not match the new one")},
		{"MultipleOf", loosenedWhen(func(p *props) bool { return p.MultipleOf == nil }, "the divisor changed")},
		{"Format", judgeFormat},
		{"Required", judgeRequired},
		{"Default", judgeDefault},
		{"XValidations", judgeRules},
		{"XListType", always(Breaking, "the list type changed: entries may be refused as duplicates, and who owns them changes")},
		{"XListMapKeys", always(Breaking, "the keys that identify an entry changed")},
		{"XMapType", always(Breaking, "who owns the keys of the map changes")},
		{"AllOf", loosenedWhen(func(p *props) bool { return len(p.AllOf) == 0 }, "conditions in allOf changed")},
		{"AnyOf", loosenedWhen(func(p *props) bool { return len(p.AnyOf) == 0 }, "alternatives in anyOf changed")},
		{"OneOf", loosenedWhen(func(p *props) bool { return len(p.OneOf) == 0 }, "alternatives in oneOf changed")},
		{"Not", loosenedWhen(func(p *props) bool { return p.Not == nil }, "what is forbidden changed")},
		{"Description", always(Safe, "the description changed")},
		{"Title", always(Safe, "the title changed")},
		{"Example", always(Safe, "the example changed")},
		{"ExternalDocs", always(Safe, "the link to documentation changed")},
	}
}

// walked are the fields that package functions compare by descending into them.
var walked = []string{"Properties", "Items", "AdditionalProperties"}

// constraints reports every difference between two schemas of one field, without their children.
func (w *walk) constraints(a, b *props, path string) {
	left, right := reflect.ValueOf(a).Elem(), reflect.ValueOf(b).Elem()
	judged := map[string]bool{}
	for _, c := range constraints() {
		judged[c.field] = true
		if equality.Semantic.DeepEqual(left.FieldByName(c.field).Interface(), right.FieldByName(c.field).Interface()) {
			continue
		}
		if severity, message := c.judge(a, b); message != "" {
			w.add(kindOf(left.Type(), c.field), severity, path, "%s", message)
		}
	}
	for i := range left.NumField() {
		name := left.Type().Field(i).Name
		if judged[name] || slices.Contains(walked, name) {
			continue
		}
		if !equality.Semantic.DeepEqual(left.Field(i).Interface(), right.Field(i).Interface()) {
			w.add(Unhandled, Breaking, path, "%s changed", kindOf(left.Type(), name))
		}
	}
}

// kindOf is the name that the field has in a schema document.
func kindOf(t reflect.Type, field string) ChangeKind {
	f, _ := t.FieldByName(field)
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return ChangeKind(name)
}

// withCRDify uses a comparator of crdify; a change that it accepts is a loosened constraint.
func withCRDify(comparator interface {
	validations.Comparator[props]
	validations.Validation
},
) verdict {
	comparator.SetEnforcement(config.EnforcementPolicyError)
	return func(a, b *props) (Severity, string) {
		result := comparator.Compare(a.DeepCopy(), b.DeepCopy())
		if len(result.Errors) > 0 {
			return Breaking, strings.Join(result.Errors, "; ")
		}
		return Safe, comparator.Name() + " is loosened"
	}
}

func always(severity Severity, message string) verdict {
	return func(_, _ *props) (Severity, string) { return severity, message }
}

func switchedOn(get func(*props) bool, severity Severity, message string) verdict {
	return func(_, b *props) (Severity, string) {
		if get(b) {
			return severity, message
		}
		return Safe, "a constraint is gone"
	}
}

func switchedOff(get func(*props) bool, severity Severity, message string) verdict {
	return func(a, b *props) (Severity, string) {
		switch {
		case get(a) && !get(b):
			return severity, message
		case get(a) == get(b):
			return Safe, "" // false instead of nothing
		}
		return Safe, "more is accepted"
	}
}

func loosenedWhen(absent func(*props) bool, message string) verdict {
	return func(_, b *props) (Severity, string) {
		if absent(b) {
			return Safe, "a constraint is gone"
		}
		return Breaking, message
	}
}

func judgeType(a, b *props) (Severity, string) {
	switch {
	case a.Type == "integer" && b.Type == "number":
		return Safe, "fractions are accepted"
	case b.XIntOrString && (a.Type == "integer" || a.Type == "string"):
		return Safe, "numbers and strings are accepted"
	case b.Type == "" && preserves(b):
		return Safe, "any type is accepted"
	}
	return withCRDify(&property.Type{})(a, b)
}

func judgeEnum(a, b *props) (Severity, string) {
	if len(b.Enum) == 0 {
		return Safe, "any value is accepted" // crdify takes it for a removal of every value
	}
	return withCRDify(&property.Enum{EnumConfig: property.EnumConfig{AdditionPolicy: property.AdditionPolicyAllow}})(a, b)
}

func judgeEmbedded(a, _ *props) (Severity, string) {
	if a.XEmbeddedResource {
		return Lossy, "it is no longer a Kubernetes object: apiVersion, kind and metadata are dropped unless the schema has them"
	}
	return Breaking, "it must be a Kubernetes object"
}

func judgeFormat(a, b *props) (Severity, string) {
	switch {
	case b.Format == "":
		return Safe, "any format is accepted"
	case a.Format == "int32" && b.Format == "int64", a.Format == "float" && b.Format == "double":
		return Safe, "larger numbers are accepted"
	}
	return Breaking, fmt.Sprintf("format changed from %q to %q", a.Format, b.Format)
}

func judgeRequired(a, b *props) (Severity, string) {
	var missing []string
	for _, name := range b.Required {
		if !slices.Contains(a.Required, name) && b.Properties[name].Default == nil {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return Breaking, "now required: " + strings.Join(missing, ", ")
	}
	return Safe, "what is required changed, and every object still has it"
}

func judgeDefault(a, b *props) (Severity, string) {
	switch {
	case a.Default == nil:
		return Safe, fmt.Sprintf("gets the default %s", b.Default.Raw)
	case b.Default == nil:
		return Breaking, fmt.Sprintf("no longer has the default %s", a.Default.Raw)
	}
	return Breaking, fmt.Sprintf("the default changed from %s to %s: objects that do not set the field change their meaning", a.Default.Raw, b.Default.Raw)
}

// judgeRules compares CEL rules by their text; how a refusal is worded does not matter.
func judgeRules(a, b *props) (Severity, string) {
	known := map[string]bool{}
	for _, rule := range a.XValidations {
		known[ruleText(rule)] = true
	}
	for _, rule := range b.XValidations {
		if !known[ruleText(rule)] {
			return Breaking, fmt.Sprintf("a rule is new: %s", rule.Rule)
		}
	}
	return Safe, "rules are gone or worded differently"
}

func ruleText(rule apiextensionsv1.ValidationRule) string {
	optional := rule.OptionalOldSelf != nil && *rule.OptionalOldSelf
	return fmt.Sprintf("%s\x00%t", rule.Rule, optional)
}
