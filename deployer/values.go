package deployer

import (
	"context"
	"slices"

	"github.com/solutionctl/solutionctl/deployer/components"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// ValuesOptions select values of a deployed Solution.
type ValuesOptions struct {
	ComponentsOptions
	Components []string // only these; nil: all
	Changed    bool     // only those that the site has set
}

// Values describes what the site can set of the charts of a deployed Solution, and what it has set. Secrets are left out.
func (d *Deployer) Values(ctx context.Context, o ValuesOptions) (*schema.SolutionValues, error) {
	p := d.planner()
	installed, last, err := lastOf(ctx, p, o.ComponentsOptions)
	if err != nil {
		return nil, err
	}
	list, err := p.Values(ctx, valuesOf(installed.State, last.Version, components.Choice{}))
	if err != nil {
		return nil, err
	}
	for _, name := range o.Components {
		if !slices.ContainsFunc(list, func(c schema.ComponentValues) bool { return c.Component == name }) {
			return nil, report.Errorf(report.NotFound, "no chart %q is among the components of Solution %s in environment %s", name, o.Solution, o.Environment).
				WithHint("list them: %s", report.Run("deploy components", o.Environment, o.Solution))
		}
	}
	list = slices.DeleteFunc(list, func(c schema.ComponentValues) bool {
		return o.Components != nil && !slices.Contains(o.Components, c.Component)
	})
	for i := range list {
		list[i].Values = slices.DeleteFunc(list[i].Values, func(v schema.ChartValue) bool { return o.Changed && !v.Set })
	}
	return &schema.SolutionValues{Solution: o.Solution, Version: last.Version, Environment: o.Environment, Namespace: installed.Name, Components: list}, nil
}

// SiteValues returns what the site has set of the charts of a deployed Solution, by component, as --values takes it. Secrets are among the
// values.
func (d *Deployer) SiteValues(ctx context.Context, o ComponentsOptions) (map[string]map[string]any, error) {
	p := d.planner()
	installed, last, err := lastOf(ctx, p, o)
	if err != nil {
		return nil, err
	}
	return p.SiteValues(ctx, valuesOf(installed.State, last.Version, components.Choice{}))
}

// valuesOf names the charts of a version that is deployed, or is to be deployed.
func valuesOf(s *record.State, version string, choice components.Choice) plan.ValuesOf {
	return plan.ValuesOf{Key: s.Key, Version: version, Settings: plan.SettingsOf(plan.LastRevision(s)), Choice: choice}
}

// Settable describes what the site can set of the charts of a version that is to be deployed, and what it has set so far, and returns the
// number of the last revision: 0 where there is none. Secrets are left out.
func (d *Deployer) Settable(ctx context.Context, o SelectionOptions) (*schema.SolutionValues, int64, error) {
	p := d.planner()
	state, err := stateOf(ctx, p, o.ComponentsOptions)
	if err != nil {
		return nil, 0, err
	}
	list, err := p.Values(ctx, valuesOf(state, o.Version, o.Choice))
	if err != nil {
		return nil, 0, err
	}
	values := &schema.SolutionValues{Solution: o.Solution, Version: o.Version, Environment: o.Environment, Namespace: state.Namespace, Components: list}
	if last := plan.LastRevision(state); last != nil {
		return values, last.Number, nil
	}
	return values, 0, nil
}

// EditValues returns what the site has set of the charts of a version that is to be deployed, after edits, and what is wrong with it.
func (d *Deployer) EditValues(ctx context.Context, o SelectionOptions, edits []plan.ValueEdit) (map[string]plan.SiteValues, []plan.ValueProblem, error) {
	p := d.planner()
	state, err := stateOf(ctx, p, o.ComponentsOptions)
	if err != nil {
		return nil, nil, err
	}
	return p.EditValues(ctx, valuesOf(state, o.Version, o.Choice), edits)
}
