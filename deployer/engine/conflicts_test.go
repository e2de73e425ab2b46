package engine_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	authorization "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kube "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/cluster/clustertest"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestConflictsOfObjects checks conflicts with objects and fields of others: each is refused without a write, and resolved by the option that the
// hint names.
func TestConflictsOfObjects(t *testing.T) {
	theirs := strings.Replace(settings, "name: settings", "name: settings, namespace: shop, labels: {heritage: salt}", 1)
	kubectl := func(w *fixture) { w.edit("ConfigMap", "settings", "green", "data", "color") }
	for name, test := range map[string]struct {
		deployed bool // version 1.0.0 of the release
		before   func(*fixture)
		release  func(*fixture) engine.Release
		code     report.Code
		says     []string
		out      engine.PlanOptions // the options of the hint; none if zero
		actions  []string
		there    []string
	}{
		"a field of another manager": {
			deployed: true, before: kubectl, code: report.Conflict, says: []string{"ConfigMap shop/settings", ".data.color", `"controller"`, "--force"},
			out: engine.PlanOptions{Force: true}, actions: []string{"update ConfigMap settings"}, there: []string{"ConfigMap settings [color:blue]"},
		},
		"a field of another manager, with the wanted value": {
			deployed: true, before: func(w *fixture) { w.edit("ConfigMap", "settings", "blue", "data", "color") },
			actions: []string{"update ConfigMap settings"}, there: []string{"ConfigMap settings [color:blue]"},
		},
		"an unrelated field": {
			deployed: true, before: func(w *fixture) { w.edit("ConfigMap", "settings", "theirs", "data", "other") },
			actions: []string{"update ConfigMap settings"}, there: []string{"ConfigMap settings [color:blue other:theirs]"},
		},
		"an object without an owner": {
			before: func(w *fixture) { w.server.Put(w.T, theirs) }, code: report.Conflict,
			says: []string{"ConfigMap shop/settings exists and is not part of shop/demo", "heritage=salt", "--adopt"},
			out:  engine.PlanOptions{Adopt: true}, actions: []string{"adopt ConfigMap settings"}, there: []string{"ConfigMap settings [color:blue size:1]"},
		},
		"an identical object without an owner": {
			before: func(w *fixture) {
				w.server.Put(w.T, strings.Replace(settingsTwo, "name: settings", "name: settings, namespace: shop", 1))
			},
			actions: []string{"adopt ConfigMap settings"}, there: []string{"ConfigMap settings [color:blue]"},
		},
		"an object of another release": {
			before: func(w *fixture) {
				other := w.release("1.0.0", settings)
				other.Name = "other"
				w.deploy(other, engine.PlanOptions{})
			},
			code: report.Conflict, says: []string{"ConfigMap shop/settings belongs to shop/other", "remove shop/other first"},
		},
		"an object with the label of a release that never was": {
			before: func(w *fixture) {
				id := (record.Key{Namespace: "shop", Name: "gone"}).ID()
				w.server.Put(w.T, strings.Replace(theirs, "heritage: salt", schema.LabelRelease+": "+id, 1))
			},
			code: report.Conflict, says: []string{"is not part of shop/demo", "--adopt"},
			out: engine.PlanOptions{Adopt: true}, actions: []string{"adopt ConfigMap settings"}, there: []string{"ConfigMap settings [color:blue size:1]"},
		},
		"an object with the label of a release whose record is damaged": {
			before: func(w *fixture) {
				gone := record.Key{Namespace: "shop", Name: "gone"}
				w.server.Put(w.T, strings.Replace(theirs, "heritage: salt", schema.LabelRelease+": "+gone.ID(), 1)+"\n---\n"+
					"{apiVersion: v1, kind: Namespace, metadata: {name: solutionctl-system}}\n---\n"+
					"{apiVersion: v1, kind: Secret, metadata: {name: "+gone.SecretName()+", namespace: solutionctl-system, labels: {solutionctl.io/stores: state}}}")
			},
			code: report.Conflict, says: []string{"belongs to shop/gone", "it has no data"},
		},
		"no namespace": {
			release: func(w *fixture) engine.Release {
				return w.release("2.0.0", strings.Replace(account, "name: web", "name: web, namespace: nowhere", 1))
			},
			code: report.NotFound, says: []string{"ServiceAccount nowhere/web: namespace nowhere does not exist"},
		},
		"the same object twice": {
			release: func(w *fixture) engine.Release { return w.release("2.0.0", settings, settingsTwo) },
			code:    report.Invalid, says: []string{"plan shop/demo: ConfigMap shop/settings is in it twice"},
		},
		"a name that is too long": {
			release: func(w *fixture) engine.Release {
				r := w.release("2.0.0", settings)
				r.Name = strings.Repeat("x", 55)
				return r
			},
			code: report.Invalid, says: []string{"longer than 54 characters"},
		},
		"no right to do it": {
			before: func(w *fixture) {
				refusal := apierrors.NewForbidden(kube.GroupResource{Resource: "configmaps"}, "settings", errors.New(`User "jane@example.com" cannot create resource "configmaps" in API group "" in the namespace "shop"`))
				w.server.Answer = func(rw http.ResponseWriter, r *http.Request) bool {
					refuses := r.Method != http.MethodGet && strings.Contains(r.URL.Path, "/configmaps")
					if refuses {
						clustertest.Fail(rw, refusal)
					}
					return refuses
				}
			},
			code: report.Forbidden, says: []string{`resources: ["configmaps"]`, `verbs: ["`},
		},
		"a kind that comes with the release, and no right to use the namespace that does": {
			release: func(w *fixture) engine.Release {
				return w.release("2.0.0", "{apiVersion: v1, kind: Namespace, metadata: {name: inner}}", strings.Replace(account, "name: web", "name: web, namespace: inner", 1))
			},
			before: func(w *fixture) {
				w.server.May = func(a authorization.ResourceAttributes) bool {
					return a.Resource != "serviceaccounts" && a.Resource != "*"
				}
			},
			code: report.Forbidden, says: []string{"you do not have all permissions", `resources: ["serviceaccounts"]`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			if test.deployed {
				w.deploy(w.release("1.0.0", settings), engine.PlanOptions{})
			}
			if test.before != nil {
				test.before(w)
			}
			release := w.release("2.0.0", settingsTwo)
			if test.release != nil {
				release = test.release(w)
			}
			before := w.everything()
			w.server.Requests()
			if test.code != "" {
				_, err := w.Plan(t.Context(), release, engine.PlanOptions{})
				w.failed(err, test.code, test.says...)
				if writes := w.writes(); len(writes) > 0 || !slices.Equal(before, w.everything()) {
					t.Errorf("a refusal writes: %q", writes)
				}
			}
			if test.actions == nil {
				_, err := w.Plan(t.Context(), release, engine.PlanOptions{Adopt: true, Force: true})
				w.failed(err, test.code) // no option resolves it
				return
			}
			w.same("plan", actions(w.deploy(release, test.out)), test.actions)
			w.same("objects", w.everything(), test.there)
			w.deploy(w.release(""), engine.PlanOptions{})
			w.same("objects after the removal", w.everything(), nil) // adopted objects are removed, too
		})
	}
}

// TestBetweenPlanAndApply checks that objects that have changed since the plan are planned again.
func TestBetweenPlanAndApply(t *testing.T) {
	for name, test := range map[string]struct {
		before    []string // deployed as 1.0.0
		meanwhile func(*fixture)
		code      report.Code
		says      []string
		there     []string
	}{
		"an object appears": {nil, func(w *fixture) {
			w.server.Put(w.T, "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: shop}, data: {color: theirs}}")
		}, report.Conflict, []string{"ConfigMap shop/settings exists", "--adopt"}, []string{"ConfigMap settings [color:theirs]"}},
		"one that is as it is wanted appears": {nil, func(w *fixture) {
			w.server.Put(w.T, "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: shop}, data: {color: blue}}")
		}, "", nil, []string{"ConfigMap settings [color:blue]"}},
		"another field is changed": {
			[]string{settings},
			func(w *fixture) { w.edit("ConfigMap", "settings", "theirs", "data", "other") },
			"", nil,
			[]string{"ConfigMap settings [color:blue other:theirs]"},
		},
		"the field itself is changed": {
			[]string{settings},
			func(w *fixture) { w.edit("ConfigMap", "settings", "green", "data", "color") },
			report.Conflict,
			[]string{".data.color", `"controller"`},
			[]string{"ConfigMap settings [color:green size:1]"},
		},
		"the object goes":         {[]string{settings}, func(w *fixture) { w.remove(cluster.ConfigMapKind, "settings") }, "", nil, []string{"ConfigMap settings [color:blue]"}},
		"what is to go has gone":  {[]string{settings, account}, func(w *fixture) { w.remove(kube.GroupVersionKind{Version: "v1", Kind: "ServiceAccount"}, "web") }, "", nil, []string{"ConfigMap settings [color:blue]"}},
		"what is to go is edited": {[]string{settings, account}, func(w *fixture) { w.edit("ServiceAccount", "web", false, "automountServiceAccountToken") }, "", nil, []string{"ConfigMap settings [color:blue]"}},
		"what is to go is another one": {[]string{settings, account}, func(w *fixture) {
			w.remove(kube.GroupVersionKind{Version: "v1", Kind: "ServiceAccount"}, "web")
			w.server.Put(w.T, "{apiVersion: v1, kind: ServiceAccount, metadata: {name: web, namespace: shop}}")
		}, "", nil, []string{"ConfigMap settings [color:blue]", "ServiceAccount web"}},
		"the namespace goes": {nil, func(w *fixture) {
			live, err := w.Cluster.Get(w.Context(), cluster.NamespaceKind, "", "shop")
			if err == nil {
				err = w.Cluster.Delete(w.Context(), live, cluster.DeleteOptions{})
			}
			if err != nil {
				w.Fatal(err)
			}
		}, report.NotFound, []string{"namespace shop does not exist"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			if test.before != nil {
				w.deploy(w.release("1.0.0", test.before...), engine.PlanOptions{})
			}
			plan, err := w.Plan(t.Context(), w.release("2.0.0", settingsTwo), engine.PlanOptions{})
			if err != nil {
				t.Fatal(err)
			}
			test.meanwhile(w)
			if err := w.Apply(t.Context(), plan, engine.ApplyOptions{}); test.code != "" || err != nil {
				w.failed(err, test.code, test.says...)
			}
			w.same("objects", w.everything(), test.there)
			if test.code == "" {
				s, err := w.State(t.Context(), demo)
				if err != nil || len(s.Current.Objects) != 1 || s.Current.Objects[0].Name != "settings" {
					t.Errorf("the record has %+v, %v", s.Current, err)
				}
			}
		})
	}
}

// TestContendedObject checks that an object that changes all the time is updated by its fields alone, and that the engine gives up if that
// fails, too.
func TestContendedObject(t *testing.T) {
	w := newFixture(t)
	w.deploy(w.release("1.0.0", settings), engine.PlanOptions{})
	n := 0
	w.server.Answer = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/configmaps/settings") {
			n++
			w.edit("ConfigMap", "settings", fmt.Sprint(n), "data", "count")
		}
		return false
	}
	w.deploy(w.release("2.0.0", settingsTwo), engine.PlanOptions{})
	w.same("objects", w.everything(), []string{fmt.Sprintf("ConfigMap settings [color:blue count:%d]", n)})
	w.refuse(apierrors.NewConflict(kube.GroupResource{Resource: "configmaps"}, "settings", errors.New("the object has been modified")), http.MethodPatch, "/configmaps/settings")
	_, err := w.Plan(t.Context(), w.release("3.0.0", settings), engine.PlanOptions{})
	w.failed(err, report.Conflict, "ConfigMap shop/settings is changed by another process all the time", "run the command again")
}

// TestRepair checks that edits are reverted, and nothing else, and that a read-only plan needs no right to write.
func TestRepair(t *testing.T) {
	for name, test := range map[string]struct {
		hand    func(*fixture)
		code    report.Code // of the first attempt; the second is with force
		says    []string
		actions []string
		changed []string // fields of the plan
		there   string   // the ConfigMap
	}{
		"nothing":                {hand: func(*fixture) {}, there: "[color:red size:1]"},
		"a field was edited":     {hand: func(w *fixture) { w.edit("ConfigMap", "settings", "green", "data", "color") }, actions: []string{"update ConfigMap settings"}, changed: []string{`data.color: "green" → "red" (controller)`}, there: "[color:red size:1]"},
		"a field was removed":    {hand: func(w *fixture) { w.edit("ConfigMap", "settings", map[string]any{"color": "red"}, "data") }, actions: []string{"update ConfigMap settings"}, changed: []string{`data.size:  → "1" ()`}, there: "[color:red size:1]"},
		"a field was added":      {hand: func(w *fixture) { w.edit("ConfigMap", "settings", "theirs", "data", "other") }, there: "[color:red other:theirs size:1]"},
		"the object was deleted": {hand: func(w *fixture) { w.remove(cluster.ConfigMapKind, "settings") }, actions: []string{"create ConfigMap settings"}, there: "[color:red size:1]"},
		"the object was made again": {hand: func(w *fixture) {
			w.remove(cluster.ConfigMapKind, "settings")
			w.server.Put(w.T, strings.Replace(settings, "name: settings", "name: settings, namespace: shop", 1))
		}, actions: []string{"adopt ConfigMap settings"}, changed: []string{fmt.Sprintf("metadata.labels:  → {%q:%q} ()", schema.LabelRelease, demo.ID())}, there: "[color:red size:1]"},
		"another manager applies it": {hand: func(w *fixture) {
			w.applyAs("argo", "/api/v1/namespaces/shop/configmaps/settings", "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: shop}, data: {color: green}}")
		}, code: report.Conflict, says: []string{`data.color ("argo")`, "--force-conflicts"}, actions: []string{"update ConfigMap settings"}, changed: []string{`data.color: "green" → "red" (argo)`}, there: "[color:red size:1]"},
		"a workload was scaled": {hand: func(w *fixture) { w.edit("Deployment", "web", int64(3), "spec", "replicas") }, there: "[color:red size:1]"},
		"an image was changed": {hand: func(w *fixture) {
			w.edit("Deployment", "web", []any{map[string]any{"name": "web", "image": "evil"}}, "spec", "template", "spec", "containers")
		}, actions: []string{"update Deployment web"}, changed: []string{`spec.template.spec.containers[name=web].image: "evil" → "registry/web:1" (controller)`}, there: "[color:red size:1]"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			w.deploy(w.release("1.0.0", settings, strings.Replace(deployment, "spec: {containers", "spec: {serviceAccountName: web, containers", 1)), engine.PlanOptions{})
			test.hand(w)
			s, err := w.State(t.Context(), demo)
			if err != nil {
				t.Fatal(err)
			}
			releases, unread, err := w.Deployed(t.Context(), []*record.State{s})
			if err != nil || len(unread) > 0 {
				t.Fatal(err, unread)
			}
			w.server.Requests()
			look, err := w.Plan(t.Context(), releases[0], engine.PlanOptions{Restore: true, ReadOnly: true})
			if err != nil {
				t.Fatal(err)
			}
			w.same("seen", actions(look), test.actions)
			var changed []string
			for _, c := range look.Changes {
				for _, f := range c.Fields {
					changed = append(changed, fmt.Sprintf("%s: %s → %s (%s)", f.Path, f.From, f.To, f.Manager))
				}
			}
			w.same("fields", changed, test.changed)
			if requests := w.server.Requests(); slices.ContainsFunc(requests, func(r string) bool { return !strings.HasPrefix(r, "GET ") }) {
				t.Errorf("looking does more than that: %q", requests)
			}
			releases[0].Operation = "repair"
			options := engine.PlanOptions{Restore: true}
			if test.code != "" {
				_, err := w.Plan(t.Context(), releases[0], options)
				w.failed(err, test.code, test.says...)
				yields, err := w.Plan(t.Context(), releases[0], engine.PlanOptions{Restore: true, Yield: true})
				if err != nil || !yields.Empty() || !strings.Contains(fmt.Sprint(yields.Changes), "other managers apply these fields") {
					t.Errorf("who yields plans %+v, %v", yields.Changes, err)
				}
				options.Force = true
			}
			w.deploy(releases[0], options)
			if got := w.everything()[0]; got != "ConfigMap settings "+test.there {
				t.Errorf("afterwards %s, want %s", got, test.there)
			}
			replicas := w.server.Object("Deployment", "shop", "web").Object["spec"].(map[string]any)["replicas"]
			if want := map[bool]int64{true: 3, false: 1}[name == "a workload was scaled"]; replicas != want {
				t.Errorf("%v replicas, want %d", replicas, want)
			}
		})
	}
}

// TestImmutable checks that objects that cannot be changed in place are replaced if nothing is lost, or if the user accepts the
// consequences that the message lists.
func TestImmutable(t *testing.T) {
	refusal := func(kind, resource, name string) func(*fixture) {
		return func(w *fixture) {
			refused := apierrors.NewInvalid(kube.GroupKind{Kind: kind}, name, field.ErrorList{field.Invalid(field.NewPath("spec"), "", "field is immutable")})
			w.server.Answer = func(rw http.ResponseWriter, r *http.Request) bool {
				gone := w.server.Object(kind, "shop", name) == nil
				if gone || r.Method != http.MethodPatch || !strings.HasSuffix(r.URL.Path, "/"+resource+"/"+name) {
					return false
				}
				clustertest.Fail(rw, refused)
				return true
			}
		}
	}
	binding := "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: web}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %s}}"
	for name, test := range map[string]struct {
		before, after string
		rule          func(*fixture)
		code          report.Code
		says          []string
		replace       string // the option of the hint; "" for none
		action        string
	}{
		"a binding to another role": {fmt.Sprintf(binding, "view"), fmt.Sprintf(binding, "edit"), nil, "", nil, "", "replace RoleBinding web"},
		"a Job that has ended":      {job, jobTwo, refusal("Job", "jobs", "migrate"), "", nil, "", "replace Job migrate"},
		"a Job that is running": {job, jobTwo, func(w *fixture) {
			w.edit("Job", "migrate", map[string]any{"active": int64(1)}, "status")
			refusal("Job", "jobs", "migrate")(w)
		}, report.Refused, []string{"Job shop/migrate", "still running"}, "-", ""},
		"a selector of a Deployment": {
			deployment, strings.ReplaceAll(deployment, "app: web", "app: shop"), refusal("Deployment", "deployments", "web"),
			report.Refused,
			[]string{"Deployment shop/web", "field is immutable", "cannot be changed in place", "--replace Deployment/web"},
			"Deployment/web", "replace Deployment web",
		},
		"a volume claim": {
			volume, strings.Replace(volume, "{requests", "{limits: {storage: 2Gi}, requests", 1), refusal("PersistentVolumeClaim", "persistentvolumeclaims", "data"),
			report.Refused,
			[]string{"PersistentVolumeClaim shop/data", "the data in its volume would be lost"},
			"-", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			w.deploy(w.release("1.0.0", test.before), engine.PlanOptions{})
			if test.rule != nil {
				test.rule(w)
			}
			release := w.release("2.0.0", test.after)
			var options engine.PlanOptions
			if test.code != "" {
				_, err := w.Plan(t.Context(), release, options)
				w.failed(err, test.code, test.says...)
				options.Replace = []string{test.replace}
			}
			if test.action != "" {
				w.same("plan", actions(w.deploy(release, options)), []string{test.action})
			}
		})
	}
}

// TestLabelledInNamespace: a release in a namespace has no object of a kind that only the cluster has, except what its roles need.
func TestLabelledInNamespace(t *testing.T) {
	w := newFixture(t, "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high, labels: {"+schema.LabelRelease+": demo}}}")
	listed := func(namespaces ...string) (paths string) {
		t.Helper()
		w.server.Requests()
		if _, err := w.Labelled(t.Context(), engine.Kinds, namespaces...); err != nil {
			t.Fatal(err)
		}
		return strings.Join(w.server.Requests(), "\n")
	}
	for _, test := range []struct {
		namespaces []string
		want       bool
	}{{[]string{"shop"}, false}, {[]string{"shop", ""}, true}, {nil, true}} {
		if got := strings.Contains(listed(test.namespaces...), "priorityclasses"); got != test.want {
			t.Errorf("namespaces %q: lists of classes: %v, want %v", test.namespaces, got, test.want)
		}
	}
	if paths := listed("shop"); !strings.Contains(paths, "configmaps") {
		t.Errorf("no lists of objects of the namespace:\n%s", paths)
	}
}

// TestMatchAndRebuild checks that a lost record can be written again from the objects in the cluster.
func TestMatchAndRebuild(t *testing.T) {
	w := newFixture(t, strings.Replace(account, "name: web", "name: theirs, namespace: shop", 1))
	release := w.release("1.0.0", settings, account, deployment)
	w.deploy(release, engine.PlanOptions{})
	for _, secret := range w.server.Names("Secret") {
		_, name, _ := strings.Cut(secret, "/")
		if err := w.Cluster.Delete(t.Context(), w.server.Object("Secret", cluster.SystemNamespace, name), cluster.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	w.edit("ConfigMap", "settings", "green", "data", "color")
	found, err := w.Labelled(t.Context(), engine.Kinds)
	var labelled []string
	for _, f := range found {
		labelled = append(labelled, f.String()+" "+f.Object.GetKind()+" "+f.Object.GetName())
	}
	w.same("by label", labelled, []string{"shop/demo ConfigMap settings", "shop/demo Deployment web", "shop/demo ServiceAccount web"})
	if err != nil {
		t.Fatal(err)
	}
	release = w.release("1.0.0", settings, account, deployment, "{apiVersion: v1, kind: Secret, metadata: {name: none}}",
		strings.Replace(account, "web", "theirs", 1), "{apiVersion: other.com/v1, kind: Monitor, metadata: {name: m}}")
	w.server.Requests()
	match, err := w.Match(t.Context(), release)
	if err != nil {
		t.Fatal(err)
	}
	if writes := w.writes(); len(writes) > 0 {
		t.Errorf("comparing writes: %q", writes)
	}
	names := func(refs ...schema.ObjectRef) string {
		var all []string
		for _, ref := range refs {
			all = append(all, ref.Kind+" "+ref.Name)
		}
		return strings.Join(all, ", ")
	}
	var same []schema.ObjectRef
	for _, o := range match.Objects {
		same = append(same, o.ObjectRef)
	}
	w.same("match", []string{names(same...), names(match.Changed...), names(match.Missing...), names(match.Foreign...)}, []string{
		"ServiceAccount web, Deployment web", "ConfigMap settings", "Secret none", "ServiceAccount theirs",
	})

	w.applyAs(cluster.FieldManager, "/api/v1/namespaces/shop/configmaps/settings", "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: shop, labels: {"+
		schema.LabelRelease+": "+demo.ID()+"}}, data: {color: red, size: '1'}}")
	release = w.release("1.0.0", settings, account, deployment)
	for _, damage := range []string{"", "{data: {state.json.gz: AAAA}, immutable: true}"} {
		if damage != "" {
			w.server.Put(t, strings.Replace(damage, "{", "{apiVersion: v1, kind: Secret, metadata: {name: "+demo.SecretName()+", namespace: solutionctl-system}, ", 1))
		}
		if match, err = w.Match(t.Context(), release); err == nil {
			err = w.Rebuild(t.Context(), match)
		}
		if err != nil {
			t.Fatal(err)
		}
		w.same("record", w.record(), []string{"current 1 add done 1.0.0"})
		w.same("plan", actions(w.deploy(w.release("1.0.0", settings, account, deployment), engine.PlanOptions{})), nil)
	}
	w.same("upgrade", actions(w.deploy(w.release("2.0.0", settingsTwo), engine.PlanOptions{Force: true})), []string{
		"update ConfigMap settings", "delete Deployment web", "delete ServiceAccount web",
	})
}

// TestAllConflictsReported checks that an error lists all conflicts, and not only the first.
func TestAllConflictsReported(t *testing.T) {
	w := newFixture(t)
	named := func(text, name string) string {
		return strings.Replace(text, "name: settings", "name: "+name+", namespace: shop", 1)
	}
	refused := func(r engine.Release, option string) {
		t.Helper()
		_, err := w.Plan(t.Context(), r, engine.PlanOptions{})
		remedies := report.RemediesOf(err)
		if report.CodeOf(err) != report.Conflict || len(remedies) != 1 || remedies[0].String() != "--"+option {
			t.Fatalf("%v, remedies %+v", err, remedies)
		}
		var about []string
		for _, object := range remedies[0].Options[0].Objects {
			name, _, _ := strings.Cut(object, ": ")
			about = append(about, name)
		}
		w.same(option, about, []string{"ConfigMap shop/a", "ConfigMap shop/b"})
	}
	for _, name := range []string{"a", "b"} {
		w.server.Put(t, named(settings, name))
	}
	refused(w.release("1.0.0", named(settingsTwo, "a"), named(settingsTwo, "b")), "adopt")
	w.deploy(w.release("1.0.0", named(settings, "a"), named(settings, "b")), engine.PlanOptions{Adopt: true})
	for _, name := range []string{"a", "b"} {
		w.edit("ConfigMap", name, "green", "data", "color")
	}
	refused(w.release("2.0.0", named(settingsTwo, "a"), named(settingsTwo, "b")), "force-conflicts")
}
