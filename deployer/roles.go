package deployer

import (
	"context"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/kube/rbac"
)

const rbacGroup = "rbac.authorization.k8s.io"

// judgeRoles returns the rules of roles that grant nothing, for people to know. What roles grant is judged as powers.
func (d *Deployer) judgeRoles(ctx context.Context, p *render.Payload, objects []*unstructured.Unstructured) (notices []string, err error) {
	scope, err := d.scopes(ctx)
	if err != nil {
		return nil, err
	}
	own, err := ownGroups(p)
	if err != nil {
		return nil, err
	}
	options := rbac.Options{OwnGroups: own, Scope: scope}
	for _, object := range objects {
		if kind := object.GetKind(); object.GroupVersionKind().Group != rbacGroup || kind != "Role" && kind != "ClusterRole" {
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

// boundEverywhere tells whether one of the objects grants a ClusterRole in the whole cluster.
func boundEverywhere(objects []*unstructured.Unstructured, role string) bool {
	return slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool {
		name, _, _ := unstructured.NestedString(o.Object, "roleRef", "name")
		return o.GetKind() == "ClusterRoleBinding" && name == role
	})
}

// ownGroups are the API groups of the Solution's custom resources.
func ownGroups(p *render.Payload) ([]string, error) {
	required, err := render.RequiredCRDs(p)
	if err != nil {
		return nil, err
	}
	groups := slices.Clone(p.Solution.Spec.CustomAPIGroups)
	for _, r := range required {
		if _, group, ok := strings.Cut(r.Name, "."); ok {
			groups = append(groups, group)
		}
	}
	return groups, nil
}

// scopes tells of the cluster's resources whether they are in namespaces. Of others nothing is claimed: what is misspelt
// is a matter of lint.
func (d *Deployer) scopes(ctx context.Context) (func(group, resource string) (namespaced, known bool), error) {
	kinds, err := d.Cluster.Kinds(ctx)
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

// widened tells, a line for each rule, what the roles among some objects permit that those among the objects before did
// not.
func widened(before, after []*unstructured.Unstructured) ([]string, error) {
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

// rulesOf collects the rules of all roles of a kind.
func rulesOf(kind string, objects []*unstructured.Unstructured) ([]rbacv1.PolicyRule, error) {
	var rules []rbacv1.PolicyRule
	for _, object := range objects {
		if object.GroupVersionKind().Group != rbacGroup || object.GetKind() != kind {
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
