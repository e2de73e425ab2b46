package engine_test

import (
	"context"
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
	t.Parallel()
	b := newFixture(t)
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
	if err := b.DeleteRecords(t.Context(), b.Key); err != nil {
		t.Error(err)
	}
	if state := b.state(); state.Current != nil || len(state.History) > 0 {
		t.Errorf("after forgetting: %+v", state)
	}
}

func TestFieldsOfOthersStay(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.deploy(b.release("1.0.0", small))
	b.patch("kubectl-edit", "configmaps", "a", `{"data": {"theirs": "3"}, "metadata": {"labels": {"theirs": "yes"}}}`)
	b.patch("kubectl", "apps/v1/deployments", "operator", `{"spec": {"replicas": 0}}`)
	b.deploy(b.release("2.0.0", strings.ReplaceAll(small, `first: "1"`, `first: "one"`)))
	if diff := cmp.Diff(b.data(), map[string]string{"first": "one", "second": "2", "theirs": "3"}); diff != "" {
		t.Error(diff)
	}
	if got := b.get("ConfigMap", "a").GetLabels()["theirs"]; got != "yes" {
		t.Errorf("label of another manager: %q", got)
	}
}

func TestScaledByAdministrator(t *testing.T) {
	t.Parallel()
	for _, wanted := range []int64{2, 0} {
		b := newFixture(t)
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
			t.Errorf("%d replicas, want the %d of the administrator", replicas, wanted)
		}
	}
}

func TestConflict(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
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

func TestMissingKind(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
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

// widgets is a kind for each fixture, and an object of it.
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
	t.Parallel()
	b := newFixture(t)
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
	b.failed(b.DeleteRecords(t.Context(), b.Key), report.InUse, "1 object still in the cluster")
	plan = b.deploy(engine.Release{Key: b.Key, Operation: "remove", Delete: []schema.ObjectRef{definition}})
	b.wantActions(plan, "delete CustomResourceDefinition widgets.$ns.example.com")
	if b.get(definition.APIVersion+"/"+definition.Kind, definition.Name) != nil {
		t.Error("it is still there")
	}
}

func TestNamespaceOfTheRelease(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
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

func TestReplace(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
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
	t.Parallel()
	b := newFixture(t)
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

func TestSecretsAreHidden(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
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

func TestInterrupted(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	release := b.release("1.0.0", strings.ReplaceAll(deployment, "replicas: 0", "replicas: 1"))
	plan := b.plan(release)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- b.Apply(ctx, plan, engine.ApplyOptions{Timeout: testcluster.Deadline(time.Minute)}) }()
	b.await("wait", "Deployment "+b.Namespace+"/operator", report.Running)
	cancel()
	b.failed(<-done, report.Interrupted, "run the same command again")

	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	b.failed(b.Apply(cancelled, b.plan(release), engine.ApplyOptions{}), report.Cancelled)
}

func TestForbidden(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.deploy(b.release("0.9.0", configMap)) // creates the namespace of records, which the user below is not allowed to
	kubeconfig, err := testcluster.Borrow(t).KubeconfigFor("installer")
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

// TestWaitsInTheirNamespaces deploys to many namespaces as a user who is allowed to watch in each of them, but not in the whole cluster.
func TestWaitsInTheirNamespaces(t *testing.T) {
	t.Parallel()
	beds := []*fixture{newFixture(t), newFixture(t), newFixture(t)}
	limited := beds[0]
	limited.deploy(limited.release("0.1.0", configMap)) // creates the namespace of records
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
	kubeconfig, err := testcluster.Borrow(t).KubeconfigFor(user)
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
	if err := e.ApplyAll(t.Context(), planned, engine.ApplyOptions{Timeout: testcluster.Deadline(time.Minute)}); err != nil {
		t.Fatal(err)
	}
}
