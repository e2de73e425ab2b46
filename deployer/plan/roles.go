package plan

import (
	"cmp"
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/components"
	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/deployer/rights"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Roles computes the least permissions to deploy any imported version of a Solution from the objects of the versions, and those to
// import them.
func (p *Planner) Roles(ctx context.Context, o rights.RolesOptions) (*rights.Grants, error) {
	if o.Solution == "" {
		return rights.Roles(ctx, p.Cluster, rights.Target{RolesOptions: o})
	}
	catalog, err := p.Records.Catalog(ctx)
	if err != nil {
		return nil, err
	}
	if _, _, err = catalog.Find(o.Solution, ""); err != nil {
		return nil, err
	}
	namespaces := []string{""}
	if o.Environment != "" {
		found, err := p.Records.Documents.Environment(ctx, o.Environment)
		switch {
		case report.CodeOf(err) == report.NotFound: // it will have a namespace of its name
			namespaces = []string{o.Environment}
		case err != nil:
			return nil, err
		default:
			namespaces = found.Names()
		}
	}
	var versions []rights.Version
	for _, i := range catalog.Of(o.Solution) {
		r, err := p.Renderer(ctx, catalog, i)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", i.ID(), err)
		}
		version := rights.Version{ID: i.ID()}
		if err = r.renderRights(ctx, &version, o, namespaces); err != nil {
			return nil, fmt.Errorf("%s: %w", i.ID(), err)
		}
		versions = append(versions, version)
	}
	return rights.Roles(ctx, p.Cluster, rights.Target{RolesOptions: o, Namespaces: namespaces, Versions: versions})
}

// renderRights renders a version for its activation and for namespaces of an environment; "" is any namespace.
func (r Renderer) renderRights(ctx context.Context, v *rights.Version, o rights.RolesOptions, namespaces []string) (err error) {
	r.Settings.Webhook = o.Webhook
	if v.Activation, err = render.Activation(r.Payload, r.Settings); err != nil {
		return err
	}
	if o.ProtectCRDs {
		v.Activation = append(v.Activation, definitions.Protect(record.Key{Name: o.Solution}, v.Activation)...)
	}
	for _, namespace := range namespaces {
		r.Settings.Environment, r.Settings.Namespace = o.Environment, cmp.Or(namespace, "environment")
		in := rights.Deployment{Namespace: r.Settings.Namespace}
		if in.Operator, err = render.Environment(r.Payload, r.Settings); err != nil {
			return err
		}
		for at := range r.Payload.Solution.Spec.Components {
			c := rights.Component{Component: &r.Payload.Solution.Spec.Components[at]}
			if c.Objects, err = r.everyObject(ctx, c.Component); err != nil {
				return fmt.Errorf("component %s: %w", c.Name, err)
			}
			in.Components = append(in.Components, c)
		}
		v.Deployments = append(v.Deployments, in)
	}
	return nil
}

// everyObject returns the objects of a component in a namespace, and those of its tasks, at an installation and at an upgrade.
func (r Renderer) everyObject(ctx context.Context, c *schema.Component) (objects []*unstructured.Unstructured, err error) {
	if c.Scope == schema.ScopeCluster {
		return nil, nil
	}
	for _, upgrade := range []bool{false, true} {
		release := engine.Release{Key: record.Key{Namespace: r.Settings.Namespace, Name: r.Payload.Solution.Metadata.Name, Component: c.Name}}
		kind, path := c.Source()
		if kind == schema.ComponentChart {
			_, err = r.Chart(ctx, &render.ChartValues{}, upgrade, &release)
		} else {
			err = r.Component(&components.Node{Name: c.Name, Kind: kind, Path: path, Component: c}, &release)
		}
		if err != nil {
			return nil, err
		}
		objects = append(objects, withTasks(&release)...)
	}
	return objects, nil
}
