package powers

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/schema"
)

// OwnGroups returns the API groups that a Solution can call its own, sorted: those that its manifest claims and those of
// its CRDs, without those of Kubernetes and MetalK8s.
func OwnGroups(solution string, claimed []string, crds []*unstructured.Unstructured) []string {
	groups := slices.Clone(claimed)
	for _, crd := range crds {
		group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
		groups = append(groups, group)
	}
	return set(slices.DeleteFunc(groups, func(group string) bool { return schema.IsProtectedGroup(solution, group) }))
}

// claims refuses groups that the Solution calls its own and that belong to Kubernetes.
func (j *judgement) claims() {
	for _, group := range set(j.owner.Groups) {
		if !schema.IsProtectedGroup(j.owner.Solution, group) {
			continue
		}
		j.record(schema.Power{
			Name: schema.PowerClaimsGroup, Reach: schema.ReachCluster, Need: schema.NeedRefused,
			Object:  schema.ObjectRef{APIVersion: schema.APIVersion, Kind: schema.KindSolution, Name: j.owner.Solution},
			Field:   "spec.customApiGroups",
			Why:     fmt.Sprintf("call the API group %q its own, which belongs to Kubernetes or MetalK8s", group),
			Effects: []string{group},
		})
	}
}

// isBuiltIn reports whether the API server itself serves the kinds of a group.
func isBuiltIn(group string) bool { return schema.IsAPIServerGroup(group) }
