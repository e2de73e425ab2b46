package page

import (
	"strings"

	"github.com/solutionctl/solutionctl/schema"
)

// control is a field of an instance's form as it is shown.
type control struct {
	schema.AppField
	FieldValue
	ID, Name string
	// Kind is select, number, text or area.
	Kind    string
	Choices []Choice
}

// Controls are the controls of all fields, required ones first.
func (c *AppEdit) Controls() []control {
	var all []control
	for i, f := range c.Form.Fields {
		var v FieldValue
		if i < len(c.Values) {
			v = c.Values[i]
		}
		all = append(all, controlOf(f, v))
	}
	return all
}

// Basic are the controls that most people need: those without a default, and those that were filled in.
func (c *AppEdit) Basic() []control { return c.pick(true) }

// Advanced are the others.
func (c *AppEdit) Advanced() []control { return c.pick(false) }

func (c *AppEdit) pick(basic bool) []control {
	var some []control
	for _, f := range c.Controls() {
		if (f.Required || f.Value != "" || f.Problem != "" || len(c.Form.Fields) <= 8) == basic {
			some = append(some, f)
		}
	}
	return some
}

func controlOf(f schema.AppField, v FieldValue) control {
	c := control{AppField: f, FieldValue: v, Name: "spec." + f.Path, ID: ident("spec", f.Path), Kind: "text"}
	choices := f.Choices
	if f.Type == "boolean" {
		choices = []string{"true", "false"}
	}
	switch {
	case len(choices) > 0:
		c.Kind = "select"
		c.Choices = append(c.Choices, Choice{Label: Text("appedit.default", strings.Trim(f.Default, `"`)), Selected: v.Value == ""})
		if f.Default == "" {
			c.Choices[0].Label = Text("appedit.choose")
		}
		for _, choice := range choices {
			c.Choices = append(c.Choices, Choice{Value: choice, Label: choice, Selected: choice == v.Value})
		}
	case f.Type == "integer" || f.Type == "number":
		c.Kind = "number"
	case f.Type != "string" && f.Type != "integer or string":
		c.Kind = "area"
	}
	return c
}

// Rows are the instances that match the query.
func (a *Apps) Rows() []schema.App {
	var rows []schema.App
	for _, app := range a.List.Apps {
		if matches(a.Query, app.Name, app.Namespace, app.Kind, app.Solution, string(app.Health)) {
			rows = append(rows, app)
		}
	}
	return rows
}
