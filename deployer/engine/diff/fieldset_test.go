package diff

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPick: the part of an object that a set of fields has, as the API server keeps it.
func TestPick(t *testing.T) {
	live := object(t, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: a}
spec:
  replicas: 3
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1}}
  finalizers: [ours, theirs]
  containers:
  - {name: web, image: "w:1", ports: [{containerPort: 80, protocol: TCP, name: http}]}
  - {name: side, image: "s:1"}
`).Object["spec"]
	for name, test := range map[string]struct{ fields, want string }{
		"a field":                    {"{'f:replicas': {}}", "{replicas: 3}"},
		"all of a field":             {"{'f:strategy': {}}", "{strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1}}}"},
		"a field that is there":      {"{'f:strategy': {'.': {}}}", "{strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1}}}"},
		"a field within":             {"{'f:strategy': {'f:type': {}}}", "{strategy: {type: RollingUpdate}}"},
		"what is there no more":      {"{'f:paused': {}, 'f:replicas': {}}", "{replicas: 3}"},
		"an element of a list":       {`{'f:containers': {'k:{"name":"web"}': {'.': {}, 'f:image': {}}}}`, "{containers: [{name: web, image: 'w:1'}]}"},
		"an element known by number": {`{'f:containers': {'k:{"name":"web"}': {'f:ports': {'k:{"containerPort":80,"protocol":"TCP"}': {'f:name': {}}}}}}`, "{containers: [{name: web, ports: [{containerPort: 80, protocol: TCP, name: http}]}]}"},
		"a value in a list":          {`{'f:finalizers': {'v:"ours"': {}}}`, "{finalizers: [ours]}"},
		"a key that cannot be read":  {`{'f:containers': {'k:{': {'f:image': {}}}, 'f:replicas': {}}`, "{containers: null, replicas: 3}"},
	} {
		t.Run(name, func(t *testing.T) {
			fields := object(t, "{apiVersion: v1, kind: A, set: "+test.fields+"}").Object["set"].(map[string]any)
			want := object(t, "{apiVersion: v1, kind: A, set: "+test.want+"}").Object["set"].(map[string]any)
			got := pick(fields, live).(map[string]any)
			if list, ok := got["containers"].([]any); ok && list == nil {
				got["containers"] = nil
			}
			if diff := cmp.Diff(got, want); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAppliedPart(t *testing.T) {
	got := AppliedPart(object(t, `
apiVersion: v1
kind: ConfigMap
metadata:
  name: a
  namespace: shop
  uid: u
  managedFields:
  - {manager: argocd, operation: Apply, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {"f:data": {"f:theirs": {}}}}
  - {manager: solutionctl, operation: Apply, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {"f:data": {"f:ours": {}}}}
data: {ours: a, theirs: b}
`))
	if diff := cmp.Diff(got, object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}, data: {ours: a}}")); diff != "" {
		t.Error(diff)
	}
}

// set reads a set of fields of YAML, in the format FieldsV1.
func set(t *testing.T, text string) map[string]any {
	t.Helper()
	return object(t, "{apiVersion: v1, kind: A, set: "+text+"}").Object["set"].(map[string]any)
}

// TestUnite: a set that names no fields is the whole value, and stays so beside one that names some.
func TestUnite(t *testing.T) {
	for name, test := range map[string]struct{ all, more, want string }{
		"nothing and nothing":          {"{}", "{}", "{}"},
		"the first":                    {"{}", "{'f:spec': {'f:a': {}}}", "{'f:spec': {'f:a': {}}}"},
		"the same":                     {"{'f:spec': {'f:a': {}}}", "{'f:spec': {'f:a': {}}}", "{'f:spec': {'f:a': {}}}"},
		"another field":                {"{'f:spec': {'f:a': {}}}", "{'f:data': {}}", "{'f:data': {}, 'f:spec': {'f:a': {}}}"},
		"a field beside":               {"{'f:spec': {'f:a': {}}}", "{'f:spec': {'f:b': {}}}", "{'f:spec': {'f:a': {}, 'f:b': {}}}"},
		"a field deeper":               {"{'f:spec': {'f:a': {'f:x': {}}}}", "{'f:spec': {'f:a': {'f:y': {}}}}", "{'f:spec': {'f:a': {'f:x': {}, 'f:y': {}}}}"},
		"a part of a whole":            {"{'f:spec': {}}", "{'f:spec': {'f:a': {}}}", "{'f:spec': {'.': {}, 'f:a': {}}}"},
		"a whole around a part":        {"{'f:spec': {'f:a': {}}}", "{'f:spec': {}}", "{'f:spec': {'.': {}, 'f:a': {}}}"},
		"the value itself":             {"{'f:spec': {'f:a': {}}}", "{'f:spec': {'.': {}, 'f:a': {}}}", "{'f:spec': {'.': {}, 'f:a': {}}}"},
		"elements of a list":           {`{'f:c': {'k:{"name":"a"}': {'f:image': {}}}}`, `{'f:c': {'k:{"name":"b"}': {'.': {}}}}`, `{'f:c': {'k:{"name":"a"}': {'f:image': {}}, 'k:{"name":"b"}': {'.': {}}}}`},
		"fields of one element":        {`{'f:c': {'k:{"name":"a"}': {'f:image': {}}}}`, `{'f:c': {'k:{"name":"a"}': {'f:args': {}}}}`, `{'f:c': {'k:{"name":"a"}': {'f:image': {}, 'f:args': {}}}}`},
		"values of a list of words":    {`{'f:finalizers': {'v:"a"': {}}}`, `{'f:finalizers': {'v:"b"': {}}}`, `{'f:finalizers': {'v:"a"': {}, 'v:"b"': {}}}`},
		"a whole in two sets stays so": {"{'f:spec': {}}", "{'f:spec': {}}", "{'f:spec': {}}"},
	} {
		t.Run(name, func(t *testing.T) {
			all, more := set(t, test.all), set(t, test.more)
			Unite(all, more)
			if diff := cmp.Diff(all, set(t, test.want)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(more, set(t, test.more)); diff != "" {
				t.Errorf("the added set was changed: %s", diff)
			}
		})
	}
}

// TestWithout: a field is removed if its set has it and the sets of others have no part of it.
func TestWithout(t *testing.T) {
	const value = `
spec:
  replicas: 3
  paused: true
  labels: {a: x, b: y}
  words: [one, two]
  containers:
  - {name: web, image: "w:1", args: [a]}
  - {name: side, image: "s:1"}
`
	for name, test := range map[string]struct {
		fields, others string
		want           string
	}{
		"a whole of others around it":  {"{'f:spec': {'f:replicas': {}}}", "{'f:spec': {}}", "{replicas: 3, paused: true, labels: {a: x, b: y}, words: [one, two], containers: [{name: web, image: 'w:1', args: [a]}, {name: side, image: 's:1'}]}"},
		"nothing":                      {"{}", "{}", "{replicas: 3, paused: true, labels: {a: x, b: y}, words: [one, two], containers: [{name: web, image: 'w:1', args: [a]}, {name: side, image: 's:1'}]}"},
		"a field":                      {"{'f:spec': {'f:replicas': {}}}", "{'f:spec': {'f:paused': {}}}", "{paused: true, labels: {a: x, b: y}, words: [one, two], containers: [{name: web, image: 'w:1', args: [a]}, {name: side, image: 's:1'}]}"},
		"a field of both":              {"{'f:spec': {'f:replicas': {}, 'f:paused': {}}}", "{'f:spec': {'f:replicas': {}}}", "{replicas: 3, labels: {a: x, b: y}, words: [one, two], containers: [{name: web, image: 'w:1', args: [a]}, {name: side, image: 's:1'}]}"},
		"an entry of a map":            {"{'f:spec': {'f:labels': {'f:a': {}, 'f:b': {}}}}", "{'f:spec': {'f:labels': {'f:b': {}}}}", "{replicas: 3, paused: true, labels: {b: y}, words: [one, two], containers: [{name: web, image: 'w:1', args: [a]}, {name: side, image: 's:1'}]}"},
		"a word of a list":             {`{'f:spec': {'f:words': {'v:"one"': {}}}}`, "{'f:spec': {'f:words': {'v:\"two\"': {}}}}", "{replicas: 3, paused: true, labels: {a: x, b: y}, words: [two], containers: [{name: web, image: 'w:1', args: [a]}, {name: side, image: 's:1'}]}"},
		"an element":                   {`{'f:spec': {'f:containers': {'k:{"name":"side"}': {'.': {}, 'f:image': {}}}}}`, `{'f:spec': {'f:containers': {'k:{"name":"web"}': {'f:image': {}}}}}`, "{replicas: 3, paused: true, labels: {a: x, b: y}, words: [one, two], containers: [{name: web, image: 'w:1', args: [a]}]}"},
		"a field of a shared element":  {`{'f:spec': {'f:containers': {'k:{"name":"web"}': {'f:image': {}, 'f:args': {}}}}}`, `{'f:spec': {'f:containers': {'k:{"name":"web"}': {'f:image': {}}}}}`, "{replicas: 3, paused: true, labels: {a: x, b: y}, words: [one, two], containers: [{name: web, image: 'w:1'}, {name: side, image: 's:1'}]}"},
		"a field that is not there":    {"{'f:spec': {'f:other': {}}}", "{'f:spec': {}}", "{replicas: 3, paused: true, labels: {a: x, b: y}, words: [one, two], containers: [{name: web, image: 'w:1', args: [a]}, {name: side, image: 's:1'}]}"},
		"what others have as a whole":  {"{'f:spec': {'f:labels': {'f:a': {}}}}", "{'f:spec': {'f:labels': {}}}", "{replicas: 3, paused: true, labels: {a: x, b: y}, words: [one, two], containers: [{name: web, image: 'w:1', args: [a]}, {name: side, image: 's:1'}]}"},
		"a whole of which others have": {"{'f:spec': {'f:labels': {}}}", "{'f:spec': {'f:labels': {'f:b': {}}}}", "{replicas: 3, paused: true, labels: {a: x, b: y}, words: [one, two], containers: [{name: web, image: 'w:1', args: [a]}, {name: side, image: 's:1'}]}"},
	} {
		t.Run(name, func(t *testing.T) {
			live := object(t, "apiVersion: v1\nkind: A\n"+value)
			before := live.DeepCopy()
			rest := Without(set(t, test.fields), set(t, test.others), live.Object).(map[string]any)
			if diff := cmp.Diff(rest["spec"], object(t, "{apiVersion: v1, kind: A, spec: "+test.want+"}").Object["spec"]); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(live, before); diff != "" {
				t.Errorf("the value was changed: %s", diff)
			}
		})
	}
}

// TestAppliedPartOfNothing: an object of which nothing was applied, or nothing can be parsed, has only its name.
func TestAppliedPartOfNothing(t *testing.T) {
	for name, managed := range map[string]string{
		"no managers":                "[]",
		"others only":                `[{manager: them, operation: Apply, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {"f:data": {"f:a": {}}}}]`,
		"an update instead of apply": `[{manager: solutionctl, operation: Update, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {"f:data": {"f:a": {}}}}]`,
		"a subresource":              `[{manager: solutionctl, operation: Apply, subresource: status, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {"f:data": {"f:a": {}}}}]`,
		"no fields":                  "[{manager: solutionctl, operation: Apply, apiVersion: v1}]",
	} {
		t.Run(name, func(t *testing.T) {
			got := AppliedPart(object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop, labels: {x: y}, managedFields: "+managed+"}, data: {a: b}}"))
			if diff := cmp.Diff(got, object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}}")); diff != "" {
				t.Error(diff)
			}
		})
	}
}
