package plan

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/schema"
)

// prepareDefinitions plans what has to be done to definitions and their objects before anything is applied: they do without
// a webhook that goes away, and versions are left in which nothing may be stored any more.
func (r *Run) prepareDefinitions(ctx context.Context, plan *engine.Plan, migrations []definitions.Migration) error {
	orphans, err := r.orphans(ctx, plan)
	if err != nil {
		return err
	}
	r.Notice(orphanNotices(orphans)...)
	for _, object := range orphans {
		r.Needs = append(r.Needs, definitions.MayMigrate(object)...)
	}
	for _, m := range migrations {
		r.Needs = append(r.Needs, definitions.MayMigrate(m.Definition)...)
	}
	r.Before = func(ctx context.Context) error {
		if err := r.Definitions.StandAlone(ctx, orphans); err != nil {
			return err
		}
		return r.Definitions.Migrate(ctx, migrations)
	}
	return nil
}

// orphans returns the definitions that a plan keeps and whose webhook it removes: their objects could not be read any more.
func (p *Planner) orphans(ctx context.Context, plan *engine.Plan) ([]*unstructured.Unstructured, error) {
	var found []*unstructured.Unstructured
	for _, change := range plan.Changes {
		if change.Action != schema.ActionKeep || change.Object.Kind != cluster.DefinitionKind.Kind {
			continue
		}
		live, err := p.Cluster.Get(ctx, cluster.DefinitionKind, "", change.Object.Name)
		if err != nil {
			return nil, err
		}
		if live != nil && losesWebhook(live, plan) {
			found = append(found, live)
		}
	}
	return found, nil
}

// losesWebhook reports whether a webhook in the Solution's own namespace converts that the plan removes.
func losesWebhook(definition *unstructured.Unstructured, plan *engine.Plan) bool {
	strategy, _, _ := unstructured.NestedString(definition.Object, "spec", "conversion", "strategy")
	service, _, _ := unstructured.NestedMap(definition.Object, "spec", "conversion", "webhook", "clientConfig", "service")
	return strategy == "Webhook" && service["namespace"] == render.SystemNamespace(plan.Release.Name) &&
		!slices.ContainsFunc(plan.Release.Objects, func(o *unstructured.Unstructured) bool {
			return o.GetKind() == "Service" && o.GetNamespace() == service["namespace"] && o.GetName() == service["name"]
		})
}

func orphanNotices(crds []*unstructured.Unstructured) []string {
	var notices []string
	for _, object := range crds {
		if def, err := definitions.Parse(object); err == nil {
			notices = append(notices, fmt.Sprintf("custom resource definition %s loses its webhook: until a version with it is active again, only version %s is served",
				object.GetName(), def.StorageVersion()))
		}
	}
	return notices
}
