package clustertest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	authorization "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/yaml"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/cluster/clustertest"
)

func connect(t *testing.T, s *clustertest.Server) *cluster.Cluster {
	t.Helper()
	c, err := cluster.Connect(cluster.Options{Kubeconfig: s.Kubeconfig(t), Now: time.Now, Retry: -1})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

const (
	demo  = "{apiVersion: v1, kind: Namespace, metadata: {name: demo}}"
	pizza = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: pizzas.example.com}, spec: {group: example.com, scope: Namespaced,
names: {kind: Pizza, plural: pizzas}, versions: [{name: v1, served: true, storage: true, subresources: {status: {}}}]}}`
)

// TestApply: fields have owners, and giving one up takes it away.
func TestApply(t *testing.T) {
	s := clustertest.Start(t, demo)
	c := connect(t, s)
	first := object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: demo}, data: {x: '1', z: '2'}}")
	created, err := c.Create(t.Context(), first, cluster.WriteOptions{})
	if err != nil || created.GetUID() == "" || created.GetResourceVersion() == "" {
		t.Fatalf("%v, %v", created, err)
	}
	if _, err = c.Create(t.Context(), first, cluster.WriteOptions{}); !errors.Is(err, cluster.ErrExists) {
		t.Errorf("created twice: %v", err)
	}
	same, err := c.Apply(t.Context(), first, cluster.WriteOptions{})
	if err != nil || same.GetResourceVersion() != created.GetResourceVersion() {
		t.Errorf("applying the same is a change: %v, %v", same, err)
	}
	dry := object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: demo}, data: {x: '3'}}")
	tried, err := c.Apply(t.Context(), dry, cluster.WriteOptions{DryRun: true})
	if err != nil || fmt.Sprint(tried.Object["data"]) != "map[x:3]" {
		t.Errorf("dry run: %v, %v", tried, err)
	}
	if got := s.Object("ConfigMap", "demo", "a"); fmt.Sprint(got.Object["data"]) != "map[x:1 z:2]" {
		t.Errorf("a dry run changed %v", got.Object["data"])
	}
	changed, err := c.Apply(t.Context(), dry, cluster.WriteOptions{})
	if err != nil || fmt.Sprint(changed.Object["data"]) != "map[x:3]" {
		t.Errorf("%v, %v", changed, err)
	}
	s.Put(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: demo}, data: {x: other}}")
	for _, entry := range s.Object("ConfigMap", "demo", "a").GetManagedFields() {
		if entry.Manager == cluster.FieldManager && strings.Contains(entry.FieldsV1.GetRawString(), "f:data") {
			t.Errorf("whoever lost the only field of a mapping has the mapping: %s", entry.FieldsV1.GetRawString())
		}
	}
	if _, err := c.Apply(t.Context(), dry, cluster.WriteOptions{}); err == nil || !strings.Contains(err.Error(), "other managers own these fields: .data.x") {
		t.Errorf("conflict: %v", err)
	}
	if _, err := c.Apply(t.Context(), dry, cluster.WriteOptions{Force: true}); err != nil {
		t.Error(err)
	}
	if _, err := c.Update(t.Context(), created, cluster.WriteOptions{}); !errors.Is(err, cluster.ErrChanged) {
		t.Errorf("an old state was written: %v", err)
	}
	if err := c.Delete(t.Context(), created, cluster.DeleteOptions{}); !errors.Is(err, cluster.ErrChanged) {
		t.Errorf("an old state was deleted: %v", err)
	}
}

// TestMissingNamespace: what is made there is refused, in the words of the real server.
func TestMissingNamespace(t *testing.T) {
	c := connect(t, clustertest.Start(t))
	_, err := c.Create(t.Context(), object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: nowhere}}"), cluster.WriteOptions{})
	if err == nil || !strings.Contains(err.Error(), "namespace nowhere does not exist") {
		t.Errorf("%v", err)
	}
}

// TestFinalizers checks that an object stays until its finalizers are removed, and that dependents are deleted with it.
func TestFinalizers(t *testing.T) {
	s := clustertest.Start(t, demo, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: demo, finalizers: [example.com/f]}}")
	c := connect(t, s)
	kind := cluster.ConfigMapKind
	owner, err := c.Get(t.Context(), kind, "demo", "a")
	if err != nil || owner == nil {
		t.Fatal(owner, err)
	}
	s.Put(t, "{apiVersion: v1, kind: Secret, metadata: {name: b, namespace: demo, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: a, uid: "+string(owner.GetUID())+"}]}}")
	if err = c.Delete(t.Context(), owner, cluster.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	owner, err = c.Get(t.Context(), kind, "demo", "a")
	if err != nil || owner.GetDeletionTimestamp() == nil {
		t.Fatal(owner, err)
	}
	if _, err := c.Patch(t.Context(), owner, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), cluster.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	if s.Object("ConfigMap", "demo", "a") != nil || s.Object("Secret", "demo", "b") != nil {
		t.Error("it is there yet")
	}
}

// TestTerminatingNamespace: it stays with what is held in it, takes nothing new, and goes with the last of it.
func TestTerminatingNamespace(t *testing.T) {
	s := clustertest.Start(t, demo, "{apiVersion: v1, kind: ConfigMap, metadata: {name: held, namespace: demo, finalizers: [example.com/f]}}",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: free, namespace: demo}}")
	c := connect(t, s)
	if err := c.Delete(t.Context(), s.Object("Namespace", "", "demo"), cluster.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	live := s.Object("Namespace", "", "demo")
	if phase, _, _ := unstructured.NestedString(live.Object, "status", "phase"); phase != "Terminating" || live.GetDeletionTimestamp() == nil || s.Object("ConfigMap", "demo", "free") != nil {
		t.Errorf("%v, with %q", live, s.Names("ConfigMap"))
	}
	_, err := c.Create(t.Context(), object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: late, namespace: demo}}"), cluster.WriteOptions{})
	if err == nil || s.Object("ConfigMap", "demo", "late") != nil {
		t.Errorf("something new came: %v", err)
	}
	held := s.Object("ConfigMap", "demo", "held")
	if _, err := c.Patch(t.Context(), held, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), cluster.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	if s.Object("Namespace", "", "demo") != nil {
		t.Error("the namespace is there yet")
	}
}

// TestDefinition: a kind is there while its definition is, and a namespace takes along what is in it.
func TestDefinition(t *testing.T) {
	s := clustertest.Start(t, demo)
	c := connect(t, s)
	margherita := object(t, "{apiVersion: example.com/v1, kind: Pizza, metadata: {name: margherita, namespace: demo}, spec: {size: 30}, status: {baked: true}}")
	if _, err := c.Create(t.Context(), margherita, cluster.WriteOptions{}); !errors.Is(err, cluster.ErrNoKind) {
		t.Errorf("no definition: %v", err)
	}
	s.Put(t, pizza)
	c.Refresh()
	made, err := c.Create(t.Context(), margherita, cluster.WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ready, err := c.PatchStatus(t.Context(), made, types.MergePatchType, []byte(`{"status":{"baked":true},"spec":{"size":1}}`), cluster.WriteOptions{})
	if size, _, _ := unstructured.NestedInt64(ready.Object, "spec", "size"); err != nil || size != 30 || ready.Object["status"] == nil || ready.GetGeneration() != 1 {
		t.Errorf("%v, %v", ready, err)
	}
	namespace, err := c.Get(t.Context(), cluster.NamespaceKind, "", "demo")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), namespace, cluster.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if names := s.Names("Pizza"); len(names) > 0 {
		t.Errorf("%q are there yet", names)
	}
}

// TestList checks pages and selectors.
func TestList(t *testing.T) {
	s := clustertest.Start(t, demo)
	for i := range 5 {
		s.Put(t, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: c%d, namespace: demo, labels: {odd: '%t'}}, data: {x: '1'}}", i, i%2 == 1))
	}
	c := connect(t, s)
	names := func(o metav1.ListOptions) []string {
		var names []string
		for object, err := range c.List(t.Context(), cluster.ConfigMapKind, "demo", o) {
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, object.GetName())
		}
		return names
	}
	if got := names(metav1.ListOptions{Limit: 2}); !slices.Equal(got, []string{"c0", "c1", "c2", "c3", "c4"}) {
		t.Errorf("in pages: %q", got)
	}
	if got := names(metav1.ListOptions{LabelSelector: "odd=true"}); !slices.Equal(got, []string{"c1", "c3"}) {
		t.Errorf("by label: %q", got)
	}
	for object, err := range c.ListMetadata(t.Context(), cluster.ConfigMapKind, "demo", metav1.ListOptions{LabelSelector: "odd=true"}) {
		if err != nil || object.GetUID() == "" || object.Object["data"] != nil {
			t.Errorf("metadata: %v, %v", object, err)
		}
	}
	if object, err := c.GetMetadata(t.Context(), cluster.ConfigMapKind, "demo", "c1"); err != nil || object.GetLabels()["odd"] != "true" || object.Object["data"] != nil {
		t.Errorf("metadata of one: %v, %v", object, err)
	}
	if got := names(metav1.ListOptions{FieldSelector: "metadata.name=c4"}); !slices.Equal(got, []string{"c4"}) {
		t.Errorf("by name: %q", got)
	}
}

// TestWatch checks events of existing, new and deleted objects.
func TestWatch(t *testing.T) {
	s := clustertest.Start(t, demo, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: demo}}")
	c := connect(t, s)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var seen []string
	for change, err := range c.Watch(ctx, cluster.ConfigMapKind, "demo", metav1.ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, string(change.Type)+" "+change.Object.GetName())
		switch change.Type {
		case watch.Added:
			s.Put(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: demo}, data: {x: new}}")
		case watch.Modified:
			if err := c.Delete(ctx, change.Object, cluster.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		case watch.Deleted:
			cancel()
		}
	}
	if want := []string{"ADDED a", "MODIFIED a", "DELETED a"}; !slices.Equal(seen, want) {
		t.Errorf("%q, want %q", seen, want)
	}
}

// TestReadiness: workloads are ready at once, unless a test wants them not to be.
func TestReadiness(t *testing.T) {
	s := clustertest.Start(t, demo)
	const web = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: %s, namespace: demo}, spec: {replicas: 3}}"
	s.Put(t, fmt.Sprintf(web, "web"))
	s.Stall("Deployment")
	s.Put(t, fmt.Sprintf(web, "late"))
	ready := func(name string) int64 {
		n, _, _ := unstructured.NestedInt64(s.Object("Deployment", "demo", name).Object, "status", "readyReplicas")
		return n
	}
	if ready("web") != 3 || ready("late") != 0 {
		t.Errorf("%d and %d are ready", ready("web"), ready("late"))
	}
	if s.Stall(); ready("late") != 3 {
		t.Errorf("%d are ready when nothing keeps them", ready("late"))
	}
}

// TestMay checks the answers of access reviews, and the log of requests.
func TestMay(t *testing.T) {
	s := clustertest.Start(t)
	s.May = func(a authorization.ResourceAttributes) bool { return a.Verb == "get" }
	c := connect(t, s)
	permission := cluster.Permission{Resource: "secrets", Namespace: "demo"}
	missing, err := c.Missing(t.Context(), permission.Each("get", "list")...)
	if err != nil || len(missing) != 1 || missing[0].Verb != "list" || c.User(t.Context()) != clustertest.User {
		t.Errorf("%+v, %v", missing, err)
	}
	if got := s.Requests(); len(got) == 0 || len(s.Requests()) != 0 {
		t.Errorf("%q", got)
	}
}
