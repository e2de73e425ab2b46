package deployer

import (
	"context"
	"slices"

	"github.com/solutionctl/solutionctl/deployer/components"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// ComponentsOptions name a deployed Solution.
type ComponentsOptions struct {
	Environment, Solution string
	Namespace             string // one of the environment's; "" is enough where all of them have the same version
}

// Components returns the components of a deployed Solution, which of them are selected, and their health.
func (d *Deployer) Components(ctx context.Context, o ComponentsOptions) (*schema.ComponentGraph, error) {
	p := d.planner()
	installed, last, err := lastOf(ctx, p, o)
	if err != nil {
		return nil, err
	}
	graph, err := p.Graph(ctx, o.Solution, last.Version, last.Settings, components.Choice{})
	if err != nil {
		return nil, err
	}
	status, err := d.Survey.EnvironmentStatus(ctx, survey.EnvironmentOptions{Environment: o.Environment, Namespace: o.Namespace})
	if err != nil {
		return graph, err
	}
	for _, n := range status.Namespaces {
		at := slices.IndexFunc(n.Deployments, func(s schema.DeploymentStatus) bool { return s.Solution == o.Solution })
		if n.Name == installed.Name && at >= 0 {
			graph.AddStatus(n.Deployments[at].Components)
		}
	}
	return graph, nil
}

// lastOf returns the installation of a Solution, and its last revision.
func lastOf(ctx context.Context, p *plan.Planner, o ComponentsOptions) (*plan.Installation, *schema.DeploymentRevision, error) {
	namespaces, installed, err := p.InstalledIn(ctx, o.Solution, o.Environment, o.Namespace)
	if err != nil {
		return nil, nil, err
	}
	if len(installed) == 0 {
		return nil, nil, plan.NotDeployed(o.Solution, o.Environment, namespaces)
	}
	last := plan.LastRevision(installed[0].State)
	if last == nil {
		return nil, nil, report.Errorf(report.NotFound, "Solution %s in namespace %s was not deployed from here", o.Solution, installed[0].Name)
	}
	return &installed[0], last, nil
}

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
	list, err := p.Values(ctx, installed.State.Key, last)
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
	return p.SiteValues(ctx, installed.State.Key, last)
}

// SelectionOptions name a version of a Solution that is to be deployed in an environment, or to be activated: then the environment is "".
type SelectionOptions struct {
	ComponentsOptions
	Version string
	Choice  components.Choice // changes the choice with which the Solution is deployed
}

// Selection returns the components of a version, and which of them a choice selects. It refuses a choice that the verbs refuse.
func (d *Deployer) Selection(ctx context.Context, o SelectionOptions) (*schema.ComponentGraph, error) {
	p, state := d.planner(), &record.State{}
	var installed []plan.Installation
	var err error
	if o.Environment == "" {
		state, err = d.Records.Engine.State(ctx, record.Key{Name: o.Solution})
	} else if _, installed, err = p.InstalledIn(ctx, o.Solution, o.Environment, o.Namespace); len(installed) > 0 {
		state = installed[0].State
	}
	if err != nil {
		return nil, err
	}
	return p.Graph(ctx, o.Solution, o.Version, plan.SettingsOf(plan.LastRevision(state)), o.Choice)
}
