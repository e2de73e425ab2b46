package rbac_test

import (
	"testing"

	"github.com/solutionctl/solutionctl/kube/rbac"
)

func TestBindingFromObject(t *testing.T) {
	binding, err := rbac.BindingFromObject(map[string]any{
		"kind": "ClusterRoleBinding", "roleRef": map[string]any{"kind": "ClusterRole", "name": "view"},
		"subjects": []any{map[string]any{"kind": "Group", "name": "operations"}},
	})
	if err != nil || !binding.Cluster || binding.Role.Name != "view" || len(binding.Subjects) != 1 || binding.Subjects[0].Name != "operations" {
		t.Errorf("got %+v, %v", binding, err)
	}
	for _, bad := range []map[string]any{nil, {"kind": "Role"}, {"kind": "RoleBinding", "subjects": "x"}, {"kind": "RoleBinding", "roleRef": []any{}}} {
		if _, err := rbac.BindingFromObject(bad); err == nil {
			t.Errorf("%v is read as a binding", bad)
		}
	}
}
