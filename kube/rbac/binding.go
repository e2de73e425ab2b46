package rbac

import (
	"fmt"

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
	var binding rbacv1.ClusterRoleBinding // its fields are those of a RoleBinding
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, &binding); err != nil {
		return Binding{}, report.Errorf(report.Invalid, "binding: %w", err)
	}
	if binding.Kind != "RoleBinding" && binding.Kind != "ClusterRoleBinding" {
		return Binding{}, report.Errorf(report.Invalid, "expected RoleBinding or ClusterRoleBinding, got %q", binding.Kind)
	}
	return Binding{Cluster: binding.Kind == "ClusterRoleBinding", Role: binding.RoleRef, Subjects: binding.Subjects}, nil
}

// bound are the roles of every cluster that give more than any program needs.
var bound = map[string]struct {
	reason Reason
	why    string
}{
	"cluster-admin": {Everything, "permits everything"},
	"admin":         {WriteRoles, "lets it change who may do what, read Secrets and run commands in pods"},
	"edit":          {Impersonate, "lets it act as any ServiceAccount, read Secrets and run commands in pods"},
}

// anybody are the users and groups that are nobody in particular.
var anybody = map[rbacv1.Subject]struct {
	severity report.Severity
	who      string
}{
	{Kind: rbacv1.UserKind, Name: "system:anonymous"}:        {report.SeverityError, "everybody who reaches the API server, whoever it is,"},
	{Kind: rbacv1.GroupKind, Name: "system:unauthenticated"}: {report.SeverityError, "everybody who reaches the API server, whoever it is,"},
	{Kind: rbacv1.GroupKind, Name: "system:authenticated"}:   {report.SeverityWarning, "every user and every pod of the cluster"},
	{Kind: rbacv1.GroupKind, Name: "system:serviceaccounts"}: {report.SeverityWarning, "every pod of the cluster"},
}

// JudgeBinding returns what is wrong with a binding: that it binds a role of every cluster that permits too much, or
// anybody. [Judge] judges the role that it brings along.
func JudgeBinding(b Binding) []Hazard {
	var j judgement
	if role, ok := bound[b.Role.Name]; ok && b.Role.Kind == "ClusterRole" {
		j.path = "roleRef.name"
		where := "in its namespace"
		if b.Cluster {
			where = "in every namespace"
		}
		j.add(role.reason, report.SeverityError, "write a role with the groups, resources and verbs that are used", "%s %s, %s", b.Role.Name, role.why, where)
	}
	for i, subject := range b.Subjects {
		if who, ok := anybody[rbacv1.Subject{Kind: subject.Kind, Name: subject.Name}]; ok {
			j.path = fmt.Sprintf("subjects[%d]", i)
			j.add(Anybody, who.severity, "name the ServiceAccount", "%s gets the role %s", who.who, b.Role.Name)
		}
	}
	return j.hazards
}
