package health_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/solutionctl/solutionctl/deployer/health"
	document "github.com/solutionctl/solutionctl/schema"
)

var update = flag.Bool("update", false, "write the expected output")

// objects is a cluster with the objects of a file of testdata. Only the transport is a fake: the tests in
// deployer/e2e/health read from an API server.
type objects struct {
	list      []*unstructured.Unstructured
	forbidden string // kind that the user is not allowed to read
}

var errForbidden = errors.New("forbidden")

func (o objects) Get(_ context.Context, kind schema.GroupVersionKind, namespace, name string) (*unstructured.Unstructured, error) {
	for _, object := range o.list {
		if object.GroupVersionKind() == kind && object.GetNamespace() == namespace && object.GetName() == name {
			return object, nil
		}
	}
	return nil, nil
}

func (o objects) List(_ context.Context, kind schema.GroupVersionKind, namespace string, options metav1.ListOptions) iter.Seq2[*unstructured.Unstructured, error] {
	return func(yield func(*unstructured.Unstructured, error) bool) {
		byLabel, labelErr := labels.Parse(options.LabelSelector)
		byField, fieldErr := fields.ParseSelector(options.FieldSelector)
		err := errors.Join(labelErr, fieldErr)
		if kind.Kind == o.forbidden {
			err = errForbidden
		}
		if err != nil {
			yield(nil, err)
			return
		}
		for _, object := range o.list {
			selectable := fields.Set{}
			for _, field := range []string{"involvedObject.uid", "type"} {
				selectable[field], _, _ = unstructured.NestedString(object.Object, strings.Split(field, ".")...)
			}
			if object.GroupVersionKind() != kind || namespace != "" && object.GetNamespace() != namespace ||
				!byLabel.Matches(labels.Set(object.GetLabels())) || !byField.Matches(selectable) {
				continue
			}
			if !yield(object, nil) {
				return
			}
		}
	}
}

// ListWithConditions reads whole objects, in one namespace or in all.
func (o objects) ListWithConditions(ctx context.Context, kind schema.GroupVersionKind, namespace string, options metav1.ListOptions) iter.Seq2[*unstructured.Unstructured, error] {
	return o.List(ctx, kind, namespace, options)
}

func parse(t *testing.T, data []byte) []*unstructured.Unstructured {
	t.Helper()
	var parsed []*unstructured.Unstructured
	for document := range bytes.SplitSeq(data, []byte("---\n")) {
		object := &unstructured.Unstructured{}
		asJSON, err := yaml.YAMLToJSON(document)
		if err != nil {
			t.Fatal(err)
		}
		if err := object.UnmarshalJSON(asJSON); err != nil {
			t.Fatalf("%v:\n%s", err, document)
		}
		parsed = append(parsed, object)
	}
	return parsed
}

// others are so many namespaces that the whole cluster is listed.
func others() []string {
	var names []string
	for i := range 30 {
		names = append(names, fmt.Sprint("other-", i))
	}
	return names
}

// TestObjects judges and explains the first object of each object.yaml in testdata; cluster.yaml has the other objects. Reasons are the same when they
// are found for many objects at once.
// "forbidden: KIND" in the comment at the top removes the permission to read a kind.
func TestObjects(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var cluster objects
			if _, kind, ok := strings.Cut(string(archive.Comment), "forbidden: "); ok {
				cluster.forbidden, _, _ = strings.Cut(kind, "\n")
			}
			var judged []*unstructured.Unstructured
			var want *txtar.File
			for i, f := range archive.Files {
				switch f.Name {
				case "object.yaml":
					judged = parse(t, f.Data)
				case "cluster.yaml":
					cluster.list = parse(t, f.Data)
				case "want":
					want = &archive.Files[i]
				}
			}
			var got strings.Builder
			for _, object := range judged {
				status := health.Of(object)
				word := "waits"
				switch {
				case status.Ready && status.Failed:
					t.Error("both ready and failed")
				case status.Ready:
					word = "ready"
				case status.Failed:
					word = "failed"
				}
				fmt.Fprintf(&got, "%s %s: %s %s\n", object.GetKind(), object.GetName(), word, strings.TrimSpace(status.Reason+" "+status.Message))
				reasons := health.Reasons(t.Context(), cluster, object)
				for _, gathered := range []*health.Gathered{
					health.Gather(t.Context(), cluster, []string{object.GetNamespace()}),
					health.Gather(t.Context(), cluster, append(others(), object.GetNamespace())),
				} {
					if diff := cmp.Diff(reasons, gathered.Reasons(t.Context(), object)); diff != "" {
						t.Errorf("%s: of what was gathered (-want +got):\n%s", object.GetName(), diff)
					}
				}
				for _, reason := range reasons {
					fmt.Fprintf(&got, "  %s\n", reason)
					if log := reason.Log; log.Container != "" {
						fmt.Fprintf(&got, "    log: %s/%s, previous %t\n", log.Pod, log.Container, log.Previous)
					}
				}
			}
			if *update {
				want.Data = []byte(got.String())
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(want.Data), got.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestJobEnded(t *testing.T) {
	for conditions, want := range map[string]string{
		"[{type: Complete, status: 'True'}]": "Complete", "[{type: Failed, status: 'True'}]": "Failed", "[]": "", "{}": "",
		"[{type: Complete, status: 'False'}, nonsense]": "", "[{type: SuccessCriteriaMet, status: 'True'}]": "",
	} {
		job := parse(t, []byte("{apiVersion: batch/v1, kind: Job, metadata: {name: a}, status: {conditions: "+conditions+"}}"))[0]
		if got := health.JobEnded(job); got != want {
			t.Errorf("with conditions %s it has ended as %q, want %q", conditions, got, want)
		}
	}
}

// TestBounds checks that neither many pods nor a talkative container fill the screen.
func TestBounds(t *testing.T) {
	deployment := parse(t, []byte(`
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: web, namespace: demo, uid: set}
spec: {replicas: 300, selector: {matchLabels: {app: web}}}
`))[0]
	var cluster objects
	for i := range 300 {
		cluster.list = append(cluster.list, parse(t, fmt.Appendf(nil, `
apiVersion: v1
kind: Pod
metadata:
  name: web-%03d
  namespace: demo
  labels: {app: web}
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: set, controller: true}]
spec: {nodeName: node, containers: [{name: app}]}
status:
  phase: Running
  containerStatuses:
  - {name: app, state: {terminated: {exitCode: %d, message: %q}}}
`, i, i%37+1, strings.Repeat("very long ", 1000)))...)
	}
	reasons := health.Explain(t.Context(), cluster, deployment)
	if len(reasons) != 10 || !strings.HasPrefix(reasons[9], "and ") {
		t.Errorf("%d reasons, the last is %q", len(reasons), reasons[len(reasons)-1])
	}
	for _, reason := range reasons {
		if len(reason) > 620 {
			t.Errorf("%d bytes: %s", len(reason), reason)
		}
	}
}

// limited lists the whole cluster as a user cannot, or as one in which others have many objects.
type limited struct {
	objects
	whole iter.Seq2[*unstructured.Unstructured, error] // replaces a list of the whole cluster
}

func (l limited) ListWithConditions(ctx context.Context, kind schema.GroupVersionKind, namespace string, o metav1.ListOptions) iter.Seq2[*unstructured.Unstructured, error] {
	if namespace == "" {
		return l.whole
	}
	return l.objects.ListWithConditions(ctx, kind, namespace, o)
}

// unschedulable is an object that is not ready, with its cluster and the reasons.
func unschedulable(t *testing.T) (ill *unstructured.Unstructured, cluster objects, want []document.Reason) {
	t.Helper()
	archive, err := txtar.ParseFile("testdata/unschedulable.txtar")
	if err != nil {
		t.Fatal(err)
	}
	ill, cluster = parse(t, archive.Files[0].Data)[0], objects{list: parse(t, archive.Files[1].Data)}
	if want = health.Reasons(t.Context(), cluster, ill); len(want) == 0 {
		t.Fatal("no reasons")
	}
	return ill, cluster, want
}

// TestGatherByNamespace finds the same reasons where the whole cluster cannot be listed, or has too many objects of others.
func TestGatherByNamespace(t *testing.T) {
	ill, cluster, want := unschedulable(t)
	for name, whole := range map[string]iter.Seq2[*unstructured.Unstructured, error]{
		"forbidden": func(yield func(*unstructured.Unstructured, error) bool) { yield(nil, errForbidden) },
		"endless": func(yield func(*unstructured.Unstructured, error) bool) {
			for yield(&unstructured.Unstructured{Object: map[string]any{}}, nil) {
			}
		},
	} {
		gathered := health.Gather(t.Context(), limited{cluster, whole}, append(others(), ill.GetNamespace()))
		if diff := cmp.Diff(want, gathered.Reasons(t.Context(), ill)); diff != "" {
			t.Errorf("%s: (-want +got):\n%s", name, diff)
		}
	}
}

// crowded has no end of objects in each namespace.
type crowded struct{ objects }

func (c crowded) ListWithConditions(_ context.Context, kind schema.GroupVersionKind, namespace string, _ metav1.ListOptions) iter.Seq2[*unstructured.Unstructured, error] {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetGroupVersionKind(kind)
	object.SetNamespace(namespace)
	return func(yield func(*unstructured.Unstructured, error) bool) {
		for yield(object, nil) {
		}
	}
}

// TestGatherCrowded finds the same reasons in a namespace with more objects than are read at once.
func TestGatherCrowded(t *testing.T) {
	ill, cluster, want := unschedulable(t)
	gathered := health.Gather(t.Context(), crowded{cluster}, []string{ill.GetNamespace()})
	if diff := cmp.Diff(want, gathered.Reasons(t.Context(), ill)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
