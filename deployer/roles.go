package deployer

import (
	"cmp"
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/components"
	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/deployer/rights"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Roles computes the least permissions to deploy any imported version of a Solution from the objects of the versions, and those to
// import them.
func (d *Deployer) Roles(ctx context.Context, o rights.RolesOptions) (*rights.Grants, error) {
	if o.Solution == "" {
		return rights.Roles(ctx, d.Cluster, o, nil, nil)
	}
	catalog, err := d.Records.Catalog(ctx)
	if err != nil {
		return nil, err
	}
	if _, _, err = catalog.Find(o.Solution, ""); err != nil {
		return nil, err
	}
	namespaces := []string{""}
	if o.Environment != "" {
		if namespaces, err = d.namespaceNames(ctx, o.Environment); err != nil {
			return nil, err
		}
	}
	var versions []rights.Version
	for _, i := range catalog.Of(o.Solution) {
		version, err := d.version(ctx, o, catalog, i, namespaces)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", i.ID(), err)
		}
		versions = append(versions, version)
	}
	return rights.Roles(ctx, d.Cluster, o, namespaces, versions)
}

// namespaceNames returns the namespaces of an environment; one that does not exist is going to have a namespace of its name.
func (d *Deployer) namespaceNames(ctx context.Context, environment string) ([]string, error) {
	found, err := d.Records.Documents.Environment(ctx, environment)
	if report.CodeOf(err) == report.NotFound {
		return []string{environment}, nil
	}
	if err != nil {
		return nil, err
	}
	return found.Names(), nil
}

// version renders a version for its activation and for namespaces of an environment; "" is any namespace.
func (d *Deployer) version(ctx context.Context, o rights.RolesOptions, catalog *records.Catalog, i schema.Import, namespaces []string) (v rights.Version, err error) {
	r, err := d.planner().Renderer(ctx, catalog, i)
	if err != nil {
		return v, err
	}
	v.ID, r.Settings.Webhook = i.ID(), o.Webhook
	if v.Activation, err = render.Activation(r.Payload, r.Settings); err != nil {
		return v, err
	}
	if o.ProtectCRDs {
		v.Activation = append(v.Activation, definitions.Protect(engine.Key{Name: i.Name}, v.Activation)...)
	}
	for _, namespace := range namespaces {
		r.Settings.Environment, r.Settings.Namespace = o.Environment, cmp.Or(namespace, "environment")
		in := rights.Deployment{Namespace: r.Settings.Namespace}
		if in.Operator, err = render.Environment(r.Payload, r.Settings); err != nil {
			return v, err
		}
		for at := range r.Payload.Solution.Spec.Components {
			c := rights.Component{Component: &r.Payload.Solution.Spec.Components[at]}
			if c.Objects, err = componentObjects(ctx, r, c.Component); err != nil {
				return v, fmt.Errorf("component %s: %w", c.Name, err)
			}
			in.Components = append(in.Components, c)
		}
		v.Deployments = append(v.Deployments, in)
	}
	return v, nil
}

// componentObjects returns the objects of a component in a namespace, and those of its tasks, at an installation and at an upgrade.
func componentObjects(ctx context.Context, r plan.Renderer, c *schema.Component) (objects []*unstructured.Unstructured, err error) {
	if c.Scope == schema.ScopeCluster {
		return nil, nil
	}
	for _, upgrade := range []bool{false, true} {
		release := engine.Release{Key: engine.Key{Namespace: r.Settings.Namespace, Name: r.Payload.Solution.Metadata.Name, Component: c.Name}}
		kind, path := c.Source()
		if kind == schema.ComponentChart {
			_, err = r.Chart(ctx, &render.Memory{}, upgrade, &release)
		} else {
			err = r.Component(&components.Node{Name: c.Name, Kind: kind, Path: path, Component: c}, &release)
		}
		if err != nil {
			return nil, err
		}
		objects = append(objects, plan.WithTasks(&release)...)
	}
	return objects, nil
}

// RepairRights returns the permissions that [Deployer.Repair] needs in an environment: to compare, and with change to bring back any
// object. CustomResourceDefinitions are never changed.
func (d *Deployer) RepairRights(ctx context.Context, environment string, change bool) ([]cluster.Permission, error) {
	states, _, _, err := d.Survey.Deployed(ctx, survey.Selection{Environment: environment})
	if err != nil {
		return nil, err
	}
	releases, _, err := d.Records.Engine.Deployed(ctx, states)
	if err != nil {
		return nil, err
	}
	return rights.Repair(ctx, d.Cluster, releases, change)
}
