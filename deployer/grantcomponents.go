package deployer

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/components"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/schema"
)

// parts adds what the components of a version take in a namespace, any of which may be chosen, with the values of the archive: their
// objects, and the tasks that their hooks become. Planning tries those by dry runs.
func (g *granting) parts(ctx context.Context, payload *render.Payload, settings render.Settings) error {
	solution := payload.Solution
	for i := range solution.Spec.Components {
		c := &solution.Spec.Components[i]
		if c.Scope == schema.ScopeCluster {
			g.notice("component %s of %s is in the cluster, which takes an administrator: no role grants it", c.Name, solution.ID())
			continue
		}
		if c.Chart != "" {
			g.notice("component %s of %s is a chart: roles grant what it brings with the values of the archive, and other values may bring more", c.Name, solution.ID())
		}
		objects, err := g.partObjects(ctx, payload, settings, c)
		if err != nil {
			return fmt.Errorf("component %s: %w", c.Name, err)
		}
		for _, object := range objects {
			switch namespace := object.GetNamespace(); {
			case namespace != "" && namespace != settings.Namespace:
				g.notice("component %s of %s has %s %s in namespace %s: no role grants it", c.Name, solution.ID(), object.GetKind(), object.GetName(), namespace)
			case namespace == "" && object.GroupVersionKind().Group != rbacGroup:
				g.notice("component %s of %s has %s %s, which takes an administrator: no role grants it", c.Name, solution.ID(), object.GetKind(), object.GetName())
			default:
				if err = g.placed(ctx, object); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// partObjects are the objects of a component, and those of its tasks, at an installation and at an upgrade.
func (g *granting) partObjects(ctx context.Context, payload *render.Payload, settings render.Settings, c *schema.Component) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for _, upgrade := range []bool{false, true} {
		release := engine.Release{Key: engine.Key{Namespace: settings.Namespace, Name: payload.Solution.Metadata.Name, Component: c.Name}}
		kind, path := c.Source()
		var err error
		if kind == schema.ComponentChart {
			_, err = g.d.renderWith(ctx, payload, settings, &render.Memory{}, upgrade, &release, nil)
		} else {
			err = renderPart(payload, &components.Node{Name: c.Name, Kind: kind, Path: path, Component: c}, settings, &release)
		}
		if err != nil {
			return nil, err
		}
		objects = append(objects, release.Objects...)
		for _, task := range release.Tasks {
			objects = append(objects, task.Object)
		}
	}
	return objects, nil
}
