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
	Find        string         // words: only values that have them are shown; "" for all that concern the user
	Opened      []string       // names of groups that are shown whole
	Action      Action
	Cancel      Link

	parts []valuesPart
}

func (*Values) name() string    { return "values" }
func (c *Values) title() string { return Text("values.title", c.Values.Solution) }

// Names of the buttons and fields that show other values of the form. What was typed is kept.
const (
	ValuesFind = "find" // words to find
	ValuesShow = "show" // the button beside them has the value ValuesFind
	ValuesOpen = "open" // the name of a group
)

// Bounds of the form.
const (
	fewValues   = 12  // are shown at once; larger groups are folded, except those that need an answer
	manyValues  = 40  // have a field to find one
	maxControls = 500 // are on one page. Of more values, those that concern the user are shown, and those that are asked for
	maxFolded   = 100 // groups of a chart of which no value is shown
	perChoices  = 10  // choices are as much as one control
)

// valuesPart is a chart in the form.
type valuesPart struct {
	*schema.ComponentValues
	ID       string
	Groups   []valuesGroup
	Unlisted int // groups that are not on the page
	at       map[string]int
}

// valuesGroup are the values of one table at the top of a chart, or those that are in none.
type valuesGroup struct {
	Label, Path, ID string
	Name            string // of the group among those of all charts
	Open            bool
	Set             int // that this site has set
	Fields          int // with those that are not shown
	Controls        []control
	Opened          bool // the user has asked for all of it
}

// Rest is the number of values that are not shown.
func (g *valuesGroup) Rest() int { return g.Fields - len(g.Controls) }

// ValuesGroup is the name of the group of a value.
func ValuesGroup(component, path string) string { return component + ":" + tableOf(path) }

// ValuesGroupID is the id of a group on the page.
func ValuesGroupID(name string) string { return ident("group", name) }

// tableOf returns the table at the top of a chart that a value is in; "" for none.
func tableOf(path string) string {
	if keys := chart.SplitPath(path); len(keys) > 1 {
		return keys[0]
	}
	return ""
}

// Searchable reports whether the form has a field to find a value.
func (c *Values) Searchable() bool { return c.Find != "" || c.count() > manyValues }

func (c *Values) count() (n int) {
	for i := range c.Values.Components {
		n += len(c.Values.Components[i].Values)
	}
	return n
}

// Nothing reports whether no value has the words that are to be found.
func (c *Values) Nothing() bool {
	return c.Find != "" && !slices.ContainsFunc(c.Parts(), func(p valuesPart) bool { return len(p.Groups) > 0 })
}

// Parts are the charts, with their values in groups.
func (c *Values) Parts() []valuesPart {
	if c.parts != nil {
		return c.parts
	}
	shown := c.shown()
	for i := range c.Values.Components {
		part := valuesPart{ComponentValues: &c.Values.Components[i], at: map[string]int{}}
		part.ID = ident("value", part.Component)
		for j := range part.Values {
			part.add(j, c.input(i, j), shown[i][j])
		}
		for k := range part.Groups {
			part.Groups[k].Opened = slices.Contains(c.Opened, part.Groups[k].Name)
		}
		part.fold(c.Find != "")
		c.parts = append(c.parts, part)
	}
	return c.parts
}

func (c *Values) input(component, value int) (v FieldValue) {
	if component < len(c.Inputs) && value < len(c.Inputs[component]) {
		v = c.Inputs[component][value]
	}
	return v
}

// Values in the order in which they get a place on the page.
const (
	valueWrong = iota
	valueAskedFor
	valueConcerns // required, or set
	valueOther
	valueHidden
)

// shown reports which values are on the page, of each component.
func (c *Values) shown() [][]bool {
	all := c.count() <= maxControls
	ranks, places := make([][]int, len(c.Values.Components)), [valueHidden]int{}
	for i := range c.Values.Components {
		one := &c.Values.Components[i]
		for j := range one.Values {
			rank := c.rank(one.Component, &one.Values[j], c.input(i, j), all)
			if ranks[i] = append(ranks[i], rank); rank < valueHidden {
				places[rank] += room(&one.Values[j])
			}
		}
	}
	left := maxControls
	for rank := range places {
		places[rank] = min(places[rank], left)
		left -= places[rank]
	}
	shown := make([][]bool, len(ranks))
	for i := range ranks {
		for j, rank := range ranks[i] {
			visible := rank < valueHidden && places[rank] > 0
			if shown[i] = append(shown[i], visible); visible {
				places[rank] -= room(&c.Values.Components[i].Values[j])
			}
		}
	}
	return shown
}

// room is how much of the page a value takes.
func room(v *schema.ChartValue) int { return 1 + len(v.Choices)/perChoices }

func (c *Values) rank(component string, value *schema.ChartValue, v FieldValue, all bool) int {
	f := &value.AppField
	switch {
	case v.Problem != "":
		return valueWrong
	case c.Find != "" && matches(c.Find, f.Path, labelOf(f), f.Description, f.Details),
		len(c.Opened) > 0 && slices.Contains(c.Opened, ValuesGroup(component, f.Path)):
		return valueAskedFor
	case c.Find != "":
		return valueHidden
	case concerns(value, v):
		return valueConcerns
	case all:
		return valueOther
	}
	return valueHidden
}

// concerns reports whether a value is required, set, or typed.
func concerns(value *schema.ChartValue, v FieldValue) bool {
	return value.Required || value.Set || v.Value != "" || v.Kept || v.Changed || v.Problem != ""
}

// add adds a value to its group.
func (p *valuesPart) add(n int, v FieldValue, shown bool) {
	value := &p.Values[n]
	table := tableOf(value.Path)
	at, there := p.at[table]
	if !there {
		at = len(p.Groups)
		group := valuesGroup{Label: inWords(table), Path: table, Name: ValuesGroup(p.Component, value.Path), Open: table == "" || len(p.Values) <= fewValues}
		if group.ID = ValuesGroupID(group.Name); table == "" {
			group.Label = Text("values.general")
		}
		p.Groups, p.at[table] = append(p.Groups, group), at
	}
	group := &p.Groups[at]
	if group.Fields++; value.Set {
		group.Set++
	}
	if !shown {
		return
	}
	c := controlOf(value.AppField, v, ValueName(p.Component, value.Path))
	c.ID = fmt.Sprintf("%s.%d", p.ID, n)
	c.More = Hidden{Name: ValuesOpen, Value: group.Name}
	c.Locked, c.Reset = value.Locked, value.Secret && value.Set && !value.Required
	group.Open = group.Open || concerns(value, v)
	group.Controls = append(group.Controls, c)
}

// fold sorts the groups, those of which no value is shown last, and leaves out what is too much of them. A search leaves out all of these.
func (p *valuesPart) fold(search bool) {
	slices.SortStableFunc(p.Groups, func(a, b valuesGroup) int {
		return cmp.Or(cmp.Compare(min(len(b.Controls), 1), min(len(a.Controls), 1)), cmp.Compare(min(len(a.Path), 1), min(len(b.Path), 1)))
	})
	folded := slices.IndexFunc(p.Groups, func(g valuesGroup) bool { return len(g.Controls) == 0 })
	switch {
	case folded < 0:
		folded = len(p.Groups)
	case search:
		p.Groups = p.Groups[:folded]
	case len(p.Groups)-folded > maxFolded:
		p.Unlisted = len(p.Groups) - folded - maxFolded
		p.Groups = p.Groups[:folded+maxFolded]
	}
	for i := range p.Groups[:folded] {
		g := &p.Groups[i]
		g.Open = g.Open || search || g.Opened || g.Rest() > 0
	}
}
