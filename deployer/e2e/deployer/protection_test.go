package deployer_test

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
)

// approve allows a definition to be deleted.
func (b *bed) approve(name string) {
	b.Helper()
	for {
		live := b.get(definitions, "", name)
		annotations := map[string]string{}
		maps.Copy(annotations, live.GetAnnotations())
		annotations[deployer.AnnotationAllowDeletion] = "true"
		live.SetAnnotations(annotations)
		_, err := b.Cluster.Update(b.Context(), live, cluster.WriteOptions{})
		if err == nil {
			return
		}
		if !errors.Is(err, cluster.ErrChanged) {
			b.Fatal(err)
		}
	}
}

// denied makes and deletes a definition like that of the Solution until the API server refuses it, which takes it a moment
// to learn.
func (b *bed) denied() {
	b.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; {
		probe := b.create("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n" +
			"metadata: {name: probes." + b.Group + ", labels: {solutionctl.io/release: " + b.get(definitions, "", b.crdName()).GetLabels()["solutionctl.io/release"] + "}}\n" +
			"spec: {group: " + b.Group + ", scope: Cluster, names: {kind: Probe, plural: probes}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}\n")
		probe.SetResourceVersion("") // the API server writes its status
		err := b.Cluster.Delete(b.Context(), probe, cluster.DeleteOptions{})
		switch {
		case err != nil && strings.Contains(err.Error(), deployer.AnnotationAllowDeletion):
			b.approve(probe.GetName())
			if err = b.Cluster.Delete(b.Context(), probe, cluster.DeleteOptions{}); err != nil {
				b.Fatal("an approved deletion is refused:", err)
			}
			return
		case err != nil:
			b.Fatal(err)
		case time.Now().After(deadline):
			b.Fatal("nothing protects the definition")
		}
		for b.find(definitions, "", probe.GetName()) != nil {
			if b.Context().Err() != nil {
				b.Fatal(b.Context().Err())
			}
		}
	}
}

// TestProtectedDefinitions: not even an administrator deletes them by mistake.
func TestProtectedDefinitions(t *testing.T) {
	b := newBed(t)
	b.imported("1.0.0", content{})
	yes := true
	o := deployer.ActivateOptions{Solution: b.Solution, ProtectCRDs: &yes}
	if _, err := b.Activate(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	b.denied()
	live := b.get(definitions, "", b.crdName())
	if err := b.Cluster.Delete(t.Context(), live, cluster.DeleteOptions{}); err == nil || !strings.Contains(err.Error(), "deploy deactivate "+b.Solution) {
		t.Fatalf("it is not refused, or nothing says what to do: %v", err)
	}
	// It is remembered.
	again, err := b.Activate(t.Context(), deployer.ActivateOptions{Solution: b.Solution})
	if err != nil || !again.Empty() {
		t.Errorf("%+v, %v", again, err)
	}

	b.newClock(b.Env, "wall", "hands: 2")
	planned := deployer.DeactivateOptions{Options: deployer.Options{DryRun: true}, Solution: b.Solution, Data: deployer.DeleteData}
	if _, err = b.Deactivate(t.Context(), planned); err != nil {
		t.Fatal("the plan is refused:", err)
	}
	if live = b.get(definitions, "", b.crdName()); live.GetAnnotations()[deployer.AnnotationAllowDeletion] != "false" {
		t.Error("a plan lifted the protection")
	}
	var out exported
	if _, err = b.Deactivate(t.Context(), deployer.DeactivateOptions{Solution: b.Solution, Data: deployer.DeleteData, Export: out.open}); err != nil {
		t.Fatal(err)
	}
	if b.find(definitions, "", b.crdName()) != nil {
		t.Error("the definition is still there")
	}
	policy := &unstructured.Unstructured{}
	policy.SetAPIVersion("admissionregistration.k8s.io/v1")
	policy.SetKind("ValidatingAdmissionPolicy")
	if b.find(policy.GroupVersionKind(), "", b.Solution+".crds.solutionctl.io") != nil {
		t.Error("the policy is still there")
	}
}
