package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// TestDuties checks that each kind that has an operator of its own has it in each way of dividing them, and that the operator of
// everything leaves it.
func TestDuties(t *testing.T) {
	if got := len(duties("cloud-operator")); got != len(kinds) {
		t.Errorf("the umbrella has %d kinds", got)
	}
	for operator, names := range operators {
		if got := duties(operator); len(got) != len(names) {
			t.Errorf("%s has %v", operator, got)
		}
		for _, name := range names {
			if !slices.Contains(others("cloud-operator", name), operator) || len(others(operator, name)) > 0 {
				t.Errorf("%s is not left to %s", name, operator)
			}
		}
	}
	if left := others("cloud-operator", "Cloud"); len(left) > 0 {
		t.Errorf("nobody looks after a Cloud but %v", left)
	}
}

// TestIsRolledOut checks that a Deployment whose cached status is of an earlier generation is not ready.
func TestIsRolledOut(t *testing.T) {
	done := appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1}
	starting := done
	starting.AvailableReplicas = 0
	if !isRolledOut(done, 2) || isRolledOut(done, 3) || isRolledOut(starting, 2) {
		t.Error("only what was applied, and is available, is rolled out")
	}
}

// TestOwnedBy checks that children can be created where the right to block a deletion is enforced.
func TestOwnedBy(t *testing.T) {
	owner := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Cloud"}}
	owner.SetName("demo")
	if references := ownedBy(owner); len(references) != 1 || references[0].Name != "demo" || !*references[0].Controller || references[0].BlockOwnerDeletion != nil {
		t.Errorf("%+v", references)
	}
}

// TestRoles checks that an operator may read only the custom resources that are its duty, and the children that it makes.
func TestRoles(t *testing.T) {
	for operator := range operators {
		var role struct {
			Rules []struct{ APIGroups, Resources, Verbs []string }
		}
		data, err := os.ReadFile(filepath.Join("..", "archive", "operators", operator, "role.yaml"))
		if err == nil {
			err = yaml.Unmarshal(data, &role)
		}
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]bool{}
		for _, k := range duties(operator) {
			want[k.resource], want[k.resource+"/status"] = true, true
			for _, child := range k.children {
				want[kindOf(child).resource] = true
			}
		}
		got := map[string]bool{}
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				if slices.Contains(rule.APIGroups, group) {
					got[resource] = true
				}
			}
		}
		for resource := range want {
			if !got[resource] {
				t.Errorf("%s has no right on %s", operator, resource)
			}
		}
		if len(got) > len(want) {
			t.Errorf("%s has rights on %v, and needs %v", operator, got, want)
		}
	}
}

func TestServiceImage(t *testing.T) {
	file := filepath.Join(t.TempDir(), "operator.yaml")
	if err := os.WriteFile(file, []byte("repositories: {1.0.0: [{endpoint: registry/cloud-1.0.0, images: [cloud-operator:1.0.0, cloud-service:1.0.0]}]}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := serviceImage(file, "1.0.0"); err != nil || got != "registry/cloud-1.0.0/cloud-service:1.0.0" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := serviceImage(file, "2.0.0"); err == nil || !strings.Contains(err.Error(), "version 2.0.0") {
		t.Errorf("%v", err)
	}
}
