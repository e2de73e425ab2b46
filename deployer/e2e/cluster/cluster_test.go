// Package cluster_test holds the tests of package cluster against a real API server.
package cluster_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
	"github.com/solutionctl/solutionctl/schema/report"
)

func TestMain(m *testing.M) { testcluster.Main(m, testcluster.Options{Lent: 1}) }

var (
	configMapKind = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	namespaceKind = schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}
	widgetKind    = schema.GroupVersionKind{Group: "test.example.com", Version: "v1", Kind: "Widget"}
)

// connect returns a connection as the administrator, or as the options say.
func connect(t *testing.T, o cluster.Options) *cluster.Cluster {
	t.Helper()
	if o.Kubeconfig == "" {
		o.Kubeconfig = testcluster.Borrow(t).Kubeconfig
	}
	o.Now = time.Now
	c, err := cluster.Connect(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// object parses a manifest.
func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

// namespace makes a namespace with the name of the test.
func namespace(t *testing.T, c *cluster.Cluster) string {
	t.Helper()
	name := strings.ToLower(strings.NewReplacer("/", "-", "_", "-", " ", "-").Replace(t.Name()))
	create(t, c, "{apiVersion: v1, kind: Namespace, metadata: {name: "+name+"}}")
	return name
}

func create(t *testing.T, c *cluster.Cluster, text string) *unstructured.Unstructured {
	t.Helper()
	created, err := c.Create(t.Context(), object(t, text), cluster.WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return created
}

func configMap(namespace, name, value string) string {
	return "{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + ", namespace: " + namespace + "}, data: {key: " + value + "}}"
}

// check compares the code of an error and looks for words in its message and hints.
func check(t *testing.T, err error, code report.Code, words ...string) {
	t.Helper()
	if got := report.CodeOf(err); got != code {
		t.Fatalf("code %q, want %q: %v", got, code, err)
	}
	text := err.Error() + "\n" + strings.Join(report.Hints(err), "\n")
	for _, word := range words {
		if !strings.Contains(text, word) {
			t.Errorf("%q is not in:\n%s", word, text)
		}
	}
	t.Log(text)
}

func TestReadAndWrite(t *testing.T) {
	t.Parallel()
	c := connect(t, cluster.Options{})
	ctx, ns := t.Context(), namespace(t, c)

	created := create(t, c, configMap(ns, "web", "one"))
	if _, err := c.Create(ctx, object(t, configMap(ns, "web", "two")), cluster.WriteOptions{}); !errors.Is(err, cluster.ErrExists) {
		t.Errorf("create again: %v, want ErrExists", err)
	}

	changed := created.DeepCopy()
	changed.Object["data"] = map[string]any{"key": "two"}
	updated, err := c.Update(ctx, changed, cluster.WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = c.Update(ctx, changed, cluster.WriteOptions{}); !errors.Is(err, cluster.ErrChanged) {
		t.Errorf("update from an old state: %v, want ErrChanged", err)
	}
	if err = c.Delete(ctx, created, cluster.DeleteOptions{}); !errors.Is(err, cluster.ErrChanged) {
		t.Errorf("delete in an old state: %v, want ErrChanged", err)
	}
	other := updated.DeepCopy()
	other.SetUID("01234567-89ab-cdef-0123-456789abcdef")
	other.SetResourceVersion("")
	if err = c.Delete(ctx, other, cluster.DeleteOptions{}); !errors.Is(err, cluster.ErrChanged) {
		t.Errorf("delete another object of the same name: %v, want ErrChanged", err)
	}
	if _, err = c.Apply(ctx, other, cluster.WriteOptions{}); !errors.Is(err, cluster.ErrChanged) {
		t.Errorf("apply to another object of the same name: %v, want ErrChanged", err)
	}

	if _, err = c.Patch(ctx, updated, types.MergePatchType, []byte(`{"data":{"more":"three"}}`), cluster.WriteOptions{DryRun: true}); err != nil {
		t.Error(err)
	}
	got, err := c.Get(ctx, configMapKind, ns, "web")
	if err != nil {
		t.Fatal(err)
	}
	if data := got.Object["data"].(map[string]any); data["key"] != "two" || data["more"] != nil {
		t.Errorf("data %v after an update and a dry run", data)
	}

	if err := c.Delete(ctx, got, cluster.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	if err := c.Delete(ctx, got, cluster.DeleteOptions{}); err != nil {
		t.Errorf("delete what is gone: %v", err)
	}
	if left, err := c.Get(ctx, configMapKind, ns, "web"); left != nil || err != nil {
		t.Errorf("Get of what is gone: %v, %v", left, err)
	}
	gone := got.DeepCopy()
	gone.SetManagedFields(nil)
	if _, err := c.Apply(ctx, gone, cluster.WriteOptions{}); !errors.Is(err, cluster.ErrChanged) {
		t.Errorf("apply to what is gone: %v, want ErrChanged", err)
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	c := connect(t, cluster.Options{})
	ctx, ns := t.Context(), namespace(t, c)
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		create(t, c, configMap(ns, name, "x"))
	}
	for _, test := range []struct {
		name string
		list func() ([]string, error)
		want string
	}{
		{"pages of two", func() ([]string, error) {
			var names []string
			for o, err := range c.List(ctx, configMapKind, ns, metav1.ListOptions{Limit: 2}) {
				if err != nil {
					return nil, err
				}
				names = append(names, o.GetName()+"="+o.Object["data"].(map[string]any)["key"].(string))
				if o.GroupVersionKind() != configMapKind {
					t.Errorf("kind %s", o.GroupVersionKind())
				}
				if len(names) == 3 {
					break // listening no longer must do no harm
				}
			}
			return names, nil
		}, "a=x b=x c=x"},
		{"metadata", func() ([]string, error) {
			var names []string
			for o, err := range c.ListMetadata(ctx, configMapKind, ns, metav1.ListOptions{FieldSelector: "metadata.name!=kube-root-ca.crt"}) {
				if err != nil {
					return nil, err
				}
				names = append(names, o.GetName())
				if o.Object["data"] != nil || o.GroupVersionKind() != configMapKind || o.GetUID() == "" {
					t.Errorf("not only the metadata: %v", o)
				}
			}
			return names, nil
		}, "a b c d e"},
		{"kind that is not there", func() ([]string, error) {
			var names []string
			for o, err := range c.List(ctx, widgetKind, "", metav1.ListOptions{}) {
				if err != nil {
					return nil, err
				}
				names = append(names, o.GetName())
			}
			return names, nil
		}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			names, err := test.list()
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(names, " "); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

// TestNewKind checks that a kind is found as soon as the server has it, without a word to the client.
func TestNewKind(t *testing.T) {
	t.Parallel()
	c := connect(t, cluster.Options{})
	ctx := t.Context()
	if _, err := c.Mapping(ctx, widgetKind); !errors.Is(err, cluster.ErrNoKind) {
		t.Fatalf("%v, want ErrNoKind", err)
	}
	if o, err := c.Get(ctx, widgetKind, "default", "w"); o != nil || err != nil {
		t.Errorf("an object of no kind: %v, %v", o, err)
	}
	widget := "{apiVersion: test.example.com/v1, kind: Widget, metadata: {name: w, namespace: default}}"
	if _, err := c.Create(ctx, object(t, widget), cluster.WriteOptions{}); !errors.Is(err, cluster.ErrNoKind) {
		t.Errorf("create: %v, want ErrNoKind", err)
	}
	definition := create(t, c, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.test.example.com}
spec:
  group: test.example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`)
	for {
		_, err := c.Mapping(ctx, widgetKind)
		if err == nil {
			break
		}
		if !errors.Is(err, cluster.ErrNoKind) {
			t.Fatal(err)
		}
	}
	create(t, c, widget)
	kinds, err := c.Kinds(ctx)
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, kind := range kinds {
		if kind.GroupVersionKind == widgetKind {
			seen++
		}
	}
	if seen != 1 {
		t.Errorf("Kinds has the new kind %d times", seen)
	}
	// A client that knows the kind has to learn that it is gone.
	if err = c.Delete(ctx, definition, cluster.DeleteOptions{}); err == nil {
		t.Fatal("deleted a definition in an old state")
	}
	definition, err = c.Get(ctx, definition.GroupVersionKind(), "", definition.GetName())
	if err != nil {
		t.Fatal(err)
	}
	definition.SetResourceVersion("")
	if err := c.Delete(ctx, definition, cluster.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for {
		_, err := c.Create(ctx, object(t, strings.ReplaceAll(widget, "name: w", "name: another")), cluster.WriteOptions{DryRun: true})
		if errors.Is(err, cluster.ErrNoKind) {
			break
		}
		if err != nil && !apierrors.IsMethodNotSupported(err) && !apierrors.IsConflict(err) && !apierrors.IsForbidden(err) {
			t.Fatal(err)
		}
	}
}
