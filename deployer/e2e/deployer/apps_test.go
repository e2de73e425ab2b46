package deployer_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/apps"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

func TestApps(t *testing.T) {
	b := newBed(t)
	here := apps.Options{Environment: b.Env, Name: "wall", Timeout: time.Minute}
	_, err := b.Apps.Create(t.Context(), apps.CreateOptions{Options: here})
	b.refused(err, report.NotFound, "no Solution", "deploy add "+b.Env)
	b.activated("1.0.0", content{Specs: []string{"colour"}})
	b.mustAdd("1.0.0")

	kind, err := b.Apps.Kind(t.Context(), apps.Options{Environment: b.Env})
	if err != nil {
		t.Fatal(err)
	}
	if fields := kind.Fields(); len(fields) != 2 || fields[0].Path != "colour" || fields[1].Type != "integer" {
		t.Errorf("fields: %+v", fields)
	}
	_, err = b.Apps.Create(t.Context(), apps.CreateOptions{Options: here, Set: []string{"colours=red"}})
	b.refused(err, report.Usage, "did you mean colour?")
	_, err = b.Apps.Create(t.Context(), apps.CreateOptions{Options: here, Values: []byte("hands: two\n")})
	b.refused(err, report.Invalid, "spec.hands")
	one, err := b.Apps.Create(t.Context(), apps.CreateOptions{Options: here, Values: []byte("hands: 2\n"), Set: []string{"colour=red"}})
	if err != nil {
		t.Fatal(err)
	}
	if one.Values["colour"] != "red" || one.Values["hands"] != int64(2) || one.Health != schema.AppReady {
		t.Errorf("%+v", one)
	}
	_, err = b.Apps.Create(t.Context(), apps.CreateOptions{Options: here})
	b.refused(err, report.Conflict, "exists already", "app set "+b.Env+" wall")

	if one, err = b.Apps.Set(t.Context(), apps.SetOptions{Options: here, Set: []string{"hands=3", "colour-"}}); err != nil {
		t.Fatal(err)
	}
	if _, there := one.Values["colour"]; there || one.Values["hands"] != int64(3) {
		t.Errorf("%+v", one.Values)
	}
	_, err = b.Apps.Scale(t.Context(), apps.ScaleOptions{Options: here, Replicas: 3})
	b.refused(err, report.Refused, "cannot be scaled")
	_, err = b.Apps.Get(t.Context(), apps.Options{Environment: b.Env, Name: "tower"})
	b.refused(err, report.NotFound, "tower", "app list "+b.Env)

	list, err := b.Apps.List(t.Context(), apps.Options{Environment: b.Env})
	if err != nil || len(list.Apps) != 1 || list.Apps[0].Name != "wall" {
		t.Fatalf("%+v, %v", list, err)
	}
	data, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	if err = schema.ValidateOutput("apps", data); err != nil {
		t.Error(err)
	}
	if err = b.Apps.Delete(t.Context(), here); err != nil {
		t.Fatal(err)
	}
	if list, err = b.Apps.List(t.Context(), apps.Options{Environment: b.Env}); err != nil || len(list.Apps) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestAppTree: what an instance owns is found by the references of the objects, and an instance whose operator reports is
// not ready before it has.
func TestAppTree(t *testing.T) {
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
