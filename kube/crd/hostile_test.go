package crd_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/kube/crd"
)

// definitionOf is a definition with one version for each schema.
func definitionOf(schemas ...string) string {
	var b strings.Builder
	b.WriteString(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
  versions:
`)
	for i, schema := range schemas {
		fmt.Fprintf(&b, "  - {name: v%d, served: true, storage: %t, schema: {openAPIV3Schema: {type: object, properties: {spec: %s}}}}\n", i+1, i == 0, schema)
	}
	return b.String()
}

// listOf repeats a format with its number; fieldsOf is a schema with such fields.
func listOf(n int, format string) string {
	var list []string
	for i := range n {
		list = append(list, strings.ReplaceAll(format, "#", fmt.Sprint(i)))
	}
	return strings.Join(list, ", ")
}

func fieldsOf(n int, schema string) string {
	return "{type: object, properties: {" + listOf(n, "f#: "+schema) + "}}"
}

// versionsOf are schemas that differ in one field.
func versionsOf(n, fields int) (schemas []string) {
	for i := range n {
		schemas = append(schemas, fieldsOf(fields, fmt.Sprintf("{type: string, maxLength: %d}", i)))
	}
	return schemas
}

// hostileMemory bounds the memory, in bytes, that checking a definition may allocate in total. Little of it is in use
// at a time.
const hostileMemory = 1 << 30

// TestHostileDefinitions: definitions that would take minutes or gigabytes are refused, and those just below the bounds
// take neither.
func TestHostileDefinitions(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"rules":              {definitionOf("{type: object, x-kubernetes-validations: [" + listOf(20_000, "{rule: '1 == #'}") + "]}"), "more than 1000 validation rules"},
		"fields with rules":  {definitionOf(fieldsOf(2000, `{type: string, x-kubernetes-validations: [{rule: 'self == "a"'}]}`)), "more than 1000 validation rules"},
		"places of rules":    {definitionOf(fieldsOf(400, `{type: string, x-kubernetes-validations: [{rule: 'self == "a"'}]}`)), "more than 300 fields with validation rules"},
		"just enough rules":  {definitionOf(fieldsOf(300, `{type: string, x-kubernetes-validations: [{rule: 'self == "a"'}, {rule: 'self == "b"'}]}`)), ""},
		"long rules":         {definitionOf("{type: object, x-kubernetes-validations: [{rule: '1 " + strings.Repeat("+ 1 ", 50_000) + "== 1'}]}"), "bytes of validation rules"},
		"a long rule":        {definitionOf("{type: object, x-kubernetes-validations: [{rule: '1 " + strings.Repeat("+ 1 ", 20_000) + "== 1'}]}"), "spec.versions[0]"},
		"a long list":        {definitionOf("{type: object, x-kubernetes-validations: [{rule: '[" + strings.Repeat("1,", 50_000) + "1] == []'}]}"), "spec.versions[0]"},
		"versions":           {definitionOf(versionsOf(2000, 1)...), "2000 versions, at most 30 are judged"},
		"unlike versions":    {definitionOf(versionsOf(30, 200)...), "do not fit"},
		"patterns":           {definitionOf(fieldsOf(1000, "{type: string, pattern: '(a{1000}b{1000}){1}'}")), "steps in its patterns"},
		"just enough of all": {definitionOf(fieldsOf(36_000, "{type: string}")), ""},
		"defaults":           {definitionOf(fieldsOf(24_000, "{type: string, default: a}")), ""},
		"fields":             {definitionOf("{type: object, properties: {a: {enum: [" + listOf(30_000, "f#") + "]}, b: {enum: [" + listOf(31_000, "f#") + "]}}}"), "more than 60000 fields"},
		"an enumeration":     {definitionOf("{type: string, enum: [" + listOf(100_000, "f#") + "]}"), "more than 60000 fields"},
		"required":           {definitionOf("{type: object, required: [" + listOf(100_000, "f#") + "]}"), "more than 60000 fields"},
		"list keys":          {definitionOf("{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [" + listOf(20_000, "f#") + "], items: " + fieldsOf(20_000, "{type: string}") + "}"), "items.properties"},
		"one list key":       {definitionOf("{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [" + listOf(50_000, "a") + "], items: {type: object}}"), "list-map-keys"},
		"conditions":         {definitionOf("{type: object, allOf: [" + listOf(20_000, "{properties: {a: {minimum: 1}}}") + "]}"), ""},
		"columns":            {strings.Replace(definitionOf("{type: object}"), "served", "additionalPrinterColumns: ["+listOf(20_000, "{name: f#, type: string, jsonPath: .spec.a}")+"], served", 1), "more than 1000 names, columns"},
		"selectable fields":  {strings.Replace(definitionOf("{type: object}"), "served", "selectableFields: ["+listOf(30_000, "{jsonPath: .spec.f#}")+"], served", 1), "selectable fields"},
		"names":              {strings.Replace(definitionOf("{type: object}"), "names: {", "names: {shortNames: ["+listOf(100_000, "f#")+"], ", 1), "more than 1000 names"},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			d := parse(t, test.text)
			text := fmt.Sprint(d.Judge(t.Context()))
			_, _ = crd.NewChecker(d)
			runtime.ReadMemStats(&after)
			allocated := after.TotalAlloc - before.TotalAlloc
			if test.want == "" && text != "[]" || !strings.Contains(text, test.want) {
				t.Errorf("got %.500s, want %q", text, test.want)
			}
			if allocated > hostileMemory {
				t.Errorf("it allocated %d MiB", allocated>>20)
			}
		})
	}
}

// TestHostileComparisons: schemas of which each field is compared with each of another schema make one breaking change.
func TestHostileComparisons(t *testing.T) {
	before := parse(t, definitionOf(fieldsOf(10_000, "{type: string}")))
	after := parse(t, definitionOf("{type: object, additionalProperties: "+fieldsOf(10_000, "{type: string}")+"}"))
	for _, changes := range [][]crd.Change{crd.Compare(before, after), crd.Compare(after, before)} {
		found := false
		for _, c := range changes {
			found = found || c.Severity == crd.Breaking && c.Kind == crd.Unhandled && strings.Contains(c.Message, "differ too much")
		}
		if !found || len(changes) > 50_000 {
			t.Errorf("got %d changes, want one that says that not all were compared", len(changes))
		}
	}
}
