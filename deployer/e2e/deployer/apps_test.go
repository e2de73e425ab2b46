package deployer_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/apps"
	"github.com/solutionctl/solutionctl/schema"
)

// TestAppTree: what an instance owns is found by the references of the objects, and an instance whose operator reports is
// not ready before it has.
func TestAppTree(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.activated("1.0.0", content{})
	b.mustAdd("1.0.0")
	clock := b.newClock(b.Env, "wall", "hands: 2")
	owned := b.create("apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: wall\n  namespace: " + b.Env + "\n  ownerReferences:\n" +
		"    - {apiVersion: " + b.Group + "/v1, kind: Clock, name: wall, uid: " + string(clock.GetUID()) + "}\n" +
		"spec:\n  selector: {matchLabels: {a: b}}\n  template:\n    metadata: {labels: {a: b}}\n    spec: {containers: [{name: c, image: none.invalid/c}]}\n")
	one := await(t, func() (*schema.App, bool) {
		one, err := b.Apps.Get(t.Context(), apps.Options{Environment: b.Env, Name: "wall"})
		if err != nil {
			t.Fatal(err)
		}
		return one, len(one.Objects) == 3
	})
	var tree []string
	for _, object := range one.Objects {
		tree = append(tree, strings.Repeat(" ", object.Depth)+object.Kind+" "+string(object.Health))
	}
	if got := strings.Join(tree, "\n"); got != " Deployment progressing\n  ReplicaSet progressing\n   Pod progressing" {
		t.Errorf("tree of %s:\n%s", owned.GetName(), got)
	}
	if text := strings.Join(one.Reasons, "\n"); !strings.Contains(text, "node") {
		t.Errorf("reasons: %s", text)
	}
	if hands, _, _ := unstructured.NestedInt64(clock.Object, "spec", "hands"); hands != one.Values["hands"] {
		t.Errorf("values: %v", one.Values)
	}
}

// await asks again until something is so.
func await[T any](t *testing.T, ask func() (T, bool)) T {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		got, ok := ask()
		if ok {
			return got
		}
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatalf("it never was: %+v", got)
		}
	}
}
