// Package environments creates and deletes environments, and purges a cluster of everything that solutionctl stores in it.
//
// Start with [Environments.Create], [Environments.Delete] and [Environments.Purge]. [Environments.Held] lists the objects whose finalizers
// keep a deleted environment.
package environments

import (
	"context"
	"strings"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/deployer/rights"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Environments changes the environments of a cluster. All fields are required.
type Environments struct {
	*plan.Planner
	Sink report.Sink
}

// Create creates an environment, or adds a namespace to it.
func (e *Environments) Create(ctx context.Context, o metalk8s.CreateOptions) (*schema.Operation, error) {
	o, err := o.Check()
	if err != nil {
		return nil, err
	}
	if err = e.Cluster.Require(ctx, rights.Lock()); err != nil {
		return nil, err
	}
	if err = e.Cluster.Require(ctx, rights.CreateNamespace(o.Namespace, o.Adopt)); err != nil {
		return nil, err
	}
	if err = e.checkUnmanaged(ctx, o.Namespace); err != nil {
		return nil, err
	}
	var result metalk8s.Creation
	err = e.Locked(ctx, func(ctx context.Context) (err error) {
		result, err = e.Records.Documents.CreateEnvironment(ctx, o)
		return err
	}, cluster.LockOf(o.Namespace))
	if err != nil {
		return nil, err
	}
	action := map[metalk8s.Creation]schema.Action{
		metalk8s.Created: schema.ActionCreate, metalk8s.Adopted: schema.ActionAdopt, metalk8s.Changed: schema.ActionUpdate,
	}[result]
	if action == "" {
		action = schema.ActionNone
	}
	return &schema.Operation{
		Operation: "create", Environment: o.Name, Notices: []string{},
		Parts: []schema.OperationPart{{Namespace: o.Namespace, Changes: []schema.Change{{Action: action, Object: namespaceRef(o.Namespace)}}}},
	}, nil
}

// checkUnmanaged refuses the namespace of a Solution for its objects of the whole cluster: deleting the environment would delete them.
func (e *Environments) checkUnmanaged(ctx context.Context, namespace string) error {
	refused := func(solution string) error {
		return report.Errorf(report.Refused, "namespace %s is that of Solution %s, for what it has for the whole cluster", namespace, solution).
			WithHint("name another namespace with --namespace")
	}
	live, err := e.Cluster.Get(ctx, cluster.NamespaceKind, "", namespace)
	if err != nil {
		return err
	}
	if live != nil && live.GetLabels()[schema.LabelRelease] != "" {
		return refused(live.GetLabels()["app.kubernetes.io/part-of"])
	}
	solution, system := strings.CutSuffix(namespace, render.SystemNamespace(""))
	if !system {
		return nil
	}
	catalog, err := e.Records.Catalog(ctx)
	if err == nil && len(catalog.Of(solution)) > 0 {
		return refused(solution)
	}
	if report.CodeOf(err) == report.Forbidden { // then the activation refuses it
		return nil
	}
	return err
}

func namespaceRef(name string) schema.ObjectRef {
	return schema.ObjectRef{APIVersion: "v1", Kind: "Namespace", Name: name}
}
