package metalk8s

import (
	"context"

	"github.com/solutionctl/solutionctl/schema"
)

// Pillar returns the pillar metalk8s:solutions as MetalK8s shows it to Salt. configuration is that of the host; where
// it could not be read, failure is the reason. Entries that cannot be parsed are among the pillar's errors, where
// Salt's states look for them; the returned error means that the cluster did not answer.
func (d *Documents) Pillar(ctx context.Context, configuration *schema.SolutionsConfiguration, failure error) (*schema.Pillar, error) {
	solutions, err := d.Solutions(ctx)
	if err != nil {
		return nil, err
	}
	environments, err := d.Environments(ctx)
	if err != nil {
		return nil, err
	}
	return pillarOf(solutions, environments, configuration, failure), nil
}

func pillarOf(solutions *Solutions, environments []Environment, configuration *schema.SolutionsConfiguration, failure error) *schema.Pillar {
	p := &schema.Pillar{Available: solutions.Versions, Config: configuration, Environments: map[string]schema.PillarEnvironment{}}
	for _, problem := range solutions.Problems {
		p.Errors.Available = append(p.Errors.Available, problem.String())
	}
	if failure != nil {
		p.Errors.Config = append(p.Errors.Config, failure.Error())
	}
	for _, e := range environments {
		entry := schema.PillarEnvironment{Name: e.Name, Namespaces: map[string]schema.PillarNamespace{}}
		for _, n := range e.Namespaces {
			if entry.Description == nil {
				entry.Description = n.Description // also an empty one, as for MetalK8s
			}
			entry.Namespaces[n.Name] = schema.PillarNamespace{Config: n.Config}
		}
		p.Environments[e.Name] = entry
	}
	return p
}
