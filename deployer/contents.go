package deployer

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/components"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Wanted returns the Solutions of a document for [Deployer.Ensure], with the values from Secrets.
func (d *Deployer) Wanted(ctx context.Context, e schema.EnvironmentContents) ([]plan.Wanted, error) {
	list := make([]plan.Wanted, len(e.Solutions))
	for i, s := range e.Solutions {
		list[i] = plan.Wanted{Solution: s.Name, Version: s.Version, Rendering: plan.Rendering{AcceptHazards: s.Accept.Hazards, Allow: s.Accept.Powers}}
		list[i].Choice = choiceOf(s)
		if s.Accept.ClusterWide {
			list[i].ClusterWide = &s.Accept.ClusterWide
		}
		values, err := siteValues(ctx, d.Cluster, s)
		if err != nil {
			return nil, fmt.Errorf("environment %s: Solution %s: %w", e.Name, s.Name, err)
		}
		list[i].Values = values
	}
	return list, nil
}

func choiceOf(s schema.SolutionSelection) components.Choice {
	choice := components.Choice{Profiles: s.Profiles, Components: map[string]bool{}}
	for _, name := range slices.Sorted(maps.Keys(s.Components)) {
		if wish := s.Components[name]; wish == schema.ComponentDefault {
			choice.Default = append(choice.Default, name)
		} else {
			choice.Components[name] = wish == schema.ComponentWanted
		}
	}
	return choice
}

// secretValuesKey is the key of a Secret below which there are values.
const secretValuesKey = "values.yaml"

// siteValues returns the values of charts; Secrets override the configuration. They replace the saved values.
func siteValues(ctx context.Context, c *cluster.Cluster, s schema.SolutionSelection) (map[string]plan.SiteValues, error) {
	values := map[string]plan.SiteValues{}
	for component, own := range s.Values {
		values[component] = plan.SiteValues{Values: own, Reset: true}
	}
	for component, from := range s.ValuesFrom {
		secret, err := secretValues(ctx, c, from.Secret)
		if err != nil {
			return nil, fmt.Errorf("component %s: %w", component, err)
		}
		merged := plan.SiteValues{Reset: true}
		merged.Add(values[component].Values)
		merged.Add(secret)
		values[component] = merged
	}
	return values, nil
}

func secretValues(ctx context.Context, c *cluster.Cluster, name string) (map[string]any, error) {
	where := "Secret " + cluster.SystemNamespace + "/" + name
	secret, err := c.Get(ctx, cluster.SecretKind, cluster.SystemNamespace, name)
	if err != nil {
		return nil, err
	}
	if secret == nil {
		return nil, report.Errorf(report.NotFound, "there is no %s", where).
			WithHint("kubectl create secret generic -n %s %s --from-file=%s=FILE", cluster.SystemNamespace, name, secretValuesKey)
	}
	data, err := cluster.SecretData(secret, secretValuesKey)
	if err != nil {
		return nil, report.Errorf(report.Invalid, "%s: %w", where, err)
	}
	var values map[string]any
	if err := schema.ReadDocument(where, data, &values); err != nil { // the content is secret and not shown
		return nil, report.Errorf(report.Invalid, "%s, key %s, is not one YAML object without a key twice", where, secretValuesKey)
	}
	return values, nil
}
