package deployer

import (
	"context"
	"errors"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/rights"
	"github.com/solutionctl/solutionctl/kube/rbac"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// mayLock asks whether the user may take a lock, before anything is read.
func (d *Deployer) mayLock(ctx context.Context) error {
	return d.Cluster.Require(ctx, rights.Lock())
}

// withAllMissing adds to a refusal for want of a right all others that a change in a namespace takes and the user does not have: whoever
// gives rights is not asked for them one by one.
func (d *Deployer) withAllMissing(ctx context.Context, err error, namespace string) error {
	if report.CodeOf(err) != report.Forbidden {
		return err
	}
	missing, failure := d.Cluster.Missing(ctx, rights.Change(namespace)...)
	if failure != nil || len(missing) == 0 {
		return err
	}
	return report.Errorf(report.Forbidden, "%w", err).WithHint("all that a change in namespace %s takes and you do not have: %s", namespace, cluster.RulesByPlace(missing...))
}

// MayChange returns the rights that a user lacks for any change in a namespace of an environment, whatever is deployed there.
func (d *Deployer) MayChange(ctx context.Context, namespace string) (missing []cluster.Permission, err error) {
	return d.Cluster.Missing(ctx, rights.Change(namespace)...)
}

// mayDo asks whether what the options allow makes sense for a task, and whether the user may do all of it, so that nothing is
// left half-done for want of a right.
func (d *Deployer) mayDo(ctx context.Context, t *task, o Options) error {
	if err := o.checkReplace(t); err != nil {
		return err
	}
	wanted, err := d.permissions(ctx, t, o)
	if err != nil {
		return err
	}
	return d.Cluster.Require(ctx, wanted)
}

// permissions are those that carrying a task out takes, beside those to read what it is judged by.
func (d *Deployer) permissions(ctx context.Context, t *task, o Options) ([]cluster.Permission, error) {
	wanted := append(rights.WriteRecords(), t.needs...)
	for _, record := range t.records {
		if record.Object.Kind == cluster.ConfigMapKind.Kind {
			wanted = append(wanted, onRecord(record.Object.Namespace, record.Object.Name)...)
			continue
		}
		more, err := d.needed(ctx, record, !o.NoWait)
		if err != nil {
			return nil, err
		}
		wanted = append(wanted, more...)
	}
	for _, plan := range t.plans {
		for _, change := range plan.Changes {
			more, err := d.needed(ctx, change, !o.NoWait)
			if err != nil {
				return nil, err
			}
			wanted = append(wanted, more...)
		}
		more, err := d.granted(ctx, plan)
		if err != nil {
			return nil, err
		}
		wanted = append(wanted, more...)
	}
	return wanted, nil
}

// onRecord are the permissions to change a shared document.
func onRecord(namespace, name string) []cluster.Permission {
	return cluster.Permission{Resource: "configmaps", Namespace: namespace, Name: name}.Each("get", "update")
}

// mayDelete returns the permissions to export custom resources, to delete them and to wait until they are gone.
func (d *Deployer) mayDelete(ctx context.Context, list []definitions.Instance) ([]cluster.Permission, error) {
	var wanted []cluster.Permission
	for _, group := range definitions.Groups(list) {
		more, err := d.Cluster.PermissionsOn(ctx, group.Kind, group.Namespace, "list", "get", "delete", "watch")
		if err != nil {
			return nil, err
		}
		wanted = append(wanted, more...)
	}
	return wanted, nil
}

// needed are the permissions that one change takes, and to wait until the object is ready, or a namespace is gone.
func (d *Deployer) needed(ctx context.Context, change schema.Change, wait bool) ([]cluster.Permission, error) {
	verbs := verbsFor(change, wait)
	if verbs == nil {
		return nil, nil
	}
	group, err := kube.ParseGroupVersion(change.Object.APIVersion)
	if err != nil {
		return nil, err
	}
	wanted, err := d.Cluster.PermissionsOn(ctx, group.WithKind(change.Object.Kind), change.Object.Namespace, verbs...)
	if errors.Is(err, cluster.ErrNoKind) {
		return nil, nil // of a definition that comes with the same plan
	}
	if isWide(change.Object) { // nobody should have to change all of them
		for i := range wanted {
			wanted[i].Name = change.Object.Name
		}
	}
	return cluster.Only(change.Object.Name, wanted), err
}

// isWide tells roles of the whole cluster, and what binds them, from all else.
func isWide(object schema.ObjectRef) bool {
	group, _, _ := strings.Cut(object.APIVersion, "/")
	return group == rbacGroup && object.Namespace == ""
}

// verbsFor are the verbs that a change takes.
func verbsFor(change schema.Change, wait bool) []string {
	verbs := map[schema.Action][]string{
		schema.ActionCreate:  {"get", "create", "patch"},
		schema.ActionUpdate:  {"get", "patch"},
		schema.ActionAdopt:   {"get", "patch"},
		schema.ActionReplace: {"get", "create", "patch", "delete"},
		schema.ActionDelete:  {"get", "delete"},
	}[change.Action]
	if verbs == nil {
		return nil
	}
	switch kind := change.Object.Kind; {
	case kind == cluster.DefinitionKind.Kind && change.Action != schema.ActionDelete: // whoever defines a kind waits until it can be used
		return append(verbs, "list", "watch")
	case wait && kind == cluster.NamespaceKind.Kind && change.Action == schema.ActionDelete:
		return append(verbs, "list", "watch")
	case wait && engine.Awaits(change.Object) && change.Action != schema.ActionDelete:
		return append(verbs, "list", "watch")
	}
	return verbs
}

// granted are the rights that roles of the plan give away: nobody can give what they do not have, unless they may
// escalate and bind. Where the namespace exists the API server has judged the roles already, when it was asked to check the
// plan; it could not judge who binds a role that is not there yet.
func (d *Deployer) granted(ctx context.Context, plan *engine.Plan) ([]cluster.Permission, error) {
	var wanted []cluster.Permission
	exists := map[string]bool{"": true}
	for _, object := range plan.Release.Objects {
		kind, namespace := object.GetKind(), object.GetNamespace()
		isNew := slices.ContainsFunc(plan.Changes, func(c schema.Change) bool {
			return c.Action == schema.ActionCreate && c.Object == records.RefOf(object.GroupVersionKind(), object)
		})
		if object.GroupVersionKind().Group != rbacGroup || kind != "Role" && kind != "ClusterRole" || !isNew {
			continue
		}
		resource := map[string]string{"Role": "roles", "ClusterRole": "clusterroles"}[kind]
		missing, err := d.Cluster.Missing(ctx, cluster.Permission{
			Group: rbacGroup, Resource: resource, Namespace: namespace, Name: object.GetName(),
		}.Each("bind", "escalate")...)
		if err != nil {
			return nil, err
		}
		if len(missing) == 0 {
			continue
		}
		if _, known := exists[namespace]; !known {
			var found *unstructured.Unstructured
			if found, err = d.Cluster.Get(ctx, cluster.NamespaceKind, "", namespace); err != nil {
				return nil, err
			}
			exists[namespace] = found != nil
		}
		if exists[namespace] && !slices.ContainsFunc(missing, func(p cluster.Permission) bool { return p.Verb == "bind" }) {
			continue
		}
		role, err := rbac.FromObject(object.Object)
		if err != nil {
			return nil, err
		}
		for _, rule := range role.Rules {
			wanted = append(wanted, permissions(rule, namespace)...)
		}
	}
	return wanted, nil
}

// permissions breaks a rule down. Access to URLs is left out: a binding in a namespace cannot grant it.
func permissions(rule rbacv1.PolicyRule, namespace string) []cluster.Permission {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	var list []cluster.Permission
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			main, sub := splitResource(resource)
			for _, name := range names {
				list = append(list, cluster.Permission{
					Group: group, Resource: main, Subresource: sub, Namespace: namespace, Name: name,
				}.Each(rule.Verbs...)...)
			}
		}
	}
	return list
}

func splitResource(resource string) (main, sub string) {
	for i := range len(resource) {
		if resource[i] == '/' {
			return resource[:i], resource[i+1:]
		}
	}
	return resource, ""
}
