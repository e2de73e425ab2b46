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
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

func TestMain(m *testing.M) { testcluster.Main(m, testcluster.Options{Lent: 1}) }

// fixture is an engine with a namespace in the cluster that all tests share.
type fixture struct {
	*engine.Engine
	*testing.T
	Namespace string
	Key       record.Key
	Sink      *report.Recorder

	in *testcluster.Cluster
}

var beds atomic.Int64

func newFixture(t *testing.T) *fixture {
	t.Helper()
	return newFixtureOn(t, testcluster.Borrow(t))
}

// newFixtureOn returns a fixture in another cluster.
func newFixtureOn(t *testing.T, in *testcluster.Cluster) *fixture {
	t.Helper()
	name := fmt.Sprintf("fixture-%d", beds.Add(1))
	b := &fixture{T: t, Namespace: name, Key: record.Key{Namespace: name, Name: "demo"}, Sink: &report.Recorder{}, in: in}
	b.Engine = b.connect(in.Kubeconfig)
	b.make("apiVersion: v1\nkind: Namespace\nmetadata: {name: " + name + "}")
	return b
}

// connect returns an engine for a kubeconfig.
func (b *fixture) connect(kubeconfig string) *engine.Engine {
	b.Helper()
	c, err := cluster.Connect(cluster.Options{Kubeconfig: kubeconfig, Now: time.Now, Sink: b.Sink})
	if err != nil {
		b.Fatal(err)
	}
	return &engine.Engine{Store: &record.Store{Cluster: c, Tool: "1.0.0"}, Sink: b.Sink, Now: time.Now}
}

// objects parses YAML documents; $ns is the namespace of the fixture.
func (b *fixture) objects(text string) []*unstructured.Unstructured {
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

// make creates objects as another user.
func (b *fixture) make(text string) {
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

func (b *fixture) release(version, text string) engine.Release {
	b.Helper()
	return engine.Release{Key: b.Key, Version: version, Operation: "add", Objects: b.objects(text)}
}

// plan plans a release, and fails the test on errors.
func (b *fixture) plan(r engine.Release) *engine.Plan {
	b.Helper()
	p, err := b.Plan(b.Context(), r, engine.PlanOptions{})
	if err != nil {
		b.Fatalf("plan: %v\n%q", err, report.Hints(err))
	}
	return p
}

// deploy plans and applies a release, and fails the test on errors.
func (b *fixture) deploy(r engine.Release) *engine.Plan {
	b.Helper()
	p := b.plan(r)
	b.apply(p)
	return p
}

func (b *fixture) apply(p *engine.Plan) {
	b.Helper()
	if err := b.Apply(b.Context(), p, engine.ApplyOptions{Timeout: testcluster.Deadline(time.Minute)}); err != nil {
		b.Fatalf("apply: %v\n%q", err, report.Hints(err))
	}
}

// refused plans a release and checks the error.
func (b *fixture) refused(r engine.Release, o engine.PlanOptions, code report.Code, parts ...string) {
	b.Helper()
	_, err := b.Plan(b.Context(), r, o)
	b.failed(err, code, parts...)
}

func (b *fixture) failed(err error, code report.Code, parts ...string) {
	b.Helper()
	if report.CodeOf(err) != code {
		b.Fatalf("got code %q, want %q: %v", report.CodeOf(err), code, err)
	}
	text := err.Error() + "\n" + strings.Join(report.Hints(err), "\n")
	for _, part := range parts {
		if part = strings.ReplaceAll(part, "$ns", b.Namespace); !strings.Contains(text, part) {
			b.Errorf("%q is missing in the error: %s", part, text)
		}
	}
}

// actions returns the changes of a plan, except those without an effect.
func (b *fixture) actions(p *engine.Plan) string {
	var lines []string
	for _, c := range p.Changes {
		if c.Action != schema.ActionNone {
			lines = append(lines, string(c.Action)+" "+strings.ReplaceAll(c.Object.String(), b.Namespace, "$ns"))
		}
	}
	return strings.Join(lines, "\n")
}

func (b *fixture) wantActions(p *engine.Plan, want ...string) {
	b.Helper()
	if got := b.actions(p); got != strings.Join(want, "\n") {
		b.Errorf("got:\n%s\nwant:\n%s", got, strings.Join(want, "\n"))
	}
}

func (b *fixture) get(kind, name string) *unstructured.Unstructured {
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

// data returns that of ConfigMap a.
func (b *fixture) data() map[string]string {
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

func (b *fixture) state() *record.State {
	b.Helper()
	state, err := b.State(b.Context(), b.Key)
	if err != nil {
		b.Fatal(err)
	}
	return state
}

// restart replaces the engine by a new one without state, as in another process.
func (b *fixture) restart() {
	b.Helper()
	b.Engine = b.connect(b.in.Kubeconfig)
}

// other returns a client with another field manager, such as kubectl or a controller.
func (b *fixture) other() dynamic.Interface {
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
func (b *fixture) patch(manager, resource, name, patch string, subresources ...string) {
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

// secrets returns those of the engine for an owner.
func (b *fixture) secrets(stores, owner string) []*unstructured.Unstructured {
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

// await waits for an event.
func (b *fixture) await(step, name string, state report.State) {
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
