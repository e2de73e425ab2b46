package rights

import (
	"context"
	"errors"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/kube/rbac"
	"github.com/solutionctl/solutionctl/schema"
)

// forChange returns the permissions for one change, and with wait those to wait until the object is ready, or a namespace is deleted.
func forChange(ctx context.Context, c *cluster.Cluster, change schema.Change, wait bool) ([]cluster.Permission, error) {
	verbs := verbsFor(change, wait)
	if verbs == nil {
		return nil, nil
	}
	group, err := kube.ParseGroupVersion(change.Object.APIVersion)
	if err != nil {
		return nil, err
	}
	required, err := c.PermissionsOn(ctx, group.WithKind(change.Object.Kind), change.Object.Namespace, verbs...)
	if errors.Is(err, cluster.ErrNoKind) {
		return nil, nil // its CustomResourceDefinition is part of the same plan
	}
	if isClusterRBAC(change.Object) { // permission for all of them would be too much
		for i := range required {
			required[i].Name = change.Object.Name
		}
	}
	return cluster.Only(change.Object.Name, required), err
}

// isClusterRBAC reports whether an object is a ClusterRole or a ClusterRoleBinding.
func isClusterRBAC(object schema.ObjectRef) bool {
	group, _, _ := strings.Cut(object.APIVersion, "/")
	return group == rbacv1.GroupName && object.Namespace == ""
}

// verbsFor returns the verbs of a change.
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
	case kind == cluster.DefinitionKind.Kind && change.Action != schema.ActionDelete: // a run waits until the API server serves the kind
		return append(verbs, "list", "watch")
	case wait && kind == cluster.NamespaceKind.Kind && change.Action == schema.ActionDelete:
		return append(verbs, "list", "watch")
	case wait && engine.Awaits(change.Object) && change.Action != schema.ActionDelete:
		return append(verbs, "list", "watch")
	}
	return verbs
}

// onObject returns the permissions to observe one object, and more verbs on it. RBAC cannot restrict create, list and watch to a name.
func onObject(ctx context.Context, c *cluster.Cluster, ref schema.ObjectRef, more []string) ([]cluster.Permission, error) {
	verbs := []string{"get", "list"}
	if engine.Awaits(ref) {
		verbs = append(verbs, "watch")
	}
	for _, verb := range more {
		if !slices.Contains(verbs, verb) {
			verbs = append(verbs, verb)
		}
	}
	list, err := c.PermissionsOn(ctx, kube.FromAPIVersionAndKind(ref.APIVersion, ref.Kind), ref.Namespace, verbs...)
	if errors.Is(err, cluster.ErrNoKind) {
		return nil, nil // planned again when the kind exists
	}
	list = cluster.Only(ref.Name, list)
	for i := range list {
		list[i].Name, list[i].One = list[i].One, ""
	}
	return list, err
}

// toGrant returns the permissions that new roles of a plan grant, which a user must have to create them, unless the user may escalate
// and bind. In a namespace that exists the API server has already checked this, by the dry run of the plan, for all but bindings to a
// role that does not exist yet.
func toGrant(ctx context.Context, c *cluster.Cluster, plan *engine.Plan) ([]cluster.Permission, error) {
	var required []cluster.Permission
	exists := map[string]bool{"": true}
	for _, object := range plan.Release.Objects {
		namespace := object.GetNamespace()
		if roleResource(object) == "" || !creates(plan, object) {
			continue
		}
		missing, err := c.Missing(ctx, onRole(object, "bind", "escalate")...)
		if err != nil {
			return nil, err
		}
		if len(missing) == 0 {
			continue
		}
		if _, known := exists[namespace]; !known {
			var found *unstructured.Unstructured
			if found, err = c.Get(ctx, cluster.NamespaceKind, "", namespace); err != nil {
				return nil, err
			}
			exists[namespace] = found != nil
		}
		if exists[namespace] && !slices.ContainsFunc(missing, func(p cluster.Permission) bool { return p.Verb == "bind" }) {
			continue
		}
		granted, err := rulesOfRole(object)
		if err != nil {
			return nil, err
		}
		required = append(required, granted...)
	}
	return required, nil
}

// creates reports whether a plan creates an object of its release.
func creates(plan *engine.Plan, object *unstructured.Unstructured) bool {
	return slices.ContainsFunc(plan.Changes, func(change schema.Change) bool {
		return change.Action == schema.ActionCreate && change.Object == refOf(object)
	})
}

// roleResource returns the resource of a Role or ClusterRole; "" for any other object.
func roleResource(object *unstructured.Unstructured) string {
	if object.GroupVersionKind().Group != rbacv1.GroupName {
		return ""
	}
	return map[string]string{"Role": "roles", "ClusterRole": "clusterroles"}[object.GetKind()]
}

// onRole returns verbs on a Role or ClusterRole.
func onRole(role *unstructured.Unstructured, verbs ...string) []cluster.Permission {
	return cluster.Permission{
		Group: rbacv1.GroupName, Resource: roleResource(role), Namespace: role.GetNamespace(), Name: role.GetName(),
	}.Each(verbs...)
}

// grantedBy returns the permissions that RBAC demands to apply a role or a binding: those that the role grants, because no user can grant
// more than they have, or that to bind a role that is not among the objects.
func grantedBy(object *unstructured.Unstructured, objects []*unstructured.Unstructured) ([]cluster.Permission, error) {
	if object.GroupVersionKind().Group != rbacv1.GroupName {
		return nil, nil
	}
	if roleResource(object) != "" {
		return rulesOfRole(object)
	}
	kind, _, _ := unstructured.NestedString(object.Object, "roleRef", "kind")
	name, _, _ := unstructured.NestedString(object.Object, "roleRef", "name")
	if slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == kind && o.GetName() == name }) {
		return nil, nil
	}
	namespace, resource := object.GetNamespace(), "roles"
	if kind == "ClusterRole" {
		namespace, resource = "", "clusterroles"
	}
	return cluster.Permission{Group: rbacv1.GroupName, Resource: resource, Namespace: namespace, Name: name}.Each("bind"), nil
}

// rulesOfRole returns the permissions that a role grants in its namespace. Access to URLs is left out: a binding in a namespace cannot
// grant it.
func rulesOfRole(object *unstructured.Unstructured) ([]cluster.Permission, error) {
	role, err := rbac.FromObject(object.Object)
	if err != nil {
		return nil, err
	}
	var granted []cluster.Permission
	for _, rule := range role.Rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				main, sub, _ := strings.Cut(resource, "/")
				for _, name := range names {
					granted = append(granted, cluster.Permission{
						Group: group, Resource: main, Subresource: sub, Namespace: object.GetNamespace(), Name: name,
					}.Each(rule.Verbs...)...)
				}
			}
		}
	}
	return granted, nil
}
