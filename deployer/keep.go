package deployer

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// prepareDefinitions plans what has to be done to definitions and their objects before anything is applied: they do without
// a webhook that goes away, and versions are left in which nothing may be stored any more.
func (d *Deployer) prepareDefinitions(ctx context.Context, t *task, plan *engine.Plan, migrations []migration) error {
	orphans, err := d.orphans(ctx, plan)
	if err != nil {
		return err
	}
	t.notice(orphanNotices(orphans)...)
	for _, object := range orphans {
		t.needs = append(t.needs, mayMigrate(object)...)
	}
	for _, m := range migrations {
		t.needs = append(t.needs, mayMigrate(m.definition)...)
	}
	t.before = func(ctx context.Context) error {
		if err := d.standAlone(ctx, orphans); err != nil {
			return err
		}
		return d.migrateStorage(ctx, migrations)
	}
	return nil
}

// orphans are the definitions that a plan keeps and whose webhook it removes: nobody could read their objects any more.
func (d *Deployer) orphans(ctx context.Context, plan *engine.Plan) ([]*unstructured.Unstructured, error) {
	var found []*unstructured.Unstructured
	for _, change := range plan.Changes {
		if change.Action != schema.ActionKeep || change.Object.Kind != cluster.DefinitionKind.Kind {
			continue
		}
		live, err := d.Cluster.Get(ctx, cluster.DefinitionKind, "", change.Object.Name)
		if err != nil {
			return nil, err
		}
		if live != nil && losesWebhook(live, plan) {
			found = append(found, live)
		}
	}
	return found, nil
}

// losesWebhook tells whether a webhook in the Solution's own namespace converts, of which nothing is left.
func losesWebhook(definition *unstructured.Unstructured, plan *engine.Plan) bool {
	strategy, _, _ := unstructured.NestedString(definition.Object, "spec", "conversion", "strategy")
	service, _, _ := unstructured.NestedMap(definition.Object, "spec", "conversion", "webhook", "clientConfig", "service")
	return strategy == "Webhook" && service["namespace"] == render.SystemNamespace(plan.Release.Solution) &&
		!slices.ContainsFunc(plan.Release.Objects, func(o *unstructured.Unstructured) bool {
			return o.GetKind() == "Service" && o.GetNamespace() == service["namespace"] && o.GetName() == service["name"]
		})
}

// standAlone makes definitions do without their webhook while it still answers: every object is stored in one version, and
// no other one is served. Activating a version again brings the others back.
func (d *Deployer) standAlone(ctx context.Context, definitions []*unstructured.Unstructured) error {
	for _, object := range definitions {
		def, err := definition(object)
		if err != nil {
			return err
		}
		judge, err := newLossJudge(def, def)
		if err != nil {
			return err
		}
		m := migration{definition: object, version: storageVersion(def), through: judge.listed.Version, judge: judge, accepted: true}
		if !slices.Equal(def.Status.StoredVersions, []string{m.version}) {
			if err = d.migrateStorage(ctx, []migration{m}); err != nil {
				return err
			}
		}
		if err = d.serveOnly(ctx, object, m.version); err != nil {
			return fmt.Errorf("custom resource definition %s: %w", object.GetName(), err)
		}
	}
	return nil
}

// serveOnly makes a definition serve one version, which nothing converts.
func (d *Deployer) serveOnly(ctx context.Context, object *unstructured.Unstructured, version string) error {
	live, err := d.Cluster.Get(ctx, cluster.DefinitionKind, "", object.GetName())
	if err != nil {
		return err
	}
	if live == nil || live.GetUID() != object.GetUID() {
		return report.Errorf(report.Conflict, "it was deleted meanwhile").WithHint("run the command again")
	}
	versions, _, err := unstructured.NestedSlice(live.Object, "spec", "versions")
	if err != nil {
		return err
	}
	for _, v := range versions {
		if one, ok := v.(map[string]any); ok {
			one["served"] = one["name"] == version
		}
	}
	if err = unstructured.SetNestedSlice(live.Object, versions, "spec", "versions"); err != nil {
		return err
	}
	if err = unstructured.SetNestedMap(live.Object, map[string]any{"strategy": "None"}, "spec", "conversion"); err != nil {
		return err
	}
	if live, err = d.Cluster.Update(ctx, live, cluster.WriteOptions{}); err != nil {
		return err
	}
	_, err = d.disown(ctx, live)
	return err
}

func orphanNotices(definitions []*unstructured.Unstructured) []string {
	var notices []string
	for _, object := range definitions {
		if def, err := definition(object); err == nil {
			notices = append(notices, fmt.Sprintf("custom resource definition %s loses its webhook: until a version with it is active again, only version %s is served",
				object.GetName(), storageVersion(def)))
		}
	}
	return notices
}
