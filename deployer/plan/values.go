package plan

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/deployer/components"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/kube/chart"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// ValuesOf names the charts whose values are read or changed: those of a version of a Solution that a choice selects.
type ValuesOf struct {
	record.Key        // of the Solution
	Version    string // to be deployed
	Settings   map[string]string
	Choice     components.Choice // over the one in the settings
}

// Values describes what a site can set of charts, and what it has set of them.
func (p *Planner) Values(ctx context.Context, of ValuesOf) ([]schema.ComponentValues, error) {
	payload, charts, err := p.chartsOf(ctx, of)
	if err != nil {
		return nil, err
	}
	list := []schema.ComponentValues{}
	for _, c := range charts {
		described, err := payload.Values(c)
		if err != nil {
			return nil, err
		}
		stored, err := p.storedChart(ctx, of.component(c.Name))
		if err != nil {
			return nil, err
		}
		list = append(list, withSite(described, stored.Values))
	}
	return list, nil
}

// SiteValues returns what a site has set of charts, by component. Secrets are among the values.
func (p *Planner) SiteValues(ctx context.Context, of ValuesOf) (map[string]map[string]any, error) {
	_, charts, err := p.chartsOf(ctx, of)
	if err != nil {
		return nil, err
	}
	values := map[string]map[string]any{}
	for _, c := range charts {
		stored, err := p.storedChart(ctx, of.component(c.Name))
		if err != nil {
			return nil, err
		}
		if len(stored.Values) > 0 {
			values[c.Name] = stored.Values
		}
	}
	return values, nil
}

// component returns the key of a component.
func (of ValuesOf) component(name string) record.Key {
	key := of.Key
	key.Component = name
	return key
}

// ValueEdit is a change of one value of a site by a person.
type ValueEdit struct {
	Component, Path string
	Text            string // as [schema.ParseValue] reads it
	Unset           bool   // the default of the chart counts again
}

// ValueProblem is the reason why a value of a site is refused, as the end of a sentence about it: "is required".
type ValueProblem struct{ Component, Path, Message string }

// EditValues returns what a site has set of charts after edits, for those charts that are edited, and what is wrong with it.
func (p *Planner) EditValues(ctx context.Context, of ValuesOf, edits []ValueEdit) (map[string]SiteValues, []ValueProblem, error) {
	payload, charts, err := p.chartsOf(ctx, of)
	if err != nil {
		return nil, nil, err
	}
	edited := map[string]SiteValues{}
	var problems []ValueProblem
	for _, c := range charts {
		stored, err := p.storedChart(ctx, of.component(c.Name))
		if err != nil {
			return nil, nil, err
		}
		own := slices.DeleteFunc(slices.Clone(edits), func(e ValueEdit) bool { return e.Component != c.Name })
		values, wrong, err := editChart(payload, c, stored.Values, own)
		if err != nil {
			return nil, nil, err
		}
		if problems = append(problems, wrong...); len(own) > 0 {
			edited[c.Name] = SiteValues{Values: values, Reset: true}
		}
	}
	for _, e := range edits {
		if !slices.ContainsFunc(charts, func(c *schema.Component) bool { return c.Name == e.Component }) {
			return nil, nil, report.Errorf(report.Usage, "no chart %q is among the selected components", e.Component)
		}
	}
	return edited, problems, nil
}

// editChart edits the values of a site for one chart.
func editChart(payload *render.Payload, c *schema.Component, site map[string]any, edits []ValueEdit) (map[string]any, []ValueProblem, error) {
	described, err := payload.Values(c)
	if err != nil {
		return nil, nil, err
	}
	described = withSite(described, site)
	var problems []ValueProblem
	known := map[string]bool{} // paths of problems
	add := func(path, message string) {
		if !known[path] { // the first is the cause of others
			known[path] = true
			problems = append(problems, ValueProblem{c.Name, path, message})
		}
	}
	byPath := map[string]*schema.ChartValue{}
	for i := range described.Values {
		byPath[described.Values[i].Path] = &described.Values[i]
	}
	for _, e := range edits {
		edited := byPath[e.Path]
		if edited == nil {
			return nil, nil, report.Errorf(report.Usage, "component %s has no value %q", c.Name, e.Path)
		}
		value, wrong := parseEdit(edited, e)
		switch {
		case wrong != nil:
			add(e.Path, wrong.Error())
		case e.Unset:
			site = chart.RemoveValue(site, e.Path)
		default:
			site = chart.SetValue(site, e.Path, value)
		}
	}
	locked, missing := render.SiteFaults(c, site)
	for _, path := range locked {
		add(path, "is locked by the vendor")
	}
	for _, path := range missing {
		add(path, "is required")
	}
	invalid, err := payload.CheckValues(c, site)
	for _, p := range invalid {
		add(p.Path, p.Message)
	}
	return site, problems, err
}

// parseEdit returns the value of an edit as values of charts are stored: numbers are as in JSON.
func parseEdit(v *schema.ChartValue, e ValueEdit) (value any, err error) {
	if e.Unset {
		return nil, nil
	}
	if v.Type == "string" && e.Text == `""` {
		return "", nil
	}
	if value, err = v.Parse(e.Text); err != nil {
		return nil, err
	}
	data, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(data, &value)
	}
	return value, err
}

// chartsOf returns the selected components that are charts and live in the namespace of the record.
func (p *Planner) chartsOf(ctx context.Context, of ValuesOf) (*render.Payload, []*schema.Component, error) {
	payload, err := p.payload(ctx, of.Name, of.Version)
	if err != nil {
		return nil, nil, err
	}
	selection, _, err := (&Parts{Choice: of.Choice}).Select(payload, of.Settings, map[string]string{})
	if err != nil {
		return nil, nil, err
	}
	var charts []*schema.Component
	for _, node := range selection.Nodes() {
		if node.Kind == schema.ComponentChart && InCluster(node) == (of.Namespace == "") {
			charts = append(charts, node.Component)
		}
	}
	return payload, charts, nil
}

// payload reads the content of an imported version.
func (p *Planner) payload(ctx context.Context, solution, version string) (*render.Payload, error) {
	catalog, err := p.Records.Catalog(ctx)
	if err != nil {
		return nil, err
	}
	found, _, err := catalog.Find(solution, version)
	if err != nil {
		return nil, err
	}
	return p.Records.Payload(ctx, found)
}

// withSite adds what the site has set to the values of a chart: also values that the chart does not have.
func withSite(c schema.ComponentValues, site map[string]any) schema.ComponentValues {
	values, tables := map[string]bool{}, map[string]bool{} // paths of the chart
	for i := range c.Values {
		setFrom(site, &c.Values[i])
		values[c.Values[i].Path] = true
		for table := range chart.TablesAround(c.Values[i].Path) {
			tables[table] = true
		}
	}
	for _, path := range chart.Paths(site) {
		known := values[path] || tables[path]
		for table := range chart.TablesAround(path) {
			known = known || values[table]
		}
		if !known {
			v := schema.ChartValue{AppField: schema.AppField{Path: path, Type: "any", Secret: schema.IsSecretPath(path)}}
			v.Describe("not among the values of the chart")
			setFrom(site, &v)
			c.Values = append(c.Values, v)
		}
	}
	slices.SortStableFunc(c.Values, func(a, b schema.ChartValue) int { return strings.Compare(a.Path, b.Path) })
	return c
}

// setFrom adds what the site has set.
func setFrom(site map[string]any, v *schema.ChartValue) {
	value, set := chart.ValueAt(site, v.Path)
	v.Set = set
	if hasSecret(value) {
		v.Secret = true
		if v.Type == "any" { // without its value, a form cannot see that it has lines
			v.Type = chart.TypeOfValue(value)
		}
	}
	if set && !v.Secret {
		v.Value = chart.EncodeValue(value)
	}
}

// hasSecret reports whether a table or a list has a field with a secret.
func hasSecret(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			if schema.IsSecretField(value, name) || hasSecret(inner) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(value, hasSecret)
	}
	return false
}
