package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

const (
	configMap = `
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: $ns}
data: {first: "1", second: "2"}
`
	account = `
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
`
	deployment = `
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
	small = configMap + account + deployment
)

func TestCreateUpdateRemove(t *testing.T) {
	b := newBed(t)
	plan := b.deploy(b.release("1.0.0", small))
	b.wantActions(plan, "create ServiceAccount $ns/operator", "create Role $ns/operator", "create RoleBinding $ns/operator",
		"create ConfigMap $ns/a", "create Deployment $ns/operator")

	b.restart()
	if plan = b.plan(b.release("1.0.0", small)); !plan.Empty() {
		t.Errorf("there is something to do after everything was done: %s", b.actions(plan))
	}

	changed := strings.NewReplacer(`first: "1", second: "2"`, `first: "one"`, "operator:1", "operator:2").Replace(configMap + deployment)
	plan = b.deploy(b.release("2.0.0", changed))
	b.wantActions(plan, "update ConfigMap $ns/a", "update Deployment $ns/operator",
		"delete RoleBinding $ns/operator", "delete Role $ns/operator", "delete ServiceAccount $ns/operator")
	want := []schema.FieldChange{
		{Path: "data.first", From: `"1"`, To: `"one"`, Manager: "solutionctl"},
		{Path: "data.second", From: `"2"`, Manager: "solutionctl"},
		{
			Path: "spec.template.spec.containers[name=operator].image",
			From: `"example.invalid/operator:1"`, To: `"example.invalid/operator:2"`, Manager: "solutionctl",
		},
	}
	var got []schema.FieldChange
	for _, c := range plan.Changes {
		got = append(got, c.Fields...)
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(b.data(), map[string]string{"first": "one"}); diff != "" {
		t.Error(diff)
	}
	if b.get("ServiceAccount", "operator") != nil {
		t.Error("what was not wanted any more is still there")
	}

	plan = b.deploy(engine.Release{Key: b.Key, Operation: "remove"})
	b.wantActions(plan, "delete Deployment $ns/operator", "delete ConfigMap $ns/a")
	state := b.state()
	if state.Pending != nil || len(state.Current.Objects) > 0 || state.Current.Operation != "remove" {
		t.Errorf("after removing: %+v", state)
	}
	var versions []string
	for _, r := range state.History {
		versions = append(versions, fmt.Sprint(r.Number, " ", r.Operation, " ", r.Version, " ", r.Outcome))
	}
	if diff := cmp.Diff(versions, []string{"2 add 2.0.0 done", "1 add 1.0.0 done"}); diff != "" {
		t.Error(diff)
	}
	if err := b.Forget(t.Context(), b.Key); err != nil {
		t.Error(err)
	}
	if state := b.state(); state.Current != nil || len(state.History) > 0 {
		t.Errorf("after forgetting: %+v", state)
	}
}

func TestFieldsOfOthersStay(t *testing.T) {
	b := newBed(t)
	b.deploy(b.release("1.0.0", small))
	b.patch("kubectl-edit", "configmaps", "a", `{"data": {"theirs": "3"}, "metadata": {"labels": {"theirs": "yes"}}}`)
	b.patch("kubectl", "apps/v1/deployments", "operator", `{"spec": {"replicas": 0}}`)
	b.deploy(b.release("2.0.0", strings.ReplaceAll(small, `first: "1"`, `first: "one"`)))
	if diff := cmp.Diff(b.data(), map[string]string{"first": "one", "second": "2", "theirs": "3"}); diff != "" {
		t.Error(diff)
	}
	if got := b.get("ConfigMap", "a").GetLabels()["theirs"]; got != "yes" {
		t.Errorf("label of somebody else: %q", got)
	}
}

func TestScaledBySomebodyElse(t *testing.T) {
	for _, wanted := range []int64{2, 0} {
		b := newBed(t)
		b.deploy(b.release("1.0.0", deployment))
		b.patch("kubectl", "apps/v1/deployments", "operator", fmt.Sprintf(`{"spec": {"replicas": %d}}`, wanted), "scale")
		if plan := b.plan(b.release("1.0.0", deployment)); !plan.Empty() {
			t.Errorf("scaling to %d is undone: %s", wanted, b.actions(plan))
		}
		plan := b.plan(b.release("2.0.0", strings.ReplaceAll(deployment, "operator:1", "operator:2")))
		b.wantActions(plan, "update Deployment $ns/operator")
		if err := b.Apply(t.Context(), plan, engine.ApplyOptions{NoWait: true}); err != nil {
			t.Fatal(err)
		}
		if replicas, _, _ := unstructured.NestedInt64(b.get("apps/v1/Deployment", "operator").Object, "spec", "replicas"); replicas != wanted {
			t.Errorf("%d replicas, want the %d that somebody asked for", replicas, wanted)
		}
	}
}

func TestConflict(t *testing.T) {
	b := newBed(t)
	b.deploy(b.release("1.0.0", configMap))
	b.patch("kubectl-edit", "configmaps", "a", `{"data": {"first": "theirs"}}`)
	b.refused(b.release("1.0.0", configMap), engine.PlanOptions{}, report.Conflict, "ConfigMap $ns/a", ".data.first", `"kubectl-edit"`, "--force")
	if got := b.data()["first"]; got != "theirs" {
		t.Errorf("a plan changed something: %q", got)
	}
	plan, err := b.Plan(t.Context(), b.release("1.0.0", configMap), engine.PlanOptions{Force: true})
	if err != nil {
		t.Fatal(err)
	}
	fields := plan.Changes[0].Fields
	if len(fields) != 1 || fields[0].Since == nil || time.Since(*fields[0].Since) > time.Minute {
		t.Fatalf("%+v", fields)
	}
	fields[0].Since = nil
	want := []schema.FieldChange{{Path: "data.first", From: `"theirs"`, To: `"1"`, Manager: "kubectl-edit"}}
	if diff := cmp.Diff(fields, want); diff != "" {
		t.Error(diff)
	}
	b.apply(plan)
	if got := b.data()["first"]; got != "1" {
		t.Errorf("after taking the field over: %q", got)
	}
}

func TestConflictAfterPlanning(t *testing.T) {
	b := newBed(t)
	b.deploy(b.release("1.0.0", configMap))
	plan := b.plan(b.release("2.0.0", strings.ReplaceAll(configMap, `"1"`, `"one"`)))
	b.patch("kubectl-edit", "configmaps", "a", `{"data": {"first": "theirs"}}`)
	b.failed(b.Apply(t.Context(), plan, engine.ApplyOptions{}), report.Conflict, ".data.first", "kubectl-edit")

	b.patch("kubectl-edit", "configmaps", "a", `{"data": {"first": null}}`)
	plan = b.plan(b.release("2.0.0", strings.ReplaceAll(configMap, `"1"`, `"one"`)))
	b.patch("kubectl-edit", "configmaps", "a", `{"data": {"other": "theirs"}}`)
	b.apply(plan) // the object has changed, but nothing in it that matters
	if diff := cmp.Diff(b.data(), map[string]string{"first": "one", "second": "2", "other": "theirs"}); diff != "" {
		t.Error(diff)
	}
}

func TestAdopt(t *testing.T) {
	b := newBed(t)
	b.make(`
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: $ns, labels: {heritage: salt}}
data: {first: "old", third: "3"}
`)
	b.refused(b.release("1.0.0", configMap), engine.PlanOptions{}, report.Conflict, "ConfigMap $ns/a", "heritage=salt", "--adopt")
	plan, err := b.Plan(t.Context(), b.release("1.0.0", configMap), engine.PlanOptions{Adopt: true})
	if err != nil {
		t.Fatal(err)
	}
	b.wantActions(plan, "adopt ConfigMap $ns/a")
	b.apply(plan)
	if diff := cmp.Diff(b.data(), map[string]string{"first": "1", "second": "2", "third": "3"}); diff != "" {
		t.Error(diff)
	}
	b.deploy(engine.Release{Key: b.Key, Operation: "remove"})
	if b.data() != nil {
		t.Error("what was adopted stays after removing")
	}

	b.make(configMap)
	b.wantActions(b.deploy(b.release("1.0.0", configMap)), "adopt ConfigMap $ns/a") // it is as it is wanted
}

func TestAppearsAfterPlanning(t *testing.T) {
	b := newBed(t)
	plan := b.plan(b.release("1.0.0", configMap))
	b.make(strings.ReplaceAll(configMap, `"1"`, `"theirs"`))
	b.failed(b.Apply(t.Context(), plan, engine.ApplyOptions{}), report.Conflict, "ConfigMap $ns/a exists", "--adopt")
	if got := b.data()["first"]; got != "theirs" {
		t.Errorf("an object of somebody else was changed: %q", got)
	}
}

func TestObjectOfAnotherRelease(t *testing.T) {
	b := newBed(t)
	b.deploy(b.release("1.0.0", configMap))
	second := b.release("1.0.0", configMap)
	second.Name = "second"
	b.refused(second, engine.PlanOptions{Adopt: true, Force: true}, report.Conflict, "ConfigMap $ns/a belongs to $ns/demo")
}

func TestRecreatedBySomebodyElse(t *testing.T) {
	b := newBed(t)
	b.deploy(b.release("1.0.0", configMap))
	b.delete("ConfigMap", "a")
	b.make(strings.ReplaceAll(configMap, `"1"`, `"theirs"`))
	plan := b.deploy(engine.Release{Key: b.Key, Operation: "remove"})
	b.wantActions(plan)
	if b.data() == nil {
		t.Error("an object of somebody else was deleted, which only had the same name")
	}
}

func TestDeletedBySomebodyElse(t *testing.T) {
	b := newBed(t)
	b.deploy(b.release("1.0.0", small))
	b.delete("ConfigMap", "a")
	b.delete("ServiceAccount", "operator")
	plan := b.deploy(b.release("1.0.0", small))
	b.wantActions(plan, "create ServiceAccount $ns/operator", "create ConfigMap $ns/a")
}

func TestMissingKind(t *testing.T) {
	b := newBed(t)
	monitor := `
---
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata: {name: a, namespace: $ns}
spec: {selector: {}, endpoints: []}
`
	plan := b.deploy(b.release("1.0.0", configMap+monitor))
	b.wantActions(plan, "create ConfigMap $ns/a", "skip ServiceMonitor $ns/a")
	if !b.plan(b.release("1.0.0", configMap+monitor)).Empty() {
		t.Error("what is skipped counts as something to do")
	}
}

// widgets are a kind of their own for each bed, and an object of it.
const widgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.$ns.example.com}
spec:
  group: $ns.example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}
`

const widget = `
---
apiVersion: $ns.example.com/v1
kind: Widget
metadata: {name: w, namespace: $ns}
spec: {size: 3}
`

func TestDefinitionAndItsObjects(t *testing.T) {
	b := newBed(t)
	plan := b.deploy(b.release("1.0.0", widgets+widget))
	b.wantActions(plan, "create CustomResourceDefinition widgets.$ns.example.com", "create Widget $ns/w")
	b.restart()
	if plan = b.plan(b.release("1.0.0", widgets+widget)); !plan.Empty() {
		t.Errorf("there is something to do after everything was done: %s", b.actions(plan))
	}

	plan = b.deploy(engine.Release{Key: b.Key, Operation: "remove"})
	b.wantActions(plan, "delete Widget $ns/w", "keep CustomResourceDefinition widgets.$ns.example.com")
	definition := schema.ObjectRef{
		APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: "widgets." + b.Namespace + ".example.com",
	}
	plan = b.plan(engine.Release{Key: b.Key, Operation: "remove"})
	b.wantActions(plan, "keep CustomResourceDefinition widgets.$ns.example.com")
	b.failed(b.Forget(t.Context(), b.Key), report.InUse, "1 object of it")
	plan = b.deploy(engine.Release{Key: b.Key, Operation: "remove", Delete: []schema.ObjectRef{definition}})
	b.wantActions(plan, "delete CustomResourceDefinition widgets.$ns.example.com")
	if b.get(definition.APIVersion+"/"+definition.Kind, definition.Name) != nil {
		t.Error("it is still there")
	}
}

func TestNamespaceOfTheRelease(t *testing.T) {
	b := newBed(t)
	inside := strings.ReplaceAll(`
apiVersion: v1
kind: Namespace
metadata: {name: $ns-inner}
`+small, "namespace: $ns", "namespace: $ns-inner")
	b.deploy(b.release("1.0.0", inside))
	if plan := b.plan(b.release("1.0.0", inside)); !plan.Empty() {
		t.Errorf("there is something to do after everything was done: %s", b.actions(plan))
	}
	plan := b.deploy(engine.Release{Key: b.Key, Operation: "remove"})
	if !strings.Contains(b.actions(plan), "keep Namespace $ns-inner") {
		t.Errorf("a namespace was not kept:\n%s", b.actions(plan))
	}
	b.refused(b.release("1.0.0", strings.ReplaceAll(configMap, "namespace: $ns", "namespace: nowhere")), engine.PlanOptions{},
		report.NotFound, "namespace nowhere does not exist")
}

const finalized = `
apiVersion: v1
kind: ConfigMap
metadata: {name: held, namespace: $ns, finalizers: [example.com/hold]}
`

func TestStuckRemoval(t *testing.T) {
	b := newBed(t)
	b.deploy(b.release("1.0.0", finalized))
	remove := engine.Release{Key: b.Key, Operation: "remove"}
	err := b.Apply(t.Context(), b.plan(remove), engine.ApplyOptions{Timeout: time.Second})
	b.failed(err, report.Timeout, "ConfigMap $ns/held", "example.com/hold")
	if state := b.state(); state.Pending == nil || state.Current.Version != "1.0.0" {
		t.Fatalf("the record after a run that did not end: %+v", state)
	}
	b.patch("kubectl", "configmaps", "held", `{"metadata": {"finalizers": null}}`)
	b.deploy(remove)
	if state := b.state(); state.Pending != nil || state.Current.Operation != "remove" {
		t.Errorf("the record after the next run: %+v", state)
	}
}

func TestWaitsForWhatIsBeingDeleted(t *testing.T) {
	b := newBed(t)
	b.make(finalized)
	b.delete("ConfigMap", "held")
	release := b.release("1.0.0", strings.ReplaceAll(finalized, ", finalizers: [example.com/hold]", ""))
	plan := b.plan(release)
	if note := plan.Changes[0].Note; !strings.Contains(note, "example.com/hold") {
		t.Errorf("the plan does not name the finalizer: %q", note)
	}
	done := make(chan error, 1)
	go func() { done <- b.Apply(t.Context(), plan, engine.ApplyOptions{Timeout: time.Minute}) }()
	b.await("wait", "ConfigMap "+b.Namespace+"/held", report.Started)
	b.patch("kubectl", "configmaps", "held", `{"metadata": {"finalizers": null}}`)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if live := b.get("ConfigMap", "held"); live == nil || live.GetDeletionTimestamp() != nil {
		t.Error("it was not made again")
	}
}

func TestReplace(t *testing.T) {
	b := newBed(t)
	b.deploy(b.release("1.0.0", account+deployment))
	otherRole := strings.ReplaceAll(account, "kind: Role, name: operator", "kind: ClusterRole, name: view")
	b.wantActions(b.deploy(b.release("2.0.0", otherRole+deployment)), "replace RoleBinding $ns/operator")
	if name, _, _ := unstructured.NestedString(b.get("rbac.authorization.k8s.io/v1/RoleBinding", "operator").Object, "roleRef", "name"); name != "view" {
		t.Errorf("the binding refers to %q", name)
	}
	b.refused(b.release("3.0.0", otherRole+strings.ReplaceAll(deployment, "{app: operator}", "{app: other}")), engine.PlanOptions{},
		report.Refused, "Deployment $ns/operator", "cannot be changed in place")
}

func TestReplaceJob(t *testing.T) {
	b := newBed(t)
	job := `
apiVersion: batch/v1
kind: Job
metadata: {name: j, namespace: $ns}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: c, image: "example.invalid/job:1"}]
`
	release := b.release("1.0.0", job)
	if err := b.Apply(t.Context(), b.plan(release), engine.ApplyOptions{NoWait: true}); err != nil {
		t.Fatal(err)
	}
	next := b.release("2.0.0", strings.ReplaceAll(job, "job:1", "job:2"))
	b.refused(next, engine.PlanOptions{}, report.Refused, "Job $ns/j", "still running")
	b.patch("test", "batch/v1/jobs", "j", `{"spec": {"suspend": true}}`)
	b.patch("test", "batch/v1/jobs", "j", `{"status": {"active": 0, "startTime": "2026-01-01T00:00:00Z", "conditions": [
		{"type": "FailureTarget", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"},
		{"type": "Failed", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}`, "status")
	plan := b.plan(next)
	b.wantActions(plan, "replace Job $ns/j")
	if err := b.Apply(t.Context(), plan, engine.ApplyOptions{NoWait: true}); err != nil {
		t.Fatal(err)
	}
}

func TestTwoRuns(t *testing.T) {
	b := newBed(t)
	first, second := b.plan(b.release("1.0.0", configMap)), b.plan(b.release("2.0.0", small))
	b.apply(first)
	b.failed(b.Apply(t.Context(), second, engine.ApplyOptions{}), report.Locked, "by somebody else")
	if state := b.state(); state.Current.Version != "1.0.0" || b.get("ServiceAccount", "operator") != nil {
		t.Errorf("a plan for a state that is no longer was carried out: %+v", state)
	}
}

func TestSecretsAreHidden(t *testing.T) {
	b := newBed(t)
	secret := `
apiVersion: v1
kind: Secret
metadata: {name: s, namespace: $ns}
stringData: {password: canary-1, other: canary-2}
`
	b.deploy(b.release("1.0.0", secret))
	plan := b.deploy(b.release("2.0.0", strings.ReplaceAll(strings.ReplaceAll(secret, "canary-1", "canary-3"), ", other: canary-2", "")))
	if text := fmt.Sprintf("%+v %+v", plan.Changes, b.Sink.Events()); strings.Contains(text, "canary") || strings.Contains(text, "Y2FuYXJ5") {
		t.Errorf("a secret is shown: %s", text)
	}
	data, _, _ := unstructured.NestedStringMap(b.get("Secret", "s").Object, "data")
	if diff := cmp.Diff(data, map[string]string{"password": "Y2FuYXJ5LTM="}); diff != "" {
		t.Error(diff)
	}
}

func TestNotReadyInTime(t *testing.T) {
	b := newBed(t)
	release := b.release("1.0.0", strings.ReplaceAll(deployment, "replicas: 0", "replicas: 1"))
	err := b.Apply(t.Context(), b.plan(release), engine.ApplyOptions{Timeout: 2 * time.Second})
	b.failed(err, report.Timeout, "Deployment $ns/operator", "1 of 1 object did not")
	if state := b.state(); state.Pending == nil || state.Current != nil {
		t.Fatalf("a release that does not work is called done: %+v", state)
	}
	b.deploy(b.release("1.0.1", deployment))
	state := b.state()
	if state.Pending != nil || state.Current.Version != "1.0.1" || len(state.History) != 1 || state.History[0].Outcome != schema.DeploymentReplaced {
		t.Errorf("the record after another version took over: %+v", state)
	}
}

func TestInterrupted(t *testing.T) {
	b := newBed(t)
	release := b.release("1.0.0", strings.ReplaceAll(deployment, "replicas: 0", "replicas: 1"))
	plan := b.plan(release)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- b.Apply(ctx, plan, engine.ApplyOptions{Timeout: time.Minute}) }()
	b.await("wait", "Deployment "+b.Namespace+"/operator", report.Running)
	cancel()
	b.failed(<-done, report.Interrupted, "run the same command again")

	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	b.failed(b.Apply(cancelled, b.plan(release), engine.ApplyOptions{}), report.Cancelled)
}

type denial struct{}

func (denial) Check() error { return report.Errorf(report.Interrupted, "the lock was lost") }

func TestGuard(t *testing.T) {
	b := newBed(t)
	plan := b.plan(b.release("1.0.0", configMap))
	b.failed(b.Apply(cluster.WithGuard(t.Context(), denial{}), plan, engine.ApplyOptions{}), report.Interrupted, "the lock was lost")
	if b.data() != nil || b.state().Pending != nil {
		t.Error("something was written without the lock")
	}
}

func TestForbidden(t *testing.T) {
	b := newBed(t)
	b.deploy(b.release("0.9.0", configMap)) // makes the namespace of the records, which the user below may not
	kubeconfig, err := testcluster.Shared(t).KubeconfigFor("installer")
	if err != nil {
		t.Fatal(err)
	}
	b.make(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: $ns-installer}
rules:
- {apiGroups: [""], resources: [secrets, configmaps], verbs: [get, list, watch, create, patch, update, delete]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: $ns-installer}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: $ns-installer}
subjects: [{kind: User, name: installer, apiGroup: rbac.authorization.k8s.io}]
`)
	b.Engine = b.connect(kubeconfig)
	b.refused(b.release("1.0.0", small), engine.PlanOptions{}, report.Forbidden,
		`resources: ["serviceaccounts"]`, `resources: ["roles"]`, `apiGroups: ["apps"]`)
	b.deploy(b.release("1.0.0", configMap))
}

func TestHistory(t *testing.T) {
	b := newBed(t)
	for i := range 8 {
		b.deploy(b.release(fmt.Sprintf("%d.0.0", i), strings.ReplaceAll(configMap, `"1"`, fmt.Sprintf(`"%d"`, i))))
	}
	state := b.state()
	var numbers []int64
	for _, r := range state.History {
		numbers = append(numbers, r.Number)
	}
	if diff := cmp.Diff(numbers, []int64{7, 6, 5, 4, 3}); diff != "" || state.Current.Number != 8 {
		t.Errorf("%d: %s", state.Current.Number, diff)
	}
	if got := len(b.secrets("content", b.Key.ID())); got != 6 {
		t.Errorf("the content of %d revisions is kept, want 6", got)
	}
	objects, err := b.Objects(t.Context(), b.Key, &state.History[4])
	if err != nil {
		t.Fatal(err)
	}
	b.deploy(engine.Release{Key: b.Key, Version: state.History[4].Version, Operation: "rollback", Objects: objects})
	if got := b.data()["first"]; got != "2" {
		t.Errorf("after going back to revision 3: %q", got)
	}
}

func TestContent(t *testing.T) {
	b := newBed(t)
	owner := b.Namespace
	large := make([]byte, 3<<20)
	seed := uint32(1)
	for i := range large {
		seed = seed*1664525 + 1013904223
		large[i] = byte(seed >> 24)
	}
	digest, err := b.StoreContent(t.Context(), owner, large)
	if err != nil {
		t.Fatal(err)
	}
	if again, problem := b.StoreContent(t.Context(), owner, large); again != digest || problem != nil {
		t.Errorf("storing again: %s, %v", again, problem)
	}
	if parts := len(b.secrets("content", owner)); parts != 4 {
		t.Errorf("%d Secrets", parts)
	}
	back, err := b.LoadContent(t.Context(), owner, digest)
	if err != nil || string(back) != string(large) {
		t.Errorf("loading: %d bytes, %v", len(back), err)
	}
	small, err := b.StoreContent(t.Context(), owner, []byte("small"))
	if err != nil {
		t.Fatal(err)
	}
	if err = b.CollectContent(t.Context(), owner, small); err != nil {
		t.Fatal(err)
	}
	_, err = b.LoadContent(t.Context(), owner, digest)
	b.failed(err, report.NotFound)
	if _, err = b.LoadContent(t.Context(), owner, small); err != nil {
		t.Error(err)
	}

	// Somebody puts other content in its place.
	secret := b.secrets("content", owner)[0]
	forged := secret.DeepCopy()
	forged.Object["data"] = b.otherContent()
	if err = b.Cluster.Delete(t.Context(), secret, cluster.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	forged.SetUID("")
	forged.SetResourceVersion("")
	if _, err = b.Cluster.Create(t.Context(), forged, cluster.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err = b.LoadContent(t.Context(), owner, small)
	b.failed(err, report.Corrupt, "digest")
}

func TestRecordOfAnotherKey(t *testing.T) {
	b := newBed(t)
	b.deploy(b.release("1.0.0", configMap))
	stolen := b.secrets("state", b.Key.ID())[0]
	other := engine.Key{Namespace: b.Namespace, Name: "victim"}
	forged := stolen.DeepCopy()
	forged.SetName("state." + other.ID())
	forged.SetUID("")
	forged.SetResourceVersion("")
	if _, err := b.Cluster.Create(t.Context(), forged, cluster.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		object, err := b.Cluster.Get(context.Background(), forged.GroupVersionKind(), forged.GetNamespace(), forged.GetName())
		if err = errors.Join(err, b.Cluster.Delete(context.Background(), object, cluster.DeleteOptions{})); err != nil {
			t.Error(err)
		}
	})
	_, err := b.State(t.Context(), other)
	b.failed(err, report.Corrupt, "is the record of $ns/demo")
}

// TestWaitsInTheirNamespaces deploys to many namespaces as a user who may watch in each of them, and not in the whole cluster.
func TestWaitsInTheirNamespaces(t *testing.T) {
	beds := []*bed{newBed(t), newBed(t), newBed(t)}
	limited := beds[0]
	limited.deploy(limited.release("0.1.0", configMap)) // with it the namespace of the records is there
	user := "limited-" + limited.Namespace
	var releases []engine.Release
	for _, namespace := range []string{limited.Namespace, beds[1].Namespace, beds[2].Namespace, cluster.SystemNamespace} {
		limited.make(fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: %s, namespace: %s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: %s}]
`, user, namespace, user))
	}
	kubeconfig, err := testcluster.Shared(t).KubeconfigFor(user)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range beds {
		releases = append(releases, b.release("1.0.0", deployment))
	}
	e := limited.connect(kubeconfig)
	// The API server notices new rights a little later.
	for missing := true; missing; {
		list, failure := e.Cluster.Missing(t.Context(), cluster.Permission{Verb: "list", Resource: "secrets", Namespace: cluster.SystemNamespace})
		if failure != nil {
			t.Fatal(failure)
		}
		missing = len(list) > 0
	}
	planned, err := e.PlanAll(t.Context(), releases, engine.PlanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.ApplyAll(t.Context(), planned, engine.ApplyOptions{Timeout: time.Minute}); err != nil {
		t.Fatal(err)
	}
}
