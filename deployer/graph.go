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

// SelectionOptions name a version of a Solution that is to be deployed in an environment, or to be activated: then the environment is "".
type SelectionOptions struct {
	ComponentsOptions
	Version string
	Choice  components.Choice // changes the choice with which the Solution is deployed
}

// Selection returns the components of a version, and which of them a choice selects. It refuses a choice that the verbs refuse.
func (d *Deployer) Selection(ctx context.Context, o SelectionOptions) (*schema.ComponentGraph, error) {
	p := d.planner()
	state, err := stateOf(ctx, p, o.ComponentsOptions)
	if err != nil {
		return nil, err
	}
	return p.Graph(ctx, o.Solution, o.Version, plan.SettingsOf(plan.LastRevision(state)), o.Choice)
}

// stateOf returns the record of a Solution in a namespace of an environment, or in the cluster; an empty one where it is not deployed.
func stateOf(ctx context.Context, p *plan.Planner, o ComponentsOptions) (*record.State, error) {
	if o.Environment == "" {
		return p.Records.Engine.State(ctx, record.Key{Name: o.Solution})
	}
	namespaces, installed, err := p.InstalledIn(ctx, o.Solution, o.Environment, o.Namespace)
	if err != nil || len(namespaces) == 0 {
		return &record.State{}, err
	}
	if len(installed) > 0 {
		return installed[0].State, nil
	}
	return &record.State{Key: record.Key{Namespace: namespaces[0].Name, Name: o.Solution}}, nil
}
