package engine

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFieldsToClear checks which fields are removed because they are in the way of a change of a union.
func TestFieldsToClear(t *testing.T) {
	const managed = `, managedFields: [{manager: kubectl, operation: Update, fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:strategy": {"f:rollingUpdate": {}}}}}]`
	for name, test := range map[string]struct {
		field, metadata, desired string
		force                    bool
		want                     [][]string
	}{
		"a default of the server":          {field: "spec.strategy.rollingUpdate", want: [][]string{{"spec", "strategy", "rollingUpdate"}}},
		"of another manager":               {field: "spec.strategy.rollingUpdate", metadata: managed},
		"taken from another manager":       {field: "spec.strategy.rollingUpdate", metadata: managed, force: true, want: [][]string{{"spec", "strategy", "rollingUpdate"}}},
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
			if diff := cmp.Diff(fieldsToClear(s, refusal(test.field)), test.want); diff != "" {
				t.Error(diff)
			}
		})
	}
}
