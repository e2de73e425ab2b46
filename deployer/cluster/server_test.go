package cluster

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	authorization "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/solutionctl/solutionctl/deployer/cluster/clustertest"
	"github.com/solutionctl/solutionctl/schema/report"
)

const shop = "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}"

// connected is a server with some objects and a connection to it that has had answers before.
func connected(t *testing.T, documents ...string) (*clustertest.Server, *Cluster) {
	t.Helper()
	s := clustertest.Start(t, append([]string{shop}, documents...)...)
	c, err := Connect(Options{Kubeconfig: s.Kubeconfig(t), Now: time.Now, Sink: report.Discard})
	if err == nil {
		_, err = c.Kinds(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	s.Requests()
	return s, c
}

func parsed(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	data, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = o.UnmarshalJSON(data)
	}
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func config(name, data string) string {
	return fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: shop}, data: {x: '%s'}}", name, data)
}

type servedKey struct{}

// once hands the first request that a test is interested in to a handler. What the handler serves itself is not looked at again.
func once(s *clustertest.Server, interesting func(*http.Request) bool, handle func(http.ResponseWriter, *http.Request)) {
	var done atomic.Bool
	s.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Context().Value(servedKey{}) != nil || !interesting(r) || done.Swap(true) {
			return false
		}
		handle(w, r.WithContext(context.WithValue(r.Context(), servedKey{}, true)))
		return true
	}
}

func method(name string) func(*http.Request) bool {
	return func(r *http.Request) bool { return r.Method == name }
}

func watches(r *http.Request) bool { return r.URL.Query().Get("watch") != "" }

// loseAnswer executes a request and drops the answer.
func loseAnswer(s *clustertest.Server) func(http.ResponseWriter, *http.Request) {
	return func(_ http.ResponseWriter, r *http.Request) {
		s.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	}
}

func fails(err *apierrors.StatusError) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) { clustertest.Fail(w, err) }
}

// TestNothingThere checks that a missing object or kind is not an error for operations that do not need it.
func TestNothingThere(t *testing.T) {
	_, c := connected(t, config("a", "1"))
	gone := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Pizza"}
	if o, err := c.Get(t.Context(), ConfigMapKind, "shop", "none"); o != nil || err != nil {
		t.Errorf("an object: %v, %v", o, err)
	}
	for name, get := range map[string]func(context.Context, schema.GroupVersionKind, string, string) (*unstructured.Unstructured, error){"get": c.Get, "metadata": c.GetMetadata} {
		if o, err := get(t.Context(), gone, "shop", "none"); o != nil || err != nil {
			t.Errorf("%s of a kind: %v, %v", name, o, err)
		}
	}
	for _, err := range c.List(t.Context(), gone, "shop", metav1.ListOptions{}) {
		t.Errorf("there is something in the list: %v", err)
	}
	live, err := c.Get(t.Context(), ConfigMapKind, "shop", "a")
	if err != nil {
		t.Fatal(err)
	}
	pizza := parsed(t, "{apiVersion: example.com/v1, kind: Pizza, metadata: {name: a, namespace: shop, uid: u, resourceVersion: '1'}}")
	for name, test := range map[string]struct {
		do   func() error
		kind error
		code report.Code
	}{
		"delete":               {func() error { return c.Delete(t.Context(), live, DeleteOptions{}) }, nil, ""},
		"delete again":         {func() error { return c.Delete(t.Context(), live, DeleteOptions{}) }, nil, ""},
		"delete of a kind":     {func() error { return c.Delete(t.Context(), pizza, DeleteOptions{}) }, nil, ""},
		"delete of the unread": {func() error { return c.Delete(t.Context(), parsed(t, config("a", "1")), DeleteOptions{}) }, nil, report.Failure},
		"update of the unread": {func() error { _, err := c.Update(t.Context(), parsed(t, config("a", "1")), WriteOptions{}); return err }, nil, report.Failure},
		"create of a kind":     {func() error { _, err := c.Create(t.Context(), pizza, WriteOptions{}); return err }, ErrNoKind, report.Failure},
	} {
		if err := test.do(); (err == nil) != (test.code == "") || test.kind != nil && !errors.Is(err, test.kind) || err != nil && report.CodeOf(err) != test.code {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, do := range map[string]func() error{
		"update": func() error { _, err := c.Update(t.Context(), live, WriteOptions{}); return err },
		"status": func() error { _, err := c.UpdateStatus(t.Context(), live, WriteOptions{}); return err },
		"apply":  func() error { _, err := c.Apply(t.Context(), live, WriteOptions{}); return err },
		"patch": func() error {
			_, err := c.Patch(t.Context(), live, types.MergePatchType, []byte("{}"), WriteOptions{})
			return err
		},
	} {
		if err := do(); !errors.Is(err, ErrChanged) || report.CodeOf(err) != report.Conflict {
			t.Errorf("%s of what is gone: %v", name, err)
		}
	}
}

// TestKindComes checks that a list waits while the server does not yet serve a kind that discovery lists.
func TestKindComes(t *testing.T) {
	for name, test := range map[string]struct {
		misses int32
		code   report.Code
	}{
		"soon":  {1, ""},
		"never": {1000, report.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, c := connected(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}}")
			var asked atomic.Int32
			s.Answer = func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.HasSuffix(r.URL.Path, "/configmaps") || asked.Add(1) > test.misses {
					return false
				}
				http.NotFound(w, r)
				return true
			}
			found := 0
			for _, err := range c.List(t.Context(), ConfigMapKind, "shop", metav1.ListOptions{}) {
				switch {
				case err == nil:
					found++
				case errors.Is(err, ErrNoKind) || report.CodeOf(err) != test.code:
					t.Errorf("%v", err)
				}
			}
			if (found == 1) != (test.code == "") {
				t.Errorf("%d objects after %d requests", found, asked.Load())
			}
		})
	}
}

// TestKindGoes: a kind that the cluster has no longer is noticed by the request that it answers with 404.
func TestKindGoes(t *testing.T) {
	const definition = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: pizzas.example.com}, spec: {group: example.com,
scope: Namespaced, names: {kind: Pizza, plural: pizzas}, versions: [{name: v1, served: true, storage: true}]}}`
	s, c := connected(t, definition)
	pizza := parsed(t, "{apiVersion: example.com/v1, kind: Pizza, metadata: {name: a, namespace: shop}}")
	if _, err := c.Create(t.Context(), pizza, WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), s.Object("CustomResourceDefinition", "", "pizzas.example.com"), DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Create(t.Context(), pizza, WriteOptions{}); !errors.Is(err, ErrNoKind) {
		t.Errorf("the kind is gone: %v", err)
	}
	if _, err := c.Mapping(t.Context(), pizza.GroupVersionKind()); !errors.Is(err, ErrNoKind) {
		t.Errorf("it is still known: %v", err)
	}
	s.Put(t, definition)
	c.Refresh()
	if _, err := c.Create(t.Context(), pizza, WriteOptions{}); err != nil {
		t.Errorf("it is there again: %v", err)
	}
}

// TestLostAnswers checks that a write without an answer is repeated and executed once, without an error.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		method string
		do     func(*Cluster, *unstructured.Unstructured) error
		code   report.Code
		data   string // of the object afterwards; "" when it is gone
	}{
		"create": {http.MethodPatch, func(c *Cluster, _ *unstructured.Unstructured) error {
			_, err := c.Create(t.Context(), parsed(t, config("new", "2")), WriteOptions{})
			return err
		}, "", "2"},
		"create as a whole": {http.MethodPost, func(c *Cluster, _ *unstructured.Unstructured) error {
			_, err := c.Create(t.Context(), parsed(t, config("new", "2")), WriteOptions{Whole: true})
			return err
		}, "", "2"},
		"delete": {http.MethodDelete, func(c *Cluster, live *unstructured.Unstructured) error {
			return c.Delete(t.Context(), live, DeleteOptions{})
		}, "", ""},
		"apply": {http.MethodPatch, func(c *Cluster, _ *unstructured.Unstructured) error {
			_, err := c.Apply(t.Context(), parsed(t, config("a", "2")), WriteOptions{Force: true})
			return err
		}, "", "2"},
		"update, which cannot know whose change that was": {http.MethodPut, func(c *Cluster, live *unstructured.Unstructured) error {
			live.Object["data"] = map[string]any{"x": "2"}
			_, err := c.Update(t.Context(), live, WriteOptions{})
			return err
		}, report.Conflict, "2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, c := connected(t, config("a", "1"))
			live := s.Object("ConfigMap", "shop", "a")
			once(s, method(test.method), loseAnswer(s))
			if err := test.do(c, live); (err == nil) != (test.code == "") || err != nil && (report.CodeOf(err) != test.code || !errors.Is(err, ErrChanged)) {
				t.Errorf("%v", err)
			}
			object := s.Object("ConfigMap", "shop", map[bool]string{true: "new", false: "a"}[strings.HasPrefix(name, "create")])
			if object == nil {
				object = &unstructured.Unstructured{}
			}
			if got, _, _ := unstructured.NestedString(object.Object, "data", "x"); got != test.data {
				t.Errorf("it is %q, want %q", got, test.data)
			}
		})
	}
	t.Run("create of an existing object", func(t *testing.T) {
		t.Parallel()
		s, c := connected(t)
		once(s, method(http.MethodPatch), func(http.ResponseWriter, *http.Request) {
			s.Put(t, config("new", "theirs"))
			panic(http.ErrAbortHandler)
		})
		if _, err := c.Create(t.Context(), parsed(t, config("new", "2")), WriteOptions{}); !errors.Is(err, ErrExists) {
			t.Errorf("%v", err)
		}
	})
}

// TestPages: a list comes page by page, also when the server forgets in the middle of it what it began with.
func TestPages(t *testing.T) {
	var documents strings.Builder
	for i := range 5 {
		documents.WriteString("---\n" + config(fmt.Sprint("c", i), "1") + "\n")
	}
	second := func(r *http.Request) bool { return r.URL.Query().Get("continue") != "" }
	expired := apierrors.NewResourceExpired("the list is too old")
	goesOn := apierrors.NewResourceExpired("the list is too old")
	goesOn.ErrStatus.Continue = "shop/c1"
	for name, test := range map[string]struct {
		interesting func(*http.Request) bool
		handle      func(http.ResponseWriter, *http.Request)
		want        string
		code        report.Code
	}{
		"as it is":                          {func(*http.Request) bool { return false }, nil, "c0 c1 c2 c3 c4", ""},
		"it goes on with what is there now": {second, fails(goesOn), "c0 c1 c2 c3 c4", ""},
		"it cannot go on":                   {second, fails(expired), "c0 c1", report.Unavailable},
		"it is forbidden":                   {method(http.MethodGet), fails(apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", errors.New(`User "jane" cannot list resource "configmaps" in API group "" in the namespace "shop"`))), "", report.Forbidden},
	} {
		s, c := connected(t, documents.String())
		once(s, test.interesting, test.handle)
		var names []string
		var failure error
		for object, err := range c.List(t.Context(), ConfigMapKind, "shop", metav1.ListOptions{Limit: 2}) {
			if failure = err; err == nil {
				names = append(names, object.GetName())
				if object.GroupVersionKind() != ConfigMapKind {
					t.Errorf("%s: of kind %s", name, object.GroupVersionKind())
				}
			}
		}
		if got := strings.Join(names, " "); got != test.want || (failure == nil) != (test.code == "") || failure != nil && report.CodeOf(failure) != test.code {
			t.Errorf("%s: %q, %v", name, got, failure)
		}
	}
	_, c := connected(t, documents.String())
	for object, err := range c.ListMetadata(t.Context(), ConfigMapKind, "shop", metav1.ListOptions{}) {
		if err != nil || object.Object["data"] != nil || object.GetUID() == "" || object.GetKind() != "ConfigMap" {
			t.Errorf("metadata: %v, %v", object, err)
		}
	}
	if object, err := c.GetMetadata(t.Context(), ConfigMapKind, "shop", "c1"); err != nil || object.Object["data"] != nil || object.GetUID() == "" || object.GetKind() != "ConfigMap" {
		t.Errorf("metadata of one: %v, %v", object, err)
	}
}

// TestWatchGoesOn checks that a watch survives disconnections and yields the last state of each object, without repetitions.
func TestWatchGoesOn(t *testing.T) {
	t.Parallel()
	gone := apierrors.NewResourceExpired("too old resource version")
	for name, test := range map[string]struct {
		first func(s *clustertest.Server) func(http.ResponseWriter, *http.Request) // what becomes of the first watch
		code  report.Code                                                          // of an end that waiting does not heal
		kind  error
	}{
		"the history is forgotten": {first: func(*clustertest.Server) func(http.ResponseWriter, *http.Request) { return fails(gone) }},
		"the history is forgotten while it is watched": {first: func(*clustertest.Server) func(http.ResponseWriter, *http.Request) {
			return func(w http.ResponseWriter, _ *http.Request) {
				_, _ = fmt.Fprint(w, `{"type":"ERROR","object":{"kind":"Status","status":"Failure","reason":"Expired","code":410}}`)
			}
		}},
		"the connection breaks": {first: func(*clustertest.Server) func(http.ResponseWriter, *http.Request) {
			return func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
		}},
		"the server ends it in the middle of a line": {first: func(*clustertest.Server) func(http.ResponseWriter, *http.Request) {
			return func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, `{"type":"ADD`) }
		}},
		"the server has too much to do": {first: func(*clustertest.Server) func(http.ResponseWriter, *http.Request) {
			return fails(apierrors.NewTooManyRequests("later", 0))
		}},
		"the server has an error": {first: func(*clustertest.Server) func(http.ResponseWriter, *http.Request) {
			return fails(apierrors.NewInternalError(errors.New("etcd elects")))
		}},
		"it is forbidden": {first: func(*clustertest.Server) func(http.ResponseWriter, *http.Request) {
			return fails(apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", errors.New(`User "jane" cannot watch resource "configmaps" in API group ""`)))
		}, code: report.Forbidden},
		"the kind is gone": {first: func(*clustertest.Server) func(http.ResponseWriter, *http.Request) {
			return fails(apierrors.NewGenericServerResponse(http.StatusNotFound, "get", schema.GroupResource{}, "", "404 page not found", 0, true))
		}, code: report.Failure, kind: ErrNoKind},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, c := connected(t, config("same", "1"), config("changes", "1"), config("goes", "1"))
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			handle := test.first(s)
			once(s, watches, func(w http.ResponseWriter, r *http.Request) {
				// These changes happen while no watch is open.
				s.Put(t, config("changes", "2"))
				s.Put(t, config("comes", "1"))
				if err := c.Delete(ctx, s.Object("ConfigMap", "shop", "goes"), DeleteOptions{}); err != nil {
					t.Error(err)
				}
				handle(w, r)
			})
			var seen []string
			var failure error
			for change, err := range c.Watch(ctx, ConfigMapKind, "shop", metav1.ListOptions{}) {
				if failure = err; err != nil {
					break
				}
				data, _, _ := unstructured.NestedString(change.Object.Object, "data", "x")
				seen = append(seen, fmt.Sprintf("%s %s %s", change.Type, change.Object.GetName(), data))
				if len(seen) == 6 {
					s.Put(t, config("last", "1"))
				}
				if change.Object.GetName() == "last" {
					break
				}
			}
			want := []string{"ADDED changes 1", "ADDED goes 1", "ADDED same 1"}
			if test.code == "" {
				want = append(want, "ADDED comes 1", "ADDED last 1", "DELETED goes 1", "MODIFIED changes 2")
			}
			slices.Sort(seen[3:])
			if diff := cmp.Diff(want, seen); diff != "" {
				t.Error(diff)
			}
			if (failure == nil) != (test.code == "") || failure != nil && report.CodeOf(failure) != test.code || test.kind != nil && !errors.Is(failure, test.kind) {
				t.Errorf("%v", failure)
			}
		})
	}
}

// TestWatchOfTheKnown: what its caller has read is not news, but that it is gone is.
func TestWatchOfTheKnown(t *testing.T) {
	s, c := connected(t, config("same", "1"), config("goes", "1"), config("changes", "1"))
	known := []*unstructured.Unstructured{s.Object("ConfigMap", "shop", "same"), s.Object("ConfigMap", "shop", "goes"), s.Object("ConfigMap", "shop", "changes")}
	s.Put(t, config("changes", "2"))
	if err := c.Delete(t.Context(), known[1], DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	var seen []string
	for change, err := range c.Watch(t.Context(), ConfigMapKind, "shop", metav1.ListOptions{}, known...) {
		if err != nil {
			t.Fatal(err)
		}
		if seen = append(seen, string(change.Type)+" "+change.Object.GetName()); len(seen) == 2 {
			break
		}
	}
	if diff := cmp.Diff([]string{"DELETED goes", "MODIFIED changes"}, seen); diff != "" {
		t.Error(diff)
	}
	for name, test := range map[string]struct {
		first func(http.ResponseWriter, *http.Request) // what becomes of the watch; nil for nothing
		since string
		known []*unstructured.Unstructured
		want  string
	}{
		"from an old state":                          {since: known[1].GetResourceVersion(), want: "ADDED changes"},
		"what is gone, and the history is forgotten": {first: fails(apierrors.NewResourceExpired("too old")), since: known[2].GetResourceVersion(), known: known, want: "DELETED goes"},
	} {
		if s.Answer = nil; test.first != nil {
			once(s, watches, test.first)
		}
		for change, err := range c.Watch(t.Context(), ConfigMapKind, "shop", metav1.ListOptions{ResourceVersion: test.since}, test.known...) {
			if got := string(change.Type) + " " + change.Object.GetName(); err != nil || got != test.want {
				t.Errorf("%s: %s, %v", name, got, err)
			}
			break
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	once(s, watches, func(http.ResponseWriter, *http.Request) { cancel(); panic(http.ErrAbortHandler) })
	for change, err := range c.Watch(ctx, ConfigMapKind, "shop", metav1.ListOptions{ResourceVersion: s.Object("ConfigMap", "shop", "changes").GetResourceVersion()}) {
		t.Errorf("a watch that is ended says %+v, %v", change, err)
	}
}

// TestMemoryOfAServer: with a memory the tool's own objects are read once, and everything else each time.
func TestMemoryOfAServer(t *testing.T) {
	s, c := connected(t, config("a", "1"), "{apiVersion: v1, kind: Namespace, metadata: {name: solutionctl-system}}",
		"{apiVersion: v1, kind: Secret, metadata: {name: ours, namespace: solutionctl-system}}")
	ctx := WithMemory(t.Context())
	read := func(ctx context.Context, kind schema.GroupVersionKind, namespace, name string) *unstructured.Unstructured {
		t.Helper()
		object, err := c.Get(ctx, kind, namespace, name)
		if err != nil {
			t.Fatal(err)
		}
		return object
	}
	once(s, method(http.MethodGet), fails(apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("not now"))))
	if _, err := c.Get(ctx, SecretKind, SystemNamespace, "ours"); err == nil {
		t.Error("an error is remembered as an answer, or swallowed")
	}
	s.Requests()
	for range 2 {
		mine := read(ctx, SecretKind, SystemNamespace, "ours")
		mine.SetLabels(map[string]string{"changed": "by its reader"})
		read(ctx, SecretKind, SystemNamespace, "none")
		read(ctx, ConfigMapKind, "shop", "a")
	}
	if again := read(ctx, SecretKind, SystemNamespace, "ours"); len(again.GetLabels()) > 0 {
		t.Error("who reads it changes the memory")
	}
	if got := len(s.Requests()); got != 4 {
		t.Errorf("%d requests, want one for each of ours and two for the other", got)
	}
	if read(t.Context(), SecretKind, SystemNamespace, "ours"); len(s.Requests()) != 1 {
		t.Error("another context has the memory, too")
	}
}

// TestServerInMemory: with a memory a server is asked once what it is, and without one each time.
func TestServerInMemory(t *testing.T) {
	s, c := connected(t)
	know := func(ctx context.Context) {
		t.Helper()
		c.Refresh() // as if it was long ago
		version, err := c.Version(ctx)
		if err != nil || version == "" {
			t.Fatalf("version %q: %v", version, err)
		}
		served, err := c.APIVersions(ctx)
		if err != nil || !slices.Contains(served, "v1/ConfigMap") {
			t.Fatalf("served are %q: %v", served, err)
		}
		served[0] = "changed by its reader"
	}
	ctx := WithMemory(t.Context())
	once(s, method(http.MethodGet), fails(apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("not now"))))
	if _, err := c.Version(ctx); err == nil {
		t.Error("an error is remembered as an answer, or swallowed")
	}
	for _, test := range []struct {
		ctx  context.Context
		want int // of which two ask for the kinds
	}{{ctx, 3}, {ctx, 0}, {t.Context(), 3}, {t.Context(), 3}} {
		s.Requests()
		know(test.ctx)
		if got := s.Requests(); len(got) != test.want {
			t.Errorf("%d requests, want %d: %q", len(got), test.want, got)
		}
	}
	if served, _ := c.APIVersions(ctx); slices.Contains(served, "changed by its reader") {
		t.Error("who reads it changes the memory")
	}
}

// TestGuardOfEachWrite: every kind of write asks the guards, and no dry run does.
func TestGuardOfEachWrite(t *testing.T) {
	s, c := connected(t, config("kept", "1"))
	kept := s.Object("ConfigMap", "shop", "kept")
	lost := errors.New("the lock is lost")
	ctx := WithGuard(WithGuard(t.Context(), guardFunc(func() error { return lost })), guardFunc(func() error { return nil }))
	for name, write := range map[string]func(WriteOptions) error{
		"create": func(o WriteOptions) error { _, err := c.Create(ctx, parsed(t, config("new", "1")), o); return err },
		"apply":  func(o WriteOptions) error { _, err := c.Apply(ctx, parsed(t, config("kept", "2")), o); return err },
		"update": func(o WriteOptions) error { _, err := c.Update(ctx, kept, o); return err },
		"patch": func(o WriteOptions) error {
			_, err := c.Patch(ctx, kept, types.MergePatchType, []byte(`{"data": {"x": "3"}}`), o)
			return err
		},
		"delete": func(o WriteOptions) error { return c.Delete(ctx, kept, DeleteOptions{DryRun: o.DryRun}) },
	} {
		if err := write(WriteOptions{}); !errors.Is(err, lost) {
			t.Errorf("%s without the lock: %v", name, err)
		}
		if err := write(WriteOptions{DryRun: true}); errors.Is(err, lost) {
			t.Errorf("a dry run of %s asks: %v", name, err)
		}
	}
	if now := s.Object("ConfigMap", "shop", "kept"); now == nil || now.GetResourceVersion() != kept.GetResourceVersion() || s.Object("ConfigMap", "shop", "new") != nil {
		t.Errorf("something was written: %v", now)
	}
}

// TestMayIDoThat checks that full rights need one request, and that missing rights are reported as RBAC rules.
func TestMayIDoThat(t *testing.T) {
	s, c := connected(t)
	var wanted []Permission
	for _, namespace := range []string{"a", "b", "c", "d", "e"} {
		wanted = append(wanted, Permission{Resource: "secrets", Namespace: namespace}.Each("get", "list")...)
	}
	if err := c.Require(t.Context(), append(wanted, wanted...)); err != nil {
		t.Error(err)
	}
	if err := c.Require(t.Context(), wanted); err != nil || len(s.Requests()) != 1 {
		t.Errorf("an administrator is asked more than once: %v", err)
	}
	s, c = connected(t)
	s.May = func(a authorization.ResourceAttributes) bool {
		return a.Verb == "get" || a.Verb == "list" && a.Namespace == "b" // in every namespace, and in one
	}
	missing, err := c.Missing(t.Context(), wanted...)
	var got []string
	for _, p := range missing {
		got = append(got, p.Verb+" "+p.Namespace)
	}
	if diff := cmp.Diff([]string{"list a", "list c", "list d", "list e"}, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	if got := len(s.Requests()); got != 8 { // everything, both verbs in every namespace, and five times list
		t.Errorf("%d requests", got)
	}
	// The rules for a user with rights on one object do not include that object.
	s.May = func(a authorization.ResourceAttributes) bool { return a.Verb == "patch" && a.Name == "mine" }
	secrets := Permission{Resource: "secrets", Namespace: "a"}
	missing, err = c.Missing(t.Context(), slices.Concat(Only("mine", secrets.Each("patch", "create")), Only("yours", secrets.Each("patch")))...)
	if diff := cmp.Diff(secrets.Each("patch", "create"), missing); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	if missing, err = c.Missing(t.Context(), Only("mine", secrets.Each("patch"))...); len(missing) > 0 || err != nil {
		t.Errorf("missing is %v, %v", missing, err)
	}
	s.May = func(a authorization.ResourceAttributes) bool { return a.Verb == "get" }
	err = c.Require(t.Context(), wanted[:2])
	if report.CodeOf(err) != report.Forbidden || !strings.Contains(err.Error(), clustertest.User+" has no permission to do this; nothing was changed") ||
		strings.Join(report.Hints(err), "") != "missing in namespace a:\n- apiGroups: [\"\"]\n  resources: [\"secrets\"]\n  verbs: [\"list\"]" {
		t.Errorf("%v %q", err, report.Hints(err))
	}
}

// TestProbe checks the version and clock of a server.
func TestProbe(t *testing.T) {
	s, _ := connected(t, "{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: shop}}")
	ahead := func() time.Time { return time.Now().Add(time.Hour) }
	c, err := Connect(Options{Kubeconfig: s.Kubeconfig(t), Now: ahead, Retry: -1})
	if err != nil {
		t.Fatal(err)
	}
	p, err := c.Probe(t.Context())
	if err != nil || p.Version != "v1.36.3" || p.Latency <= 0 || p.Skew.Round(time.Minute) != -time.Hour || !p.ServerUntil.IsZero() || !p.UserUntil.IsZero() {
		t.Errorf("%+v, %v", p, err)
	}
	for name, answer := range map[string]string{"within the limit": "12345", "more than was asked for": "1234567890"} {
		var asked string
		once(s, func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/log") }, func(w http.ResponseWriter, r *http.Request) {
			asked = r.URL.Path + "?" + r.URL.RawQuery
			_, _ = fmt.Fprint(w, answer)
		})
		log, err := c.Logs(t.Context(), "shop", "web", "main", 5)
		if err != nil || string(log) != "12345" || asked != "/api/v1/namespaces/shop/pods/web/log?container=main&limitBytes=5&tailLines=2000" {
			t.Errorf("%s: %q of %s, %v", name, log, asked, err)
		}
	}
	var path string
	once(s, method(http.MethodPost), func(w http.ResponseWriter, r *http.Request) { path = r.URL.Path; _, _ = fmt.Fprint(w, "pong") })
	if answer, err := c.PostToService(t.Context(), "shop", "hook", 443, "/convert", []byte("{}")); err != nil || string(answer) != "pong" || path != "/api/v1/namespaces/shop/services/https:hook:443/proxy/convert" {
		t.Errorf("%s %q, %v", path, answer, err)
	}
	once(s, method(http.MethodGet), fails(apierrors.NewUnauthorized("who are you")))
	if _, err := c.Probe(t.Context()); err == nil {
		t.Error("a server that knows nobody was probed")
	}
}

// TestGetFromService checks that the answer of a Service is limited in size, and that its redirects are not followed.
func TestGetFromService(t *testing.T) {
	s, c := connected(t)
	service := Service{Namespace: "shop", Name: "web", Port: 80}
	if p := service.PermissionToGet(); p.Name != "http:web:80" || p.Resource+"/"+p.Subresource != "services/proxy" || p.Namespace != "shop" {
		t.Errorf("%+v", p)
	}
	redirected := false
	for name, test := range map[string]struct {
		answer func(w http.ResponseWriter, r *http.Request)
		want   string
		words  string
	}{
		"an answer":   {answer: func(w http.ResponseWriter, r *http.Request) { _, _ = fmt.Fprint(w, r.URL.Path) }, want: "/api/v1/namespaces/shop/services/http:web:80/proxy/a/b"},
		"too much":    {answer: func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, strings.Repeat("x", 101)) }, words: "more than 100 bytes"},
		"no endpoint": {answer: fails(apierrors.NewServiceUnavailable("no endpoints available")), words: `answers with status 503: "no endpoints available"`},
		"a refusal that is made up": {
			answer: fails(apierrors.NewForbidden(schema.GroupResource{}, "", errors.New(`User "jane" cannot get resource "secrets" in API group ""`))),
			words:  "answers with status 403", // and no rule that an administrator should write
		},
		"much text": {answer: func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusTeapot)
			_, _ = fmt.Fprint(w, strings.Repeat("x", 10000))
		}, words: "answers with status 418"},
		"a warning": {answer: func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Warning", `299 - "run this"`) }},
		"somewhere else": {answer: func(w http.ResponseWriter, r *http.Request) {
			redirected = true
			http.Redirect(w, r, "/api/v1/namespaces/shop/secrets", http.StatusFound)
		}, words: "answers with status 302"},
	} {
		once(s, method(http.MethodGet), test.answer)
		got, err := c.GetFromService(t.Context(), service, "/a/b", 100)
		if string(got) != test.want || (err != nil) != (test.words != "") {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
		if err != nil && (report.CodeOf(err) != report.Unavailable || !strings.Contains(err.Error(), test.words) || len(err.Error()) > 500 || len(report.Hints(err)) > 0) {
			t.Errorf("%s: got %s: %v, %q", name, report.CodeOf(err), err, report.Hints(err))
		}
	}
	for _, request := range s.Requests() {
		if strings.HasSuffix(request, "/secrets") || !redirected {
			t.Errorf("it went on to %s", request)
		}
	}
	if _, warned := c.warned.Load("run this"); warned {
		t.Error("what a Service remarks was taken for a remark of the API server")
	}
}

// TestRequestsAtOnce stalls as many requests as a connection lets through: others wait, but neither a lock nor a watch does.
func TestRequestsAtOnce(t *testing.T) {
	s, c := connected(t, config("a", "1"))
	lock, err := c.Lock(t.Context(), "env-shop", LockOptions{Identity: "test"})
	if err != nil {
		t.Fatal(err)
	}
	next, end := iter.Pull2(c.Watch(t.Context(), ConfigMapKind, "shop", metav1.ListOptions{}))
	defer end()
	if change, failure, _ := next(); failure != nil || change.Object.GetName() != "a" {
		t.Fatalf("%+v, %v", change, failure)
	}
	before := c.changed.Load()
	var running, most atomic.Int64
	arrived, answer := make(chan struct{}, 100), make(chan struct{})
	s.Answer = func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "/configmaps/") {
			now := running.Add(1)
			defer running.Add(-1)
			for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
			}
			arrived <- struct{}{}
			<-answer
		}
		return false
	}
	var group errgroup.Group
	for range 4 * InFlight {
		group.Go(func() error {
			_, failure := c.Get(t.Context(), ConfigMapKind, "shop", "a")
			return failure
		})
	}
	for range InFlight {
		<-arrived
	}
	if err = lock.Release(t.Context()); err != nil {
		t.Error(err)
	}
	s.Put(t, config("b", "1"))
	if change, failure, _ := next(); failure != nil || change.Object.GetName() != "b" {
		t.Errorf("%+v, %v", change, failure)
	}
	full, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err = c.Create(full, parsed(t, config("c", "1")), WriteOptions{}); !errors.Is(err, context.Canceled) || c.changed.Load() != before {
		t.Errorf("a write that had no turn: %v", err)
	}
	close(answer)
	if err = group.Wait(); err != nil {
		t.Error(err)
	}
	if most.Load() != InFlight {
		t.Errorf("%d requests at once", most.Load())
	}
}

// TestOwnDeadline checks that the deadline of the caller is not reported as a failure of the API server.
func TestOwnDeadline(t *testing.T) {
	s, c := connected(t)
	sink := &report.Recorder{}
	c.options.Sink = sink
	s.Answer = func(_ http.ResponseWriter, r *http.Request) bool {
		<-r.Context().Done()
		return true
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := c.Get(ctx, ConfigMapKind, "shop", "settings"); report.CodeOf(err) != report.Timeout {
		t.Error(err)
	}
	for _, event := range sink.Events() {
		if strings.Contains(event.Note, "does not answer") {
			t.Errorf("%+v", event)
		}
	}
}

// TestWork: who holds a lock, and that a holder who has been silent for long is none.
func TestWork(t *testing.T) {
	now := time.Now().UTC()
	lease := func(holder string, renewed time.Time) string {
		return fmt.Sprintf("{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: env-shop, namespace: %s}, spec: {holderIdentity: %q, leaseDurationSeconds: 15, renewTime: %q}}",
			SystemNamespace, holder, renewed.Format(metav1.RFC3339Micro))
	}
	s, c := connected(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+SystemNamespace+"}}")
	if w, err := c.Work(t.Context(), LockOf("shop")); err != nil || w != (Work{}) {
		t.Errorf("without a Lease: %+v, %v", w, err)
	}
	for _, test := range []struct{ lease, want string }{
		{lease("jane@here AB12", now), "jane@here"},
		{lease("jane@here AB12", now.Add(-2*time.Minute)), ""},
		{lease("", now), ""},
	} {
		s.Put(t, test.lease)
		if w, err := c.Work(t.Context(), LockOf("shop")); err != nil || w.Holder != test.want || w.Renewed.IsZero() {
			t.Errorf("%s: %+v, %v", test.lease, w, err)
		}
	}
}

// TestNoName: a name that leads to another path of the API server is not sent.
func TestNoName(t *testing.T) {
	s, c := connected(t, config("a", "1"))
	if _, err := c.Get(t.Context(), ConfigMapKind, "shop", "a"); err != nil { // it discovers kinds
		t.Fatal(err)
	}
	s.Requests()
	for _, name := range []string{"50%", ".", "..", "web/proxy/x"} {
		for _, place := range [][2]string{{"shop", name}, {name, "a"}} {
			if object, err := c.Get(t.Context(), ConfigMapKind, place[0], place[1]); object != nil || err != nil {
				t.Errorf("%q: %v, %v", place, object, err)
			}
			if object, err := c.GetMetadata(t.Context(), ConfigMapKind, place[0], place[1]); object != nil || err != nil {
				t.Errorf("metadata of %q: %v, %v", place, object, err)
			}
		}
		hostile := parsed(t, config("a", "1"))
		hostile.SetName(name)
		if _, err := c.Apply(t.Context(), hostile, WriteOptions{}); report.CodeOf(err) != report.Invalid {
			t.Errorf("apply %q: %v", name, err)
		}
	}
	if sent := s.Requests(); len(sent) > 0 {
		t.Errorf("sent: %q", sent)
	}
}
