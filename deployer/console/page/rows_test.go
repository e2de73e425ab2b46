package page

import (
	"net/url"
	"testing"

	"github.com/solutionctl/solutionctl/schema"
)

var users = schema.AppField{Path: "users", Type: "list of object", Items: &schema.AppField{Type: "object", Fields: []schema.AppField{
	{Path: "name", Type: "string", Required: true}, {Path: "age", Type: "integer"}, {Path: "limits.cpu", Type: "string"}, {Path: "groups", Type: "list of string"},
}}}

// sent returns what a browser sends of the rows of a control.
func sent(c *control) url.Values {
	form := url.Values{c.Name: {c.Value}}
	if c.Kind == "rows" {
		form.Set(rowsName(c.Name), string(rune('0'+len(c.Rows))))
	}
	for _, r := range c.Rows {
		for _, cell := range r.Controls {
			form.Set(cell.Name, cell.Value)
			for _, unit := range cell.Units {
				if unit.Selected {
					form.Set(unitOf(cell.Name), unit.Value)
				}
			}
		}
	}
	return form
}

// TestRows checks which lists are shown as rows, that a form gives back what it shows, and how rows are changed, added and removed.
func TestRows(t *testing.T) {
	const two = `[{"age":7,"groups":["a","b"],"name":"jane"},{"limits":{"cpu":"250m"},"name":"joe"}]`
	for name, test := range map[string]struct {
		text   string
		kind   string
		rows   int
		change func(url.Values)
		want   string
	}{
		"none":                {"", "rows", 1, nil, ""},
		"an empty list":       {"[]", "rows", 1, nil, "[]"},
		"two":                 {two, "rows", 3, nil, two},
		"changed":             {two, "rows", 3, func(f url.Values) { f.Set("x#0.age", "8") }, `[{"age":8,"groups":["a","b"],"name":"jane"},{"limits":{"cpu":"250m"},"name":"joe"}]`},
		"not a number":        {two, "rows", 3, func(f url.Values) { f.Set("x#0.age", "old"); f.Set("x#1.limits.cpu", "") }, `[{"age":"old","groups":["a","b"],"name":"jane"},{"name":"joe"}]`},
		"added":               {`[{"name":"jane"}]`, "rows", 2, func(f url.Values) { f.Set("x#1.name", " joe ") }, `[{"name":"jane"},{"name":"joe"}]`},
		"removed":             {two, "rows", 3, func(f url.Values) { f.Set("drop:x", "0") }, `[{"limits":{"cpu":"250m"},"name":"joe"}]`},
		"all removed":         {two, "rows", 3, func(f url.Values) { f["drop:x"] = []string{"0", "1"} }, ""},
		"a hostile number":    {`[{"name":"jane"}]`, "rows", 2, func(f url.Values) { f.Set("rows:x", "999999999") }, `[{"name":"jane"}]`},
		"an unknown field":    {`[{"name":"jane","nick":"j"}]`, "area", 0, nil, `[{"name":"jane","nick":"j"}]`},
		"an empty text":       {`[{"name":""}]`, "area", 0, nil, `[{"name":""}]`},
		"an item without any": {`[{}]`, "area", 0, nil, `[{}]`},
		"a break at the end":  {`[{"name":"jane\n"}]`, "area", 0, nil, `[{"name":"jane\n"}]`},
		"a space at the end":  {`[{"name":"jane "}]`, "area", 0, nil, `[{"name":"jane "}]`},
		"invisible":           {`[{"name":"a\u200db"}]`, "area", 0, nil, `[{"name":"a\u200db"}]`},
		"not a list":          {"jane", "area", 0, nil, "jane"},
		"an item of a kind":   {`["jane"]`, "area", 0, nil, `["jane"]`},
	} {
		t.Run(name, func(t *testing.T) {
			c := controlOf(users, FieldValue{Value: test.text}, "x")
			if c.Kind != test.kind || len(c.Rows) != test.rows {
				t.Fatalf("%s with %d rows, want %s with %d", c.Kind, len(c.Rows), test.kind, test.rows)
			}
			form := sent(&c)
			if test.change != nil {
				test.change(form)
			}
			if got, _ := Typed(&users, form, "x"); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
	secret := users
	secret.Items = &schema.AppField{Type: "object", Fields: []schema.AppField{{Path: "name", Type: "string"}, {Path: "token", Type: "string", Secret: true}}}
	if c := controlOf(secret, FieldValue{}, "x"); c.Kind != "area" {
		t.Errorf("a list with secrets is shown as %s", c.Kind)
	}
}

// TestSecretLines checks that a secret with lines is not shown as a password input, from which browsers take the line breaks.
func TestSecretLines(t *testing.T) {
	for path, kinds := range map[string]map[string]string{
		"users[0].password": {"string": "text", "any": "text", "integer": "number", "list of string": "area", "map of string": "area", "array": "area", "object": "area"},
		"tls.privateKey":    {"string": "area", "any": "area"},
	} {
		for kind, want := range kinds {
			if c := controlOf(schema.AppField{Path: path, Type: kind, Secret: true}, FieldValue{}, "x"); c.Kind != want {
				t.Errorf("%s, %s: shown as %s, want %s", path, kind, c.Kind, want)
			}
		}
	}
}
