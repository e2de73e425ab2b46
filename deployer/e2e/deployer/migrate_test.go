package deployer_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
)

// stored expects that these versions may be in the store, and that the first of them is the one that is written.
func (b *bed) stored(versions ...string) {
	b.Helper()
	live := b.get(definitions, "", b.crdName())
	if got, _, _ := unstructured.NestedStringSlice(live.Object, "status", "storedVersions"); !slices.Equal(got, versions) {
		b.Errorf("stored versions %q, want %q", got, versions)
	}
}

// TestActivationStoresAnew: the version in which objects were stored goes away with the next but one version.
func TestActivationStoresAnew(t *testing.T) {
	b := newBed(t)
	b.activated("1.0.0", content{})
	for _, name := range []string{"one", "two", "three"} {
		b.newClock(b.Env, name, "hands: 2")
	}
	b.activated("1.1.0", content{Crds: "v1 v2"})
	b.stored("v1", "v2")
	b.imported("2.0.0", content{Crds: "v2"})
	done, err := b.Activate(t.Context(), deployer.ActivateOptions{Solution: b.Solution, Version: "2.0.0"})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(done.Notices, func(n string) bool {
		return strings.Contains(n, "3 objects are stored anew in version v2 before version v1 goes away")
	}) {
		t.Errorf("notices: %q", done.Notices)
	}
	b.stored("v2")
	v2 := kube.GroupVersionKind{Group: b.Group, Version: "v2", Kind: "Clock"}
	clock := b.get(v2, b.Env, "one")
	if hands, _, _ := unstructured.NestedInt64(clock.Object, "spec", "hands"); hands != 2 {
		t.Errorf("%v", clock.Object["spec"])
	}
	for _, fields := range clock.GetManagedFields() {
		if fields.APIVersion == b.Group+"/v1" {
			t.Error("managed fields name a version that is gone")
		}
	}
	applied := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"hands": int64(3)}}}
	applied.SetGroupVersionKind(v2)
	applied.SetNamespace(b.Env)
	applied.SetName("one")
	if _, err = b.Cluster.Apply(t.Context(), applied, cluster.WriteOptions{Force: true}); err != nil {
		t.Errorf("the object cannot be applied any more: %v", err)
	}

	// Both versions hold the same, so the older one comes back with all of it.
	done, err = b.activate("1.0.0")
	b.noticed(done, err, "3 objects are stored anew in version v1 before version v2 goes away")
	b.stored("v1")
	for _, fields := range b.get(b.clock(), b.Env, "two").GetManagedFields() {
		if fields.APIVersion == b.Group+"/v2" {
			t.Error("managed fields name a version that is gone")
		}
	}
}

// TestActivationGoesBackWithoutObjects: what stores nothing can be stored in the older version again.
func TestActivationGoesBackWithoutObjects(t *testing.T) {
	b := newBed(t)
	b.activated("1.0.0", content{})
	b.activated("1.1.0", content{Crds: "v1 v2"})
	if _, err := b.Activate(t.Context(), deployer.ActivateOptions{Solution: b.Solution, Version: "1.0.0"}); err != nil {
		t.Fatal(err)
	}
	b.stored("v1")
	if again, err := b.Activate(t.Context(), deployer.ActivateOptions{Solution: b.Solution, Version: "1.0.0"}); err != nil || !again.Empty() {
		t.Errorf("%+v, %v", again, err)
	}
}
