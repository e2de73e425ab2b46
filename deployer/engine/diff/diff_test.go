package diff

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/solutionctl/solutionctl/schema"
)

// object reads an object of one YAML document.
func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestFields(t *testing.T) {
	before := object(t, `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  resourceVersion: "1"
  labels: {app.kubernetes.io/name: web, gone: x}
  managedFields:
  - manager: solutionctl
    operation: Apply
    fieldsType: FieldsV1
    fieldsV1: {"f:spec": {"f:selector": {}, "f:template": {"f:spec": {"f:containers": {'k:{"name":"web"}': {".": {}, "f:name": {}, "f:image": {}, "f:args": {}}}}}}}
  - manager: kubectl
    operation: Update
    subresource: scale
    fieldsType: FieldsV1
    fieldsV1: {"f:spec": {"f:replicas": {}}}
  - manager: hpa
    operation: Update
    fieldsType: FieldsV1
    fieldsV1: {"f:spec": {"f:replicas": {}, "f:template": {"f:spec": {"f:containers": {'k:{"name":"web"}': {"f:ports": {'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:name": {}}}}}}}}}
spec:
  replicas: 1
  selector: {matchLabels: {a: b}}
  template:
    spec:
      containers:
      - {name: side, image: s:1}
      - {name: web, image: w:1, args: [a, b], ports: [{containerPort: 80, protocol: TCP, name: http}]}
status: {replicas: 1}
`)
	after := object(t, `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  resourceVersion: "2"
  generation: 4
  labels: {app.kubernetes.io/name: shop}
spec:
  replicas: 3
  selector: {matchLabels: {a: c}}
  template:
    spec:
      containers:
      - {name: web, image: w:2, args: [a], ports: [{containerPort: 80, protocol: TCP, name: web}]}
      - {name: new, image: n:1}
status: {replicas: 3}
`)
	container := "spec.template.spec.containers"
	want := []schema.FieldChange{
		{Path: "metadata.labels[app.kubernetes.io/name]", From: `"web"`, To: `"shop"`},
		{Path: "metadata.labels.gone", From: `"x"`},
		{Path: "spec.replicas", From: "1", To: "3", Manager: "hpa, kubectl"},
		{Path: "spec.selector.matchLabels.a", From: `"b"`, To: `"c"`, Manager: "solutionctl"},
		{Path: container + "[name=side]", From: `{"image":"s:1","name":"side"}`},
		{Path: container + "[name=web].args", From: `["a","b"]`, To: `["a"]`, Manager: "solutionctl"},
		{Path: container + "[name=web].image", From: `"w:1"`, To: `"w:2"`, Manager: "solutionctl"},
		{Path: container + "[name=web].ports[name=http]", From: `{"containerPort":80,"name":"http","protocol":"TCP"}`, Manager: "hpa"},
		{Path: container + "[name=web].ports[name=web]", To: `{"containerPort":80,"name":"web","protocol":"TCP"}`},
		{Path: container + "[name=new]", To: `{"image":"n:1","name":"new"}`},
	}
	if diff := cmp.Diff(Fields(before, after), want); diff != "" {
		t.Error(diff)
	}
	if changes := Fields(before, before); len(changes) > 0 {
		t.Errorf("an object differs from itself: %v", changes)
	}
}

// TestFieldsShown: how changes are shown, and how elements of lists are matched.
func TestFieldsShown(t *testing.T) {
	for name, test := range map[string]struct {
		before, after string
		want          []schema.FieldChange
	}{
		"a number":                          {"spec: {a: 1}", "spec: {a: 2}", []schema.FieldChange{{Path: "spec.a", From: "1", To: "2"}}},
		"another type":                      {"spec: {a: {b: c}}", "spec: {a: [x]}", []schema.FieldChange{{Path: "spec.a", From: `{"b":"c"}`, To: `["x"]`}}},
		"a key with a dot":                  {"spec: {}", "spec: {a.b/c: x}", []schema.FieldChange{{Path: "spec[a.b/c]", To: `"x"`}}},
		"elements by their ports":           {"spec: {p: [{port: 1, a: x}, {port: 2}]}", "spec: {p: [{port: 2}, {port: 1, a: z}]}", []schema.FieldChange{{Path: "spec.p[port=1].a", From: `"x"`, To: `"z"`}}},
		"elements whose names are the same": {"spec: {p: [{name: a}, {name: a}]}", "spec: {p: [{name: a}]}", []schema.FieldChange{{Path: "spec.p", From: `[{"name":"a"},{"name":"a"}]`, To: `[{"name":"a"}]`}}},
		"elements of which one has no name": {"spec: {p: [{name: a}, {b: c}]}", "spec: {p: [{name: a}]}", []schema.FieldChange{{Path: "spec.p", From: `[{"name":"a"},{"b":"c"}]`, To: `[{"name":"a"}]`}}},
		"compressed data": {"binaryData: {a: H4sIAAAAAAAAAw==, b: x}", "binaryData: {a: H4sIAAAAAAAABA==, b: H4sI}", []schema.FieldChange{
			{Path: "binaryData.a", From: "(10 bytes, compressed, sha256:9d1011ce9a92)", To: "(10 bytes, compressed, sha256:063d0a291237)"},
			{Path: "binaryData.b", From: `"x"`, To: "(3 bytes, compressed, sha256:baa89858c7e5)"},
		}},
		"compressed data in what is new": {"a: b", "binaryData: {a: H4sIAAAAAAAAAw==, b: H4sI!, c: [1]}", []schema.FieldChange{
			{Path: "a", From: `"b"`},
			{Path: "binaryData", To: `{"a":"(10 bytes, compressed, sha256:9d1011ce9a92)","b":"H4sI!","c":[1]}`},
		}},
		"the status":             {"status: {a: 1}", "status: {a: 2}", nil},
		"what the server counts": {"metadata: {name: a, generation: 1, uid: u}", "metadata: {name: a, generation: 2, uid: u}", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := Fields(object(t, "{apiVersion: v1, kind: A, "+test.before+"}"), object(t, "{apiVersion: v1, kind: A, "+test.after+"}"))
			if diff := cmp.Diff(got, test.want); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFieldsOfSecrets(t *testing.T) {
	before := object(t, "{apiVersion: v1, kind: Secret, type: a, metadata: {annotations: {last: canary}}, data: {a: canary, b: canary}}")
	after := object(t, "{apiVersion: v1, kind: Secret, type: b, metadata: {annotations: {last: canary2}}, data: {a: canary2}}")
	want := []schema.FieldChange{
		{Path: "data.a", From: hidden, To: hidden},
		{Path: "data.b", From: hidden},
		{Path: "metadata.annotations.last", From: hidden, To: hidden},
		{Path: "type", From: `"a"`, To: `"b"`},
	}
	if diff := cmp.Diff(Fields(before, after), want); diff != "" {
		t.Error(diff)
	}
}

// TestWithoutBookkeeping: what the server sets is not content, and the object stays as it is.
func TestWithoutBookkeeping(t *testing.T) {
	live := object(t, `{apiVersion: v1, kind: A, metadata: {name: a, labels: {x: y}, uid: u, resourceVersion: "1", generation: 3, creationTimestamp: "2026-01-01T00:00:00Z",
deletionTimestamp: "2026-01-01T00:00:00Z", deletionGracePeriodSeconds: 1, selfLink: /a, managedFields: [{manager: a}]}, spec: {a: b}, status: {c: d}}`)
	before := live.DeepCopy()
	want := object(t, "{apiVersion: v1, kind: A, metadata: {name: a, labels: {x: y}}, spec: {a: b}}").Object
	if diff := cmp.Diff(WithoutBookkeeping(live), want); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(live, before); diff != "" {
		t.Errorf("the object was changed: %s", diff)
	}
	if diff := cmp.Diff(WithoutBookkeeping(&unstructured.Unstructured{Object: map[string]any{"status": "x"}}), map[string]any{}); diff != "" {
		t.Error(diff)
	}
}

// TestFieldsBothWays: the changes back are the changes there with From and To exchanged, in any object.
func TestFieldsBothWays(t *testing.T) {
	objects := []string{
		"spec: {}",
		"spec: {a: 1, b: [1, 2]}",
		"spec: {a: {x: y}, b: [2, 1]}",
		"spec: {c: [{name: a, v: 1}, {name: b}]}",
		"spec: {c: [{name: b}, {name: a, v: 2}]}",
		"spec: {c: [{name: a}, {name: a}]}",
		"spec: {p: [{port: 1}, {port: 2, a: x}]}",
		"data: {a: H4sIAAAAAAAAAw==}, spec: null",
		"data: {a: H4sIAAAAAAAABA==}",
	}
	for _, x := range objects {
		for _, y := range objects {
			a, b := object(t, "{apiVersion: v1, kind: A, "+x+"}"), object(t, "{apiVersion: v1, kind: A, "+y+"}")
			there, back := Fields(a, b), Fields(b, a)
			if (len(there) == 0) != (x == y) {
				t.Errorf("%s to %s: %v", x, y, there)
			}
			exchanged := map[schema.FieldChange]bool{}
			for _, c := range back {
				exchanged[schema.FieldChange{Path: c.Path, From: c.To, To: c.From}] = true
			}
			for _, c := range there {
				if !exchanged[c] {
					t.Errorf("%s to %s: %v has no counterpart in %v", x, y, c, back)
				}
			}
			if len(there) != len(back) {
				t.Errorf("%s to %s: %d changes there and %d back", x, y, len(there), len(back))
			}
		}
	}
}
