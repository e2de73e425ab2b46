package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// component returns a release beside shop/demo with a Deployment of its name. Each need is a name, or name:Applied.
func (w *fixture) component(name string, needs ...string) engine.Release {
	w.Helper()
	r := w.release("1.0.0", strings.ReplaceAll(deployment, "web", name))
	r.Component, r.Complete = name, true
	for _, need := range needs {
		r.Needs = append(r.Needs, needOf(need))
	}
	return r
}

func needOf(text string) engine.Need {
	name, until, _ := strings.Cut(text, ":")
	if until == "" {
		until = string(schema.UntilReady)
	}
	return engine.Need{Key: record.Key{Namespace: "shop", Name: "demo", Component: name}, Until: schema.Until(until)}
}

// gone returns the removal of a component.
func gone(name string, needs ...string) engine.Release {
	r := engine.Release{Key: needOf(name).Key, Operation: "remove"}
	for _, need := range needs {
		r.Needs = append(r.Needs, needOf(need))
	}
	return r
}

func (w *fixture) run(releases ...engine.Release) error {
	w.Helper()
	plans, err := w.PlanAll(w.Context(), releases, engine.PlanOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return w.ApplyAll(w.Context(), plans, engine.ApplyOptions{Timeout: time.Minute})
}

var readyStatus = map[string]any{
	"observedGeneration": int64(1), "replicas": int64(1), "updatedReplicas": int64(1), "readyReplicas": int64(1), "availableReplicas": int64(1),
	"conditions": []any{map[string]any{"type": "Available", "status": "True"}},
}

var stuckStatus = map[string]any{
	"observedGeneration": int64(1), "replicas": int64(1),
	"conditions": []any{map[string]any{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "it takes too long"}},
}

// onCreation calls f with the name of each object of a kind that is created.
func (w *fixture) onCreation(kind string, f func(name string)) {
	w.server.Answer = func(rw http.ResponseWriter, r *http.Request) bool {
		collection, name := path.Split(r.URL.Path)
		if r.Context().Value(servedKey{}) != nil || r.Method != http.MethodPatch || path.Base(collection) != strings.ToLower(kind)+"s" || !writing(r) ||
			w.server.Object(kind, "shop", name) != nil {
			return false
		}
		w.server.ServeHTTP(rw, r.WithContext(context.WithValue(r.Context(), servedKey{}, true)))
		f(name)
		return true
	}
}

// TestNeeds checks that each release starts as soon as its needs are met, and not before, independently of others.
func TestNeeds(t *testing.T) {
	w := newFixture(t)
	w.server.Stall("Deployment")
	needs := map[string][]string{"api": {"db"}, "web": {"api", "ui:Applied"}, "ui": nil, "db": nil, "slow": nil, "far": {"web", "db"}}
	var releases []engine.Release
	for name, some := range needs {
		releases = append(releases, w.component(name, some...))
	}
	created := make(chan string, len(needs))
	w.onCreation("Deployment", func(name string) { created <- name })
	done := make(chan error, 1)
	go func() { done <- w.run(releases...) }()
	ready, there := map[string]bool{}, map[string]bool{}
	makeReady := func(name string) { ready[name] = true; w.edit("Deployment", name, readyStatus, "status") }
	for range needs {
		name := <-created
		there[name] = true
		for _, need := range needs[name] {
			if other, until, _ := strings.Cut(need, ":"); !there[other] || until == "" && !ready[other] {
				t.Errorf("%s is there before %s", name, need)
			}
		}
		if name != "slow" && name != "ui" { // no release waits until they are ready
			makeReady(name)
		}
	}
	makeReady("slow")
	makeReady("ui")
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	w.server.Requests()
	if err := w.run(releases...); err != nil {
		t.Fatal(err)
	}
	if writes := w.writes(); len(writes) > 0 {
		t.Errorf("nothing is to be done, and it writes: %q", writes)
	}
}

// watcher is a sink that collects what release demo waits for.
type watcher struct {
	report.Sink
	events chan report.Event
}

func (s watcher) Emit(e report.Event) {
	if e.Step == "wait" && e.Name == "demo" && e.Part == "shop/demo" {
		s.events <- e
	}
	s.Sink.Emit(e)
}

// TestParts checks that a release that is ready reports which of its parts it waits for.
func TestParts(t *testing.T) {
	w := newFixture(t)
	w.server.Stall("Deployment")
	own := w.release("1.0.0", deployment)
	own.Parts = []record.Key{needOf("slow").Key}
	slow := make(chan struct{})
	w.onCreation("Deployment", func(name string) {
		if name == "slow" {
			close(slow)
			return
		}
		w.edit("Deployment", name, readyStatus, "status")
	})
	waits, done := make(chan report.Event, 10), make(chan error, 1)
	w.Sink = watcher{w.events, waits}
	go func() { done <- w.run(own, w.component("slow")) }()
	select {
	case e := <-waits:
		if e.State != report.Running || !strings.Contains(e.Note, "demo.slow") {
			t.Errorf("it waits: %+v", e)
		}
	case err := <-done:
		t.Fatalf("it is complete before its component: %v", err)
	}
	<-slow
	w.edit("Deployment", "slow", readyStatus, "status")
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if e := <-waits; e.State != report.Done {
		t.Errorf("it has waited: %+v", e)
	}
}

// TestFailuresBlock checks that a failure stops the releases that need it, and no others, and that a second run completes them.
func TestFailuresBlock(t *testing.T) {
	for _, tolerated := range []bool{false, true} {
		t.Run(fmt.Sprint("tolerated ", tolerated), func(t *testing.T) {
			w := newFixture(t)
			w.server.Stall("Deployment")
			db := w.component("db")
			db.Tolerated = tolerated
			releases := []engine.Release{w.component("web", "api"), w.component("api", "db"), db, w.component("other")}
			w.onCreation("Deployment", func(name string) {
				status := readyStatus
				if name == "db" {
					status = stuckStatus
				}
				w.edit("Deployment", name, status, "status")
			})
			err := w.run(releases...)
			w.failed(err, report.Timeout, "deploy shop/demo.db: 1 of 1 object cannot become ready")
			blocked := "deploy shop/demo.api: it was not started, because it needs demo.db, which failed"
			if strings.Contains(err.Error(), blocked) == tolerated {
				t.Errorf("got %v", err)
			}
			want := []string{"shop/db", "shop/other"}
			if tolerated {
				want = []string{"shop/api", "shop/db", "shop/other", "shop/web"}
			}
			w.same("there", w.server.Names("Deployment"), want)
			s, err := w.State(t.Context(), needOf("api").Key)
			if err != nil {
				t.Fatal(err)
			}
			if !tolerated && (s.Pending == nil || s.Pending.Failure == nil || !strings.Contains(s.Pending.Failure.Message, "demo.db, which failed")) {
				t.Errorf("the record has no reason: %+v", s.Pending)
			}
			w.server.Answer = nil
			w.server.Stall()
			w.edit("Deployment", "db", readyStatus, "status")
			if err := w.run(releases...); err != nil {
				t.Fatal(err)
			}
			w.same("there in the end", w.server.Names("Deployment"), []string{"shop/api", "shop/db", "shop/other", "shop/web"})
		})
	}
}

// TestUnchangedNeedIsAwaited checks that a release without changes that is not ready still delays the releases that need it.
func TestUnchangedNeedIsAwaited(t *testing.T) {
	w := newFixture(t)
	if err := w.run(w.component("db")); err != nil {
		t.Fatal(err)
	}
	w.edit("Deployment", "db", stuckStatus, "status")
	w.failed(w.run(w.component("db"), w.component("api", "db")), report.Timeout, "deploy shop/demo.db: 1 of 1 object cannot become ready", "it needs demo.db")
	w.same("there", w.server.Names("Deployment"), []string{"shop/db"})
	if err := w.run(w.component("db"), w.component("lonely")); err != nil {
		t.Errorf("no release needs it: %v", err)
	}
}

// TestRemovalInOrder checks that a release is removed after those that need it, and stays if one of them cannot be removed.
func TestRemovalInOrder(t *testing.T) {
	w := newFixture(t)
	if err := w.run(w.component("web", "api"), w.component("api", "db"), w.component("db")); err != nil {
		t.Fatal(err)
	}
	s, err := w.State(t.Context(), needOf("web").Key)
	if err != nil || !slices.Equal(s.Current.Needs, []string{"api"}) {
		t.Errorf("the record has no needs: %+v %v", s.Current, err)
	}
	removal := []engine.Release{gone("db", "api:Applied"), gone("api", "web:Applied"), gone("web")}
	w.server.Answer = func(rw http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodDelete && strings.HasSuffix(r.URL.Path, "/deployments/api") && writing(r) {
			http.Error(rw, "no", http.StatusTeapot)
			return true
		}
		return false
	}
	w.failed(w.run(removal...), report.Unavailable, "deploy shop/demo.api", "deploy shop/demo.db: it was not started, because it needs demo.api, which failed")
	w.same("there", w.server.Names("Deployment"), []string{"shop/api", "shop/db"})
	w.server.Answer = nil
	if err := w.run(removal...); err != nil {
		t.Fatal(err)
	}
	w.same("there", w.server.Names("Deployment"), nil)
}

// waiter calls f with the name and note of each Deployment for whose deletion a run begins to wait.
type waiter struct {
	report.Sink
	f func(name, note string)
}

func (s waiter) Emit(e report.Event) {
	if name, found := strings.CutPrefix(e.Name, "Deployment shop/"); found && e.Step == "wait" && e.State == report.Started {
		s.f(name, e.Note)
	}
	s.Sink.Emit(e)
}

// TestRemovalWaitsForPods checks that a release is removed only after the pods that need it have ended.
func TestRemovalWaitsForPods(t *testing.T) {
	const pod = `{apiVersion: v1, kind: Pod, metadata: {name: web-0, namespace: shop, finalizers: [example.com/ending], ownerReferences: [
		{apiVersion: apps/v1, kind: Deployment, name: web, uid: %s, controller: true, blockOwnerDeletion: true}]}}`
	removal := []engine.Release{gone("db", "web:Applied"), gone("web")}
	prepare := func(t *testing.T) *fixture {
		t.Helper()
		w := newFixture(t)
		if err := w.run(w.component("web", "db"), w.component("db")); err != nil {
			t.Fatal(err)
		}
		w.server.Put(t, fmt.Sprintf(pod, w.server.Object("Deployment", "shop", "web").GetUID()))
		return w
	}
	t.Run("in turn", func(t *testing.T) {
		w := prepare(t)
		var waited []string
		w.Sink = waiter{w.events, func(name, note string) {
			waited = append(waited, name+": "+note)
			if w.server.Object("Deployment", "shop", "db") == nil || w.server.Object("Pod", "shop", "web-0").GetDeletionTimestamp() == nil {
				t.Error("what it needs is gone while its pod has not ended")
			}
			w.edit("Pod", "web-0", []any{}, "metadata", "finalizers")
		}}
		if err := w.run(removal...); err != nil {
			t.Fatal(err)
		}
		w.same("waited for", waited, []string{"web: it is being deleted, and its pods have not ended yet"})
		w.same("there", append(w.server.Names("Deployment"), w.server.Names("Pod")...), nil)
	})
	t.Run("without waiting", func(t *testing.T) {
		w := prepare(t)
		plans, err := w.PlanAll(t.Context(), removal, engine.PlanOptions{})
		if err == nil {
			err = w.ApplyAll(t.Context(), plans, engine.ApplyOptions{Timeout: time.Minute, NoWait: true})
		}
		if err != nil {
			t.Fatal(err)
		}
		w.same("there", append(w.server.Names("Deployment"), w.server.Names("Pod")...), []string{"shop/web-0"})
		if !slices.ContainsFunc(w.events.Events(), func(e report.Event) bool {
			return e.State == report.Skipped && strings.Contains(e.Note, "its pods may still run")
		}) {
			t.Error("no event about the pods")
		}
	})
	t.Run("in vain", func(t *testing.T) {
		w := prepare(t)
		plans, err := w.PlanAll(t.Context(), removal, engine.PlanOptions{})
		if err == nil {
			err = w.ApplyAll(t.Context(), plans, engine.ApplyOptions{Timeout: time.Second})
		}
		w.failed(err, report.Timeout, "Deployment shop/web is still there after 1s: it is being deleted, and its pods have not ended yet", "--no-wait",
			"deploy shop/demo.db: it was not started, because it needs demo.web, which failed")
	})
}

func TestNeedsWithoutEnd(t *testing.T) {
	w := newFixture(t)
	w.failed(w.run(w.component("a", "b"), w.component("b", "c"), w.component("c", "a")), report.Invalid, "waits for itself")
	w.same("there", w.server.Names("Deployment"), nil)
	if states, err := w.States(t.Context()); len(states) > 0 || err != nil {
		t.Errorf("%d records, %v", len(states), err)
	}
}

// TestKindOfLastRelease checks that releases that wait for a kind leave their places to others, one of which brings it.
func TestKindOfLastRelease(t *testing.T) {
	w := newFixture(t)
	w.server.Stall("Deployment")
	last := w.release("1.0.0", "{apiVersion: v1, kind: ConfigMap, metadata: {name: last}}")
	last.Component, last.Needs = "last", []engine.Need{needOf("first")}
	releases := []engine.Release{w.component("first"), last}
	for i := range cluster.Workers {
		name := fmt.Sprint("waits", i)
		r := w.release("1.0.0", "{apiVersion: v1, kind: ConfigMap, metadata: {name: "+name+"}}", strings.ReplaceAll(pizza, "margherita", name))
		r.Component, r.Complete = name, true
		releases = append(releases, r)
	}
	var waiting atomic.Int32
	w.onCreation("ConfigMap", func(name string) {
		switch {
		case name == "last":
			w.server.Put(t, definition)
		case waiting.Add(1) == cluster.Workers:
			w.server.Stall() // the first becomes ready
		}
	})
	if err := w.run(releases...); err != nil {
		t.Fatal(err)
	}
}

// TestClusterWideKind checks that an object of a kind that the run brings is in no namespace if the kind is cluster-wide, even if an earlier
// record has one, and that the next run does not delete it.
func TestClusterWideKind(t *testing.T) {
	w := newFixture(t)
	r := w.release("1.0.0", settings, pizza)
	r.Namespace, r.Complete = "", true
	w.onCreation("ConfigMap", func(string) { w.server.Put(t, strings.Replace(definition, "Namespaced", "Cluster", 1)) })
	w.deploy(r, engine.PlanOptions{})
	s, err := w.State(t.Context(), r.Key)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(s.Current.Objects, func(o schema.DeployedObject) bool { return o.Kind == "Pizza" })
	uid := w.server.Object("Pizza", "", "margherita").GetUID()
	if known := &s.Current.Objects[i]; known.Namespace != "" || known.UID != string(uid) {
		t.Errorf("recorded: %+v", known)
	}
	s.Current.Objects[i].Namespace = "shop" // as an earlier version of solutionctl recorded it
	if err := w.Save(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	r.Version = "1.1.0"
	if plan := w.deploy(r, engine.PlanOptions{}); !plan.Empty() {
		t.Errorf("the second run has changes: %q", actions(plan))
	}
	if live := w.server.Object("Pizza", "", "margherita"); live == nil || live.GetUID() != uid {
		t.Errorf("the second run leaves %v", live)
	}
}

// TestConfined checks that a confined release cannot have objects of cluster-wide kinds, neither of known ones nor of those that appear
// while it runs.
func TestConfined(t *testing.T) {
	w := newFixture(t)
	r := w.release("1.0.0", settings, pizza)
	r.Complete, r.Confined = true, true
	w.onCreation("ConfigMap", func(string) { w.server.Put(t, strings.Replace(definition, "Namespaced", "Cluster", 1)) })
	w.failed(w.run(r), report.Refused, "Pizza shop/margherita: the kind is cluster-wide", "scope: cluster")
	_, err := w.Plan(t.Context(), r, engine.PlanOptions{})
	w.failed(err, report.Refused, "Pizza shop/margherita: the kind is cluster-wide")
	w.same("there", w.everything(), []string{"ConfigMap settings [color:red size:1]", "CustomResourceDefinition pizzas.example.com"})
}

// TestNeverCreated checks that a repair does not create an object whose kind the cluster lacked at the deployment, and neither places it in the
// cluster nor adopts an object of others.
func TestNeverCreated(t *testing.T) {
	for _, scope := range []string{"Namespaced", "Cluster"} {
		for _, taken := range []bool{false, true} {
			t.Run(fmt.Sprint(scope, " ", taken), func(t *testing.T) {
				w := newFixture(t)
				r := w.release("1.0.0", settings, pizza)
				r.Confined, r.Complete, r.OptionalKinds = true, true, []string{"example.com/Pizza"}
				w.deploy(r, engine.PlanOptions{})
				w.server.Put(t, strings.Replace(definition, "Namespaced", scope, 1))
				w.Cluster.Refresh()
				if taken {
					theirs := pizza
					if scope == "Namespaced" {
						theirs = strings.Replace(pizza, "{name: margherita", "{namespace: shop, name: margherita", 1)
					}
					w.server.Put(t, theirs)
				}
				s, err := w.State(t.Context(), demo)
				if err != nil {
					t.Fatal(err)
				}
				releases, _, err := w.Deployed(t.Context(), []*record.State{s})
				if err != nil || !releases[0].Confined {
					t.Fatalf("%+v, %v", releases, err)
				}
				before := w.everything()
				plan := w.deploy(releases[0], engine.PlanOptions{Restore: true})
				if !plan.Empty() || !strings.Contains(fmt.Sprint(plan.Changes), engine.NeverCreated) {
					t.Errorf("a repair plans %+v", plan.Changes)
				}
				w.same("there", w.everything(), before)
			})
		}
	}
}

// TestKindsOfOtherReleases checks that the engine waits for a kind that another release defines, or that a complete release requires, and does not
// skip its objects.
func TestKindsOfOtherReleases(t *testing.T) {
	w := newFixture(t)
	brings, uses := w.release("1.0.0", definition), w.release("1.0.0", pizza)
	brings.Component, uses.Component = "brings", "uses"
	if err := w.run(uses, brings); err != nil {
		t.Fatal(err)
	}
	w.same("there", w.server.Names("Pizza"), []string{"shop/margherita"})

	w = newFixture(t)
	uses = w.release("1.0.0", settings, pizza)
	uses.Complete, uses.Timeout = true, 50*time.Millisecond
	w.failed(w.run(uses), report.Timeout, "Pizza shop/margherita: the cluster has no Pizza of example.com/v1 yet after 50ms")
	uses.Timeout = time.Minute
	done := make(chan error, 1)
	go func() { done <- w.run(uses) }()
	w.server.Put(t, definition)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	w.same("there", w.server.Names("Pizza"), []string{"shop/margherita"})

	w = newFixture(t)
	uses.OptionalKinds = []string{"example.com/Pizza"}
	if err := w.run(uses); err != nil {
		t.Fatal(err)
	}
	w.same("there", w.everything(), []string{"ConfigMap settings [color:red size:1]"})
}

// TestStay checks that objects in Stay are left in the cluster, and dropped from the record when they are deleted by name.
func TestStay(t *testing.T) {
	w := newFixture(t)
	stay := schema.ObjectRef{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "settings"}
	first := w.release("1.0.0", settings, account)
	w.deploy(first, engine.PlanOptions{})
	first.Stay = []schema.ObjectRef{stay}
	w.deploy(first, engine.PlanOptions{}) // only the record changes
	plan := w.deploy(w.release("2.0.0", account), engine.PlanOptions{})
	w.same("plan", actions(plan), []string{"keep ConfigMap settings"})
	plan = w.deploy(w.release(""), engine.PlanOptions{})
	w.same("plan", actions(plan), []string{"keep ConfigMap settings", "delete ServiceAccount web"})
	last := w.release("")
	last.Delete = []schema.ObjectRef{stay}
	w.deploy(last, engine.PlanOptions{})
	w.same("there", w.everything(), nil)
}

// TestGeneratedValues checks that generated values are stored with each revision.
func TestGeneratedValues(t *testing.T) {
	w := newFixture(t)
	for _, memory := range []string{"one", "two"} {
		r := w.release(memory, settings)
		r.GeneratedValues = []byte(memory)
		w.deploy(r, engine.PlanOptions{})
	}
	s, err := w.State(t.Context(), demo)
	if err != nil {
		t.Fatal(err)
	}
	for want, revision := range map[string]*schema.DeploymentRevision{"two": s.Current, "one": &s.History[0]} {
		content, err := w.Content(t.Context(), demo, revision)
		if err != nil || string(content.GeneratedValues) != want || len(content.Objects) != 1 {
			t.Errorf("%s: %+v, %v", want, content, err)
		}
	}
}

// TestSavedOptions checks that a release that has parts is recorded first, with its saved options, which are removed when it is complete.
func TestSavedOptions(t *testing.T) {
	for n := int64(1); n < 8; n++ {
		w := newFixture(t)
		whole := w.release("1.0.0", settings)
		part := w.component("db")
		whole.SavedOptions, whole.Parts = []byte("secret"), []record.Key{part.Key}
		if !w.allKilled(n, true, []engine.Release{part, whole}, engine.PlanOptions{}) {
			t.Fatalf("there are only %d writes", n)
		}
		states, err := w.States(t.Context())
		if err != nil || n > 3 && len(states) == 0 {
			t.Fatalf("after write %d: %v, %v", n, states, err)
		}
		if len(states) > 0 && (states[0].Key != whole.Key || string(states[0].SavedOptions) != "secret") {
			t.Errorf("after write %d: %+v", n, states[0])
		}
		if err := w.run(part, whole); err != nil {
			t.Fatal(err)
		}
		if s, err := w.State(t.Context(), whole.Key); err != nil || s.Pending != nil || s.SavedOptions != nil {
			t.Errorf("it is complete: %+v, %v", s, err)
		}
	}
	w := newFixture(t)
	large := make([]byte, 1<<20)
	rand.NewChaCha8([32]byte{}).Read(large) //nolint:errcheck // it does not fail
	r := w.release("1.0.0", settings)
	r.SavedOptions = large
	w.failed(w.run(w.component("db"), r), report.Refused, "too large to store")
	if states, err := w.States(t.Context()); err != nil || len(states) > 0 {
		t.Errorf("other releases were recorded: %v, %v", states, err)
	}
}

// TestKilledInOrder kills a run of several releases at each write: the next run completes it.
func TestKilledInOrder(t *testing.T) {
	releases := func(w *fixture) []engine.Release {
		return []engine.Release{w.component("web", "api"), w.component("api", "db"), w.component("db")}
	}
	for n := int64(1); ; n++ {
		for _, served := range []bool{false, true} {
			w := newFixture(t)
			if !w.allKilled(n, served, releases(w), engine.PlanOptions{}) {
				if n < 10 {
					t.Errorf("there are only %d writes", n)
				}
				return
			}
			if err := w.run(releases(w)...); err != nil {
				t.Fatalf("after write %d, served %t: %v", n, served, err)
			}
			w.same("there", w.server.Names("Deployment"), []string{"shop/api", "shop/db", "shop/web"})
			states, err := w.States(t.Context())
			if err != nil || len(states) != 3 {
				t.Fatalf("%d records, %v", len(states), err)
			}
			for _, s := range states {
				if s.Pending != nil || s.Current == nil {
					t.Errorf("after write %d, served %t: %s is not finished", n, served, s)
				}
			}
		}
	}
}

// TestOneWatch checks that releases that wait one after the other share a watch, and that objects are listed once.
func TestOneWatch(t *testing.T) {
	w := newFixture(t)
	w.server.Stall("Deployment")
	w.onCreation("Deployment", func(name string) { w.edit("Deployment", name, readyStatus, "status") })
	if err := w.run(w.component("a"), w.component("b", "a"), w.component("c", "b"), w.component("d", "c")); err != nil {
		t.Fatal(err)
	}
	asked := slices.DeleteFunc(w.server.Requests(), func(request string) bool { return request != "GET /apis/apps/v1/namespaces/shop/deployments" })
	if len(asked) > 3 { // to plan, to list, to watch
		t.Errorf("Deployments are listed or watched %d times", len(asked))
	}
}
