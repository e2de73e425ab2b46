package diff

import (
	"encoding/json"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestPatch: each operation is about a whole field, or a whole field of the metadata, and all of them together make the other object.
func TestPatch(t *testing.T) {
	for name, test := range map[string]struct {
		before, after string
		want          []string
	}{
		"nothing":                 {"spec: {a: 1}", "spec: {a: 1}", nil},
		"a field":                 {"spec: {a: 1, b: 2}", "spec: {a: 2, b: 2}", []string{"add /spec"}},
		"a field more":            {"spec: {a: 1}", "spec: {a: 1}, data: {x: y}", []string{"add /data"}},
		"a field less":            {"spec: {a: 1}, data: {x: y}", "spec: {a: 1}", []string{"remove /data"}},
		"labels":                  {"metadata: {name: a, labels: {x: y}}", "metadata: {name: a, labels: {x: z}}", []string{"add /metadata/labels"}},
		"annotations are removed": {"metadata: {name: a, annotations: {x: y}}", "metadata: {name: a}", []string{"remove /metadata/annotations"}},
		"several": {
			"metadata: {name: a, labels: {x: y}}, data: {a: b}, spec: {a: 1}", "metadata: {name: a, labels: {x: y}, annotations: {c: d}}, spec: {a: 2}",
			[]string{"remove /data", "add /metadata/annotations", "add /spec"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := object(t, "{apiVersion: v1, kind: A, "+test.before+"}"), object(t, "{apiVersion: v1, kind: A, "+test.after+"}")
			var got []string
			for _, o := range Patch(before.Object, after.Object) {
				got = append(got, o.Op+" "+o.Path)
			}
			if diff := cmp.Diff(got, test.want); diff != "" {
				t.Error(diff)
			}
			checkPatch(t, before, after)
		})
	}
}

// checkPatch applies the patch from one object to another.
func checkPatch(t *testing.T, before, after *unstructured.Unstructured) {
	t.Helper()
	operations := Patch(before.Object, after.Object)
	if len(operations) == 0 {
		return
	}
	data, err := json.Marshal(operations)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := jsonpatch.DecodePatch(data)
	if err != nil {
		t.Fatal(err)
	}
	live, err := patch.Apply([]byte(text(t, before)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(object(t, string(live)), after); diff != "" {
		t.Errorf("the patch makes another object: %s", diff)
	}
}
