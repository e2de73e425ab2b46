package engine_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

const small = `
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: $ns}
data: {first: "1", second: "2"}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: operator, namespace: $ns}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: operator, namespace: $ns}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: operator, namespace: $ns}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: operator}
subjects: [{kind: ServiceAccount, name: operator, namespace: $ns}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: operator, namespace: $ns, labels: {app: operator}}
spec:
  replicas: 0
  selector: {matchLabels: {app: operator}}
  template:
    metadata: {labels: {app: operator}}
    spec: {containers: [{name: operator, image: "example.invalid/operator:1"}]}
`

func TestCreateUpdateRemove(t *testing.T) {
	b := newBed(t)
	plan := b.deploy(b.release("1.0.0", small))
	b.wantActions(plan, "create ServiceAccount $ns/operator", "create Role $ns/operator", "create RoleBinding $ns/operator", "create ConfigMap $ns/a", "create Deployment $ns/operator")
	b.restart()
	if plan := b.plan(b.release("1.0.0", small)); !plan.Empty() {
		t.Errorf("there is something to do after everything was done: %s", b.actions(plan))
	}
	if diff := cmp.Diff(b.data("a"), map[string]string{"first": "1", "second": "2"}); diff != "" {
		t.Error(diff)
	}
}
