package deployer_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// soon is for how long these tests wait for what does not come.
const soon = 2 * time.Second

// held makes a custom resource whose finalizers have no controller.
func (b *bed) held(name, finalizers string) *unstructured.Unstructured {
	b.Helper()
	return b.create(fmt.Sprintf("apiVersion: %s/v1\nkind: Clock\nmetadata: {name: %s, namespace: %s, finalizers: [%s]}\nspec: {hands: 2}\n",
		b.Group, name, b.Env, finalizers))
}

func (b *bed) delete(object *unstructured.Unstructured) {
	b.Helper()
	if err := b.Cluster.Delete(b.Context(), named(object), cluster.DeleteOptions{}); err != nil {
		b.Fatal(err)
	}
}

// named is an object without its resource version: it is deleted as it is by then.
func named(object *unstructured.Unstructured) *unstructured.Unstructured {
	object = object.DeepCopy()
	object.SetResourceVersion("")
	return object
}

// finalizers sets those of an object; none lets it go, as its operator would.
func (b *bed) finalizers(object *unstructured.Unstructured, names string) {
	b.Helper()
	_, err := b.Cluster.Patch(b.Context(), object, types.MergePatchType, []byte(`{"metadata": {"finalizers": `+names+`}}`), cluster.WriteOptions{})
	if err != nil {
		b.Fatal(err)
	}
}

// awaitReasons asks again and again what keeps an object until the answer has the words.
func (b *bed) awaitReasons(object *unstructured.Unstructured, words ...string) {
	b.Helper()
	b.await(func(ctx context.Context) (bool, string) {
		live, err := b.Cluster.Get(ctx, object.GroupVersionKind(), object.GetNamespace(), object.GetName())
		if err != nil || live == nil {
			return false, fmt.Sprint(live, err)
		}
		reasons := strings.Join(health.Explain(ctx, b.Cluster, live), "\n")
		for _, word := range words {
			if !strings.Contains(reasons, word) {
				return false, fmt.Sprintf("nothing about %q in:\n%s", word, reasons)
			}
		}
		return true, ""
	})
}

// awaitGone waits until an object is gone.
func (b *bed) awaitGone(object *unstructured.Unstructured) {
	b.Helper()
	b.await(func(ctx context.Context) (bool, string) {
		live, err := b.Cluster.Get(ctx, object.GroupVersionKind(), object.GetNamespace(), object.GetName())
		return err == nil && live == nil, fmt.Sprint(live, err)
	})
}

func (b *bed) await(done func(context.Context) (bool, string)) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), testcluster.Deadline(2*time.Minute)) // far more than it takes
	defer cancel()
	again := time.NewTicker(300 * time.Millisecond)
	defer again.Stop()
	why := ""
	for {
		ok, now := done(ctx)
		if ok {
			return
		}
		if ctx.Err() == nil {
			why = now
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			b.Fatal(why)
		}
	}
}

// TestFinalizerWithoutController deletes an environment whose operator does not work, first without and then with force.
func TestFinalizerWithoutController(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.activated("1.0.0", content{})
	b.mustAdd("1.0.0")
	clock := b.held("a", "example.com/hold, example.com/more")
	config := b.create("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other, namespace: " + b.Env + ", finalizers: [example.com/other]}\n")

	var out exported
	options := environments.DeleteOptions{
		Options: plan.Options{Timeout: soon}, Environment: b.Env, Data: plan.DeleteData, Export: out.open,
		Others: []schema.ObjectRef{{APIVersion: "v1", Kind: "ConfigMap", Namespace: b.Env, Name: "other"}},
	}
	_, err := b.DeleteEnvironment(t.Context(), options)
	b.refused(err, report.Timeout, "Clock "+b.Env+"/a waits for its finalizer example.com/hold",
		"Deployment "+b.Env+"/"+b.Solution+"-operator would remove it, but 0 of 1 pods are available",
		"solutionctl deploy env delete "+b.Env+" --delete-data --delete-others --force-finalizers")

	// An object that was not deleted is not among those that can be released.
	held, err := b.Held(t.Context(), environments.HeldOptions{Environment: b.Env})
	if err != nil || len(held) != 1 || held[0].String() != "Clock "+b.Env+"/a: example.com/hold, example.com/more" {
		t.Fatalf("%v, %v", held, err)
	}
	// Nor are objects whose finalizers have changed since they were listed.
	options.Release = held
	b.finalizers(clock, `["example.com/hold"]`)
	_, err = b.DeleteEnvironment(t.Context(), options)
	b.refused(err, report.Conflict, "Clock "+b.Env+"/a has other finalizers than it had when they were listed")

	if options.Release, err = b.Held(t.Context(), environments.HeldOptions{Environment: b.Env}); err != nil {
		t.Fatal(err)
	}
	planned := options
	planned.DryRun = true
	done, err := b.DeleteEnvironment(t.Context(), planned)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(done)
	if err != nil || !strings.Contains(string(text), "finalizers are removed: example.com/hold") {
		t.Errorf("%s, %v", text, err)
	}
	out.Reset()
	_, err = b.DeleteEnvironment(t.Context(), options)
	b.refused(err, report.Timeout, "namespace "+b.Env+" does not go away")
	if b.find(b.clock(), b.Env, "a") != nil {
		t.Error("the clock is still there")
	}
	if !strings.Contains(out.String(), `"hands":2`) {
		t.Errorf("it was not exported: %s", out.String())
	}
	// The namespace is being deleted now: no new object can be created, and the error gives the reason.
	b.awaitReasons(b.get(namespaces, "", b.Env), "ConfigMap "+b.Env+"/other waits for its finalizer example.com/other")
	_, err = b.add("1.0.0")
	b.refused(err, report.Conflict, "namespace "+b.Env+" is being deleted", "ConfigMap "+b.Env+"/other waits for its finalizer")
	_, err = b.CreateEnvironment(t.Context(), metalk8s.CreateOptions{Name: b.Env})
	b.refused(err, report.Conflict, "namespace "+b.Env+" is being deleted", "ConfigMap "+b.Env+"/other waits for its finalizer")

	options.Timeout = 0
	if options.Release, err = b.Held(t.Context(), environments.HeldOptions{Environment: b.Env}); err != nil || len(options.Release) != 1 {
		t.Fatalf("%v, %v", options.Release, err)
	}
	if _, err = b.DeleteEnvironment(t.Context(), options); err != nil {
		t.Fatal(err)
	}
	b.awaitGone(config)
	if b.find(namespaces, "", b.Env) != nil {
		t.Error("the namespace is still there")
	}
}

// TestTerminatingDefinition activates a Solution again while its definition is being deleted.
func TestTerminatingDefinition(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.activated("1.0.0", content{})
	clock := b.held("a", "example.com/hold")
	before := b.get(crds, "", b.crdName())
	b.delete(before)
	activate := func(timeout time.Duration) error {
		_, err := b.Activate(t.Context(), deployer.ActivateOptions{Options: plan.Options{Timeout: timeout}, Solution: b.Solution})
		return err
	}
	b.awaitReasons(before, "Clock "+b.Env+"/a waits")
	b.refused(activate(soon), report.Conflict, "custom resource definition "+b.crdName()+" is being deleted",
		"Clock "+b.Env+"/a waits for its finalizer example.com/hold", "Deployment "+b.Env+"/"+b.Solution+"-operator would remove it, but does not exist")
	_, err := b.Deactivate(t.Context(), deployer.DeactivateOptions{Options: plan.Options{Timeout: soon}, Solution: b.Solution})
	b.refused(err, report.DataLoss, "1 of kind Clock")
	b.finalizers(clock, `[]`)
	b.awaitGone(before)
	if err := activate(0); err != nil {
		t.Fatal(err)
	}
	if now := b.get(crds, "", b.crdName()); now.GetUID() == before.GetUID() || now.GetDeletionTimestamp() != nil {
		t.Errorf("the definition is %v", now.Object["metadata"])
	}
}

// TestDeadConversion deletes a namespace with custom resources that cannot be read.
func TestDeadConversion(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	crd := b.create(fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %s}
spec:
  group: %s
  scope: Namespaced
  names: {kind: Clock, plural: clocks, singular: clock, listKind: ClockList}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`, b.crdName(), b.Group))
	b.await(func(ctx context.Context) (bool, string) {
		live, err := b.Cluster.Get(ctx, crds, "", b.crdName())
		return err == nil && health.Of(live).Ready, fmt.Sprint(live, err)
	})
	clock := object(b.clock(), b.Env, "a")
	b.await(func(ctx context.Context) (bool, string) {
		_, err := b.Cluster.Create(ctx, clock, cluster.WriteOptions{})
		return err == nil, fmt.Sprint(err)
	})
	// v2 becomes what is stored, and the webhook that converts is nowhere.
	_, err := b.Cluster.Patch(t.Context(), crd, types.MergePatchType, []byte(`{"spec": {
		"conversion": {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"service": {"namespace": "`+b.Env+`", "name": "converter"}}}},
		"versions": [
			{"name": "v1", "served": true, "storage": false, "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}},
			{"name": "v2", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}
		]}}`), cluster.WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	remedy := `kubectl patch crd ` + b.crdName() + ` --type merge --patch '{"spec":{"conversion":{"strategy":"None","webhook":null}}}'`
	namespace := b.get(namespaces, "", b.Env)
	b.delete(namespace)
	b.awaitReasons(namespace, "CustomResourceDefinition "+b.crdName()+" converts its objects by a webhook that does not answer",
		"Service "+b.Env+"/converter does not exist", remedy)
	dead, err := health.DeadConversions(t.Context(), b.Cluster)
	if err != nil || len(dead) == 0 {
		t.Errorf("%v, %v", dead, err)
	}
	// The remedy helps.
	_, err = b.Cluster.Patch(t.Context(), crd, types.MergePatchType, []byte(`{"spec": {"conversion": {"strategy": "None", "webhook": null}}}`), cluster.WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	b.awaitGone(namespace)
}

// TestDeadAPI works while an API that no Solution uses has no server, which affects no verb, and then deletes an environment: its content
// is unknown. The test has a cluster of its own, to disturb no other.
func TestDeadAPI(t *testing.T) {
	t.Parallel()
	testcluster.Long(t, "TestDeadConversion, and what the doctor says of a dead API without a cluster")
	b := newBedOn(t, testcluster.StartFor(t, testcluster.Options{}))
	api := b.create(`
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.gone.example}
spec: {group: gone.example, version: v1, groupPriorityMinimum: 100, versionPriority: 100, insecureSkipTLSVerify: true, service: {namespace: default, name: gone}}
`)
	const words, remedy = "APIService v1.gone.example does not work: ", "kubectl delete apiservice v1.gone.example"
	b.awaitReasons(b.get(namespaces, "", b.Env))
	b.await(func(ctx context.Context) (bool, string) {
		dead, err := health.DeadAPIs(ctx, b.Cluster)
		return err == nil && len(dead) == 1 && strings.HasPrefix(dead[0].String(), words) && dead[0].Object == "APIService v1.gone.example", fmt.Sprint(dead, err)
	})
	b.await(func(ctx context.Context) (bool, string) {
		_, err := b.Cluster.Kinds(ctx, "gone.example")
		return report.CodeOf(err) == report.Unavailable, fmt.Sprint(err)
	})
	b.activated("1.0.0", content{})
	b.imported("2.0.0", content{})
	b.mustAdd("1.0.0")
	b.newClock(b.Env, "one", "hands: 2")
	change := func(direction records.Direction, version string, dryRun bool) {
		t.Helper()
		o := deployer.ChangeOptions{Options: plan.Options{NoWait: true, DryRun: dryRun}, Environment: b.Env, Solution: b.Solution, Direction: direction, Version: version}
		if _, err := b.Change(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	change(records.Up, "2.0.0", true)
	change(records.Up, "2.0.0", false)
	change(records.Down, "1.0.0", false)
	if _, err := b.Rollback(t.Context(), deployer.RollbackOptions{Options: plan.Options{NoWait: true}, Environment: b.Env, Solution: b.Solution}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Held(t.Context(), environments.HeldOptions{Environment: b.Env}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Survey.Status(t.Context(), survey.StatusOptions{}); err != nil {
		t.Fatal(err)
	}
	b.delete(b.get(b.clock(), b.Env, "one"))
	if _, err := b.Remove(t.Context(), deployer.RemoveOptions{Environment: b.Env, Solution: b.Solution}); err != nil {
		t.Fatal(err)
	}
	namespace := b.get(namespaces, "", b.Env)
	b.delete(namespace)
	b.awaitReasons(namespace, words, remedy)
	_, err := b.DeleteEnvironment(t.Context(), environments.DeleteOptions{Options: plan.Options{Timeout: soon}, Environment: b.Env})
	b.refused(err, report.Timeout, "namespace "+b.Env+" does not go away", words, remedy)
	b.delete(api)
	b.awaitGone(namespace)
}

// TestDeadWebhook adds a Solution while a webhook has to be asked that is gone, and deletes what it guards.
func TestDeadWebhook(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.activated("1.0.0", content{})
	name := b.Env + "-guard"
	hook := b.create(fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: %s}
webhooks:
- name: guard.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  timeoutSeconds: 2
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %s}}
  clientConfig: {service: {namespace: %s, name: guard}}
  rules: [{operations: [CREATE, UPDATE, DELETE], apiGroups: [""], resources: [serviceaccounts, configmaps], apiVersions: [v1]}]
`, name, b.Env, b.Env))
	b.await(func(ctx context.Context) (bool, string) { // until the API server asks it
		_, err := b.Cluster.Create(ctx, object(configMaps, b.Env, "probe"), cluster.WriteOptions{DryRun: true})
		return err != nil, "it is not asked"
	})
	_, err := b.add("1.0.0")
	b.refused(err, report.Unavailable, `admission webhook "guard.example.com" of the cluster does not work`, "solutionctl deploy doctor")
	dead, err := health.DeadWebhooks(t.Context(), b.Cluster)
	text := fmt.Sprint(dead)
	if err != nil || !strings.Contains(text, name) || !strings.Contains(text, "Service "+b.Env+"/guard does not exist") {
		t.Errorf("%v, %v", text, err)
	}
	b.delete(hook)
	config := object(configMaps, b.Env, "config")
	config.SetFinalizers([]string{"example.com/hold"})
	b.await(func(ctx context.Context) (bool, string) {
		_, err := b.Cluster.Create(ctx, config, cluster.WriteOptions{})
		return err == nil || apierrors.IsAlreadyExists(err), fmt.Sprint(err)
	})
	hook = b.create(fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: %s}
webhooks:
- name: guard.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %s}}
  clientConfig: {service: {namespace: %s, name: guard}}
  rules: [{operations: [UPDATE], apiGroups: ["*"], resources: ["*"], apiVersions: [v1]}]
`, name, b.Env, b.Env))
	live := b.get(configMaps, b.Env, "config")
	b.delete(live)
	b.awaitReasons(live, "ConfigMap "+b.Env+"/config waits for its finalizer example.com/hold",
		"MutatingWebhookConfiguration "+name+" asks webhook guard.example.com, which does not answer",
		"kubectl delete mutatingwebhookconfiguration "+name)
	b.delete(hook)
	b.await(func(ctx context.Context) (bool, string) {
		_, err := b.Cluster.Patch(ctx, live, types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`), cluster.WriteOptions{})
		return err == nil, fmt.Sprint(err)
	})
	b.awaitGone(live)
}

func object(kind kube.GroupVersionKind, namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

// TestClaimInUse deletes a volume claim that a pod uses.
func TestClaimInUse(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	claim := b.create("apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, namespace: " + b.Env +
		"}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n")
	b.create("apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: " + b.Env + "}\nspec: {nodeName: nowhere, " +
		"serviceAccountName: default, automountServiceAccountToken: false, " +
		"containers: [{name: app, image: 'example.com/app:1'}], volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]}\n")
	b.delete(claim)
	b.awaitReasons(claim, "PersistentVolumeClaim "+b.Env+"/data waits for its finalizer kubernetes.io/pvc-protection: pod web uses the claim")
}
