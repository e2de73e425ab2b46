package page

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/solutionctl/solutionctl/kube/chart"
	"github.com/solutionctl/solutionctl/schema"
)

// Values is the form with the values of charts before a plan: …/plan/VERB/values.
type Values struct {
	Environment string // "" for components of the cluster
	Values      *schema.SolutionValues
	Inputs      [][]FieldValue // one list for each component, with one for each value
	Action      Action
	Cancel      Link
}

func (*Values) name() string    { return "values" }
func (c *Values) title() string { return Text("values.title", c.Values.Solution) }

// valuesPart is a chart in the form.
type valuesPart struct {
	*schema.ComponentValues
	ID     string
	Groups []valuesGroup
	fields int
}

// valuesGroup are the values of one table at the top of a chart, or those that are in none.
type valuesGroup struct {
	Label, Path string
	Open        bool
	Set         int // that this site has set
	Controls    []control
}

// fewValues are shown at once; larger groups are folded, except those that need an answer.
const fewValues = 12

// Parts are the charts, with their values in groups.
func (c *Values) Parts() []valuesPart {
	var parts []valuesPart
	for i := range c.Values.Components {
		part := valuesPart{ComponentValues: &c.Values.Components[i]}
		part.ID = ident("value", part.Component)
		for j, value := range part.Values {
			var v FieldValue
			if i < len(c.Inputs) && j < len(c.Inputs[i]) {
				v = c.Inputs[i][j]
			}
			part.add(&value, v)
		}
		slices.SortStableFunc(part.Groups, func(a, b valuesGroup) int { return cmp.Compare(min(len(a.Path), 1), min(len(b.Path), 1)) })
		parts = append(parts, part)
	}
	return parts
}

// add adds a value to its group.
func (p *valuesPart) add(value *schema.ChartValue, v FieldValue) {
	table := ""
	if keys := chart.SplitPath(value.Path); len(keys) > 1 {
		table = keys[0]
	}
	at := slices.IndexFunc(p.Groups, func(g valuesGroup) bool { return g.Path == table })
	if at < 0 {
		at = len(p.Groups)
		group := valuesGroup{Label: inWords(table), Path: table, Open: table == "" || len(p.Values) <= fewValues}
		if table == "" {
			group.Label = Text("values.general")
		}
		p.Groups = append(p.Groups, group)
	}
	group := &p.Groups[at]
	c := controlOf(value.AppField, v, ValueName(p.Component, value.Path))
	c.ID = fmt.Sprintf("%s.%d", p.ID, p.fields)
	p.fields++
	c.Locked, c.Reset = value.Locked, value.Secret && value.Set && !value.Required
	if value.Set {
		group.Set++
	}
	group.Open = group.Open || value.Required || value.Set || v.Value != "" || v.Kept || v.Problem != ""
	group.Controls = append(group.Controls, c)
}
