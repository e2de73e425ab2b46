package plan

import (
	"context"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/kube/chart"
	"github.com/solutionctl/solutionctl/schema"
)

// Values describes what a site can set of the charts of a revision, and what it has set of them.
func (p *Planner) Values(ctx context.Context, key record.Key, r *schema.DeploymentRevision) ([]schema.ComponentValues, error) {
	payload, charts, err := p.chartsOf(ctx, key, r)
	if err != nil {
		return nil, err
	}
	list := []schema.ComponentValues{}
	for _, c := range charts {
		described, err := payload.Values(c)
		if err != nil {
			return nil, err
		}
		key.Component = c.Name
		stored, err := p.storedChart(ctx, key)
		if err != nil {
			return nil, err
		}
		list = append(list, withSite(described, stored.Values))
	}
	return list, nil
}

// SiteValues returns what a site has set of the charts of a revision, by component. Secrets are among the values.
func (p *Planner) SiteValues(ctx context.Context, key record.Key, r *schema.DeploymentRevision) (map[string]map[string]any, error) {
	_, charts, err := p.chartsOf(ctx, key, r)
	if err != nil {
		return nil, err
	}
	values := map[string]map[string]any{}
	for _, c := range charts {
		key.Component = c.Name
		stored, err := p.storedChart(ctx, key)
		if err != nil {
			return nil, err
		}
		if len(stored.Values) > 0 {
			values[c.Name] = stored.Values
		}
	}
	return values, nil
}

// chartsOf returns the selected components of a revision that are charts and live in the namespace of its record.
func (p *Planner) chartsOf(ctx context.Context, key record.Key, r *schema.DeploymentRevision) (*render.Payload, []*schema.Component, error) {
	payload, err := p.payload(ctx, key.Name, r.Version)
	if err != nil {
		return nil, nil, err
	}
	selection, _, err := (&Parts{}).Select(payload, r.Settings, map[string]string{})
	if err != nil {
		return nil, nil, err
	}
	var charts []*schema.Component
	for _, node := range selection.Nodes() {
		if node.Kind == schema.ComponentChart && InCluster(node) == (key.Namespace == "") {
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

// withSite adds what the site has set to the values of a chart: those that the chart does not have, too.
func withSite(c schema.ComponentValues, site map[string]any) schema.ComponentValues {
	for i := range c.Values {
		setFrom(site, &c.Values[i])
	}
	for _, path := range chart.Paths(site) {
		if !slices.ContainsFunc(c.Values, func(v schema.ChartValue) bool { return chart.IsWithin(path, v.Path) || chart.IsWithin(v.Path, path) }) {
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
	if v.Set = set; set && !v.Secret {
		v.Value = chart.EncodeValue(value)
	}
}
