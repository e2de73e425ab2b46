package rights

import (
	"context"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/kube/rbac"
	"github.com/solutionctl/solutionctl/schema"
)

// IneffectiveRules returns a notice for each rule of the roles among objects that grants nothing. What roles grant is
// checked as powers.
func IneffectiveRules(ctx context.Context, c *cluster.Cluster, objects []*unstructured.Unstructured) (notices []string, err error) {
	if !slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool { return roleResource(o) != "" }) {
		return nil, nil
	}
	scope, err := scopes(ctx, c)
	if err != nil {
		return nil, err
	}
	options := rbac.Options{Scope: scope}
	for _, object := range objects {
		if roleResource(object) == "" {
			continue
		}
		role, err := rbac.FromObject(object.Object)
		if err != nil {
			return nil, err
		}
		options.ClusterWide = boundEverywhere(objects, object.GetName())
		for _, hazard := range rbac.Judge(role, options) {
			if hazard.Reason == rbac.ClusterScoped {
				notices = append(notices, fmt.Sprintf("%s %s: %s", object.GetKind(), object.GetName(), hazard))
			}
		}
	}
	return notices, nil
}

// boundEverywhere reports whether one of the objects grants a ClusterRole in the whole cluster.
func boundEverywhere(objects []*unstructured.Unstructured, role string) bool {
	return slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool {
		name, _, _ := unstructured.NestedString(o.Object, "roleRef", "name")
		return o.GetKind() == "ClusterRoleBinding" && name == role
	})
}

// scopes returns a function that reports whether a resource is in namespaces. A resource that the cluster does not have counts as such:
// lint finds misspelt ones.
func scopes(ctx context.Context, c *cluster.Cluster) (func(group, resource string) (namespaced, known bool), error) {
	kinds, err := c.Kinds(ctx)
	if err != nil {
		return nil, err
	}
	namespaced := map[kube.GroupResource]bool{}
	for _, k := range kinds {
		namespaced[k.Resource.GroupResource()] = k.Scope.Name() == "namespace"
	}
	return func(group, resource string) (bool, bool) {
		resource, _, _ = strings.Cut(resource, "/")
		in, known := namespaced[kube.GroupResource{Group: group, Resource: resource}]
		return in || !known, true
	}, nil
}

// Widened returns a line for each rule of the roles among the objects after that those among the objects before did not have.
func Widened(before, after []*unstructured.Unstructured) ([]string, error) {
	var lines []string
	for _, kind := range []string{"Role", "ClusterRole"} {
		previous, err := rulesOf(kind, before)
		if err != nil {
			return nil, err
		}
		next, err := rulesOf(kind, after)
		if err != nil {
			return nil, err
		}
		more, err := rbac.Widened(previous, next)
		if err != nil {
			return nil, err
		}
		for _, rule := range more {
			lines = append(lines, rbac.Summary(rule))
		}
	}
	return lines, nil
}

// IsRole reports whether an object is a Role or a ClusterRole.
func IsRole(object schema.ObjectRef) bool {
	group, _, _ := strings.Cut(object.APIVersion, "/")
	return group == rbacv1.GroupName && (object.Kind == "Role" || object.Kind == "ClusterRole")
}

// rulesOf collects the rules of all roles of a kind.
func rulesOf(kind string, objects []*unstructured.Unstructured) ([]rbacv1.PolicyRule, error) {
	var rules []rbacv1.PolicyRule
	for _, object := range objects {
		if roleResource(object) == "" || object.GetKind() != kind {
			continue
		}
		role, err := rbac.FromObject(object.Object)
		if err != nil {
			return nil, err
		}
		rules = append(rules, role.Rules...)
	}
	return rules, nil
}
