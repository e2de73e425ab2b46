package engine_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/cluster/clustertest"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

const (
	settings    = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {color: red, size: '1'}}"
	settingsTwo = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {color: blue}}"
	account     = "{apiVersion: v1, kind: ServiceAccount, metadata: {name: web}}"
	deployment  = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 1, selector: {matchLabels: {app: web}},
template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: "registry/web:1"}]}}}}`
	volume     = "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, spec: {resources: {requests: {storage: 1Gi}}}}"
	definition = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: pizzas.example.com}, spec: {group: example.com,
scope: Namespaced, names: {kind: Pizza, plural: pizzas}, versions: [{name: v1, served: true, storage: true}]}}`
	pizza = "{apiVersion: example.com/v1, kind: Pizza, metadata: {name: margherita}, spec: {size: 30}}"
)

var deploymentKind = kube.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}

// TestLifecycle deploys, changes and removes a release until only its history is left.
func TestLifecycle(t *testing.T) {
	w := newFixture(t)
	for _, step := range []struct {
		name    string
		before  func()
		release engine.Release
		actions []string // of the plan
		there   []string // afterwards
		record  []string
	}{
		{
			name: "first deployment", release: w.release("1.0.0", deployment, settings, account),
			actions: []string{"create ServiceAccount web", "create ConfigMap settings", "create Deployment web"},
			there:   []string{"ConfigMap settings [color:red size:1]", "ServiceAccount web", "Deployment web"},
			record:  []string{"current 1 add done 1.0.0"},
		},
		{
			name: "again", release: w.release("1.0.0", settings, account, deployment),
			there:  []string{"ConfigMap settings [color:red size:1]", "ServiceAccount web", "Deployment web"},
			record: []string{"current 1 add done 1.0.0"},
		},
		{
			name: "upgrade that changes one object and removes another", release: w.release("2.0.0", settingsTwo, deployment),
			actions: []string{"update ConfigMap settings", "delete ServiceAccount web"},
			there:   []string{"ConfigMap settings [color:blue]", "Deployment web"},
			record:  []string{"current 2 add done 2.0.0", "history 1 add done 1.0.0"},
		},
		{
			name: "the same objects as another version", release: w.release("2.0.1", settingsTwo, deployment),
			there:  []string{"ConfigMap settings [color:blue]", "Deployment web"},
			record: []string{"current 3 add done 2.0.1", "history 2 add done 2.0.0", "history 1 add done 1.0.0"},
		},
		{
			name: "an object was deleted", release: w.release("2.0.1", settingsTwo, deployment),
			before:  func() { w.remove(cluster.ConfigMapKind, "settings") },
			actions: []string{"create ConfigMap settings"},
			there:   []string{"ConfigMap settings [color:blue]", "Deployment web"},
			record:  []string{"current 4 add done 2.0.1", "history 3 add done 2.0.1", "history 2 add done 2.0.0", "history 1 add done 1.0.0"},
		},
		{
			name: "data that is never deleted as a side effect", release: w.release("3.0.0", volume),
			actions: []string{"create PersistentVolumeClaim data", "delete Deployment web", "delete ConfigMap settings"},
			there:   []string{"PersistentVolumeClaim data"},
			record:  []string{"current 5 add done 3.0.0", "history 4 add done 2.0.1", "history 3 add done 2.0.1", "history 2 add done 2.0.0", "history 1 add done 1.0.0"},
		},
		{
			name: "removal", release: w.release(""),
			actions: []string{"keep PersistentVolumeClaim data"},
			there:   []string{"PersistentVolumeClaim data"},
			record:  []string{"current 6 remove done", "history 5 add done 3.0.0", "history 4 add done 2.0.1", "history 3 add done 2.0.1", "history 2 add done 2.0.0", "history 1 add done 1.0.0"},
		},
		{
			name: "removal of the data, which is asked for", release: engine.Release{Key: demo, Operation: "purge", Delete: []schema.ObjectRef{
				{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: "shop", Name: "data"},
			}},
			actions: []string{"delete PersistentVolumeClaim data"},
			record:  []string{"current 7 purge done", "history 6 remove done", "history 5 add done 3.0.0", "history 4 add done 2.0.1", "history 3 add done 2.0.1", "history 2 add done 2.0.0"},
		},
	} {
		t.Run(step.name, func(t *testing.T) {
			w.T = t
			w.restart()
			if step.before != nil {
				step.before()
			}
			w.server.Requests()
			plan, err := w.Plan(t.Context(), step.release, engine.PlanOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if writes := w.writes(); len(writes) > 0 {
				t.Errorf("a plan writes: %q", writes)
			}
			w.same("plan", actions(plan), step.actions)
			if err := w.Apply(t.Context(), plan, engine.ApplyOptions{}); err != nil {
				t.Fatal(err)
			}
			if writes := w.writes(); step.name == "again" && len(writes) > 0 {
				t.Errorf("nothing is to be done, and it writes: %q", writes)
			}
			w.same("objects", w.everything(), step.there)
			w.same("record", w.record(), step.record)
		})
	}
	w.T = t
	// Content of every revision of the history is kept, and no other. Revisions 2 and 3 share theirs.
	var kept int
	for _, name := range w.server.Names("Secret") {
		if strings.Contains(name, "/content.") {
			kept++
		}
	}
	if kept != 3 { // of 2 to 4, of 5, and the empty one of 6 and 7
		t.Errorf("%d contents are kept: %q", kept, w.server.Names("Secret"))
	}
	if err := w.DeleteRecords(t.Context(), demo); err != nil {
		t.Fatal(err)
	}
	if left := w.server.Names("Secret"); len(left) > 0 {
		t.Errorf("nothing is known any more, and there are %q", left)
	}
}

// TestOrder checks the order of writes: the record first, then the phases, removals backwards, unreferenced content, and the current
// revision last.
func TestOrder(t *testing.T) {
	w := newFixture(t)
	w.server.Requests()
	digest := regexp.MustCompile(`[0-9a-f]{64}`)
	order := func() []string {
		var short []string
		for _, write := range w.writes() {
			short = append(short, digest.ReplaceAllString(strings.TrimPrefix(strings.Replace(write, " /", " ", 1), "/"), "DIGEST"))
		}
		return short
	}
	id := demo.ID()
	const secrets = "api/v1/namespaces/solutionctl-system/secrets"
	w.deploy(w.release("1.0.0", deployment, settings, account), engine.PlanOptions{})
	w.same("first", order(), []string{
		"POST " + secrets, "PATCH api/v1/namespaces/solutionctl-system", "POST " + secrets, // the namespace is made for the first record
		"POST " + secrets, // content
		"PATCH api/v1/namespaces/shop/serviceaccounts/web", "PATCH api/v1/namespaces/shop/configmaps/settings", "PATCH apis/apps/v1/namespaces/shop/deployments/web",
		"PUT " + secrets + "/state." + id,
	})
	for i := range 5 {
		w.deploy(w.release(fmt.Sprintf("1.%d.0", i+1), deployment, strings.Replace(settings, "red", fmt.Sprint("c", i), 1), account), engine.PlanOptions{})
	}
	order()
	w.deploy(w.release("2.0.0", settingsTwo), engine.PlanOptions{})
	w.same("upgrade", order(), []string{
		"PUT " + secrets + "/state." + id, "POST " + secrets,
		"PATCH api/v1/namespaces/shop/configmaps/settings",
		"DELETE apis/apps/v1/namespaces/shop/deployments/web", "DELETE api/v1/namespaces/shop/serviceaccounts/web",
		"DELETE " + secrets + "/content." + id + ".DIGEST", // of the first release, which leaves the history
		"PUT " + secrets + "/state." + id,
	})
}

// lock is lost after some checks.
type lock struct{ left int }

func (l *lock) Check() error {
	if l.left--; l.left < 0 {
		return report.Errorf(report.Interrupted, "the lock was lost")
	}
	return nil
}

// TestLostLock checks that a run without its lock writes nothing, wherever it loses it.
func TestLostLock(t *testing.T) {
	want := []string{
		"", "POST secrets", // the record
		"POST secrets", // the content
		"PATCH serviceaccounts", "PATCH configmaps", "PATCH deployments", "PUT secrets",
	}
	for left := range want {
		w := newFixture(t, "{apiVersion: v1, kind: Namespace, metadata: {name: solutionctl-system}}")
		plan, err := w.Plan(t.Context(), w.release("1.0.0", deployment, settings, account), engine.PlanOptions{})
		if err != nil {
			t.Fatal(err)
		}
		w.server.Requests()
		err = w.Apply(cluster.WithGuard(t.Context(), &lock{left}), plan, engine.ApplyOptions{})
		var wrote []string
		for _, write := range w.writes() {
			method, path, _ := strings.Cut(write, " ")
			parts := strings.Split(path, "/")
			wrote = append(wrote, method+" "+parts[slices.Index(parts, "namespaces")+2])
		}
		w.same(fmt.Sprintf("lost after %d", left), wrote, want[1:left+1])
		if left < len(want)-1 {
			w.failed(err, report.Interrupted, "the lock was lost")
		} else if err != nil {
			t.Error(err)
		}
	}
}

// TestPrepare checks that Prepare is called once, after everything is recorded and before any change, and that its failure stops the run.
func TestPrepare(t *testing.T) {
	w := newFixture(t, "{apiVersion: v1, kind: Namespace, metadata: {name: solutionctl-system}}")
	second := w.release("1.0.0", account)
	second.Name = "other"
	releases := []engine.Release{w.release("1.0.0", settings), second}
	var calls int
	prepare := func(answer error) error {
		plans, err := w.PlanAll(t.Context(), releases, engine.PlanOptions{})
		if err != nil {
			t.Fatal(err)
		}
		w.server.Requests()
		return w.ApplyAll(t.Context(), plans, engine.ApplyOptions{Prepare: func(context.Context) error {
			calls++
			if writes := w.writes(); slices.ContainsFunc(writes, func(r string) bool { return !strings.Contains(r, "/solutionctl-system/") }) {
				t.Errorf("before: %q", writes)
			}
			for _, r := range releases {
				if s, err := w.State(t.Context(), r.Key); err != nil || s.Pending == nil && s.Current == nil {
					t.Errorf("%s is not on record: %v", r.Key, err)
				}
			}
			return answer
		}})
	}
	broken := errors.New("broken")
	if err := prepare(broken); !errors.Is(err, broken) || calls != 1 || len(w.everything()) > 0 {
		t.Errorf("%v, %d calls, %q", err, calls, w.everything())
	}
	if err := prepare(nil); err != nil || calls != 2 || len(w.everything()) != 2 {
		t.Errorf("%v, %d calls, %q", err, calls, w.everything())
	}
	if err := prepare(nil); err != nil || calls != 3 {
		t.Errorf("nothing to do: %v, %d calls", err, calls)
	}
}

// TestApplyAll checks that the failure of one release does not stop the others, and that all errors are reported.
func TestApplyAll(t *testing.T) {
	w := newFixture(t, "{apiVersion: v1, kind: Namespace, metadata: {name: prod}}")
	second := engine.Release{Key: record.Key{Namespace: "prod", Name: "demo"}, Version: "1.0.0", Operation: "add"}
	second.Objects = append(second.Objects, parse(t, strings.Replace(settings, "name: settings", "name: settings, namespace: prod", 1)))
	third := w.release("1.0.0", account)
	third.Name = "third"
	plans, err := w.PlanAll(t.Context(), []engine.Release{w.release("1.0.0", settings), second, third}, engine.PlanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.refuse(apierrors.NewForbidden(kube.GroupResource{Resource: "configmaps"}, "settings", errors.New("quota is full")), http.MethodPatch, "/prod/configmaps/settings")
	err = w.ApplyAll(t.Context(), plans, engine.ApplyOptions{})
	w.failed(err, report.Refused, "deploy prod/demo: ", "quota is full")
	if strings.Contains(err.Error(), "shop/") {
		t.Errorf("nothing is wrong with them: %v", err)
	}
	w.same("objects", w.everything(), []string{"ConfigMap settings [color:red size:1]", "ServiceAccount web"})
	states, err := w.States(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range states {
		got = append(got, fmt.Sprint(s.Key, " done ", s.Current != nil, ", begun ", s.Pending != nil))
	}
	w.same("states", got, []string{"prod/demo done false, begun true", "shop/demo done true, begun false", "shop/third done true, begun false"})
	some, err := w.StatesIn(t.Context(), "shop")
	if err != nil || len(some) != 2 || some[0].Key != demo {
		t.Errorf("%v, %v", some, err)
	}
	if err := w.DeleteRecords(t.Context(), demo); report.CodeOf(err) != report.InUse {
		t.Errorf("there are objects, and they are forgotten: %v", err)
	}
}

// TestStaleRecord checks that only one of two plans for the same state is carried out.
func TestStaleRecord(t *testing.T) {
	w := newFixture(t)
	w.deploy(w.release("1.0.0", settings), engine.PlanOptions{})
	var plans []*engine.Plan
	for _, version := range []string{"2.0.0", "3.0.0"} {
		plan, err := w.Plan(t.Context(), w.release(version, settingsTwo, account), engine.PlanOptions{})
		if err != nil {
			t.Fatal(err)
		}
		plans = append(plans, plan)
	}
	if err := w.Apply(t.Context(), plans[1], engine.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	w.server.Requests()
	w.failed(w.Apply(t.Context(), plans[0], engine.ApplyOptions{}), report.Locked, "another process has changed the record", "run the command again")
	if writes := w.writes(); len(writes) != 1 || !strings.Contains(writes[0], "/state.") {
		t.Errorf("after the attempt to write the record: %q", writes)
	}
	w.same("record", w.record(), []string{"current 2 add done 3.0.0", "history 1 add done 1.0.0"})
}

// TestLostAnswer checks that a record whose write was executed, but not answered, is recognized.
func TestLostAnswer(t *testing.T) {
	w := newFixture(t)
	var lost bool
	w.server.Answer = func(rw http.ResponseWriter, r *http.Request) bool {
		if lost || r.Method != http.MethodPut || r.Context().Value(servedKey{}) != nil {
			return false
		}
		lost = true
		w.server.ServeHTTP(httptest.NewRecorder(), r.WithContext(context.WithValue(r.Context(), servedKey{}, true)))
		conflict := apierrors.NewConflict(kube.GroupResource{Resource: "secrets"}, "state", errors.New("the object has been modified")) // as a second try gets it
		clustertest.Fail(rw, conflict)
		return true
	}
	w.deploy(w.release("1.0.0", settings), engine.PlanOptions{})
	w.same("record", w.record(), []string{"current 1 add done 1.0.0"})
	if !lost {
		t.Error("nothing was lost")
	}
}

// TestRollback checks that the deployed objects are stored with every revision.
func TestRollback(t *testing.T) {
	w := newFixture(t)
	w.deploy(w.release("1.0.0", settings, account), engine.PlanOptions{})
	w.deploy(w.release("2.0.0", settingsTwo), engine.PlanOptions{})
	s, err := w.State(t.Context(), demo)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := w.Objects(t.Context(), demo, &s.History[0])
	if err != nil {
		t.Fatal(err)
	}
	w.deploy(engine.Release{Key: demo, Version: "1.0.0", Operation: "rollback", Objects: objects}, engine.PlanOptions{})
	w.same("objects", w.everything(), []string{"ConfigMap settings [color:red size:1]", "ServiceAccount web"})
	w.same("record", w.record(), []string{"current 3 rollback done 1.0.0", "history 2 add done 2.0.0", "history 1 add done 1.0.0"})
}

// TestDefinitionAndObjects checks that objects are created as soon as their kind is served, and that a CustomResourceDefinition stays
// when its release is removed.
func TestDefinitionAndObjects(t *testing.T) {
	w := newFixture(t)
	plan := w.deploy(w.release("1.0.0", pizza, "{apiVersion: other.com/v1, kind: Monitor, metadata: {name: m}}", definition), engine.PlanOptions{})
	w.same("plan", actions(plan), []string{"create CustomResourceDefinition pizzas.example.com", "create Pizza margherita", "skip Monitor m"})
	if w.server.Object("Pizza", "shop", "margherita") == nil {
		t.Error("there is no instance")
	}
	plan = w.deploy(w.release(""), engine.PlanOptions{})
	w.same("plan", actions(plan), []string{"delete Pizza margherita", "keep CustomResourceDefinition pizzas.example.com"})
	w.same("objects", w.everything(), []string{"CustomResourceDefinition pizzas.example.com"})
}

// TestContent checks that content that is too large for one Secret is stored in several, and that unreferenced content is deleted.
func TestContent(t *testing.T) {
	w := newFixture(t)
	large := make([]byte, 1<<20)
	seed := uint32(1)
	for i := range large { // it does not compress
		seed = seed*1664525 + 1013904223
		large[i] = byte(seed >> 24)
	}
	store := func(data []byte) string {
		t.Helper()
		digest, err := w.StoreContent(t.Context(), "owner", data)
		if err != nil {
			t.Fatal(err)
		}
		return digest
	}
	digest := store(large)
	parts := w.server.Names("Secret")
	if len(parts) != 2 {
		t.Fatalf("%q", parts)
	}
	check := func(when string) {
		t.Helper()
		if back, err := w.LoadContent(t.Context(), "owner", digest); err != nil || string(back) != string(large) {
			t.Errorf("%s: %d bytes, %v", when, len(back), err)
		}
	}
	check("as it was stored")
	name := func(i int) string { _, short, _ := strings.Cut(parts[i], "/"); return short }
	for i := range parts {
		live := w.server.Object("Secret", cluster.SystemNamespace, name(i))
		if err := w.Cluster.Delete(t.Context(), live, cluster.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		_, err := w.LoadContent(t.Context(), "owner", digest)
		w.failed(err, report.NotFound, name(i))
		store(large)
		check(fmt.Sprintf("part %d was gone", i))

		forged := w.server.Object("Secret", cluster.SystemNamespace, name(i))
		forged.Object["data"] = map[string]any{"content.gz": "AAAA"}
		data, err := forged.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		w.server.Put(t, string(data))
		_, err = w.LoadContent(t.Context(), "owner", digest)
		w.failed(err, report.Corrupt, digest)
		store(large)
		check(fmt.Sprintf("part %d was changed", i))
	}
	var many strings.Builder // more than one page of a list
	for i := range 501 {
		fmt.Fprintf(&many, "---\n{apiVersion: v1, kind: Secret, metadata: {name: content.owner.%03d, namespace: solutionctl-system, "+
			"labels: {solutionctl.io/stores: content, solutionctl.io/owner: owner}, annotations: {solutionctl.io/parts: '1', solutionctl.io/digest: 'sha256:%d'}}}\n", i, i)
	}
	w.server.Put(t, many.String())
	kept := store([]byte("small"))
	if _, err := w.StoreContent(t.Context(), "other", []byte("small")); err != nil {
		t.Fatal(err)
	}
	if err := w.CollectContent(t.Context(), "owner", kept); err != nil {
		t.Fatal(err)
	}
	if left := w.server.Names("Secret"); len(left) != 2 || !strings.Contains(left[0], ".other.") || !strings.Contains(left[1], ".owner.") {
		t.Errorf("%q", left)
	}
	if _, err := w.StoreContent(t.Context(), "owner", make([]byte, 64<<20+1)); report.CodeOf(err) != report.Refused {
		t.Errorf("too large: %v", err)
	}
}

// TestManyRecords reads so many records that they are listed.
func TestManyRecords(t *testing.T) {
	w := newFixture(t)
	var releases []engine.Release
	for i := range 40 {
		release := w.release("1.0.0", strings.Replace(account, "web", fmt.Sprint("web-", i), 1))
		release.Name = fmt.Sprint("demo-", i)
		releases = append(releases, release)
	}
	apply := func() {
		t.Helper()
		plans, err := w.PlanAll(t.Context(), releases, engine.PlanOptions{})
		if err == nil {
			err = w.ApplyAll(t.Context(), plans, engine.ApplyOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	apply()
	w.server.Requests()
	apply()
	if requests := w.server.Requests(); len(requests) > 10 || slices.ContainsFunc(requests, func(r string) bool { return !strings.HasPrefix(r, "GET ") }) {
		t.Errorf("40 releases without a change need %d requests: %q", len(requests), requests)
	}
	if states, err := w.StatesIn(t.Context(), "shop", "prod"); err != nil || len(states) != 40 {
		t.Errorf("%d, %v", len(states), err)
	}
	w.server.Put(t, "{apiVersion: v1, kind: Secret, metadata: {name: "+record.Key{Namespace: "shop", Name: "demo-7"}.SecretName()+
		", namespace: solutionctl-system, labels: {solutionctl.io/stores: state}}, data: {state.json.gz: AAAA}}")
	w.server.Put(t, "{apiVersion: v1, kind: Secret, metadata: {name: state.lost.aaaaaaaa, namespace: solutionctl-system, labels: {solutionctl.io/stores: state}}}")
	states, err := w.States(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var damaged []string
	for _, s := range states {
		if s.Damage != nil {
			damaged = append(damaged, s.String())
		}
	}
	w.same("damaged", damaged, []string{record.UnknownNamespace + "/lost", "shop/demo-7"})
	_, err = w.PlanAll(t.Context(), releases, engine.PlanOptions{})
	w.failed(err, report.Corrupt, "deploy repair --records")
}

// TestWaiting checks that a release is complete when its objects are ready, and that a timeout lists the reasons.
func TestWaiting(t *testing.T) {
	for name, test := range map[string]struct {
		meanwhile func(*fixture) // as soon as it is watched
		options   engine.ApplyOptions
		code      report.Code
		says      []string
		record    string
	}{
		"becomes ready":      {func(w *fixture) { w.edit("Deployment", "web", readyStatus, "status") }, engine.ApplyOptions{Timeout: time.Minute}, "", nil, "current 1 add done 1.0.0"},
		"cannot become so":   {func(w *fixture) { w.edit("Deployment", "web", stuckStatus, "status") }, engine.ApplyOptions{Timeout: time.Minute}, report.Timeout, []string{"1 of 1 object cannot become ready", "Deployment shop/web", "progressDeadlineSeconds"}, "pending 1 add pending 1.0.0"},
		"is deleted":         {func(w *fixture) { w.remove(deploymentKind, "web") }, engine.ApplyOptions{Timeout: time.Minute}, report.Timeout, []string{"Deployment shop/web: it does not exist"}, "pending 1 add pending 1.0.0"},
		"nothing happens":    {nil, engine.ApplyOptions{Timeout: 50 * time.Millisecond}, report.Timeout, []string{"Deployment shop/web", "1 of 1 object did not become ready in 50ms", "run the same command again"}, "pending 1 add pending 1.0.0"},
		"without waiting":    {nil, engine.ApplyOptions{NoWait: true}, "", nil, "current 1 add done 1.0.0"},
		"without permission": {func(w *fixture) { w.Error("there is no watch") }, engine.ApplyOptions{Timeout: time.Minute}, report.Timeout, []string{"Deployment shop/web", "cannot become ready"}, "pending 1 add pending 1.0.0"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			w.server.Stall("Deployment")
			plan, err := w.Plan(t.Context(), w.release("1.0.0", deployment), engine.PlanOptions{})
			if err != nil {
				t.Fatal(err)
			}
			w.server.Answer = func(rw http.ResponseWriter, r *http.Request) bool {
				if r.URL.Query().Get("watch") == "" {
					return false
				}
				if name == "without permission" {
					clustertest.Fail(rw, apierrors.NewForbidden(kube.GroupResource{Group: "apps", Resource: "deployments"}, "", errors.New("ask for it")))
					return true
				}
				if w.server.Answer = nil; test.meanwhile != nil {
					test.meanwhile(w)
				}
				return false
			}
			if err := w.Apply(t.Context(), plan, test.options); test.code != "" || err != nil {
				w.failed(err, test.code, test.says...)
			}
			w.same("record", w.record(), []string{test.record})
		})
	}
}

// TestSettling checks that a workload without a probe, which is ready as soon as its containers start, counts as ready only after they
// have run for a while.
func TestSettling(t *testing.T) {
	const (
		workload = `{apiVersion: apps/v1, kind: KIND, metadata: {name: web}, spec: {selector: {matchLabels: {app: web}},
template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: "registry/web:1"}]}}}}`
		owned = "{apiVersion: %s, kind: %s, metadata: {name: web-1, namespace: shop, labels: {app: web}, ownerReferences: [{apiVersion: apps/v1, kind: %s, name: %s, uid: %s, controller: true}]}%s}"
		ended = "restartCount: 3, lastState: {terminated: {exitCode: 7}}"
	)
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet"} {
		for name, heals := range map[string]bool{"runs again": true, "ends again and again": false} {
			t.Run(kind+" "+name, func(t *testing.T) {
				t.Parallel()
				w := newFixture(t)
				var once sync.Once
				w.server.Answer = func(_ http.ResponseWriter, r *http.Request) bool {
					if r.Method == http.MethodGet && (strings.HasSuffix(r.URL.Path, "/replicasets") || strings.HasSuffix(r.URL.Path, "/pods")) {
						once.Do(func() {
							status := `state: {waiting: {reason: CrashLoopBackOff}}`
							if heals { // for a second or two less than it has to
								status = `state: {running: {startedAt: "` + time.Now().Add(-28*time.Second).UTC().Format(time.RFC3339) + `"}}`
							}
							owner, name, uid := kind, "web", w.server.Object(kind, "shop", "web").GetUID()
							if kind == "Deployment" {
								w.server.Put(t, fmt.Sprintf(owned, "apps/v1", "ReplicaSet", owner, name, uid, ""))
								owner, name, uid = "ReplicaSet", "web-1", w.server.Object("ReplicaSet", "shop", "web-1").GetUID()
							}
							w.server.Put(t, fmt.Sprintf(owned, "v1", "Pod", owner, name, uid, ", spec: {containers: [{name: web}]}, status: {containerStatuses: [{name: web, "+status+", "+ended+"}]}"))
						})
					}
					return false
				}
				plan, err := w.Plan(t.Context(), w.release("1.0.0", strings.Replace(workload, "KIND", kind, 1)), engine.PlanOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if heals {
					err = w.Apply(t.Context(), plan, engine.ApplyOptions{Timeout: time.Minute})
					if said := fmt.Sprint(w.events.Events()); err != nil || !strings.Contains(said, "runs again; it has ended (3 times so far): exit code 7") {
						t.Errorf("%v: %s", err, said)
					}
					return
				}
				err = w.Apply(t.Context(), plan, engine.ApplyOptions{Timeout: time.Second})
				w.failed(err, report.Timeout, kind+" shop/web", "ends again and again (3 times so far): exit code 7")
			})
		}
	}
}

// TestFinalizers checks that a run waits for finalizers and reports them.
func TestFinalizers(t *testing.T) {
	const held = "{apiVersion: v1, kind: ConfigMap, metadata: {name: held, finalizers: [example.com/hold]}}"
	free := "{apiVersion: v1, kind: ConfigMap, metadata: {name: held, namespace: shop}}"
	t.Run("removal", func(t *testing.T) {
		w := newFixture(t)
		w.deploy(w.release("1.0.0", held), engine.PlanOptions{})
		plan, err := w.Plan(t.Context(), w.release(""), engine.PlanOptions{})
		if err != nil {
			t.Fatal(err)
		}
		w.failed(w.Apply(t.Context(), plan, engine.ApplyOptions{Timeout: 50 * time.Millisecond}), report.Timeout, "ConfigMap shop/held is still there", "finalizers: example.com/hold")
		w.same("record", w.record(), []string{"current 1 add done 1.0.0", "pending 2 remove pending"})
		w.server.Put(t, free)
		w.deploy(w.release(""), engine.PlanOptions{})
		w.same("record", w.record(), []string{"current 2 remove done", "history 1 add done 1.0.0"})
	})
	t.Run("in the way", func(t *testing.T) {
		w := newFixture(t, strings.Replace(held, "name: held", "name: held, namespace: shop", 1))
		uid := w.server.Object("ConfigMap", "shop", "held").GetUID()
		w.remove(cluster.ConfigMapKind, "held")
		plan, err := w.Plan(t.Context(), w.release("1.0.0", strings.Replace(free, ", namespace: shop", "", 1)), engine.PlanOptions{})
		if err != nil || !strings.Contains(plan.Changes[0].Note, "finalizers: example.com/hold") {
			t.Fatalf("%+v, %v", plan, err)
		}
		w.server.Answer = func(_ http.ResponseWriter, r *http.Request) bool {
			if r.URL.Query().Get("watch") != "" { // it is waited for
				w.server.Answer = nil
				w.server.Put(t, free)
			}
			return false
		}
		if err := w.Apply(t.Context(), plan, engine.ApplyOptions{Timeout: time.Minute}); err != nil {
			t.Fatal(err)
		}
		if live := w.server.Object("ConfigMap", "shop", "held"); live == nil || live.GetUID() == uid {
			t.Errorf("it was not created again: %v", live)
		}
	})
}
