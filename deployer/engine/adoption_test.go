package engine_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

const (
	configs = "/api/v1/namespaces/shop/configmaps"
	deploys = "/apis/apps/v1/namespaces/shop/deployments"

	labelled = "labels: {app.kubernetes.io/managed-by: other}, annotations: {other.example/of: shop}"
	web      = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, HEAD}, spec: {replicas: 2, selector: {matchLabels: {a: b}},
template: {metadata: {labels: {a: b}}, spec: {containers: [{name: web, image: a, env: [{name: A, value: b}]}]}}}}`
)

// create creates an object as a tool that does not use server-side apply.
func (w *fixture) create(manager, path, document string) {
	w.Helper()
	data, err := parse(w.T, document).MarshalJSON()
	if err != nil {
		w.Fatal(err)
	}
	answer := httptest.NewRecorder()
	w.server.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, path+"?fieldManager="+manager, strings.NewReader(string(data))))
	if answer.Code != http.StatusCreated && answer.Code != http.StatusOK {
		w.Fatalf("%d: %s", answer.Code, answer.Body)
	}
}

// takes returns a release that adopts the objects of a tool with the field manager "other".
func (w *fixture) takes(documents ...string) engine.Release {
	r := w.release("1.0.0", documents...)
	r.Adopt = &engine.Adoption{Manager: "other"}
	for _, o := range r.Objects {
		r.Adopt.Objects = append(r.Adopt.Objects, schema.ObjectRef{APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Namespace: "shop", Name: o.GetName()})
	}
	return r
}

func headed(document string) string { return strings.Replace(document, "HEAD", labelled, 1) }

func plain(document string) string { return strings.Replace(document, ", HEAD", "", 1) }

// managers returns the field managers of an object.
func managers(object *unstructured.Unstructured) string {
	names := map[string]bool{}
	for _, entry := range object.GetManagedFields() {
		if entry.Subresource == "" {
			names[entry.Manager+" "+string(entry.Operation)] = true
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(names)), ", ")
}

// TestAdoptedFields checks that the fields of another tool, applied or updated, become fields of the release: desired ones stay, pods
// included, and others are removed.
func TestAdoptedFields(t *testing.T) {
	const settings = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, HEAD}, data: {same: a, changed: b, old: c}}"
	for name, made := range map[string]func(w *fixture, path, name, document string){
		"as Helm 3": func(w *fixture, path, _, document string) { w.create("other", path, document) },
		"as Helm 4": func(w *fixture, path, name, document string) { w.applyAs("other", path+"/"+name, document) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			made(w, configs, "settings", headed(settings))
			made(w, deploys, "web", headed(web))
			w.applyAs("autoscaler", deploys+"/web", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 7}}")
			w.applyAs("controller", configs+"/settings", "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {extra: d}}")
			before := w.server.Object("Deployment", "shop", "web")

			r := w.takes("{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {same: a, changed: B, new: e}}", plain(web))
			plan := w.deploy(r, engine.PlanOptions{})
			w.same("the plan", actions(plan), []string{"adopt ConfigMap settings", "adopt Deployment web"})
			var fields []string
			for _, f := range plan.Changes[0].Fields {
				fields = append(fields, f.Path+" "+f.From+" "+f.To+" "+f.Manager)
			}
			w.same("fields of the plan", fields, []string{
				`data.changed "b" "B" other`, `data.new  "e" `, `data.old "c"  other`, `metadata.annotations {"other.example/of":"shop"}  other`,
				`metadata.labels[app.kubernetes.io/managed-by] "other"  other`, `metadata.labels[solutionctl.io/release]  "` + demo.ID() + `" `,
			})
			w.same("objects", w.everything(), []string{"ConfigMap settings [changed:B extra:d new:e same:a]", "Deployment web"})
			after := w.server.Object("Deployment", "shop", "web")
			if replicas, _, _ := unstructured.NestedInt64(after.Object, "spec", "replicas"); replicas != 7 || after.GetGeneration() != before.GetGeneration() || after.GetUID() != before.GetUID() {
				t.Errorf("%d replicas, generation %d after %d", replicas, after.GetGeneration(), before.GetGeneration())
			}
			w.same("field managers", []string{managers(w.server.Object("ConfigMap", "shop", "settings")), managers(after)},
				[]string{"controller Apply, solutionctl Apply", "autoscaler Apply, solutionctl Apply"})
			w.writes()
			w.same("the plan again", actions(w.deploy(r, engine.PlanOptions{})), nil)
			w.same("writes", w.writes(), nil)
			w.deploy(w.release(""), engine.PlanOptions{})
			w.same("objects after the removal", w.everything(), nil)
		})
	}
}

// TestNotAdopted checks that objects that are not listed or not owned by the other tool are left alone, and that pods do not restart
// without approval.
func TestNotAdopted(t *testing.T) {
	const settings = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {a: b}}"
	const wanted = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {a: c}}"
	for name, test := range map[string]struct {
		before  func(w *fixture)
		release func(r *engine.Release)
		code    report.Code
		words   []string
	}{
		"of a third manager": {before: func(w *fixture) { w.create("kubectl", configs, settings) }, code: report.Conflict, words: []string{"exists", "field manager kubectl", "--adopt"}},
		"not named": {
			before: func(w *fixture) { w.create("other", configs, settings) }, release: func(r *engine.Release) { r.Adopt.Objects = nil },
			code: report.Conflict, words: []string{"exists", "field manager other"},
		},
		"named in another namespace": {
			before: func(w *fixture) { w.create("other", configs, settings) }, release: func(r *engine.Release) { r.Adopt.Objects[0].Namespace = "kube-system" },
			code: report.Conflict, words: []string{"exists"},
		},
		"a field is of a third manager": {
			before: func(w *fixture) {
				w.create("other", configs, settings)
				w.applyAs("kubectl", configs+"/settings", "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {a: z}}")
			},
			code: report.Conflict, words: []string{`kubectl`, "data.a", "--force-conflicts"},
		},
		"another release's": {
			before: func(w *fixture) {
				r := w.release("1.0.0", settings)
				r.Name = "first"
				w.deploy(r, engine.PlanOptions{})
				w.applyAs("other", configs+"/settings", settings)
			},
			code: report.Conflict, words: []string{"belongs to shop/first"},
		},
		"pods": {
			before: func(w *fixture) { w.create("other", deploys, headed(web)) },
			release: func(r *engine.Release) {
				r.Objects[0] = parse(t, plain(strings.NewReplacer("image: a", "image: b", ", env: [{name: A, value: b}]", "").Replace(web)))
				r.Objects[0].SetNamespace("shop")
				r.Adopt.Objects = []schema.ObjectRef{{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}}
			},
			code: report.Refused, words: []string{"Deployment shop/web", "containers[name=web].image", "containers[name=web].env", "--accept-restart"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			test.before(w)
			r := w.takes(wanted)
			if test.release != nil {
				test.release(&r)
			}
			_, err := w.Plan(t.Context(), r, engine.PlanOptions{})
			w.failed(err, test.code, test.words...)
			if name != "pods" {
				return
			}
			r.Adopt.Restart = true
			if plan := w.deploy(r, engine.PlanOptions{}); !strings.Contains(plan.Changes[0].Note, "its pods restart: spec.template") {
				t.Errorf("note %q", plan.Changes[0].Note)
			}
			containers, _, _ := unstructured.NestedSlice(w.server.Object("Deployment", "shop", "web").Object, "spec", "template", "spec", "containers")
			if container, _ := containers[0].(map[string]any); container["image"] != "b" || container["env"] != nil {
				t.Errorf("got %v", container)
			}
		})
	}
}

// TestTasksOfAdoptedRelease checks that an adoption counts as an upgrade for tasks, and that objects of the other tool's tasks are adopted.
func TestTasksOfAdoptedRelease(t *testing.T) {
	w := newFixture(t)
	const job = "{apiVersion: batch/v1, kind: Job, metadata: {name: migrate, namespace: shop}, spec: {template: {metadata: {}, spec: {restartPolicy: Never, containers: [{name: a, image: b}]}}}}"
	w.create("other", "/apis/batch/v1/namespaces/shop/jobs", job)
	before := w.server.Object("Job", "shop", "migrate")
	const keys = "{apiVersion: v1, kind: Secret, metadata: {name: keys, HEAD}, data: {a: b25l, b: dHdv}}"
	w.create("other", "/api/v1/namespaces/shop/secrets", headed(keys))
	w.applyAs("kubectl", "/api/v1/namespaces/shop/secrets/keys", "{apiVersion: v1, kind: Secret, metadata: {name: keys}, data: {b: dGhyZWU=}}")
	r := w.takes()
	r.Version, r.Operation = "1.0.0", "add"
	r.Adopt.Objects = []schema.ObjectRef{
		{APIVersion: "batch/v1", Kind: "Job", Namespace: "shop", Name: "migrate"}, {APIVersion: "v1", Kind: "Secret", Namespace: "shop", Name: "keys"},
	}
	r.Found = []schema.DeployedObject{engine.Found{Object: w.server.Object("Secret", "shop", "keys")}.Deployed()}
	r.Tasks = []engine.Task{
		{Task: schema.Task{When: schema.MomentBefore, On: []schema.Occasion{schema.OccasionUpgrade}}, Object: parse(t, job)},
		{Task: schema.Task{When: schema.MomentApplied, On: []schema.Occasion{schema.OccasionInstall}}, Object: w.objects(strings.Replace(job, "migrate", "install", 1))[0]},
		{Task: schema.Task{When: schema.MomentBefore, On: []schema.Occasion{schema.OccasionInstall}}, Object: w.objects(plain(keys))[0]},
	}
	r.Objects = w.objects("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")
	w.same("the plan", actions(w.deploy(r, engine.PlanOptions{})), []string{"replace Job migrate", "create ConfigMap a"})
	if after := w.server.Object("Job", "shop", "migrate"); after == nil || after.GetUID() == before.GetUID() || w.server.Object("Job", "shop", "install") != nil {
		t.Errorf("the jobs are %q, the first is %v", w.server.Names("Job"), after)
	}
	left := w.server.Object("Secret", "shop", "keys")
	if left.GetLabels()[schema.LabelRelease] != demo.ID() || left.GetLabels()["app.kubernetes.io/managed-by"] != "other" {
		t.Errorf("what a task has left has the labels %v", left.GetLabels())
	}
	w.same("what a task has left", []string{fmt.Sprint(left.Object["data"]), managers(left)}, []string{"map[a:b25l b:dGhyZWU=]", "kubectl Apply, solutionctl Apply"})
	w.deploy(w.release(""), engine.PlanOptions{})
	w.same("objects after the removal", w.everything(), nil)
}

// TestKilledWhileAdopting kills adoptions at each write: the next run reaches the same state as an undisturbed one.
func TestKilledWhileAdopting(t *testing.T) {
	const settings = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, HEAD}, data: {a: b, old: c}}"
	start := func(t *testing.T) (*fixture, engine.Release) {
		t.Helper()
		w := newFixture(t)
		w.create("other", configs, headed(settings))
		w.create("other", deploys, headed(web))
		return w, w.takes("{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {a: B}}", plain(web))
	}
	undisturbed, r := start(t)
	undisturbed.deploy(r, engine.PlanOptions{})
	want := undisturbed.dump(true)
	for _, served := range []bool{false, true} {
		for n := int64(1); ; n++ {
			w, r := start(t)
			if !w.killed(n, served, r, engine.PlanOptions{}) {
				if n < 6 {
					t.Errorf("there are only %d writes", n-1)
				}
				break
			}
			w.deploy(r, engine.PlanOptions{})
			w.same("what is there after a kill", w.dump(true), want)
		}
	}
}
