package cluster_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
)

// follow starts a watch and returns what it sees, one line each, as long as the test runs.
func follow(t *testing.T, c *cluster.Cluster, namespace string, o metav1.ListOptions, known ...*unstructured.Unstructured) <-chan string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	seen := make(chan string, 100)
	go func() {
		defer close(seen)
		for change, err := range c.Watch(ctx, configMapKind, namespace, o, known...) {
			if err != nil {
				seen <- "error: " + err.Error()
				continue
			}
			value, _, _ := unstructured.NestedString(change.Object.Object, "data", "key")
			seen <- strings.TrimSuffix(string(change.Type)+" "+change.Object.GetName()+" "+value, " ")
		}
	}()
	t.Cleanup(func() {
		cancel()
		for range seen { // until it has ended
		}
	})
	return seen
}

// expect waits until the watch has seen this, and nothing else before.
func expect(t *testing.T, seen <-chan string, want ...string) {
	t.Helper()
	for _, w := range want {
		select {
		case got := <-seen:
			if got != w {
				t.Fatalf("the watch saw %q, want %q", got, w)
			}
		case <-t.Context().Done():
			t.Fatalf("the watch has not seen %q", w)
		}
	}
}

var ours = metav1.ListOptions{LabelSelector: "watched=yes"}

func watched(namespace, name, value string) string {
	return strings.Replace(configMap(namespace, name, value), "metadata: {", "metadata: {labels: {watched: \"yes\"}, ", 1)
}

func set(t *testing.T, c *cluster.Cluster, text string) *unstructured.Unstructured {
	t.Helper()
	applied, err := c.Apply(t.Context(), object(t, text), cluster.WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return applied
}

func remove(t *testing.T, c *cluster.Cluster, o *unstructured.Unstructured) {
	t.Helper()
	if err := c.Delete(t.Context(), o, cluster.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestWatchAcrossRestart checks that a watch sees everything that happened while it had no connection.
func TestWatchAcrossRestart(t *testing.T) {
	t.Parallel()
	server := testcluster.Borrow(t)
	c, other := connect(t, cluster.Options{}), connect(t, cluster.Options{})
	ns := namespace(t, other)
	a, b := set(t, other, watched(ns, "a", "one")), set(t, other, watched(ns, "b", "one"))
	seen := follow(t, c, ns, ours)
	expect(t, seen, "ADDED a one", "ADDED b one")

	server.StopAPIServer()
	started := make(chan error)
	go func() { started <- server.StartAPIServer(t.Context()) }()
	// This request waits for the server.
	remove(t, other, b)
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	expect(t, seen, "DELETED b one")
	set(t, other, watched(ns, "a", "two"))
	expect(t, seen, "MODIFIED a two")
	remove(t, other, mustGet(t, other, a))
	expect(t, seen, "DELETED a two")
}

func mustGet(t *testing.T, c *cluster.Cluster, o *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	found, err := c.Get(t.Context(), o.GroupVersionKind(), o.GetNamespace(), o.GetName())
	if err != nil || found == nil {
		t.Fatalf("%v, %v", found, err)
	}
	return found
}

// TestWatchForgottenHistory checks that a watch that starts too late for the history reports the difference.
func TestWatchForgottenHistory(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	c, other := p.connect(t, cluster.Options{}), connect(t, cluster.Options{})
	ns := namespace(t, c)
	a, b := set(t, c, watched(ns, "a", "one")), set(t, c, watched(ns, "b", "one"))
	set(t, c, watched(ns, "same", "one"))
	seen := follow(t, c, ns, ours)
	expect(t, seen, "ADDED a one", "ADDED b one", "ADDED same one")

	// From now on the server has forgotten everything, until the watch asks for a list.
	p.intervene.Store(&forgotten)
	p.CloseClientConnections()
	remove(t, other, b)
	set(t, other, watched(ns, "a", "two"))
	set(t, other, watched(ns, "c", "one"))
	changes := map[string]bool{"MODIFIED a two": true, "ADDED c one": true, "DELETED b one": true}
	for len(changes) > 0 {
		got := <-seen
		if !changes[got] {
			t.Fatalf("the watch saw %q, want one of %v", got, changes)
		}
		delete(changes, got)
	}
	p.intervene.Store(nil)
	remove(t, other, mustGet(t, other, a))
	expect(t, seen, "DELETED a two")
}

// forgotten answers a watch that the history it asks for is gone.
var forgotten = func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
	if r.URL.Query().Get("watch") == "" {
		return false
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusGone)
	_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410,"message":"too old resource version"}`))
	return true
}

// TestListForgottenHistory makes etcd forget the state with which a list has begun, in the middle of it.
func TestListForgottenHistory(t *testing.T) {
	t.Parallel()
	c := connect(t, cluster.Options{})
	ns := namespace(t, c)
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		create(t, c, watched(ns, name, "one"))
	}
	o := ours
	o.Limit = 2
	var names []string
	for object, err := range c.List(t.Context(), configMapKind, ns, o) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, object.GetName())
		set(t, c, watched(ns, "e", object.GetName()))
		if err := testcluster.Borrow(t).Compact(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(names, " "); got != "a b c d e" {
		t.Errorf("the list has %s", got)
	}
}
