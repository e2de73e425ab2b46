package deployer_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
)

// stored expects that these versions may be in the store, and that the first of them is the one that is written.
func (b *bed) stored(versions ...string) {
	b.Helper()
	live := b.get(crds, "", b.crdName())
	if got, _, _ := unstructured.NestedStringSlice(live.Object, "status", "storedVersions"); !slices.Equal(got, versions) {
		b.Errorf("stored versions %q, want %q", got, versions)
	}
}

// TestActivationStoresAnew: the version in which objects were stored goes away with the next but one version.
func TestActivationStoresAnew(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.activated("1.0.0", content{})
	for _, name := range []string{"one", "two", "three"} {
		b.newClock(b.Env, name, "hands: 2")
	}
	b.activated("1.1.0", content{Versions: "v1 v2"})
	b.stored("v1", "v2")
	b.imported("2.0.0", content{Versions: "v2"})
	done, err := b.Activate(t.Context(), deployer.ActivateOptions{Solution: b.Solution, Version: "2.0.0"})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(done.Notices, func(n string) bool {
		return strings.Contains(n, "3 objects are stored again in version v2 before version v1 goes away")
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
	b.noticed(done, err, "3 objects are stored again in version v1 before version v2 goes away")
	b.stored("v1")
	for _, fields := range b.get(b.clock(), b.Env, "two").GetManagedFields() {
		if fields.APIVersion == b.Group+"/v2" {
			t.Error("managed fields name a version that is gone")
		}
	}
}

// TestMigrationKeepsOwners checks that the owners of fields stay the same when an object is migrated to another storage version.
func TestMigrationKeepsOwners(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.activated("1.0.0", content{Fields: "colour: {type: string}, size: {type: string}"})
	apply := func(manager, version, spec string) error {
		body := fmt.Sprintf(`{"apiVersion": "%s/%s", "kind": "Clock", "metadata": {"name": "wall"}, "spec": %s}`, b.Group, version, spec)
		return b.in.Client().RESTClient().Patch(types.ApplyPatchType).
			AbsPath("/apis", b.Group, version, "namespaces", b.Env, "clocks", "wall").
			Param("fieldManager", manager).Body([]byte(body)).Do(t.Context()).Error()
	}
	edit := func(version, patch string) {
		t.Helper()
		err := b.in.Client().RESTClient().Patch(types.MergePatchType).
			AbsPath("/apis", b.Group, version, "namespaces", b.Env, "clocks", "wall").
			Param("fieldManager", "kubectl-edit").Body([]byte(patch)).Do(t.Context()).Error()
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := apply("argo", "v1", `{"colour": "red", "hands": 2}`); err != nil {
		t.Fatal(err)
	}
	edit("v1", `{"spec": {"size": "big"}}`)
	b.activated("1.1.0", content{Fields: "colour: {type: string}, size: {type: string}", Versions: "v1 v2"})
	edit("v2", `{"metadata": {"labels": {"edited": "yes"}}}`)
	b.activated("2.0.0", content{Fields: "colour: {type: string}, size: {type: string}", Versions: "v2"})
	b.stored("v2")

	wall := b.get(kube.GroupVersionKind{Group: b.Group, Version: "v2", Kind: "Clock"}, b.Env, "wall")
	var managers []string
	for _, entry := range wall.GetManagedFields() {
		managers = append(managers, entry.Manager+" "+string(entry.Operation)+" "+entry.APIVersion+" "+entry.FieldsV1.GetRawString())
	}
	slices.Sort(managers)
	if want := []string{
		`argo Apply ` + b.Group + `/v2 {"f:spec":{"f:colour":{},"f:hands":{}}}`,
		`kubectl-edit Update ` + b.Group + `/v2 {"f:metadata":{"f:labels":{".":{},"f:edited":{}}},"f:spec":{"f:size":{}}}`,
	}; !slices.Equal(managers, want) {
		t.Errorf("managers:\n%s\nwant:\n%s", strings.Join(managers, "\n"), strings.Join(want, "\n"))
	}
	// The owner can apply again without a conflict, may remove their fields, and conflicts with others.
	if err := apply("flux", "v2", `{"colour": "blue"}`); !apierrors.IsConflict(err) {
		t.Errorf("another manager took the colour: %v", err)
	}
	if err := apply("flux", "v2", `{"size": "small"}`); !apierrors.IsConflict(err) {
		t.Errorf("another manager took the size: %v", err)
	}
	if err := apply("argo", "v2", `{"colour": "green"}`); err != nil {
		t.Error(err)
	}
	spec, _ := b.get(wall.GroupVersionKind(), b.Env, "wall").Object["spec"].(map[string]any)
	if want := map[string]any{"colour": "green", "size": "big"}; !maps.Equal(spec, want) {
		t.Errorf("got %v, want %v", spec, want)
	}
}

// TestActivationGoesBackWithoutObjects: what stores nothing can be stored in the older version again.
func TestActivationGoesBackWithoutObjects(t *testing.T) {
	t.Parallel()
	b := newJudgment(t)
	b.activated("1.0.0", content{})
	b.activated("1.1.0", content{Versions: "v1 v2"})
	if _, err := b.Activate(t.Context(), deployer.ActivateOptions{Solution: b.Solution, Version: "1.0.0"}); err != nil {
		t.Fatal(err)
	}
	b.stored("v1")
	if again, err := b.Activate(t.Context(), deployer.ActivateOptions{Solution: b.Solution, Version: "1.0.0"}); err != nil || !again.Empty() {
		t.Errorf("%+v, %v", again, err)
	}
}
