package engine

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPick: what of an object is ours, by the set of fields that the API server keeps.
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
		"a key that nobody can read": {`{'f:containers': {'k:{': {'f:image': {}}}, 'f:replicas': {}}`, "{containers: null, replicas: 3}"},
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

func TestOwned(t *testing.T) {
	got := owned(object(t, `
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

// TestLeftovers: which fields go because they stand against a change of what decides about them.
func TestLeftovers(t *testing.T) {
	const managed = `, managedFields: [{manager: kubectl, operation: Update, fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:strategy": {"f:rollingUpdate": {}}}}}]`
	for name, test := range map[string]struct {
		field, metadata, desired string
		force                    bool
		want                     [][]string
	}{
		"a default of the server":          {field: "spec.strategy.rollingUpdate", want: [][]string{{"spec", "strategy", "rollingUpdate"}}},
		"somebody else's":                  {field: "spec.strategy.rollingUpdate", metadata: managed},
		"taken over from somebody else":    {field: "spec.strategy.rollingUpdate", metadata: managed, force: true, want: [][]string{{"spec", "strategy", "rollingUpdate"}}},
		"wanted":                           {field: "spec.strategy.rollingUpdate", desired: "strategy: {type: Recreate, rollingUpdate: {maxSurge: 1}}"},
		"nothing is said about its parent": {field: "spec.strategy.rollingUpdate", desired: "replicas: 1"},
		"not there":                        {field: "spec.strategy.other"},
		"of the whole spec":                {field: "spec.strategy"},
		"not of the spec":                  {field: "metadata.labels.a"},
	} {
		t.Run(name, func(t *testing.T) {
			if test.desired == "" {
				test.desired = "strategy: {type: Recreate}"
			}
			s := stepOf(t, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {"+test.desired+"}}",
				"{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, labels: {a: b}"+test.metadata+"}, spec: {strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1}}}}")
			s.force = test.force
			if diff := cmp.Diff(leftovers(s, refusal(test.field)), test.want); diff != "" {
				t.Error(diff)
			}
		})
	}
}
