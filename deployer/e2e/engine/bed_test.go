// Package engine_test applies releases to a real API server.
package engine_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

func TestMain(m *testing.M) { testcluster.Main(m, testcluster.Options{}) }

// bed is an engine and a namespace of its own in the cluster that all tests share.
type bed struct {
	*engine.Engine
	*testing.T
	Namespace string
	Key       engine.Key
	Sink      *report.Recorder

	in *testcluster.Cluster
}

var beds atomic.Int64

func newBed(t *testing.T) *bed {
	t.Helper()
	return newBedOn(t, testcluster.Borrow(t))
}

// newBedOn makes the bed in another cluster.
func newBedOn(t *testing.T, in *testcluster.Cluster) *bed {
	t.Helper()
	name := fmt.Sprintf("bed-%d", beds.Add(1))
	b := &bed{T: t, Namespace: name, Key: engine.Key{Namespace: name, Name: "demo"}, Sink: &report.Recorder{}, in: in}
	b.Engine = b.connect(in.Kubeconfig)
	b.make("apiVersion: v1\nkind: Namespace\nmetadata: {name: " + name + "}")
	return b
}

// connect returns an engine for a kubeconfig.
func (b *bed) connect(kubeconfig string) *engine.Engine {
	b.Helper()
	c, err := cluster.Connect(cluster.Options{Kubeconfig: kubeconfig, Now: time.Now, Sink: b.Sink})
	if err != nil {
		b.Fatal(err)
	}
	return &engine.Engine{Cluster: c, Sink: b.Sink, Now: time.Now, Tool: "1.0.0"}
}

// objects reads YAML documents. $ns stands for the namespace of the bed.
func (b *bed) objects(text string) []*unstructured.Unstructured {
	b.Helper()
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(strings.ReplaceAll(text, "$ns", b.Namespace))), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			b.Fatal(err)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

// make creates objects as somebody else.
func (b *bed) make(text string) {
	b.Helper()
	for _, object := range b.objects(text) {
		mapping, err := b.Cluster.Mapping(b.Context(), object.GroupVersionKind())
		if err != nil {
			b.Fatal(err)
		}
		if _, err := b.other().Resource(mapping.Resource).Namespace(object.GetNamespace()).
			Create(b.Context(), object, metav1.CreateOptions{FieldManager: "kubectl-create"}); err != nil {
			b.Fatal(err)
		}
	}
}

func (b *bed) release(version, text string) engine.Release {
	b.Helper()
	return engine.Release{Key: b.Key, Version: version, Operation: "add", Objects: b.objects(text)}
}

// plan plans what must be possible.
func (b *bed) plan(r engine.Release) *engine.Plan {
	b.Helper()
	p, err := b.Plan(b.Context(), r, engine.PlanOptions{})
	if err != nil {
		b.Fatalf("plan: %v\n%q", err, report.Hints(err))
	}
	return p
}

// deploy plans and applies what must be possible.
func (b *bed) deploy(r engine.Release) *engine.Plan {
	b.Helper()
	p := b.plan(r)
	b.apply(p)
	return p
}

func (b *bed) apply(p *engine.Plan) {
	b.Helper()
	if err := b.Apply(b.Context(), p, engine.ApplyOptions{Timeout: testcluster.Deadline(time.Minute)}); err != nil {
		b.Fatalf("apply: %v\n%q", err, report.Hints(err))
	}
}

// refused plans what must not be possible and checks the error.
func (b *bed) refused(r engine.Release, o engine.PlanOptions, code report.Code, parts ...string) {
	b.Helper()
	_, err := b.Plan(b.Context(), r, o)
	b.failed(err, code, parts...)
}

func (b *bed) failed(err error, code report.Code, parts ...string) {
	b.Helper()
	if report.CodeOf(err) != code {
		b.Fatalf("got code %q, want %q: %v", report.CodeOf(err), code, err)
	}
	text := err.Error() + "\n" + strings.Join(report.Hints(err), "\n")
	for _, part := range parts {
		if part = strings.ReplaceAll(part, "$ns", b.Namespace); !strings.Contains(text, part) {
			b.Errorf("the error does not say %q: %s", part, text)
		}
	}
}

// actions writes the changes of a plan, without those that change nothing.
func (b *bed) actions(p *engine.Plan) string {
	var lines []string
	for _, c := range p.Changes {
		if c.Action != schema.ActionNone {
			lines = append(lines, string(c.Action)+" "+strings.ReplaceAll(c.Object.String(), b.Namespace, "$ns"))
		}
	}
	return strings.Join(lines, "\n")
}

func (b *bed) wantActions(p *engine.Plan, want ...string) {
	b.Helper()
	if got := b.actions(p); got != strings.Join(want, "\n") {
		b.Errorf("got:\n%s\nwant:\n%s", got, strings.Join(want, "\n"))
	}
}

func (b *bed) get(kind, name string) *unstructured.Unstructured {
	b.Helper()
	version, kind, found := cutLast(kind, "/")
	if !found {
		version = "v1"
	}
	object, err := b.Cluster.Get(b.Context(), kube.FromAPIVersionAndKind(version, kind), b.Namespace, name)
	if err != nil {
		b.Fatal(err)
	}
	return object
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return "", s, false
}

// data is that of ConfigMap a.
func (b *bed) data() map[string]string {
	b.Helper()
	object := b.get("ConfigMap", "a")
	if object == nil {
		return nil
	}
	data, _, err := unstructured.NestedStringMap(object.Object, "data")
	if err != nil {
		b.Fatal(err)
	}
	return data
}

func (b *bed) state() *engine.State {
	b.Helper()
	state, err := b.State(b.Context(), b.Key)
	if err != nil {
		b.Fatal(err)
	}
	return state
}

// restart returns an engine that knows nothing, as another process would.
func (b *bed) restart() {
	b.Helper()
	b.Engine = b.connect(b.in.Kubeconfig)
}

// other writes as another manager of fields, as kubectl or a controller does.
func (b *bed) other() dynamic.Interface {
	b.Helper()
	config, err := b.in.Config()
	if err != nil {
		b.Fatal(err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		b.Fatal(err)
	}
	return client
}

// patch changes an object as another manager, with a merge patch.
func (b *bed) patch(manager, resource, name, patch string, subresources ...string) {
	b.Helper()
	version, resource, found := cutLast(resource, "/")
	if !found {
		version = "v1"
	}
	group, err := kube.ParseGroupVersion(version)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := b.other().Resource(group.WithResource(resource)).Namespace(b.Namespace).
		Patch(b.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: manager}, subresources...); err != nil {
		b.Fatal(err)
	}
}

// secrets returns those that the engine keeps for an owner.
func (b *bed) secrets(stores, owner string) []*unstructured.Unstructured {
	b.Helper()
	var found []*unstructured.Unstructured
	selector := metav1.ListOptions{LabelSelector: "solutionctl.io/stores=" + stores + ",solutionctl.io/owner=" + owner}
	for secret, err := range b.Cluster.List(b.Context(), kube.GroupVersionKind{Version: "v1", Kind: "Secret"}, cluster.SystemNamespace, selector) {
		if err != nil {
			b.Fatal(err)
		}
		found = append(found, secret)
	}
	return found
}

// await waits until the engine has told of a step.
func (b *bed) await(step, name string, state report.State) {
	b.Helper()
	for tick := time.Tick(10 * time.Millisecond); ; {
		for _, event := range b.Sink.Events() {
			if event.Step == step && event.Name == name && event.State == state {
				return
			}
		}
		select {
		case <-tick:
		case <-b.Context().Done():
			b.Fatalf("%s of %s was never %s: %+v", step, name, state, b.Sink.Events())
		}
	}
}
