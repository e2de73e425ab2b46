package engine_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/cluster/clustertest"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// fixture is an engine with an API server in memory and the release shop/demo.
type fixture struct {
	*engine.Engine
	*testing.T
	server  *clustertest.Server
	process string // user agent
	events  *report.Recorder
}

var demo = record.Key{Namespace: "shop", Name: "demo"}

func newFixture(t *testing.T, documents ...string) *fixture {
	t.Helper()
	w := &fixture{T: t, server: clustertest.Start(t, "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}"), events: &report.Recorder{}}
	for _, document := range documents {
		w.server.Put(t, document)
	}
	w.restart()
	return w
}

// restart replaces the engine by a new one without state, as in another process.
func (w *fixture) restart() {
	w.Helper()
	w.process += "x"
	c, err := cluster.Connect(cluster.Options{Kubeconfig: w.server.Kubeconfig(w.T), UserAgent: w.process, Now: time.Now, Retry: -1})
	if err != nil {
		w.Fatal(err)
	}
	w.Engine = &engine.Engine{Store: &record.Store{Cluster: c, Tool: "1.0.0"}, Now: time.Now, Sink: w.events}
}

// objects parses YAML documents; the default namespace is shop.
func (w *fixture) objects(documents ...string) []*unstructured.Unstructured {
	w.Helper()
	var objects []*unstructured.Unstructured
	for _, document := range documents {
		o := parse(w.T, document)
		if o.GetNamespace() == "" {
			o.SetNamespace("shop")
		}
		objects = append(objects, o)
	}
	return objects
}

func parse(t *testing.T, document string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(document))
	o := &unstructured.Unstructured{}
	if err == nil {
		err = o.UnmarshalJSON(data)
	}
	if err != nil {
		t.Fatalf("%v in %s", err, document)
	}
	return o
}

func (w *fixture) release(version string, documents ...string) engine.Release {
	w.Helper()
	r := engine.Release{Key: demo, Version: version, Operation: "add", Objects: w.objects(documents...)}
	if len(documents) == 0 {
		r.Version, r.Operation = "", "remove"
	}
	return r
}

// deploy plans and applies a release, and fails the test on errors.
func (w *fixture) deploy(r engine.Release, o engine.PlanOptions) *engine.Plan {
	w.Helper()
	plan, err := w.Plan(w.Context(), r, o)
	if err == nil {
		err = w.Apply(w.Context(), plan, engine.ApplyOptions{Timeout: time.Minute})
	}
	if err != nil {
		w.Fatalf("%v\n%q", err, report.Hints(err))
	}
	return plan
}

// writes returns the writing requests since the last call.
func (w *fixture) writes() []string {
	return slices.DeleteFunc(w.server.Requests(), func(request string) bool {
		return strings.HasPrefix(request, "GET ") || strings.HasSuffix(request, " (dry run)") || strings.Contains(request, "/self")
	})
}

// objectsOfAll returns all objects except namespaces and the Secrets of the engine.
func (w *fixture) objectsOfAll() []*unstructured.Unstructured {
	var all []*unstructured.Unstructured
	for _, kind := range []string{
		"ConfigMap", "Secret", "ServiceAccount", "Deployment", "StatefulSet", "DaemonSet", "Job", "Role", "RoleBinding", "CustomResourceDefinition",
		"PersistentVolumeClaim", "Pizza",
	} {
		for _, name := range w.server.Names(kind) {
			namespace, short, found := strings.Cut(name, "/")
			if !found {
				namespace, short = "", name
			}
			if namespace != cluster.SystemNamespace {
				all = append(all, w.server.Object(kind, namespace, short))
			}
		}
	}
	return all
}

// everything returns the objects with their data.
func (w *fixture) everything() []string {
	var all []string
	for _, object := range w.objectsOfAll() {
		line := object.GetKind() + " " + object.GetName()
		if data, ok := object.Object["data"]; ok {
			line += " " + strings.TrimPrefix(fmt.Sprint(data), "map")
		}
		all = append(all, line)
	}
	return all
}

// record returns the record of the release, with a line for each revision.
func (w *fixture) record() []string {
	w.Helper()
	s, err := w.State(w.Context(), demo)
	if err != nil {
		w.Fatal(err)
	}
	var lines []string
	line := func(kind string, r schema.DeploymentRevision) {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %d %s %s %s", kind, r.Number, r.Operation, r.Outcome, r.Version)))
	}
	if s.Current != nil {
		line("current", *s.Current)
	}
	if s.Pending != nil {
		line("pending", *s.Pending)
	}
	for _, old := range s.History {
		line("history", old)
	}
	return lines
}

func (w *fixture) same(what string, got, want []string) {
	w.Helper()
	if diff := cmp.Diff(strings.Join(got, "\n"), strings.Join(want, "\n")); diff != "" {
		w.Errorf("%s (-got +want):\n%s", what, diff)
	}
}

// failed checks the code of an error, and its text with hints.
func (w *fixture) failed(err error, code report.Code, parts ...string) {
	w.Helper()
	if report.CodeOf(err) != code {
		w.Fatalf("got code %q, want %q: %v", report.CodeOf(err), code, err)
	}
	text := err.Error() + "\n" + strings.Join(report.Hints(err), "\n")
	for _, part := range parts {
		if !strings.Contains(text, part) {
			w.Errorf("%q is missing: %s", part, text)
		}
	}
}

// actions returns the changes of a plan, except those without an effect.
func actions(p *engine.Plan) []string {
	var lines []string
	for _, c := range p.Changes {
		if c.Action != schema.ActionNone {
			lines = append(lines, string(c.Action)+" "+c.Object.Kind+" "+c.Object.Name)
		}
	}
	return lines
}

// edit changes an object as kubectl edit does.
func (w *fixture) edit(kind, name string, value any, path ...string) {
	w.Helper()
	object := w.server.Object(kind, "shop", name)
	if err := unstructured.SetNestedField(object.Object, value, path...); err != nil {
		w.Fatal(err)
	}
	data, err := object.MarshalJSON()
	if err != nil {
		w.Fatal(err)
	}
	w.server.Put(w.T, string(data))
}

// applyAs applies an object as another manager.
func (w *fixture) applyAs(manager, path, document string) {
	w.Helper()
	request := httptest.NewRequest(http.MethodPatch, path+"?force=true&fieldManager="+manager, strings.NewReader(document))
	request.Header.Set("Content-Type", "application/apply-patch+yaml")
	answer := httptest.NewRecorder()
	if w.server.ServeHTTP(answer, request); answer.Code != http.StatusOK {
		w.Fatalf("%d: %s", answer.Code, answer.Body)
	}
}

// remove deletes an object as kubectl does.
func (w *fixture) remove(kind kube.GroupVersionKind, name string) {
	w.Helper()
	live, err := w.Cluster.Get(w.Context(), kind, "shop", name)
	if err == nil {
		err = w.Cluster.Delete(w.Context(), live, cluster.DeleteOptions{})
	}
	if err != nil {
		w.Fatal(err)
	}
}

// refuse makes requests fail with an error.
func (w *fixture) refuse(err *apierrors.StatusError, method, path string) {
	w.server.Answer = func(rw http.ResponseWriter, r *http.Request) bool {
		if r.Method != method || !strings.HasSuffix(r.URL.Path, path) {
			return false
		}
		clustertest.Fail(rw, err)
		return true
	}
}
