package plan

import (
	"testing"

	"github.com/solutionctl/solutionctl/schema"
)

// TestClusterWide checks that --cluster-wide approves rights in the whole cluster and a say in requests, and nothing else of objects whose kinds
// have such names, or that read objects of others.
func TestClusterWide(t *testing.T) {
	for power, want := range map[*schema.Power]bool{
		{Name: schema.PowerReadSecrets, Object: schema.ObjectRef{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"}, Subject: "ServiceAccount shop/a"}: true,
		{Name: schema.PowerReadSecrets, Object: schema.ObjectRef{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"}, Subject: "User a"}:                false,
		{Name: schema.PowerChangeRights, Object: schema.ObjectRef{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"}}:                                  false,
		{Name: schema.PowerPodOnNode, Object: schema.ObjectRef{APIVersion: "shop.example.com/v1", Kind: "ClusterRole"}}:                                              false,
		{Name: schema.PowerPodOnNode, Object: schema.ObjectRef{APIVersion: "shop.example.com/v1", Kind: "APIService"}}:                                               false,
		{Name: schema.PowerInterceptsRequests, Object: schema.ObjectRef{APIVersion: "apiregistration.k8s.io/v1", Kind: "APIService"}}:                                true,
		{Name: schema.PowerInterceptsRequests, Object: schema.ObjectRef{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingAdmissionPolicy"}}:           true,
		{Name: schema.PowerReadSecrets, Object: schema.ObjectRef{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingAdmissionPolicyBinding"}}:           false,
	} {
		if got := isClusterWide(*power); got != want {
			t.Errorf("%s of %s for %q: %v, want %v", power.Name, power.Object, power.Subject, got, want)
		}
	}
}

// TestHazards checks that a hazard approves rights that roles and bindings give, and not what an object changes of other roles.
func TestHazards(t *testing.T) {
	for subject, want := range map[string]bool{"ServiceAccount shop/a": true, "": false} {
		power := schema.Power{Name: schema.PowerChangeRights, Object: schema.ObjectRef{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"}, Subject: subject}
		if got := (consent{hazards: []string{"escalate"}}).covers(power); got != want {
			t.Errorf("%s for %q: %v, want %v", power.Name, subject, got, want)
		}
	}
}
