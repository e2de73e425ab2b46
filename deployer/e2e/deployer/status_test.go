package deployer_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
	"github.com/solutionctl/solutionctl/deployer/environments"
	"github.com/solutionctl/solutionctl/deployer/health"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// status returns how the bed's Solution is in its environment, whose namespace has no other.
func (b *bed) status() schema.DeploymentStatus {
	b.Helper()
	e, err := b.Survey.EnvironmentStatus(b.Context(), survey.EnvironmentOptions{Environment: b.Env})
	if err != nil {
		b.Fatal(err)
	}
	valid(b.T, "environment", e)
	if len(e.Namespaces) != 1 || len(e.Namespaces[0].Deployments) != 1 {
		b.Fatalf("got %+v", e)
	}
	return e.Namespaces[0].Deployments[0]
}

// valid holds what a command prints against its schema.
func valid(t *testing.T, name string, value any) {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.ValidateOutput(name, data); err != nil {
		t.Errorf("%v\n%s", err, data)
	}
}

func (b *bed) wantHealth(health schema.DeploymentHealth, words ...string) {
	b.Helper()
	status := b.status()
	if status.Health != health {
		b.Errorf("health %s, want %s: %+v", status.Health, health, status)
	}
	text := strings.Join(schema.Sentences(status.Reasons), "\n")
	for _, word := range words {
		if !strings.Contains(text, word) {
			b.Errorf("nothing about %q in:\n%s", word, text)
		}
	}
}

func (b *bed) patch(object *unstructured.Unstructured, data string) {
	b.Helper()
	resource := map[string]string{"Deployment": "deployments", "ConfigMap": "configmaps"}[object.GetKind()]
	var err error
	client := b.in.Client()
	options := metav1.PatchOptions{FieldManager: "another-manager"}
	switch resource {
	case "deployments":
		_, err = client.AppsV1().Deployments(object.GetNamespace()).Patch(b.Context(), object.GetName(), types.MergePatchType, []byte(data), options)
	case "configmaps":
		_, err = client.CoreV1().ConfigMaps(object.GetNamespace()).Patch(b.Context(), object.GetName(), types.MergePatchType, []byte(data), options)
	}
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bed) getRole() *unstructured.Unstructured {
	b.Helper()
	for role, err := range b.Cluster.List(b.Context(), roles, b.Env, metav1.ListOptions{LabelSelector: schema.LabelRelease}) {
		if err != nil {
			b.Fatal(err)
		}
		return role
	}
	b.Fatal("there is no role")
	return nil
}

// settle is the kubelet of a node: it makes the pods of a Deployment ready and waits until the controllers have seen it.
func (b *bed) settle(name string) {
	b.Helper()
	client := b.in.Client()
	ready := `{"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}, {"type": "PodScheduled", "status": "True"}]}}`
	for change, err := range b.Cluster.Watch(b.Context(), deployments, b.Env, metav1.ListOptions{FieldSelector: "metadata.name=" + name}) {
		if err != nil {
			b.Fatal(err)
		}
		if health.Of(change.Object).Ready {
			return
		}
		pods, err := client.CoreV1().Pods(b.Env).List(b.Context(), metav1.ListOptions{LabelSelector: "app=" + name})
		if err != nil {
			b.Fatal(err)
		}
		for _, pod := range pods.Items {
			_, err := client.CoreV1().Pods(b.Env).Patch(b.Context(), pod.Name, types.StrategicMergePatchType, []byte(ready), metav1.PatchOptions{}, "status")
			if err != nil && !apierrors.IsNotFound(err) {
				b.Fatal(err)
			}
		}
	}
}

// TestDeleteEnvironment removes data, Solutions and namespaces in the order in which operators can serve it.
func TestDeleteEnvironment(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.activated("1.0.0", content{})
	b.mustAdd("1.0.0")
	b.newClock(b.Env, "one", "hands: 2")
	o := environments.DeleteOptions{Environment: b.Env, Options: plan.Options{Timeout: testcluster.Deadline(time.Minute)}}
	_, err := b.DeleteEnvironment(b.Context(), o)
	b.refused(err, report.InUse, "Solution "+b.Solution+" 1.0.0", "Clock one", "--delete-data")

	// The record counts as much as MetalK8s' document.
	if err = (&metalk8s.Documents{Cluster: b.Cluster}).SetVersion(b.Context(), b.Env, b.Solution, ""); err != nil {
		t.Fatal(err)
	}
	_, err = b.DeleteEnvironment(b.Context(), o)
	b.refused(err, report.InUse, "Solution "+b.Solution+" 1.0.0")

	var out exported
	o.Data, o.Export, o.DryRun = plan.DeleteData, out.open, true
	planned, err := b.DeleteEnvironment(b.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if out.Len() > 0 || b.find(namespaces, "", b.Env).GetDeletionTimestamp() != nil {
		t.Error("a dry run has changed something")
	}
	o.DryRun = false
	done, err := b.DeleteEnvironment(b.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	planned.Planned = false
	if diff := cmp.Diff(done, planned); diff != "" {
		t.Errorf("done otherwise than planned (-got +want):\n%s", diff)
	}
	if !out.closed || !strings.Contains(out.String(), `"hands":2`) {
		t.Errorf("export: %q", out.String())
	}
	if b.find(namespaces, "", b.Env) != nil {
		t.Error("the namespace is still there")
	}
	h, err := b.Records.History(b.Context(), records.HistoryOptions{Solution: b.Solution})
	if err != nil {
		t.Fatal(err)
	}
	if len(h.Operations) != 1 {
		t.Errorf("the record is still there: %+v", h.Operations)
	}
	if again, err := b.DeleteEnvironment(b.Context(), o); err != nil || !again.Empty() {
		t.Errorf("again: %+v, %v", again, err)
	}
}

// TestDeleteEnvironmentCounts counts volume claims, and not what a Solution brought itself.
func TestDeleteEnvironmentCounts(t *testing.T) {
	t.Parallel()
	b := newJudgment(t)
	b.activated("1.0.0", content{})
	b.imported("1.1.0", content{Files: map[string]string{"monitoring/more.yaml": fmt.Sprintf("apiVersion: %s/v1\nkind: Clock\nmetadata: {name: built-in}\n", b.Group)}})
	b.mustAdd("1.1.0")
	b.get(b.clock(), b.Env, "built-in")
	b.create(fmt.Sprintf("apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: precious, namespace: %s}\n"+
		"spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n", b.Env))
	var out exported
	o := environments.DeleteOptions{Environment: b.Env, Export: out.open, Options: plan.Options{Timeout: testcluster.Deadline(time.Minute)}}
	_, err := b.DeleteEnvironment(b.Context(), o)
	b.refused(err, report.InUse, "Solution "+b.Solution+" 1.1.0", "PersistentVolumeClaim precious")
	if strings.Contains(err.Error(), "built-in") {
		t.Error(err)
	}
	o.Data = plan.DeleteData
	done, err := b.DeleteEnvironment(b.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if want := "data is deleted: PersistentVolumeClaim precious in namespace " + b.Env; !slices.Contains(done.Notices, want) {
		t.Errorf("notices: %q", done.Notices)
	}
	if out.Len() > 0 {
		t.Errorf("exported: %s", out.String())
	}
}

// TestDeleteEnvironmentOfOthers removes the rest of a namespace that solutions.sh has deleted.
func TestDeleteEnvironmentOfOthers(t *testing.T) {
	t.Parallel()
	b := newJudgment(t)
	b.activated("1.0.0", content{Role: "- {apiGroups: [''], resources: [nodes], verbs: [get]}", RoleKind: "ClusterRole"})
	b.mustAdd("1.0.0")
	problem := func(want string) {
		t.Helper()
		s, err := b.Survey.Status(b.Context(), survey.StatusOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(s.Problems, func(p string) bool { return strings.Contains(p, b.Env) && strings.Contains(p, want) }) {
			t.Errorf("nothing about %q in %q", want, s.Problems)
		}
	}
	documents := &metalk8s.Documents{Cluster: b.Cluster}
	namespaces, err := documents.Select(b.Context(), b.Env, "")
	if err == nil {
		err = documents.DeleteNamespaces(b.Context(), namespaces, metalk8s.DeleteOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	problem("was deleted: 'solutionctl deploy env delete " + b.Env + "'")
	done, err := b.DeleteEnvironment(b.Context(), environments.DeleteOptions{Environment: b.Env})
	if err != nil {
		t.Fatal(err)
	}
	var deleted []string
	for _, part := range done.Parts {
		for _, change := range part.Changes {
			if change.Action == schema.ActionDelete {
				deleted = append(deleted, change.Object.String())
			}
		}
	}
	if len(deleted) != 1 || !strings.HasPrefix(deleted[0], "ClusterRole solutionctl:"+b.Env) {
		t.Errorf("deleted: %q", deleted)
	}
	if again, err := b.DeleteEnvironment(b.Context(), environments.DeleteOptions{Environment: b.Env}); err != nil || !again.Empty() {
		t.Errorf("again: %+v, %v", again, err)
	}
}

// TestDeleteEnvironmentInterrupted continues where it was stopped: custom resources wait for an operator that is slow.
func TestDeleteEnvironmentInterrupted(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.activated("1.0.0", content{})
	b.mustAdd("1.0.0")
	clock := b.newClock(b.Env, "slow", "hands: 2")
	clock.SetFinalizers([]string{"clocks.example/guard"})
	_, err := b.Cluster.Update(b.Context(), clock, cluster.WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var first, second exported
	o := environments.DeleteOptions{Environment: b.Env, Data: plan.DeleteData, Export: first.open, Options: plan.Options{Timeout: time.Second}}
	_, err = b.DeleteEnvironment(b.Context(), o)
	b.refused(err, report.Timeout, "slow", "clocks.example/guard")
	b.get(deployments, b.Env, b.Solution+"-operator") // it still serves

	o.Export, o.Timeout = second.open, testcluster.Deadline(time.Minute)
	ctx, cancel := context.WithCancel(b.Context())
	hasty := b.Config
	hasty.Sink = cancelWhenWaiting{cancel}
	_, err = deployer.New(hasty).DeleteEnvironment(ctx, o)
	b.refused(err, report.Interrupted, "same command")

	live := b.get(b.clock(), b.Env, "slow")
	live.SetFinalizers(nil)
	if _, err := b.Cluster.Update(b.Context(), live, cluster.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.DeleteEnvironment(b.Context(), o); err != nil {
		t.Fatal(err)
	}
	if b.find(namespaces, "", b.Env) != nil {
		t.Error("the namespace is still there")
	}
}

// cancelWhenWaiting cancels when custom resources are waited for.
type cancelWhenWaiting struct{ cancel context.CancelFunc }

func (c cancelWhenWaiting) Emit(e report.Event) {
	if e.Name == "custom resources" && e.State == report.Running {
		c.cancel()
	}
}

// TestCreateEnvironmentForbidden lists all missing rights before anything is made.
func TestCreateEnvironmentForbidden(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	nobody := b.connect(b.kubeconfigFor("nobody"))
	_, err := nobody.CreateEnvironment(b.Context(), metalk8s.CreateOptions{Name: "forbidden"})
	b.refused(err, report.Forbidden, "nobody", "leases")
	_, err = nobody.Survey.Status(b.Context(), survey.StatusOptions{})
	b.refused(err, report.Forbidden, "namespaces")
}

// TestStatusOfResourcesWithoutStatus checks that an object is not ready until its operator has seen it, if operators report that.
func TestStatusOfResourcesWithoutStatus(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	kind := func(name, status string) string {
		return fmt.Sprintf("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: %[1]ss.%[2]s}\nspec:\n  group: %[2]s\n  scope: Namespaced\n"+
			"  names: {kind: %[1]s, plural: %[1]ss, singular: %[1]s, listKind: %[1]slist}\n  versions:\n  - {name: v1, served: true, storage: true, "+
			"schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object}, status: %[3]s}}}}\n", name, b.Group, status)
	}
	one := "apiVersion: " + b.Group + "/v1\nkind: %s\nmetadata: {name: one}\nspec: {}\n"
	b.activated("1.0.0", content{Files: map[string]string{"monitoring/more.yaml": fmt.Sprintf(one, "silent") + "---\n" + fmt.Sprintf(one, "tracked")}})
	b.create(kind("silent", "{type: object}"))
	b.create(kind("tracked", "{type: object, properties: {conditions: {type: array, items: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}"))
	await(t, func() (bool, bool) {
		b.Cluster.Refresh()
		_, err := b.Cluster.Mapping(t.Context(), kube.GroupVersionKind{Group: b.Group, Version: "v1", Kind: "tracked"})
		return true, err == nil
	})
	o := deployer.AddOptions{Environment: b.Env, Solution: b.Solution, Version: "1.0.0"}
	o.NoWait, o.Options.Allow = true, []string{string(schema.PowerInstructsController)}
	if _, err := b.Add(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	b.settle(b.Solution + "-operator")
	b.wantHealth(schema.HealthProgressing, "tracked "+b.Env+"/one: its operator has not looked at it yet")
	tracked := b.get(kube.GroupVersionKind{Group: b.Group, Version: "v1", Kind: "tracked"}, b.Env, "one")
	if _, err := b.Cluster.Patch(t.Context(), tracked, types.MergePatchType, []byte(`{"status": {"conditions": [{"type": "Ready", "status": "True"}]}}`), cluster.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	b.wantHealth(schema.HealthReady)
}

// TestStatusOfWebhooks checks that a webhook without a server makes a Solution unready, and that a Deployment without pods does not.
func TestStatusOfWebhooks(t *testing.T) {
	t.Parallel()
	b := newJudgment(t)
	b.imported("1.0.0", withWebhook(b))
	if _, err := b.Activate(t.Context(), deployer.ActivateOptions{Options: plan.Options{NoWait: true}, Solution: b.Solution}); err != nil {
		t.Fatal(err)
	}
	part := func() schema.DeploymentStatus {
		t.Helper()
		s, err := b.Survey.Status(t.Context(), survey.StatusOptions{})
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(s.Solutions, func(one schema.SolutionStatus) bool { return one.Name == b.Solution })
		if i < 0 || s.Solutions[i].Deployment == nil {
			t.Fatalf("nothing about %s in %+v", b.Solution, s.Solutions)
		}
		return *s.Solutions[i].Deployment
	}
	system := b.Solution + "-system"
	nobody := "no pod behind Service " + system + "/webhook is ready"
	got, text := part(), ""
	for _, reason := range got.Reasons {
		text += reason.String() + "\n"
	}
	if got.Health != schema.HealthFailed || got.Ready != got.Objects-2 ||
		!strings.Contains(text, "CustomResourceDefinition "+b.crdName()+" converts its objects by a webhook that does not answer: "+nobody) ||
		!strings.Contains(text, "ValidatingWebhookConfiguration "+b.Solution+" asks webhook clocks."+b.Solution+".example, which does not answer: "+nobody) {
		t.Errorf("got %s, %d of %d ready:\n%s", got.Health, got.Ready, got.Objects, text)
	}
	b.create(fmt.Sprintf("apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: webhook, namespace: %s, labels: {kubernetes.io/service-name: webhook}}\n"+
		"addressType: IPv4\nendpoints: [{addresses: [10.0.0.1], conditions: {ready: true}}]\nports: [{port: 9443}]\n", system))
	if got := part(); got.Health != schema.HealthReady || got.Ready != got.Objects {
		t.Errorf("with an endpoint: %+v", got)
	}
}
