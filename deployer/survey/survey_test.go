package survey

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
)

var shop = record.Key{Namespace: "shop", Name: "demo"}

// revision is one of a version, with an object.
func revision(version string) *schema.DeploymentRevision {
	ref := schema.ObjectRef{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "demo-operator"}
	return &schema.DeploymentRevision{Operation: "upgrade", Version: version, User: "alice@there", Objects: []schema.DeployedObject{{ObjectRef: ref, UID: "u"}}}
}

// operator is a Deployment that has as many pods as it wants, none.
func operator(labels map[string]string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "spec": map[string]any{"replicas": int64(0)}, "status": map[string]any{"observedGeneration": int64(0)},
	}}
	o.SetName("demo-operator")
	o.SetNamespace("shop")
	o.SetLabels(labels)
	return o
}

// TestDeployment: health of version 1.0.0 of Solution demo, imported and requested in namespace shop, unless the row
// differs.
func TestDeployment(t *testing.T) {
	ready := &finding{health: schema.HealthReady, objects: 2, ready: 2}
	for _, test := range []struct {
		name    string
		wanted  string // "-" is nothing
		state   record.State
		finding *finding
		strays  bool // there are objects with our label on no record
		foreign *unstructured.Unstructured
		cluster bool // it is the part for the whole cluster
		health  schema.DeploymentHealth
		version string
		words   []string
	}{
		{name: "all is well", state: record.State{Current: revision("1.0.0")}, finding: ready, health: schema.HealthReady, version: "1.0.0"},
		{name: "nothing is there", health: schema.HealthMissing, words: []string{"is asked for, but is not deployed"}},
		{name: "what is asked for was not imported", wanted: "7.0.0", health: schema.HealthMissing, words: []string{"7.0.0 is asked for, but was not imported"}},
		{
			name: "another version is asked for", wanted: "1.1.0", state: record.State{Current: revision("1.0.0")}, finding: ready,
			health: schema.HealthDrifted, version: "1.0.0", words: []string{"1.1.0 is asked for, but 1.0.0 is deployed"},
		},
		{
			name: "nothing is asked for", wanted: "-", state: record.State{Current: revision("1.0.0")}, finding: ready,
			health: schema.HealthDrifted, version: "1.0.0", words: []string{"metalk8s-environment does not ask for it"},
		},
		{
			name: "no version is active", wanted: "-", cluster: true, state: record.State{Current: revision("1.0.0")}, finding: ready,
			health: schema.HealthDrifted, version: "1.0.0", words: []string{"has no active version of it"},
		},
		{
			name: "an upgrade has begun", wanted: "1.1.0", state: record.State{Current: revision("1.0.0"), Pending: revision("1.1.0")},
			finding: &finding{health: schema.HealthProgressing, reasons: []schema.Reason{{Text: "a pod waits"}}},
			health:  schema.HealthPending, version: "1.0.0", words: []string{"a pod waits", "upgrade of version 1.1.0, begun by alice@there", "solutionctl deploy resume"},
		},
		{
			name: "a pod fails, which is worse than another version", wanted: "1.1.0", state: record.State{Current: revision("1.0.0")},
			finding: &finding{health: schema.HealthFailed, reasons: []schema.Reason{{Text: "a pod fails"}}},
			health:  schema.HealthFailed, version: "1.0.0", words: []string{"a pod fails", "but 1.0.0 is deployed"},
		},
		{
			name: "the record is damaged", state: record.State{Damage: errors.New("unexpected EOF")}, health: schema.HealthFailed,
			words: []string{"unexpected EOF", "'solutionctl deploy repair store demo --records'"},
		},
		{
			name: "the record is lost", strays: true, health: schema.HealthFailed, version: "1.0.0",
			words: []string{"its record is lost: Deployment shop/demo-operator", "'solutionctl deploy repair store demo --records'"},
		},
		{
			name: "something is not on the record", strays: true, state: record.State{Current: revision("1.0.0")}, finding: ready, health: schema.HealthFailed,
			version: "1.0.0", words: []string{"are not on its record: Deployment shop/demo-operator"},
		},
		{
			name: "MetalK8s has deployed it", foreign: operator(map[string]string{"heritage": "salt", "app.kubernetes.io/version": "1.0.0"}),
			health: schema.HealthForeign, version: "1.0.0", words: []string{"deployed by MetalK8s", "--adopt"},
		},
		{
			name: "another program has", foreign: operator(nil), health: schema.HealthForeign, words: []string{"deployed by another program"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			key := shop
			if test.cluster {
				key.Namespace = ""
			}
			test.state.Key = key
			s := &picture{
				catalog: &records.Catalog{}, states: map[record.Key]*record.State{key: &test.state}, findings: map[record.Key]*finding{},
				foreign: map[record.Key]*unstructured.Unstructured{}, lost: map[record.Key]*records.Unrecorded{},
			}
			s.catalog.Put(schema.Import{Name: "demo", Version: "1.0.0"})
			s.catalog.Put(schema.Import{Name: "demo", Version: "1.1.0"})
			if test.finding != nil {
				s.findings[key] = test.finding
			}
			if test.foreign != nil {
				s.foreign[key] = test.foreign
			}
			if test.strays {
				s.lost[key] = &records.Unrecorded{Key: key, Ours: []engine.Found{{Key: key, Object: operator(map[string]string{"app.kubernetes.io/version": "1.0.0"})}}}
			}
			wanted := "1.0.0"
			if test.wanted != "" {
				wanted = strings.TrimPrefix(test.wanted, "-")
			}
			got := s.deployment(key, wanted, "store")
			if got.Health != test.health || got.Version != test.version {
				t.Errorf("%s, version %q, want %s, %q", got.Health, got.Version, test.health, test.version)
			}
			text := strings.Join(schema.Sentences(got.Reasons), "\n")
			for _, word := range test.words {
				if !strings.Contains(text, word) {
					t.Errorf("nothing about %q in:\n%s", word, text)
				}
			}
			if len(test.words) == 0 && text != "" {
				t.Errorf("reasons: %s", text)
			}
		})
	}
}

// TestProblems: problems outside of all environments.
func TestProblems(t *testing.T) {
	at := func(namespace string) record.Key { return record.Key{Namespace: namespace, Name: "demo"} }
	s := &picture{
		environments: []metalk8s.Environment{{Name: "store", Namespaces: []metalk8s.Namespace{{Name: "shop"}}}},
		solutions: &metalk8s.Solutions{
			Versions: map[string][]schema.ImportedSolution{"salted": {{Version: "2.0.0", Archive: "/srv/salted.iso"}}},
			Problems: []metalk8s.Problem{{Where: "key db", Err: errors.New("not YAML")}},
		},
		catalog: &records.Catalog{},
		states: map[record.Key]*record.State{
			at("shop"): {Key: at("shop"), Current: revision("1.0.0")}, at("gone"): {Key: at("gone"), Current: revision("1.0.0")},
			at("lone"): {Key: at("lone"), Current: revision("1.0.0")}, at("dark"): {Key: at("dark"), Damage: errors.New("unexpected EOF")},
			at("left"): {Key: at("left")},
		},
		lost: map[record.Key]*records.Unrecorded{at("lost"): {Key: at("lost"), Ours: []engine.Found{{Object: operator(nil)}}}},
		gone: map[string]bool{"gone": true},
	}
	s.catalog.Put(schema.Import{Name: "demo", Version: "1.0.0"})
	got := s.problems()
	want := []string{
		"key db: not YAML",
		"demo-1.0.0 was imported, but MetalK8s' ConfigMap metalk8s-solutions does not list it",
		"salted-2.0.0 was imported by MetalK8s only: to deploy it from here, run 'solutionctl deploy import /srv/salted.iso'",
		"Solution demo is in namespace lost, which is not part of an environment, and on no record",
		"the record of Solution demo in namespace dark cannot be read: unexpected EOF",
		"Solution demo 1.0.0 was deployed in namespace gone, which was deleted: 'solutionctl deploy env delete gone'",
		"Solution demo 1.0.0 is deployed in namespace lone, which is not part of an environment: 'solutionctl deploy env create NAME --namespace lone --adopt'",
	}
	if len(got) != len(want) {
		t.Fatalf("%d problems, want %d:\n%s", len(got), len(want), strings.Join(got, "\n"))
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("got  %s\nwant %s", got[i], want[i])
		}
	}
}

// TestReady: all is, or it is not.
func TestReady(t *testing.T) {
	in := func(n schema.NamespaceStatus) schema.Status {
		return schema.Status{Environments: []schema.EnvironmentStatus{{Namespaces: []schema.NamespaceStatus{n}}}}
	}
	with := func(h schema.DeploymentHealth) []schema.DeploymentStatus {
		return []schema.DeploymentStatus{{Health: schema.HealthReady}, {Health: h}}
	}
	for name, test := range map[string]struct {
		status schema.Status
		want   bool
	}{
		"nothing":                    {schema.Status{}, true},
		"a Solution that is":         {in(schema.NamespaceStatus{Deployments: with(schema.HealthReady)}), true},
		"one that is coming up":      {in(schema.NamespaceStatus{Deployments: with(schema.HealthProgressing)}), false},
		"one of another owner":       {in(schema.NamespaceStatus{Deployments: with(schema.HealthForeign)}), false},
		"a namespace that goes away": {in(schema.NamespaceStatus{Terminating: true}), false},
		"an unusable entry":          {in(schema.NamespaceStatus{Problems: []string{"x"}}), false},
		"its part for the cluster":   {schema.Status{Solutions: []schema.SolutionStatus{{}, {Deployment: &schema.DeploymentStatus{Health: schema.HealthFailed}}}}, false},
		"a problem of the cluster":   {schema.Status{Problems: []string{"x"}}, false},
	} {
		if got := isReady(&test.status); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestUnheard: a webhook that does not answer may yet, while something else is still coming up.
func TestUnheard(t *testing.T) {
	for before, want := range map[schema.DeploymentHealth]schema.DeploymentHealth{
		schema.HealthReady: schema.HealthFailed, schema.HealthProgressing: schema.HealthProgressing, schema.HealthFailed: schema.HealthFailed,
	} {
		f := &finding{health: before, silent: []schema.Reason{{Text: "it does not answer"}}}
		if f.judgeWebhooks(); f.health != want || len(f.reasons) != 1 {
			t.Errorf("%s becomes %s: %q", before, f.health, f.reasons)
		}
	}
	f := &finding{health: schema.HealthReady}
	if f.judgeWebhooks(); f.health != schema.HealthReady {
		t.Errorf("without webhooks: %s", f.health)
	}
}

// TestMayHaveChanged: for kinds without a status a new resource version means a change; for others the status may have
// changed.
func TestMayHaveChanged(t *testing.T) {
	for name, test := range map[string]struct {
		kind       string
		version    string // on record
		generation int64  // live, 3 on record
		want       bool
	}{
		"nothing is known":                 {"Deployment", "", 4, false},
		"the same version":                 {"Deployment", "7", 4, false},
		"the status has changed":           {"Deployment", "6", 3, false},
		"what is wanted of it has changed": {"Deployment", "6", 4, true},
		"a ConfigMap":                      {"ConfigMap", "6", 3, true},
		"another kind of that name":        {"example.com/v1 ConfigMap", "6", 3, false},
	} {
		live := &observation{version: "7", generation: test.generation}
		version, kind, named := strings.Cut(test.kind, " ")
		if !named {
			version, kind = "v1", test.kind
		}
		known := schema.DeployedObject{ObjectRef: schema.ObjectRef{APIVersion: version, Kind: kind}, ResourceVersion: test.version, Generation: 3}
		if got := mayHaveChanged(known, live); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestDriftReasons(t *testing.T) {
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	object := schema.ObjectRef{Kind: "Deployment", Namespace: "shop", Name: "web"}
	change := schema.Change{Action: schema.ActionUpdate, Object: object, Fields: []schema.FieldChange{
		{Path: "spec.replicas", From: "9", To: "1", Manager: "kubectl", Since: &since}, {Path: "spec.paused", From: "true"},
	}}
	want := "[Deployment shop/web was changed: spec.replicas is 9, was 1 (by kubectl at 2026-01-02T03:04:05Z) Deployment shop/web was changed: spec.paused is true, was missing]"
	if got := fmt.Sprint(driftReasons(change)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := driftReasons(change)[0]; !got.Changed || got.Object != object {
		t.Errorf("it is about %+v, changed %t", got.Object, got.Changed)
	}
	if got := driftReasons(schema.Change{Action: schema.ActionAdopt, Object: object}); len(got) != 1 {
		t.Errorf("without fields: %q", got)
	}
	if got := driftReasons(schema.Change{Action: schema.ActionCreate, Object: object}); got != nil {
		t.Errorf("a missing object is reported elsewhere: %q", got)
	}
}

// TestIsOther: objects of users are listed before a namespace is deleted, those of controllers are not.
func TestIsOther(t *testing.T) {
	for _, test := range []struct {
		what, kind, name    string
		labels, annotations map[string]string
		manager             string
		owned, want         bool
	}{
		{what: "a person's", kind: "ConfigMap", name: "mine", want: true},
		{what: "ours", kind: "ConfigMap", name: "pages", labels: map[string]string{schema.LabelRelease: "demo.x"}, manager: "solutionctl"},
		{what: "a copy of ours", kind: "ConfigMap", name: "mine", labels: map[string]string{schema.LabelRelease: "demo.x", "app.kubernetes.io/part-of": "demo"}, manager: "Mozilla", want: true},
		{what: "a copy of a Solution's", kind: "ConfigMap", name: "mine", labels: map[string]string{"app.kubernetes.io/part-of": "demo"}, manager: "kubectl-create", want: true},
		{what: "a Solution's, deployed by others", kind: "ConfigMap", name: "pages", labels: map[string]string{"app.kubernetes.io/part-of": "demo"}},
		{what: "another Solution's", kind: "ConfigMap", name: "pages", labels: map[string]string{"app.kubernetes.io/part-of": "other"}, want: true},
		{what: "an operator's", kind: "Secret", name: "key", labels: map[string]string{"app.kubernetes.io/managed-by": "demo-operator"}},
		{what: "a part of something", kind: "Secret", name: "key", owned: true},
		{what: "of the cluster", kind: "ConfigMap", name: "kube-root-ca.crt"},
		{what: "the account that every namespace has", kind: "ServiceAccount", name: "default"},
		{what: "another account", kind: "ServiceAccount", name: "robot", want: true},
		{what: "the environment's document", kind: "ConfigMap", name: metalk8s.EnvironmentConfigMap},
		{what: "the token of an account", kind: "Secret", name: "token", annotations: map[string]string{"kubernetes.io/service-account.name": "robot"}},
	} {
		o := &unstructured.Unstructured{Object: map[string]any{}}
		o.SetName(test.name)
		o.SetLabels(test.labels)
		o.SetAnnotations(test.annotations)
		if test.manager != "" {
			o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: test.manager, Operation: metav1.ManagedFieldsOperationUpdate}})
		}
		if test.owned {
			o.SetOwnerReferences([]metav1.OwnerReference{{Kind: "Deployment", Name: "web", APIVersion: "apps/v1", UID: "u"}})
		}
		if got := isOther(o, test.kind, []string{"demo"}); got != test.want {
			t.Errorf("%s: %t", test.what, got)
		}
	}
}

func ExampleRebuilding() {
	fmt.Println(Rebuilding("store", record.Key{Namespace: "shop", Name: "demo"}))
	// Output: solutionctl deploy repair store demo --records
}
