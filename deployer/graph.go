package deployer

import (
	"context"
	"slices"

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
	namespaces, err := d.Records.Namespaces(ctx, o.Environment, o.Namespace)
	if err != nil {
		return nil, err
	}
	there, err := d.installed(ctx, o.Solution, namespaces)
	if err != nil {
		return nil, err
	}
	if len(there) == 0 {
		return nil, notThere(o.Solution, o.Environment, namespaces)
	}
	last := lastRevision(there[0].state)
	if last == nil {
		return nil, report.Errorf(report.NotFound, "Solution %s in namespace %s was not deployed from here", o.Solution, there[0].Name)
	}
	catalog, err := d.Records.Catalog(ctx)
	if err != nil {
		return nil, err
	}
	found, _, err := catalog.Find(o.Solution, last.Version)
	if err != nil {
		return nil, err
	}
	payload, err := d.Records.Payload(ctx, found)
	if err != nil {
		return nil, err
	}
	one := &placement{Import: found, payload: payload}
	selection, _, err := one.selection(last.Settings, map[string]string{})
	if err != nil {
		return nil, err
	}
	graph := selection.Document()
	return graph, d.addStatus(ctx, graph, o, there[0].Name)
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
