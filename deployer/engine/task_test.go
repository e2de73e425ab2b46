package engine_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// aJob returns a Job with a time to live; "" for none.
func aJob(name, ttl string) string {
	if ttl != "" {
		ttl = "ttlSecondsAfterFinished: " + ttl + ", "
	}
	return fmt.Sprintf(`{apiVersion: batch/v1, kind: Job, metadata: {name: %s}, spec: {%stemplate: {spec: {restartPolicy: Never, containers: [{name: a, image: "registry/a:1"}]}}}}`, name, ttl)
}

func anAccount(name string) string {
	return strings.Replace(account, "name: web", "name: "+name, 1)
}

var deploying = []schema.Occasion{schema.OccasionInstall, schema.OccasionUpgrade}

// add adds a task with the usual settings of a chart's hook, which change may edit.
func (w *fixture) add(r *engine.Release, when schema.Moment, document string, change ...func(*schema.Task)) {
	w.Helper()
	task := engine.Task{Task: schema.Task{When: when, On: deploying, Replace: true}, Object: w.objects(document)[0]}
	for _, f := range change {
		f(&task.Task)
	}
	r.Tasks = append(r.Tasks, task)
}

func weight(n int) func(*schema.Task)              { return func(t *schema.Task) { t.Weight = n } }
func deleted(t *schema.Task)                       { t.DeleteOnSuccess = true }
func once(t *schema.Task)                          { t.Once = schema.OncePerVersion }
func on(o ...schema.Occasion) func(t *schema.Task) { return func(t *schema.Task) { t.On = o } }
func (w *fixture) jobs() []string                  { return w.server.Names("Job") }
func (w *fixture) again(r engine.Release) *engine.Plan {
	w.restart()
	return w.deploy(r, engine.PlanOptions{})
}

// steps returns the writes since the last call, except those of records.
func (w *fixture) steps() []string {
	var short []string
	for _, write := range w.writes() {
		if method, path, _ := strings.Cut(write, " "); !strings.Contains(path, cluster.SystemNamespace) {
			parts := strings.Split(path, "/")
			short = append(short, method+" "+strings.Join(parts[len(parts)-2:], "/"))
		}
	}
	return short
}

// TestTaskOrder checks that tasks run by moment, weight and name, and that old objects are deleted after the tasks that may need them.
func TestTaskOrder(t *testing.T) {
	w := newFixture(t)
	w.deploy(w.release("1.0.0", anAccount("old")), engine.PlanOptions{})
	r := w.release("2.0.0", settings, deployment)
	w.add(&r, schema.MomentReady, aJob("f", ""))
	w.add(&r, schema.MomentApplied, aJob("d", ""), weight(5))
	w.add(&r, schema.MomentApplied, aJob("e", ""), weight(-4))
	w.add(&r, schema.MomentBefore, aJob("b", ""))
	w.add(&r, schema.MomentBefore, aJob("a", ""))
	w.add(&r, schema.MomentBefore, anAccount("a"))
	w.add(&r, schema.MomentBefore, aJob("c", ""), weight(-5))
	w.steps()
	plan := w.deploy(r, engine.PlanOptions{})
	w.same("writes", w.steps(), []string{
		"PATCH jobs/c", "PATCH serviceaccounts/a", "PATCH jobs/a", "PATCH jobs/b",
		"PATCH configmaps/settings", "PATCH deployments/web", "PATCH jobs/e", "PATCH jobs/d", "DELETE serviceaccounts/old", "PATCH jobs/f",
	})
	var changes []string
	for _, c := range plan.Changes {
		changes = append(changes, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", c.Action, c.Object.Name, c.Task, c.Note)))
	}
	w.same("plan", changes, []string{
		"create c before before everything else", "create a before before everything else", "create a before before everything else",
		"create b before before everything else", "create settings", "create web",
		"create e applied when everything is applied", "create d applied when everything is applied", "delete old",
		"create f ready when everything is ready",
	})
	if plan := w.again(r); !plan.Empty() || len(w.steps()) > 0 {
		t.Errorf("nothing has changed, and there is %v", plan.Changes)
	}
	r.Version = "2.0.1"
	w.again(r)
	w.same("upgrade", w.steps(), []string{
		"DELETE jobs/c", "PATCH jobs/c", "DELETE jobs/a", "PATCH jobs/a", "DELETE jobs/b", "PATCH jobs/b",
		"DELETE jobs/e", "PATCH jobs/e", "DELETE jobs/d", "PATCH jobs/d", "DELETE jobs/f", "PATCH jobs/f",
	})
	r.Tasks = slices.DeleteFunc(r.Tasks, func(t engine.Task) bool { return t.Object.GetName() != "f" })
	r.Tasks[0].Object = w.objects(strings.Replace(aJob("f", ""), "registry/a:1", "registry/a:2", 1))[0]
	w.again(r)
	others := w.steps()
	slices.Sort(others[:5]) // they are applied side by side
	w.same("other tasks of the same version", others, []string{
		"DELETE jobs/a", "DELETE jobs/b", "DELETE jobs/c", "DELETE jobs/d", "DELETE jobs/e", "DELETE serviceaccounts/a", "DELETE jobs/f", "PATCH jobs/f",
	})
}

// TestPodsThatWaitForATask deploys pods that wait for a hook that runs after the installation, as those of keystone do.
func TestPodsThatWaitForATask(t *testing.T) {
	w := newFixture(t)
	w.server.Stall("Deployment")
	r := w.release("1.0.0", deployment)
	w.add(&r, schema.MomentApplied, aJob("sync", ""))
	w.server.Answer = func(http.ResponseWriter, *http.Request) bool {
		if w.server.Object("Job", "shop", "sync") != nil {
			w.server.Stall()
		}
		return false
	}
	w.deploy(r, engine.PlanOptions{})
	w.same("record", w.record(), []string{"current 1 add done 1.0.0"})
}

// TestTasksDeletedOnSuccess checks that tasks that are deleted on success exist until all tasks of the moment have ended.
func TestTasksDeletedOnSuccess(t *testing.T) {
	w := newFixture(t)
	r := w.release("1.0.0", settings)
	w.add(&r, schema.MomentBefore, anAccount("hook"), weight(-5), deleted)
	w.add(&r, schema.MomentBefore, aJob("hook", ""), deleted)
	w.add(&r, schema.MomentBefore, volume, weight(1), deleted)
	w.steps()
	w.deploy(r, engine.PlanOptions{})
	w.same("install", w.steps(), []string{
		"PATCH serviceaccounts/hook", "PATCH jobs/hook", "PATCH persistentvolumeclaims/data", "DELETE jobs/hook", "DELETE serviceaccounts/hook", "PATCH configmaps/settings",
	})
	w.same("there", w.everything(), []string{"ConfigMap settings [color:red size:1]", "PersistentVolumeClaim data"})
	s, err := w.State(t.Context(), demo)
	if err != nil || len(s.Current.Objects) != 2 || len(s.Current.Tasks) != 3 {
		t.Errorf("%+v, %v", s.Current, err)
	}
}

// ends makes Jobs end as soon as they exist: the named one fails, with a pod that has the reason, and others succeed.
func (w *fixture) ends(bad string) {
	condition := func(kind string) map[string]any {
		return map[string]any{"conditions": []any{map[string]any{"type": kind, "status": "True", "message": "it tried often"}}}
	}
	w.server.Stall("Job")
	w.server.Answer = func(http.ResponseWriter, *http.Request) bool {
		for _, full := range w.jobs() {
			_, name, _ := strings.Cut(full, "/")
			job := w.server.Object("Job", "shop", name)
			switch {
			case job == nil || job.Object["status"] != nil:
			case name != bad:
				w.edit("Job", name, condition("Complete"), "status")
			default:
				labels := map[string]any{"batch.kubernetes.io/controller-uid": string(job.GetUID())}
				w.server.Put(w.T, fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: bad-x, namespace: shop, labels: {batch.kubernetes.io/controller-uid: %s},
ownerReferences: [{apiVersion: batch/v1, kind: Job, name: %s, uid: %[1]s, controller: true}]}, spec: {nodeName: a, containers: [{name: a, image: a}]},
status: {phase: Failed, containerStatuses: [{name: a, state: {terminated: {exitCode: 3, reason: Error, message: the database is locked}}}]}}`, job.GetUID(), name))
				w.edit("Job", name, map[string]any{"matchLabels": labels}, "spec", "selector")
				w.edit("Job", name, condition("Failed"), "status")
			}
		}
		return false
	}
}

// TestTaskFails checks that the reason is reported, old objects stay, and the next run continues with the failed task.
func TestTaskFails(t *testing.T) {
	for name, test := range map[string]struct {
		when  schema.Moment
		goes  bool // deleted on failure
		first []string
		next  []string
	}{
		"before": {
			schema.MomentBefore, false,
			[]string{"PATCH jobs/good", "PATCH jobs/bad"},
			[]string{"DELETE jobs/bad", "PATCH jobs/bad", "PATCH configmaps/settings", "DELETE serviceaccounts/old"},
		},
		"applied": {
			schema.MomentApplied, false,
			[]string{"PATCH configmaps/settings", "PATCH jobs/good", "PATCH jobs/bad"},
			[]string{"DELETE jobs/bad", "PATCH jobs/bad", "DELETE serviceaccounts/old"},
		},
		"applied, and it goes": {
			schema.MomentApplied, true,
			[]string{"PATCH configmaps/settings", "PATCH jobs/good", "PATCH jobs/bad", "DELETE jobs/bad"},
			[]string{"PATCH jobs/bad", "DELETE serviceaccounts/old"},
		},
		"ready": {
			schema.MomentReady, false,
			[]string{"PATCH configmaps/settings", "DELETE serviceaccounts/old", "PATCH jobs/good", "PATCH jobs/bad"},
			[]string{"DELETE jobs/bad", "PATCH jobs/bad"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			w.deploy(w.release("1.0.0", anAccount("old")), engine.PlanOptions{})
			r := w.release("2.0.0", settings)
			w.add(&r, test.when, aJob("good", ""), weight(-1))
			w.add(&r, test.when, aJob("bad", ""), func(t *schema.Task) { t.DeleteOnFailure = test.goes })
			w.ends("bad")
			plan, err := w.Plan(t.Context(), r, engine.PlanOptions{})
			if err != nil {
				t.Fatal(err)
			}
			w.steps()
			err = w.Apply(t.Context(), plan, engine.ApplyOptions{Timeout: time.Minute})
			w.failed(err, report.Timeout, "task Job shop/bad failed", "the database is locked", "run the same command again")
			w.same("first", w.steps(), test.first)
			w.ends("")
			if plan := w.again(r); plan.Resumes == nil || plan.Resumes.Failure == nil {
				t.Errorf("%+v", plan.Resumes)
			}
			w.same("next", w.steps(), test.next)
			w.same("record", w.record(), []string{"current 2 add done 2.0.0", "history 1 add done 1.0.0"})
		})
	}
}

// TestTaskTimeout checks that the next run waits again for a task that has not ended in time.
func TestTaskTimeout(t *testing.T) {
	w := newFixture(t)
	w.server.Stall("Job", "Pod")
	r := w.release("1.0.0", settings)
	w.add(&r, schema.MomentBefore, aJob("slow", ""))
	w.add(&r, schema.MomentBefore, "{apiVersion: v1, kind: Pod, metadata: {name: slower}, spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}")
	plan, err := w.Plan(t.Context(), r, engine.PlanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.failed(w.Apply(t.Context(), plan, engine.ApplyOptions{Timeout: time.Millisecond}), report.Timeout, "task Job shop/slow did not end in 1ms")
	if plan, err = w.Plan(t.Context(), r, engine.PlanOptions{}); err != nil {
		t.Fatal(err)
	}
	w.same("plan", actions(plan), []string{"create Pod slower", "create ConfigMap settings"})
	w.server.Stall("Pod")
	w.server.Answer = func(http.ResponseWriter, *http.Request) bool {
		if pod := w.server.Object("Pod", "shop", "slower"); pod != nil && pod.Object["status"] == nil {
			w.edit("Pod", "slower", map[string]any{"phase": "Succeeded"}, "status")
		}
		return false
	}
	w.steps()
	w.again(r)
	w.same("writes", w.steps(), []string{"PATCH pods/slower", "PATCH configmaps/settings"})
}

// now returns the resource version of the last write: the record, after a run.
func (w *fixture) now() string {
	return w.server.Object("Secret", cluster.SystemNamespace, demo.SecretName()).GetResourceVersion()
}

// made counts the creations of each Job since a version. It ends the use of the server.
func (w *fixture) made(since string) []string {
	w.Helper()
	w.server.Put(w.T, strings.Replace(aJob("last", ""), "name: last", "name: last, namespace: default", 1))
	seen, counts := map[types.UID]bool{}, map[string]int{}
	for change, err := range w.Cluster.Watch(w.Context(), jobKind, "", metav1.ListOptions{ResourceVersion: since}) {
		if err != nil {
			w.Fatal(err)
		}
		if name := change.Object.GetName(); name == "last" {
			break
		} else if change.Type != watch.Deleted && !seen[change.Object.GetUID()] {
			seen[change.Object.GetUID()] = true
			counts[name]++
		}
	}
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		lines = append(lines, fmt.Sprint(name, " ", counts[name]))
	}
	return lines
}

// expire deletes ended Jobs with a time to live at the next request.
func (w *fixture) expire(_ http.ResponseWriter, r *http.Request) bool {
	if r.Context().Value(servedKey{}) != nil {
		return false
	}
	for _, name := range w.jobs() {
		_, short, _ := strings.Cut(name, "/")
		job := w.server.Object("Job", "shop", short)
		if job == nil {
			continue
		}
		if _, expires, _ := unstructured.NestedInt64(job.Object, "spec", "ttlSecondsAfterFinished"); expires {
			served := context.WithValue(context.Background(), servedKey{}, true)
			w.server.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(served, http.MethodDelete, "/apis/batch/v1/namespaces/shop/jobs/"+short, nil))
		}
	}
	return false
}

// TestTasksKilled kills runs with tasks at each write, before and after the server executes it. Each task still runs once, and the
// result is the same as without a kill.
func TestTasksKilled(t *testing.T) {
	with := func(w *fixture, version string) engine.Release {
		r := w.release(version, settings, deployment)
		if version == "" {
			r = w.release("")
			return r
		}
		w.add(&r, schema.MomentBefore, anAccount("hook"), weight(-5), deleted)
		w.add(&r, schema.MomentBefore, aJob("before", ""), deleted, on(schema.OccasionInstall, schema.OccasionUpgrade, schema.OccasionRemove))
		w.add(&r, schema.MomentApplied, aJob("expires", "0"))
		w.add(&r, schema.MomentApplied, aJob("twice", ""))
		w.add(&r, schema.MomentReady, aJob("twice", ""))
		w.add(&r, schema.MomentReady, anAccount("last"), on(schema.OccasionInstall, schema.OccasionRemove))
		w.add(&r, schema.MomentApplied, aJob("gone", ""), on(schema.OccasionRemove))
		return r
	}
	ran := []string{"before 1", "expires 1", "twice 2"}
	for name, test := range map[string]struct {
		before []string
		killed string
		runs   []string
		writes int64 // at least
	}{
		"first deployment": {nil, "1.0.0", ran, 16},
		"upgrade":          {[]string{"1.0.0"}, "2.0.0", ran, 16},
		"removal":          {[]string{"1.0.0"}, "", []string{"before 1", "gone 1"}, 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := func() (*fixture, string) {
				w, since := newFixture(t), "0"
				w.server.Answer = w.expire
				for _, version := range test.before {
					w.deploy(with(w, version), engine.PlanOptions{})
					since = w.now()
				}
				return w, since
			}
			undisturbed, since := start()
			undisturbed.deploy(with(undisturbed, test.killed), engine.PlanOptions{})
			want := undisturbed.dump(true)
			undisturbed.same("runs", undisturbed.made(since), test.runs)
			for _, served := range []bool{false, true} {
				for n := int64(1); ; n++ {
					w, since := start()
					if !w.killed(n, served, with(w, test.killed), engine.PlanOptions{}) {
						if n <= test.writes {
							t.Errorf("it ended after %d writes", n-1)
						}
						break
					}
					w.deploy(with(w, test.killed), engine.PlanOptions{})
					what := fmt.Sprintf("after write %d, served %t", n, served)
					w.same(what, w.dump(true), want)
					w.same(what, w.made(since), test.runs)
				}
			}
		})
	}
}

// TestTasksOnce checks that a task that runs once for a version runs again for another version and after a removal.
func TestTasksOnce(t *testing.T) {
	w := newFixture(t)
	for _, step := range []struct {
		version string
		color   string
		want    []string
	}{
		{"1.0.0", "red", []string{"PATCH configmaps/settings", "PATCH jobs/often", "PATCH jobs/once"}},
		{"1.0.0", "green", []string{"PATCH configmaps/settings", "DELETE jobs/often", "PATCH jobs/often"}},
		{"2.0.0", "green", []string{"DELETE jobs/often", "PATCH jobs/often", "DELETE jobs/once", "PATCH jobs/once"}},
		{"1.0.0", "green", []string{"DELETE jobs/often", "PATCH jobs/often"}},
		{"", "", []string{"DELETE jobs/often", "DELETE jobs/once", "DELETE configmaps/settings"}},
		{"1.0.0", "green", []string{"PATCH configmaps/settings", "PATCH jobs/often", "PATCH jobs/once"}},
	} {
		r := w.release("")
		if step.version != "" {
			r = w.release(step.version, strings.Replace(settings, "red", step.color, 1))
			w.add(&r, schema.MomentApplied, aJob("once", ""), once)
			w.add(&r, schema.MomentApplied, aJob("often", ""))
		}
		w.again(r)
		got := w.steps()
		if step.version == "" {
			slices.Sort(got[:2]) // they are deleted side by side
		}
		w.same(fmt.Sprint(step), got, step.want)
	}
}

// TestComponentWithOnlyAJob deploys a release that has only a task.
func TestComponentWithOnlyAJob(t *testing.T) {
	w := newFixture(t)
	release := func(version string) engine.Release {
		r := w.release("")
		if r.Version = version; version != "" {
			r.Operation = "add"
			w.add(&r, schema.MomentApplied, aJob("sync", ""), once)
		}
		return r
	}
	for _, step := range []struct {
		version string
		want    []string
	}{
		{"1.0.0", []string{"PATCH jobs/sync"}},
		{"1.0.0", nil},
		{"2.0.0", []string{"DELETE jobs/sync", "PATCH jobs/sync"}},
		{"", []string{"DELETE jobs/sync"}},
		{"", nil},
	} {
		w.steps()
		w.again(release(step.version))
		w.same(step.version, w.steps(), step.want)
	}
}

// TestOccasions checks that objects of tasks stay through operations that do not run the task, such as the Secret of a pre-install hook.
func TestOccasions(t *testing.T) {
	w := newFixture(t)
	release := func(version string) engine.Release {
		r := w.release(version, settings)
		w.add(&r, schema.MomentBefore, "{apiVersion: v1, kind: Secret, metadata: {name: keys}, stringData: {a: b}}", on(schema.OccasionInstall))
		w.add(&r, schema.MomentBefore, aJob("install", ""), on(schema.OccasionInstall))
		w.add(&r, schema.MomentBefore, aJob("upgrade", ""), on(schema.OccasionUpgrade))
		w.add(&r, schema.MomentBefore, aJob("back", ""), on(schema.OccasionBack))
		w.add(&r, schema.MomentBefore, aJob("leave", ""), on(schema.OccasionRemove))
		w.add(&r, schema.MomentApplied, aJob("left", ""), on(schema.OccasionRemove))
		return r
	}
	w.steps()
	w.deploy(release("1.0.0"), engine.PlanOptions{})
	w.same("install", w.steps(), []string{"PATCH jobs/install", "PATCH secrets/keys", "PATCH configmaps/settings"})
	w.again(release("2.0.0"))
	w.same("upgrade", w.steps(), []string{"PATCH jobs/upgrade"})

	repair, _, err := w.Deployed(t.Context(), []*record.State{w.state()})
	if err != nil {
		t.Fatal(err)
	}
	w.remove(jobKind, "upgrade")
	w.edit("Secret", "keys", map[string]any{"a": "cm90YXRlZA=="}, "data")
	w.steps()
	if plan := w.deploy(repair[0], engine.PlanOptions{Restore: true}); !plan.Empty() || len(w.steps()) > 0 {
		t.Errorf("a repair runs no tasks, and leaves what others have changed: %v", plan.Changes)
	}
	w.remove(cluster.SecretKind, "keys")
	if plan, failure := w.Plan(t.Context(), repair[0], engine.PlanOptions{Restore: true, ReadOnly: true}); failure != nil || !slices.Equal(actions(plan), []string{"create Secret keys"}) {
		t.Errorf("a look does not show it: %v, %v", plan, failure)
	}
	w.steps()
	w.deploy(repair[0], engine.PlanOptions{Restore: true})
	w.same("repair", w.steps(), []string{"PATCH secrets/keys"})

	s := w.state()
	back := release("1.0.0")
	content, err := w.Content(t.Context(), demo, &s.History[0])
	if err != nil {
		t.Fatal(err)
	}
	back.Back, back.Tasks = true, content.Tasks
	var jobs []string
	for _, change := range w.again(back).Changes {
		if change.Object.Kind == "Job" {
			jobs = append(jobs, fmt.Sprintf("%s %s: %s", change.Action, change.Object.Name, change.Note))
		}
	}
	w.same("plan of going back", jobs, []string{
		"none install: it is not run again: it is for installations and upgrades", "none upgrade: it is not run again: it is for installations and upgrades",
		"create back: it is run before everything else",
	})
	w.same("back", w.steps(), []string{"PATCH jobs/back"})

	w.again(w.release(""))
	removal := w.steps()
	slices.Sort(removal[1:3]) // they are deleted side by side, as are these
	slices.Sort(removal[3:5])
	w.same("removal", removal, []string{
		"PATCH jobs/leave", "DELETE jobs/back", "DELETE jobs/install", "DELETE configmaps/settings", "DELETE secrets/keys",
		"PATCH jobs/left", "DELETE jobs/left", "DELETE jobs/leave",
	})
	w.same("left", w.everything(), nil)
	if err := w.DeleteRecords(t.Context(), demo); err != nil {
		t.Error(err)
	}
}

func (w *fixture) state() *record.State {
	w.Helper()
	s, err := w.State(w.Context(), demo)
	if err != nil {
		w.Fatal(err)
	}
	return s
}

// TestRemovalOfFailedDeployment checks that the removal of a failed first deployment runs its tasks, and that of one that was never started does not.
func TestRemovalOfFailedDeployment(t *testing.T) {
	for _, writes := range []int64{1, 2} { // the record, and the content
		w := newFixture(t, "{apiVersion: v1, kind: Namespace, metadata: {name: solutionctl-system}}")
		r := w.release("1.0.0", settings)
		w.add(&r, schema.MomentBefore, aJob("leave", ""), on(schema.OccasionRemove))
		w.killed(writes+1, false, r, engine.PlanOptions{})
		w.steps()
		w.again(w.release(""))
		var want []string
		if writes == 2 {
			want = []string{"PATCH jobs/leave", "DELETE jobs/leave"}
		}
		w.same(fmt.Sprint("after ", writes), w.steps(), want)
		w.same("record", w.record()[:1], []string{"current 2 remove done"})
	}
}

// TestRemovalWithoutANamespace checks that a release whose namespace was deleted is removed without its tasks.
func TestRemovalWithoutANamespace(t *testing.T) {
	w := newFixture(t)
	r := w.release("1.0.0", settings)
	w.add(&r, schema.MomentBefore, aJob("leave", ""), on(schema.OccasionRemove))
	w.deploy(r, engine.PlanOptions{})
	home, err := w.Cluster.Get(t.Context(), cluster.NamespaceKind, "", "shop")
	if err == nil {
		err = w.Cluster.Delete(t.Context(), home, cluster.DeleteOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	w.again(w.release(""))
	w.same("record", w.record(), []string{"current 2 remove done", "history 1 add done 1.0.0"})
}

// TestRefusedTasks checks that invalid tasks are refused before any change.
func TestRefusedTasks(t *testing.T) {
	running := strings.Replace(aJob("a", ""), "name: a}", "name: a, namespace: shop}", 1)
	for name, test := range map[string]struct {
		there string // an existing object of another tool
		add   func(*fixture, *engine.Release)
		code  report.Code
		parts []string
	}{
		"a Job of another tool": {
			running, func(w *fixture, r *engine.Release) { w.add(r, schema.MomentBefore, aJob("a", "")) },
			report.Conflict,
			[]string{"Job shop/a exists and is not part of shop/demo", "--adopt"},
		},
		"a kind that is not there": {
			"", func(w *fixture, r *engine.Release) { w.add(r, schema.MomentBefore, pizza) }, report.NotFound,
			[]string{"task Pizza shop/margherita: the cluster has no Pizza of example.com/v1", "first deploy the Solution that defines the kind"},
		},
		"an object that is no task, too": {
			"", func(w *fixture, r *engine.Release) { w.add(r, schema.MomentBefore, settings) }, report.Invalid, []string{"ConfigMap shop/settings is in it twice, once as a task"},
		},
		"twice": {
			"", func(w *fixture, r *engine.Release) {
				w.add(r, schema.MomentBefore, aJob("a", ""))
				w.add(r, schema.MomentBefore, aJob("a", "5"), on(schema.OccasionRemove))
			}, report.Invalid, []string{"task Job shop/a is in it twice"},
		},
		"a definition": {"", func(w *fixture, r *engine.Release) { w.add(r, schema.MomentBefore, definition) }, report.Invalid, []string{"cannot be a task"}},
		"no moment":    {"", func(w *fixture, r *engine.Release) { w.add(r, "never", aJob("a", "")) }, report.Invalid, []string{`its moment "never"`}},
		"no operation": {"", func(w *fixture, r *engine.Release) { w.add(r, schema.MomentBefore, aJob("a", ""), on()) }, report.Invalid, []string{"no operation"}},
		"no object": {
			"", func(_ *fixture, r *engine.Release) {
				r.Tasks = []engine.Task{{Task: schema.Task{When: schema.MomentBefore, On: deploying}}}
			}, report.Invalid, []string{"no object"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			if test.there != "" {
				w.server.Put(t, test.there)
			}
			r := w.release("1.0.0", settings)
			test.add(w, &r)
			w.steps()
			_, err := w.Plan(t.Context(), r, engine.PlanOptions{})
			w.failed(err, test.code, test.parts...)
			w.same("writes", w.steps(), nil)
		})
	}
}

// TestRunningJob checks that a Job that still runs for an earlier operation is ended only if the task allows it.
func TestRunningJob(t *testing.T) {
	for _, replace := range []bool{true, false} {
		w := newFixture(t)
		w.server.Stall("Job")
		release := func(version string) engine.Release {
			r := w.release(version, settings)
			w.add(&r, schema.MomentApplied, aJob("a", ""), func(t *schema.Task) { t.Replace = replace })
			return r
		}
		plan, err := w.Plan(t.Context(), release("1.0.0"), engine.PlanOptions{})
		if err != nil {
			t.Fatal(err)
		}
		w.failed(w.Apply(t.Context(), plan, engine.ApplyOptions{Timeout: time.Millisecond}), report.Timeout)
		w.server.Answer = func(_ http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodDelete && !strings.Contains(r.URL.Path, "secrets") {
				w.server.Stall()
			}
			return false
		}
		plan, err = w.Plan(t.Context(), release("2.0.0"), engine.PlanOptions{})
		if !replace {
			w.failed(err, report.Refused, "Job shop/a is still running for an earlier operation", "--replace Job/a")
			plan, err = w.Plan(t.Context(), release("2.0.0"), engine.PlanOptions{Replace: []string{"Job/a"}})
		}
		if err != nil {
			t.Fatal(err)
		}
		w.same("plan", actions(plan), []string{"replace Job a"})
	}
}

// TestTasksOnARebuiltRecord checks that a rebuilt record has the objects of tasks, and has all tasks as completed.
func TestTasksOnARebuiltRecord(t *testing.T) {
	w := newFixture(t)
	r := w.release("1.0.0", settings)
	w.add(&r, schema.MomentBefore, anAccount("hook"))
	w.add(&r, schema.MomentBefore, aJob("gone", ""), deleted)
	w.add(&r, schema.MomentReady, aJob("once", ""), once)
	w.deploy(r, engine.PlanOptions{})
	record := w.server.Object("Secret", cluster.SystemNamespace, demo.SecretName())
	if err := w.Cluster.Delete(t.Context(), record, cluster.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	match, err := w.Match(t.Context(), r)
	if err == nil {
		err = w.Rebuild(t.Context(), match)
	}
	if err != nil {
		t.Fatal(err)
	}
	if n := len(w.state().Current.Objects); n != 3 {
		t.Errorf("%d objects are on record: %+v", n, w.state().Current.Objects)
	}
	w.steps()
	if plan := w.again(r); !plan.Empty() {
		t.Errorf("there is something to do: %v", plan.Changes)
	}
	r.Settings = map[string]string{"a": "b"}
	w.again(r)
	w.same("other settings", w.steps(), []string{"PATCH jobs/gone", "DELETE jobs/gone"})
}

// TestReadinessOfATask checks that a Job that has succeeded still has to meet the conditions of the release.
func TestReadinessOfATask(t *testing.T) {
	w := newFixture(t)
	r := w.release("1.0.0", settings)
	w.add(&r, schema.MomentApplied, aJob("sync", ""))
	r.Ready = []schema.Readiness{{GVK: "batch/v1/Job", Name: "sync", CEL: "object.status.succeeded == 2"}}
	plan, err := w.Plan(t.Context(), r, engine.PlanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	err = w.Apply(t.Context(), plan, engine.ApplyOptions{Timeout: time.Millisecond})
	w.failed(err, report.Timeout, "task Job shop/sync did not end in 1ms")
}
