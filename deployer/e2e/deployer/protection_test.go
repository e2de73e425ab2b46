package deployer_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/plan"
)

// TestProtectedDefinitions: not even an administrator deletes them by mistake.
func TestProtectedDefinitions(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.imported("1.0.0", content{})
	yes := true
	o := deployer.ActivateOptions{Solution: b.Solution, ProtectCRDs: &yes}
	if _, err := b.Activate(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	live := b.get(crds, "", b.crdName())
	err := b.Cluster.Delete(t.Context(), live, cluster.DeleteOptions{})
	if err == nil || !strings.Contains(err.Error(), "deploy deactivate "+b.Solution) {
		t.Fatalf("it is not refused, or nothing says what to do: %v", err)
	}
	for _, text := range []string{"false", "true"} {
		live = b.get(crds, "", b.crdName())
		live.SetAnnotations(map[string]string{engine.AnnotationAllowDeletion: text})
		if live, err = b.Cluster.Update(t.Context(), live, cluster.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
		live.SetResourceVersion("")
		err = b.Cluster.Delete(t.Context(), live, cluster.DeleteOptions{DryRun: true})
		if refused := err != nil; refused != (text == "false") {
			t.Errorf("allowed %s: %v", text, err)
		}
	}
	// It is remembered, and what was allowed meanwhile is taken back.
	for _, changes := range []bool{true, false} {
		again, failure := b.Activate(t.Context(), deployer.ActivateOptions{Solution: b.Solution})
		if failure != nil || again.Empty() == changes {
			t.Errorf("%+v, %v", again, failure)
		}
	}

	b.newClock(b.Env, "wall", "hands: 2")
	planned := deployer.DeactivateOptions{Options: plan.Options{DryRun: true}, Solution: b.Solution, Data: plan.DeleteData}
	if _, err = b.Deactivate(t.Context(), planned); err != nil {
		t.Fatal("the plan is refused:", err)
	}
	if live = b.get(crds, "", b.crdName()); live.GetAnnotations()[engine.AnnotationAllowDeletion] != "false" {
		t.Error("a plan lifted the protection")
	}
	var out exported
	if _, err = b.Deactivate(t.Context(), deployer.DeactivateOptions{Solution: b.Solution, Data: plan.DeleteData, Export: out.open}); err != nil {
		t.Fatal(err)
	}
	if b.find(crds, "", b.crdName()) != nil {
		t.Error("the definition is still there")
	}
	policy := &unstructured.Unstructured{}
	policy.SetAPIVersion("admissionregistration.k8s.io/v1")
	policy.SetKind("ValidatingAdmissionPolicy")
	if b.find(policy.GroupVersionKind(), "", b.Solution+".crds.solutionctl.io") != nil {
		t.Error("the policy is still there")
	}
}
