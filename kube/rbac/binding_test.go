package rbac_test

import (
	"fmt"
	"slices"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/solutionctl/solutionctl/kube/rbac"
)

func TestJudgeBinding(t *testing.T) {
	for _, test := range []struct {
		name, kind, role, subject string
		want                      []string
	}{
		{"a role of its own", "RoleBinding", "{kind: Role, name: admin}", "{kind: ServiceAccount, name: web}", nil},
		{"view everywhere", "ClusterRoleBinding", "{kind: ClusterRole, name: view}", "{kind: ServiceAccount, name: web}", nil},
		{"admin", "RoleBinding", "{kind: ClusterRole, name: admin}", "{kind: ServiceAccount, name: web}", []string{"error write-roles roleRef.name"}},
		{"edit", "RoleBinding", "{kind: ClusterRole, name: edit}", "{kind: ServiceAccount, name: web}", []string{"error impersonate roleRef.name"}},
		{"everything", "ClusterRoleBinding", "{kind: ClusterRole, name: cluster-admin}", "{kind: ServiceAccount, name: web}", []string{"error everything roleRef.name"}},
		{"a group of people", "RoleBinding", "{kind: ClusterRole, name: view}", "{kind: Group, name: operations}", nil},
		{"a user with the name of a group", "RoleBinding", "{kind: ClusterRole, name: view}", "{kind: User, name: system:authenticated}", nil},
		{"no user", "RoleBinding", "{kind: ClusterRole, name: view}", "{kind: User, name: system:anonymous}", []string{"error anybody subjects[0]"}},
		{"no group", "RoleBinding", "{kind: Role, name: x}", "{apiGroup: rbac.authorization.k8s.io, kind: Group, name: system:unauthenticated}", []string{"error anybody subjects[0]"}},
		{
			"everybody, everything", "ClusterRoleBinding", "{kind: ClusterRole, name: cluster-admin}",
			"{kind: ServiceAccount, name: web}, {kind: Group, name: system:authenticated}, {kind: Group, name: system:serviceaccounts}",
			[]string{"error everything roleRef.name", "warning anybody subjects[1]", "warning anybody subjects[2]"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			var object map[string]any
			if err := yaml.Unmarshal(fmt.Appendf(nil, "kind: %s\nroleRef: %s\nsubjects: [%s]\n", test.kind, test.role, test.subject), &object); err != nil {
				t.Fatal(err)
			}
			binding, err := rbac.BindingFromObject(object)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, h := range rbac.JudgeBinding(binding) {
				got = append(got, fmt.Sprintf("%s %s %s", h.Severity, h.Reason, h.Path))
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	for _, bad := range []map[string]any{nil, {"kind": "Role"}, {"kind": "RoleBinding", "subjects": "x"}, {"kind": "RoleBinding", "roleRef": []any{}}} {
		if _, err := rbac.BindingFromObject(bad); err == nil {
			t.Errorf("%v is read as a binding", bad)
		}
	}
}
