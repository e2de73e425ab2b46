package deployer

import (
	"context"
	"slices"

	"github.com/solutionctl/solutionctl/deployer/components"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
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

// Components tells what a Solution is made of where it is deployed, which of it was chosen, and how it is.
func (d *Deployer) Components(ctx context.Context, o ComponentsOptions) (*schema.ComponentGraph, error) {
	namespaces, there, err := d.where(ctx, o)
	if err != nil {
		return nil, err
	}
	if len(there) == 0 {
		return nil, plan.NotDeployed(o.Solution, o.Environment, namespaces)
	}
	last := plan.LastRevision(there[0].State)
	if last == nil {
		return nil, report.Errorf(report.NotFound, "Solution %s in namespace %s was not deployed from here", o.Solution, there[0].Name)
	}
	graph, err := d.graph(ctx, o.Solution, last.Version, last.Settings, components.Choice{})
	if err != nil {
		return nil, err
	}
	return graph, d.addStatus(ctx, graph, o, there[0].Name)
}

// SelectionOptions name a version of a Solution that is to be deployed in an environment, or to be activated: then the environment is "".
type SelectionOptions struct {
	ComponentsOptions
	Version string
	// Choice is what somebody wants of it. What it does not say stays as it was chosen before, where it was.
	Choice components.Choice
}

// Selection tells what a version of a Solution is made of, and which of it would be deployed with a choice. What cannot be chosen
// is refused, as the verbs refuse it.
func (d *Deployer) Selection(ctx context.Context, o SelectionOptions) (*schema.ComponentGraph, error) {
	settings, err := d.chosen(ctx, o.ComponentsOptions)
	if err != nil {
		return nil, err
	}
	return d.graph(ctx, o.Solution, o.Version, settings, o.Choice)
}

// chosen are the settings with which a Solution is deployed; none where it is not.
func (d *Deployer) chosen(ctx context.Context, o ComponentsOptions) (map[string]string, error) {
	if o.Environment == "" {
		state, err := d.Records.Engine.State(ctx, engine.Key{Name: o.Solution})
		if err != nil {
			return nil, err
		}
		return plan.SettingsOf(plan.LastRevision(state)), nil
	}
	_, there, err := d.where(ctx, o)
	if err != nil || len(there) == 0 {
		return nil, err
	}
	return plan.SettingsOf(plan.LastRevision(there[0].State)), nil
}

// where finds the namespaces of an environment, and those that have the Solution.
func (d *Deployer) where(ctx context.Context, o ComponentsOptions) ([]metalk8s.Namespace, []plan.Installation, error) {
	namespaces, err := d.Records.Namespaces(ctx, o.Environment, o.Namespace)
	if err != nil {
		return nil, nil, err
	}
	there, err := d.planner().Installed(ctx, o.Solution, namespaces)
	return namespaces, there, err
}

// graph is what a version of a Solution is made of, with a choice after the one of some settings.
func (d *Deployer) graph(ctx context.Context, solution, version string, settings map[string]string, choice components.Choice) (*schema.ComponentGraph, error) {
	catalog, err := d.Records.Catalog(ctx)
	if err != nil {
		return nil, err
	}
	found, _, err := catalog.Find(solution, version)
	if err != nil {
		return nil, err
	}
	payload, err := d.Records.Payload(ctx, found)
	if err != nil {
		return nil, err
	}
	parts := plan.Parts{Choice: choice}
	selection, _, err := parts.Select(payload, settings, map[string]string{})
	if err != nil {
		return nil, err
	}
	return selection.Document(), nil
}

// addStatus tells of each part of a graph how it is in a namespace.
func (d *Deployer) addStatus(ctx context.Context, g *schema.ComponentGraph, o ComponentsOptions, namespace string) error {
	status, err := d.Survey.EnvironmentStatus(ctx, survey.EnvironmentOptions{Environment: o.Environment, Namespace: o.Namespace})
	if err != nil {
		return err
	}
	for _, n := range status.Namespaces {
		at := slices.IndexFunc(n.Deployments, func(s schema.DeploymentStatus) bool { return s.Solution == o.Solution })
		if n.Name != namespace || at < 0 {
			continue
		}
		for i := range g.Components {
			c := &g.Components[i]
			if part := slices.IndexFunc(n.Deployments[at].Components, func(s schema.ComponentStatus) bool { return s.Name == c.Name }); part >= 0 {
				c.Status = &n.Deployments[at].Components[part]
			}
		}
	}
	return nil
}
