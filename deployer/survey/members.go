package survey

import (
	"cmp"
	"context"
	"slices"
	"strings"

	rbac "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

var bindingKind = rbac.SchemeGroupVersion.WithKind("RoleBinding")

// Members returns the members of namespaces with their permissions: people first, then the programs of Solutions.
// Subjects with permissions in the whole cluster are not included. unseen lists the objects that the user is not
// allowed to read.
func (v *Survey) Members(ctx context.Context, namespaces []string) (members []schema.Member, unseen []schema.Unseen, err error) {
	members = []schema.Member{}
	for _, namespace := range namespaces {
		for object, err := range v.Cluster.List(ctx, bindingKind, namespace, metav1.ListOptions{}) {
			if report.CodeOf(err) == report.Forbidden {
				unseen = append(unseen, schema.Unseen{
					What:  "who may do what in namespace " + namespace,
					Rules: cluster.RulesByPlace(cluster.Permission{Verb: "list", Group: rbac.GroupName, Resource: "rolebindings", Namespace: namespace}),
				})
				break
			}
			if err != nil {
				return nil, nil, err
			}
			var b rbac.RoleBinding
			if runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &b) == nil {
				members = append(members, membersOf(namespace, &b)...)
			}
		}
	}
	slices.SortFunc(members, func(a, b schema.Member) int {
		return cmp.Or(cmp.Compare(program(a), program(b)), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name), strings.Compare(a.Role, b.Role))
	})
	return slices.Compact(members), unseen, nil
}

// program is 1 for a program and 0 for people.
func program(m schema.Member) int {
	if m.Kind == rbac.ServiceAccountKind {
		return 1
	}
	return 0
}

func membersOf(namespace string, b *rbac.RoleBinding) []schema.Member {
	solution := ""
	if b.Labels[schema.LabelRelease] != "" {
		solution = b.Labels["app.kubernetes.io/part-of"]
	}
	var members []schema.Member
	for _, s := range b.Subjects {
		m := schema.Member{Namespace: namespace, Kind: s.Kind, Name: s.Name, Role: b.RoleRef.Name, Solution: solution}
		if s.Kind == rbac.ServiceAccountKind {
			m.Name = cmp.Or(s.Namespace, namespace) + "/" + s.Name
		}
		members = append(members, m)
	}
	return members
}
