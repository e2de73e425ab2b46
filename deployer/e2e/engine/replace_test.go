package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

const (
	workload = `
apiVersion: apps/v1
kind: $kind
metadata: {name: w, namespace: $ns}
spec:
  $more
  selector: {matchLabels: {app: w}}
  template:
    metadata: {labels: {app: w, other: x}}
    spec: {terminationGracePeriodSeconds: 0, containers: [{name: w, image: "example.invalid/w:1"}]}
`
	claimTemplate = `volumeClaimTemplates:
  - metadata: {name: data}
    spec: {storageClassName: $class, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}`
)

func workloadOf(kind, more string) string {
	return strings.NewReplacer("$kind", kind, "$more", more).Replace(workload)
}

// TestReplaceWhereSafe changes immutable fields. The engine reports which and why, replaces only the approved objects, and does not keep
// the approval.
func TestReplaceWhereSafe(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, kind    string
		before, after string
		field, costs  string
		unchangeable  bool   // never replaced
		others        string // a patch of another manager
	}{
		{
			name: "Deployment", kind: "Deployment/w", before: workloadOf("Deployment", "replicas: 1"),
			after: strings.ReplaceAll(workloadOf("Deployment", "replicas: 1"), "app: w", "app: v"), field: "spec.selector: ", costs: "ends its pods",
		},
		{
			name: "DaemonSet", kind: "DaemonSet/w", before: workloadOf("DaemonSet", ""),
			after: strings.ReplaceAll(workloadOf("DaemonSet", ""), "app: w", "app: v"), field: "spec.selector: ", costs: "ends its pods",
		},
		{
			name: "StatefulSet with another service", kind: "StatefulSet/w", before: workloadOf("StatefulSet", "serviceName: w"),
			after: workloadOf("StatefulSet", "serviceName: v"), field: "a change of spec.serviceName", costs: "keeps its volume claims and, where the selector allows it, its pods",
		},
		{
			name: "StatefulSet with another selector", kind: "StatefulSet/w", before: workloadOf("StatefulSet", ""),
			after: strings.ReplaceAll(workloadOf("StatefulSet", ""), "app: w", "app: v"), field: "spec: Forbidden", costs: "keeps its volume claims, and ends its pods",
		},
		{
			name: "StatefulSet that deletes its claims", kind: "StatefulSet/w", before: workloadOf("StatefulSet", "persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete}"),
			after: strings.ReplaceAll(workloadOf("StatefulSet", ""), "app: w", "app: v"), field: "spec: Forbidden", unchangeable: true, costs: "persistentVolumeClaimRetentionPolicy",
		},
		{
			name: "Service", kind: "Service/s",
			before: "apiVersion: v1\nkind: Service\nmetadata: {name: s, namespace: $ns}\nspec: {ports: [{port: 80}], selector: {a: b}}",
			after:  "apiVersion: v1\nkind: Service\nmetadata: {name: s, namespace: $ns}\nspec: {clusterIP: None, ports: [{port: 80}], selector: {a: b}}",
			field:  "spec.clusterIP", costs: "another cluster IP",
		},
		{
			name: "ConfigMap", kind: "ConfigMap/a", before: strings.ReplaceAll(configMap, "\ndata:", "\nimmutable: true\ndata:"),
			after: strings.NewReplacer("\ndata:", "\nimmutable: true\ndata:", `"1"`, `"one"`).Replace(configMap), field: "data: Forbidden", costs: "old values",
		},
		{
			name: "ConfigMap of others", kind: "ConfigMap/a", before: configMap, others: `{"data": {"theirs": "1"}, "immutable": true}`,
			after: strings.ReplaceAll(configMap, `first: "1"`, `first: "one"`), field: "data: Forbidden", costs: "the data of others in it (theirs)", unchangeable: true,
		},
		{
			name: "Secret", kind: "Secret/s",
			before: "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: $ns}\ntype: Opaque\nstringData: {a: b}",
			after:  "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: $ns}\ntype: example.com/x\nstringData: {a: b}",
			field:  "type: ", costs: "old values",
		},
		{
			name: "StorageClass", kind: "StorageClass/$ns",
			before: "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: $ns}\nprovisioner: none.example.com/a",
			after:  "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: $ns}\nprovisioner: none.example.com/b",
			field:  "provisioner: ", costs: "volumes",
		},
		{
			name: "PersistentVolumeClaim", kind: "PersistentVolumeClaim/c",
			before: "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: c, namespace: $ns}\nspec: {storageClassName: a, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}",
			after:  "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: c, namespace: $ns}\nspec: {storageClassName: b, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}",
			field:  "spec: Forbidden", costs: "the data in its volume", unchangeable: true,
		},
		{
			name: "CustomResourceDefinition", kind: "CustomResourceDefinition/widgets.$ns.example.com", before: widgets,
			after: strings.ReplaceAll(widgets, "scope: Namespaced", "scope: Cluster"), field: "spec.scope: ", costs: "every custom resource of it", unchangeable: true,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newFixture(t)
			kind := strings.ReplaceAll(test.kind, "$ns", b.Namespace)
			first := b.release("1", test.before)
			if err := b.Apply(t.Context(), b.plan(first), engine.ApplyOptions{NoWait: true}); err != nil {
				t.Fatal(err)
			}
			if test.others != "" {
				b.patch("kubectl-edit", "configmaps", "a", test.others)
			}
			next := b.release("2", test.after)
			_, err := b.Plan(t.Context(), next, engine.PlanOptions{})
			b.failed(err, report.Refused, strings.Split(kind, "/")[0], test.field, "cannot be changed in place", test.costs)
			advice := strings.Join(report.Hints(err), "\n")
			if strings.Contains(advice, "--replace "+kind) == test.unchangeable || strings.Contains(advice, "delete") {
				t.Errorf("the advice is %q", advice)
			}
			asked := engine.PlanOptions{Replace: []string{strings.ToLower(kind[:1]) + kind[1:]}}
			plan, err := b.Plan(t.Context(), next, asked)
			if test.unchangeable {
				b.failed(err, report.Refused, test.field, test.costs)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			change := plan.Changes[0]
			if change.Action != schema.ActionReplace || !strings.Contains(change.Note, test.costs) || len(change.Fields) == 0 {
				t.Errorf("planned is %+v", change)
			}
			if err := b.Apply(t.Context(), plan, engine.ApplyOptions{NoWait: true}); err != nil {
				t.Fatal(err)
			}
			b.restart()
			if again := b.plan(next); !again.Empty() {
				t.Errorf("there is something to do after everything was done: %s", b.actions(again))
			}
			if test.name == "Service" {
				return // without a cluster IP in the desired object it keeps its own, even None
			}
			// The approval is for one operation.
			b.refused(first, engine.PlanOptions{}, report.Refused, "cannot be changed in place")
		})
	}
}

// TestInvalidIsNotReplaced changes an object so that it could not be created again: it is not deleted.
func TestInvalidIsNotReplaced(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.deploy(b.release("1", deployment))
	bad := strings.NewReplacer("{app: operator}", "{app: other}", "name: operator, image:", "name: Not_A_Name, image:").Replace(deployment)
	b.refused(b.release("2", bad), engine.PlanOptions{Replace: []string{"Deployment/operator"}}, report.Invalid, "Not_A_Name")
}

// TestReplacedStatefulSetKeepsPodsAndClaims replaces a StatefulSet with larger volume templates: its pods stay, and claims grow if their
// class allows it.
func TestReplacedStatefulSetKeepsPodsAndClaims(t *testing.T) {
	t.Parallel()
	for _, grows := range []bool{true, false} {
		t.Run(fmt.Sprint(grows), func(t *testing.T) {
			t.Parallel()
			b := newFixture(t)
			volume := "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: $ns}\nspec: {storageClassName: $ns, accessModes: [ReadWriteOnce], capacity: {storage: 1Gi}, hostPath: {path: /none}, claimRef: {namespace: $ns, name: data-w-0}}"
			b.make(fmt.Sprintf("apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: $ns}\nprovisioner: none.example.com/a\nallowVolumeExpansion: %t", grows))
			b.make(volume)
			set := workloadOf("StatefulSet", strings.ReplaceAll(claimTemplate, "$class", b.Namespace))
			if err := b.Apply(t.Context(), b.plan(b.release("1", set)), engine.ApplyOptions{NoWait: true}); err != nil {
				t.Fatal(err)
			}
			var pod, claim *unstructured.Unstructured // the pod is created after the claim
			b.until("the claim is bound, and the pod exists", func() bool {
				pod, claim = b.get("Pod", "w-0"), b.get("PersistentVolumeClaim", "data-w-0")
				return pod != nil && claim != nil && status(claim, "phase") == "Bound"
			})

			larger := b.release("2", strings.ReplaceAll(set, "storage: 1Gi", "storage: 2Gi"))
			b.refused(larger, engine.PlanOptions{}, report.Refused, "StatefulSet $ns/w", "spec.volumeClaimTemplates", "--replace StatefulSet/w")
			plan, err := b.Plan(t.Context(), larger, engine.PlanOptions{Replace: []string{"StatefulSet/w"}})
			if err != nil {
				t.Fatal(err)
			}
			note, size := "claim data-w-0 grows from 1Gi to 2Gi", "2Gi"
			if !grows {
				note, size = "claim data-w-0 stays at 1Gi: ", "1Gi"
			}
			if !strings.Contains(plan.Changes[0].Note, note) {
				t.Errorf("note %q", plan.Changes[0].Note)
			}
			if err := b.Apply(t.Context(), plan, engine.ApplyOptions{NoWait: true}); err != nil {
				t.Fatal(err)
			}
			b.until("the pod has its new owner", func() bool {
				owner := metav1.GetControllerOf(b.get("Pod", "w-0"))
				return owner != nil && owner.UID == b.get("apps/v1/StatefulSet", "w").GetUID()
			})
			if now := b.get("Pod", "w-0"); now.GetUID() != pod.GetUID() || now.GetDeletionTimestamp() != nil {
				t.Error("the pod was not kept")
			}
			now := b.get("PersistentVolumeClaim", "data-w-0")
			if got, _, _ := unstructured.NestedString(now.Object, "spec", "resources", "requests", "storage"); got != size || now.GetUID() != claim.GetUID() {
				t.Errorf("the claim asks for %s, want %s; it is the same: %t", got, size, now.GetUID() == claim.GetUID())
			}
		})
	}
}

func status(object *unstructured.Unstructured, field string) string {
	text, _, _ := unstructured.NestedString(object.Object, "status", field)
	return text
}

func (b *fixture) until(what string, done func() bool) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), testcluster.Deadline(time.Minute))
	defer cancel()
	for tick := time.Tick(20 * time.Millisecond); !done(); {
		select {
		case <-tick:
		case <-ctx.Done():
			b.Fatal("not in time: " + what)
		}
	}
}

// TestKilledWhileReplacing kills an engine that replaces objects. The next run does not need the approval again.
func TestKilledWhileReplacing(t *testing.T) {
	t.Parallel()
	testcluster.Long(t, "TestKilledAtEveryCall, and all calls without a cluster")
	text := workloadOf("StatefulSet", "replicas: 0\n  serviceName: w") + "\n---\n" + strings.ReplaceAll(configMap, "\ndata:", "\nimmutable: true\ndata:")
	changed := strings.NewReplacer("serviceName: w", "serviceName: v", `first: "1"`, `first: "one"`).Replace(text)
	asked := engine.PlanOptions{Replace: []string{"StatefulSet/w", "ConfigMap/a"}}
	replace := func(b *fixture) func(ctx context.Context, e *engine.Engine) error {
		return func(ctx context.Context, e *engine.Engine) error {
			plan, err := e.Plan(ctx, b.release("2", changed), asked)
			if err != nil {
				return err
			}
			return e.Apply(ctx, plan, engine.ApplyOptions{Timeout: testcluster.Deadline(time.Minute)})
		}
	}
	objects := func(b *fixture) string {
		b.Helper()
		service, _, _ := unstructured.NestedString(b.get("apps/v1/StatefulSet", "w").Object, "spec", "serviceName")
		state := b.state()
		sum := fmt.Sprint(service, b.data(), state.Pending == nil, state.Current.Version)
		for _, object := range state.Current.Objects {
			sum += fmt.Sprint(" ", object.Kind, object.Replacing, object.UID == string(b.get(strings.TrimPrefix(object.APIVersion+"/"+object.Kind, "v1/"), object.Name).GetUID()))
		}
		return sum
	}
	clean := newFixture(t)
	clean.deploy(clean.release("1", text))
	calls, _ := clean.mortal(0, false, replace(clean))
	want := objects(clean)
	for fatal, step := 1, distance(); fatal < calls+step; fatal += step {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("call %d after %t", fatal, after), func(t *testing.T) {
				t.Parallel()
				b := newFixture(t)
				b.deploy(b.release("1", text))
				_, what := b.mortal(fatal, after, replace(b))
				b.restart()
				options := engine.PlanOptions{}
				if b.state().Pending == nil && b.state().Current.Version == "1" {
					options = asked // nothing was recorded
				}
				plan, err := b.Plan(t.Context(), b.release("2", changed), options)
				if err != nil {
					t.Fatalf("killed at %s: %v", what, err)
				}
				b.apply(plan)
				if diff := cmp.Diff(want, objects(b)); diff != "" {
					t.Errorf("killed at %s: %s", what, diff)
				}
			})
		}
	}
}
