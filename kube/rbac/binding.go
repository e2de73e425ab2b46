package rbac

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/solutionctl/solutionctl/schema/report"
)

// Binding holds the common fields of RoleBinding and ClusterRoleBinding.
type Binding struct {
	Cluster  bool // a ClusterRoleBinding
	Role     rbacv1.RoleRef
	Subjects []rbacv1.Subject
}

// BindingFromObject reads a decoded RoleBinding or ClusterRoleBinding.
func BindingFromObject(object map[string]any) (Binding, error) {
	var binding rbacv1.ClusterRoleBinding // its fields are the same as in a RoleBinding
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, &binding); err != nil {
		return Binding{}, report.Errorf(report.Invalid, "binding: %w", err)
	}
	if binding.Kind != "RoleBinding" && binding.Kind != "ClusterRoleBinding" {
		return Binding{}, report.Errorf(report.Invalid, "expected RoleBinding or ClusterRoleBinding, got %q", binding.Kind)
	}
	return Binding{Cluster: binding.Kind == "ClusterRoleBinding", Role: binding.RoleRef, Subjects: binding.Subjects}, nil
}
