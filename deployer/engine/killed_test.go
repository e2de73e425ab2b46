package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/cluster/clustertest"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// writing reports whether a request writes, and restores its body.
func writing(r *http.Request) bool {
	if r.Method == http.MethodGet || r.URL.Query().Get("dryRun") != "" || strings.Contains(r.URL.Path, "/self") {
		return false
	}
	body, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	return err == nil && (r.Method != http.MethodDelete || !strings.Contains(string(body), "dryRun"))
}

type servedKey struct{}

// killed runs a release that is killed at its n-th write, before or after the server executes it, and reports whether the run had so
// many writes. Afterwards the engine has no state.
func (w *fixture) killed(n int64, served bool, r engine.Release, o engine.PlanOptions) bool {
	w.Helper()
	return w.allKilled(n, served, []engine.Release{r}, o)
}

// allKilled is killed for several releases in one run.
func (w *fixture) allKilled(n int64, served bool, releases []engine.Release, o engine.PlanOptions) bool {
	w.Helper()
	ctx, kill := context.WithCancel(w.Context())
	defer kill()
	plans, err := w.PlanAll(ctx, releases, o)
	if err != nil {
		w.Fatal(err)
	}
	var count atomic.Int64
	rule, process := w.server.Answer, w.process
	w.server.Answer = func(rw http.ResponseWriter, r *http.Request) bool {
		if r.Context().Value(servedKey{}) != nil {
			return false
		}
		if rule != nil && rule(rw, r) {
			return true
		}
		// Requests of the killed process may arrive long after.
		if r.UserAgent() != process || !writing(r) {
			return false
		}
		now := count.Add(1)
		switch {
		case now < n:
			return false
		case now == n && served:
			w.server.ServeHTTP(httptest.NewRecorder(), r.WithContext(context.WithValue(r.Context(), servedKey{}, true)))
		}
		kill()
		panic(http.ErrAbortHandler) // the requests after it do not arrive either
	}
	err = w.ApplyAll(ctx, plans, engine.ApplyOptions{})
	w.restart()
	if count.Load() < n {
		if err != nil {
			w.Fatalf("it was not killed: %v", err)
		}
		return false
	}
	if report.CodeOf(err) != report.Interrupted || !strings.Contains(strings.Join(report.Hints(err), ""), "run the same command again") {
		w.Errorf("write %d, served %t: %v", n, served, err)
	}
	return true
}

// dump returns the objects of the release with the owners of their fields, its record and its content. The history depends on the
// runs, so it is optional.
func (w *fixture) dump(history bool) []string {
	w.Helper()
	var all []string
	for _, object := range w.objectsOfAll() {
		managers := object.GetManagedFields()
		for i := range managers {
			managers[i].Time = nil
		}
		slices.SortFunc(managers, func(a, b metav1.ManagedFieldsEntry) int { return strings.Compare(a.Manager, b.Manager) })
		object.SetManagedFields(managers)
		unstructured.RemoveNestedField(object.Object, "metadata", "annotations", engine.AnnotationRun) // it has the time
		for _, name := range []string{"uid", "resourceVersion", "creationTimestamp", "generation"} {
			unstructured.RemoveNestedField(object.Object, "metadata", name)
		}
		delete(object.Object, "status")
		data, err := json.MarshalIndent(object.Object, "", " ")
		if err != nil {
			w.Fatal(err)
		}
		all = append(all, string(data))
	}
	s, err := w.State(w.Context(), demo)
	if err != nil {
		w.Fatal(err)
	}
	if s.Pending != nil {
		all = append(all, fmt.Sprintf("pending: %+v", s.Pending))
	}
	all = append(all, fmt.Sprintf("current: %s %s %s", s.Current.Operation, s.Current.Version, s.Current.Outcome))
	for _, o := range s.Current.Objects {
		live := w.server.Object(o.Kind, o.Namespace, o.Name)
		known := live != nil && o.UID == string(live.GetUID())
		all = append(all, fmt.Sprintf("%s phase %d kept %t known %t replacing %t", o.ObjectRef, o.Phase, o.Kept, known, o.Replacing))
	}
	for _, old := range s.History {
		if history {
			all = append(all, fmt.Sprintf("history: %d %s %s %s", old.Number, old.Operation, old.Version, old.Outcome))
		}
	}
	return append(all, w.lostContents(s)...)
}

// lostContents describes problems of stored content: content that no revision refers to, and missing content of a completed revision.
func (w *fixture) lostContents(s *record.State) []string {
	w.Helper()
	var problems []string
	referred := map[string]bool{}
	for _, revision := range append(slices.Clone(s.History), *s.Current) {
		referred[revision.Content] = true
		if _, err := w.Objects(w.Context(), demo, &revision); err != nil && revision.Outcome == schema.DeploymentDone {
			problems = append(problems, err.Error())
		}
	}
	for _, name := range w.server.Names("Secret") {
		_, short, _ := strings.Cut(name, "/")
		digest := w.server.Object("Secret", cluster.SystemNamespace, short).GetAnnotations()["solutionctl.io/digest"]
		if strings.HasPrefix(short, "content.") && !referred[digest] {
			problems = append(problems, "nothing refers to "+short)
		}
	}
	return problems
}

// TestKilled kills runs at each write, before and after the server executes it. The next run has no state, and completes the work or
// does something else. The result is the same as without a kill.
func TestKilled(t *testing.T) {
	const binding = "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: web}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: ROLE}}"
	type release = func(*fixture) engine.Release
	kinds := func(w *fixture) engine.Release { return w.release("0.1.0", definition) }
	one := func(w *fixture) engine.Release {
		return w.release("1.0.0", definition, pizza, settings, account, strings.Replace(binding, "ROLE", "view", 1))
	}
	changed := []string{definition, strings.Replace(pizza, "30", "40", 1), settingsTwo, deployment, strings.Replace(binding, "ROLE", "edit", 1)}
	two := func(w *fixture) engine.Release { return w.release("2.0.0", changed...) }
	data := func(w *fixture) engine.Release { return w.release("2.0.0", append(changed, volume)...) } // a claim is never deleted
	none := func(w *fixture) engine.Release { return w.release("") }
	for name, test := range map[string]struct {
		before []release
		killed release
		next   release // the next run: the same again, or another one
		same   bool
		writes int64 // at least: the record twice, the content, and each object that changes
	}{
		"first deployment":                     {nil, one, one, true, 8},
		"upgrade":                              {[]release{one}, data, data, true, 9},
		"removal":                              {[]release{one}, none, none, true, 6},
		"first deployment, and then a removal": {[]release{kinds}, one, none, false, 7},
		"upgrade, and then back":               {[]release{one}, two, one, false, 8},
		"upgrade, and then a removal":          {[]release{one}, two, none, false, 8},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := func() *fixture {
				w := newFixture(t)
				for _, r := range test.before {
					w.deploy(r(w), engine.PlanOptions{})
				}
				return w
			}
			for _, o := range []engine.PlanOptions{{}, {KeepEdits: true}} {
				undisturbed := start()
				undisturbed.deploy(test.killed(undisturbed), o)
				undisturbed.deploy(test.next(undisturbed), o)
				want := undisturbed.dump(test.same)
				for _, served := range []bool{false, true} {
					for n := int64(1); ; n++ {
						w := start()
						if !w.killed(n, served, test.killed(w), o) {
							if n <= test.writes {
								t.Errorf("it ended after %d writes", n-1)
							}
							break
						}
						w.deploy(test.next(w), o)
						w.same(fmt.Sprintf("after write %d, served %t, %+v", n, served, o), w.dump(test.same), want)
					}
				}
			}
		})
	}
}

// fixed are immutable fields.
var fixed = map[string][]string{"StatefulSet": {"spec", "serviceName"}, "ConfigMap": {"data"}}

// immutable refuses changes of immutable fields, as a real server does.
func (w *fixture) immutable(rw http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodPatch {
		return false
	}
	body, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	var wanted unstructured.Unstructured
	if err != nil || wanted.UnmarshalJSON(body) != nil {
		return false
	}
	live := w.server.Object(wanted.GetKind(), wanted.GetNamespace(), wanted.GetName())
	path := fixed[wanted.GetKind()]
	if live == nil || path == nil {
		return false
	}
	before, _, _ := unstructured.NestedFieldNoCopy(live.Object, path...)
	after, _, _ := unstructured.NestedFieldNoCopy(wanted.Object, path...)
	if fmt.Sprint(before) == fmt.Sprint(after) {
		return false
	}
	clustertest.Fail(rw, apierrors.NewInvalid(kube.GroupKind{Kind: wanted.GetKind()}, wanted.GetName(), field.ErrorList{field.Forbidden(field.NewPath(path[0]), "field is immutable")}))
	return true
}

// TestKilledWhileReplacing kills runs that replace objects. The next run does not need the approval again.
func TestKilledWhileReplacing(t *testing.T) {
	const (
		set = `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: web}, spec: {replicas: 0, serviceName: web, selector: {matchLabels: {app: web}},
template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: "registry/web:1"}]}}}}`
		sealed = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, immutable: true, data: {color: red}}"
	)
	asked := engine.PlanOptions{Replace: []string{"StatefulSet/web", "ConfigMap/settings"}}
	two := func(w *fixture) engine.Release {
		return w.release("2.0.0", strings.Replace(set, "serviceName: web", "serviceName: shop", 1), strings.Replace(sealed, "red", "blue", 1))
	}
	start := func() *fixture {
		w := newFixture(t)
		w.server.Answer = w.immutable
		w.deploy(w.release("1.0.0", set, sealed), engine.PlanOptions{})
		return w
	}
	undisturbed := start()
	_, err := undisturbed.Plan(t.Context(), two(undisturbed), engine.PlanOptions{})
	undisturbed.failed(err, report.Refused, "--replace")
	undisturbed.same("plan", actions(undisturbed.deploy(two(undisturbed), asked)), []string{"replace ConfigMap settings", "replace StatefulSet web"})
	want := undisturbed.dump(true)
	for _, served := range []bool{false, true} {
		for n := int64(1); ; n++ {
			w := start()
			if !w.killed(n, served, two(w), asked) {
				if n <= 7 { // the record twice, the content, and two objects that are deleted and created again
					t.Errorf("it ended after %d writes", n-1)
				}
				break
			}
			var options engine.PlanOptions
			if s, err := w.State(t.Context(), demo); err != nil {
				t.Fatal(err)
			} else if s.Pending == nil && s.Current.Version == "1.0.0" {
				options = asked // nothing was recorded
			}
			w.deploy(two(w), options)
			w.same(fmt.Sprintf("after write %d, served %t", n, served), w.dump(true), want)
		}
	}
}

// TestOtherOperationAfterKill checks that an interrupted revision that another one replaces becomes history, and that its objects are
// deleted.
func TestOtherOperationAfterKill(t *testing.T) {
	w := newFixture(t)
	w.deploy(w.release("1.0.0", settings), engine.PlanOptions{})
	w.killed(4, false, w.release("2.0.0", settings, account, deployment), engine.PlanOptions{}) // record, content, account, and then the deployment
	w.same("record", w.record(), []string{"current 1 add done 1.0.0", "pending 2 add pending 2.0.0"})
	w.same("objects", w.everything(), []string{"ConfigMap settings [color:red size:1]", "ServiceAccount web"})

	plan := w.deploy(w.release("1.0.0", settings), engine.PlanOptions{})
	if plan.Resumes == nil || plan.Resumes.Version != "2.0.0" {
		t.Errorf("the plan does not have the pending revision: %+v", plan.Resumes)
	}
	w.same("plan", actions(plan), []string{"delete ServiceAccount web"})
	w.same("record", w.record(), []string{"current 3 add done 1.0.0", "history 2 add replaced 2.0.0", "history 1 add done 1.0.0"})
}

// TestLostAnswers loses the answers to some requests that the server has executed, as a restarted load balancer does. The client repeats
// them, and the engine recognizes its own writes.
func TestLostAnswers(t *testing.T) {
	for _, every := range []int64{3, 4} {
		t.Run(fmt.Sprint("one of ", every), func(t *testing.T) {
			t.Parallel()
			clean, w := newFixture(t), newFixture(t)
			var err error
			if w.Cluster, err = cluster.Connect(cluster.Options{Kubeconfig: w.server.Kubeconfig(t), Now: time.Now, Sink: report.Discard}); err != nil {
				t.Fatal(err)
			}
			var count atomic.Int64
			w.server.Answer = func(_ http.ResponseWriter, r *http.Request) bool {
				if r.Context().Value(servedKey{}) != nil || r.URL.Query().Get("watch") != "" || count.Add(1)%every != 0 {
					return false
				}
				w.server.ServeHTTP(httptest.NewRecorder(), r.WithContext(context.WithValue(r.Context(), servedKey{}, true)))
				panic(http.ErrAbortHandler)
			}
			for _, documents := range [][]string{{definition, pizza, settings, account, deployment}, {definition, settingsTwo, deployment}, nil} {
				for _, w := range []*fixture{clean, w} {
					w.deploy(w.release(fmt.Sprint(len(documents), ".0.0"), documents...), engine.PlanOptions{})
				}
				w.same(fmt.Sprint(len(documents), " objects"), w.dump(true), clean.dump(true))
			}
			if count.Load() < 20 {
				t.Errorf("%d requests", count.Load())
			}
		})
	}
}
