package chart_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/kube/chart"
)

// TestHostileValuesSchema: schemas that would take minutes, gigabytes or the stack are refused.
func TestHostileValuesSchema(t *testing.T) {
	deep := func(n int, begin, inside, end string) string {
		return strings.Repeat(begin, n) + inside + strings.Repeat(end, n)
	}
	list := func(n int, item string) string { return strings.TrimSuffix(strings.Repeat(item+",", n), ",") }
	laughs := func(combine, last string) string {
		var b strings.Builder
		b.WriteString(`{"$ref": "#/$defs/a0", "$defs": {`)
		for i := range 40 {
			fmt.Fprintf(&b, `"a%d": {"%s": [{"$ref": "#/$defs/a%d"}, {"$ref": "#/$defs/a%d"}]}, `, i, combine, i+1, i+1)
		}
		return b.String() + `"a40": ` + last + `}}`
	}
	const long, many = "takes more time than a chart may take", "schemas have more than 200000 fields or 16 MiB of their paths"
	for name, test := range map[string]struct{ schema, values, want string }{
		"deep":              {deep(3000, `{"properties": {"a": `, `{}`, `}}`), "", "the schema is nested deeper than 128 levels"},
		"as deep as JSON":   {deep(100_000, `{"not": `, `{}`, `}`), "", "exceeded max depth"},
		"deep values":       {`{"additionalProperties": {"$ref": "#"}}`, "a: " + deep(3000, "{a: ", "b", "}"), long},
		"a cycle":           {`{"$ref": "#"}`, "", long},
		"a cycle of two":    {`{"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}`, "", long},
		"a dynamic cycle":   {`{"$dynamicAnchor": "a", "$dynamicRef": "#a"}`, "", "$dynamicRef is not supported"},
		"in draft 4":        {`{"$schema": "http://json-schema.org/draft-04/schema#", "definitions": {"a": {"$ref": "#"}}, "allOf": [{"$ref": "#/definitions/a"}]}`, "", long},
		"laughs":            {laughs("allOf", `{}`), "", long},
		"laughs that fail":  {laughs("allOf", `{"type": "string"}`), "", long},
		"any laughs":        {laughs("anyOf", `{"enum": [1]}`), "", long},
		"one laughs":        {laughs("oneOf", `{"const": 1}`), "", long},
		"not laughs":        {strings.Replace(laughs("oneOf", `{"const": 1}`), `"$ref": "#/$defs/a0"`, `"not": {"$ref": "#/$defs/a0"}`, 1), "", long},
		"of a format":       {laughs("allOf", `{"format": "regex"}`), "", long},
		"recursion":         {`{"additionalProperties": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}`, "a: " + deep(60, "{a: ", "b", "}"), long},
		"long names":        {fmt.Sprintf(`{"properties": {"%s": {"enum": [%s]}}}`, strings.Repeat("k", 500_000), list(1000, "1")), "", many},
		"many fields":       {`{"enum": [` + list(300_000, "1") + `]}`, "", many},
		"enumerations":      {`{"properties": {"a": {"items": {"enum": [` + list(100_000, "1") + `]}}}}`, "a: [" + list(30_000, "2") + "]", long},
		"patterns":          {`{"properties": {"a": {"anyOf": [` + list(100, `{"pattern": "((a|b){100}){9}"}`) + `]}}}`, "", "the patterns of schemas are too large"},
		"names by patterns": {`{"patternProperties": {"` + strings.Repeat("((a|b){100}){9}", 100) + `": {}}}`, "", "the patterns of schemas are too large"},
		"a long text":       {`{"properties": {"a": {"pattern": "((a|b){100}){9}$"}}}`, "a: " + strings.Repeat("a", 1<<20), long},
		"exponents":         {`{"properties": {"a": {"multipleOf": 1e-999999}}}`, "a: 1", "a number has an exponent of more than 3 digits"},
		"complaints":        {`{"properties": {"a": {"items": {"enum": ["` + strings.Repeat("x", 4000) + `"]}}}}`, "a: [" + list(100, "2") + "]", "and 80 more"},
	} {
		t.Run(name, func(t *testing.T) {
			files := web()
			clear(files)
			files["web/Chart.yaml"] = "apiVersion: v2\nname: web\nversion: 1.2.0\n"
			files["web/values.schema.json"] = test.schema
			files["web/values.yaml"] = test.values
			c, err := chart.Load(bytes.NewReader(pack(files)))
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.Render(t.Context(), chart.Options{StandIns: true})
			if err == nil || !strings.Contains(err.Error(), test.want) || len(err.Error()) > 50_000 {
				t.Errorf("err = %.500v", err)
			}
		})
	}
}
