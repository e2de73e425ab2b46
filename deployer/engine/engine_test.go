package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// object reads an object of one YAML document.
func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestPrepare(t *testing.T) {
	given := object(t, `
apiVersion: v1
kind: Secret
metadata: {name: s, namespace: n, uid: u, resourceVersion: "3", creationTimestamp: null, labels: {a: b}, annotations: {c: d}}
stringData: {text: value}
data: {other: b3RoZXI=}
status: {phase: x}
`)
	before := given.DeepCopy()
	got, err := prepare(record.Key{Namespace: "n", Name: "demo"}, given)
	if err != nil {
		t.Fatal(err)
	}
	want := object(t, `
apiVersion: v1
kind: Secret
metadata: {name: s, namespace: n, labels: {a: b, solutionctl.io/release: `+record.Key{Namespace: "n", Name: "demo"}.ID()+`}, annotations: {c: d}}
data: {text: dmFsdWU=, other: b3RoZXI=}
`)
	if diff := cmp.Diff(got, want); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(given, before); diff != "" {
		t.Errorf("what was given was changed: %s", diff)
	}
	for _, bad := range []string{"kind: A\napiVersion: v1\nmetadata: {}", "kind: A\nmetadata: {name: n}"} {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(bad), &o.Object); err != nil {
			t.Fatal(err)
		}
		if _, err := prepare(record.Key{}, o); report.CodeOf(err) != report.Invalid {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func TestHash(t *testing.T) {
	hash := func(text string) string {
		h, err := hashOf(object(t, text))
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	one := hash("{apiVersion: v1, kind: A, spec: {a: 1, b: [x, y]}}")
	if same := hash("spec:\n  b:\n  - x\n  - y\n  a: 1.0\nkind: A\napiVersion: v1"); same != one {
		t.Error("the order of keys or the notation of a number matters")
	}
	if other := hash("{apiVersion: v1, kind: A, spec: {a: 1, b: [y, x]}}"); other == one {
		t.Error("the order of a list does not matter")
	}
}

func TestObjectsComeBack(t *testing.T) {
	objects := []*unstructured.Unstructured{object(t, "{apiVersion: v1, kind: A, spec: {a: 1, text: \"<a>\\n\"}}"), object(t, "{apiVersion: v1, kind: B}")}
	tasks := []Task{{schema.Task{When: schema.MomentBefore, On: []schema.Occasion{schema.OccasionInstall}, Weight: -5, Once: schema.OncePerVersion}, objects[0]}}
	content := &Content{objects, tasks, []byte("what was drawn")}
	data, err := content.encode()
	if err != nil {
		t.Fatal(err)
	}
	back, err := decodeContent(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(back, content); diff != "" {
		t.Error(diff)
	}
	for _, odd := range []string{"{}\n", `{"kind":"Task","task":{"weight":"heavy"}}` + "\n", `{"kind":"Memory","data":"?"}` + "\n"} {
		if _, err := decodeContent([]byte(odd)); err == nil {
			t.Errorf("%s was accepted", odd)
		}
	}
}

func TestPhases(t *testing.T) {
	definition := "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {conversion: {strategy: %s}}}"
	order := []string{
		"{apiVersion: v1, kind: Namespace}",
		fmt.Sprintf(definition, "None"),
		"{apiVersion: v1, kind: ServiceAccount}",
		"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole}",
		"{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding}",
		"{apiVersion: v1, kind: ConfigMap}",
		"{apiVersion: v1, kind: Service}",
		"{apiVersion: apps/v1, kind: Deployment}",
		fmt.Sprintf(definition, "Webhook"),
		"{apiVersion: example.com/v1, kind: Deployment}",
		"{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy}",
	}
	for phase, text := range order {
		if got := phaseOfObject(object(t, text)); got != phase {
			t.Errorf("%s is in phase %d, want %d", text, got, phase)
		}
	}
	if len(order) != phases || slices.Contains(phaseNames[:], "") {
		t.Error("a phase has no example or no name")
	}
}

func TestStepsAreInOrder(t *testing.T) {
	d := &decider{inventory: map[record.ObjectKey]schema.DeployedObject{}}
	for i, kind := range []string{"Namespace", "ConfigMap", "Service"} {
		ref := schema.ObjectRef{APIVersion: "v1", Kind: kind, Name: "old"}
		d.inventory[record.KeyOf(ref)] = schema.DeployedObject{ObjectRef: ref, Phase: []int{phaseNamespaces, phaseConfiguration, phaseServices}[i], UID: "u"}
	}
	for _, kind := range []string{"Service", "ConfigMap", "ServiceAccount"} {
		s := &step{phase: phaseOf(kube.GroupKind{Kind: kind}), desired: &unstructured.Unstructured{}}
		s.Object = schema.ObjectRef{APIVersion: "v1", Kind: kind, Name: map[bool]string{true: "old", false: "new"}[kind == "Service"]}
		d.desired = append(d.desired, s)
	}
	steps, err := d.steps()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range steps {
		got = append(got, fmt.Sprintf("%s wanted %t known %t", s.Object, s.desired != nil, s.known.UID != ""))
	}
	want := []string{
		"ServiceAccount new wanted true known false", "ConfigMap new wanted true known false", "Service old wanted true known true",
		"ConfigMap old wanted false known true", "Namespace old wanted false known true",
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Error(diff)
	}
	d.desired = append(d.desired, d.desired[0])
	if _, err := d.steps(); report.CodeOf(err) != report.Invalid {
		t.Errorf("the same object twice: %v", err)
	}
}

func TestUnchanged(t *testing.T) {
	desired := object(t, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: n, labels: {a: b}}, spec: {replicas: 1}}")
	hash, err := hashOf(desired)
	if err != nil {
		t.Fatal(err)
	}
	known := schema.DeployedObject{ObjectRef: refOf(desired), UID: "u", Hash: hash, ResourceVersion: "10", Generation: 2}
	live := `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: n, uid: u, resourceVersion: "10", generation: 2, labels: {a: b, theirs: x}}}`
	for _, test := range []struct {
		name     string
		old, new string // in the live object
		known    func(*schema.DeployedObject)
		desired  func(*unstructured.Unstructured)
		want     bool
	}{
		{name: "nothing", want: true},
		{name: "status", old: `"10"`, new: `"11"`, want: true},
		{name: "status and a foreign label", old: `"10", generation: 2, labels: {a: b, theirs: x}`, new: `"11", generation: 2, labels: {a: b}`, want: true},
		{name: "spec", old: `"10", generation: 2`, new: `"11", generation: 3`},
		{name: "own label", old: `"10", generation: 2, labels: {a: b`, new: `"11", generation: 2, labels: {a: c`},
		{name: "made again", old: "uid: u", new: "uid: v"},
		{name: "being deleted", old: "uid: u", new: `uid: u, deletionTimestamp: "2026-01-01T00:00:00Z"`},
		{name: "other wish", known: func(o *schema.DeployedObject) { o.Hash = "other" }},
		{name: "run that did not end", known: func(o *schema.DeployedObject) { o.ResourceVersion = "" }},
		{name: "left before", known: func(o *schema.DeployedObject) { o.Leaving = true }},
		{name: "kept before", known: func(o *schema.DeployedObject) { o.Kept = true }},
		{name: "other version of the API", known: func(o *schema.DeployedObject) { o.APIVersion = "apps/v1beta1" }},
		{name: "owner references", old: `"10"`, new: `"11"`, desired: func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"example.com/f"}) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := &step{hash: hash, known: known, desired: desired.DeepCopy()}
			s.Object = refOf(desired)
			if test.known != nil {
				test.known(&s.known)
			}
			if test.desired != nil {
				test.desired(s.desired)
			}
			if got := s.unchanged(object(t, strings.Replace(live, test.old, test.new, 1))); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
	t.Run("kind whose generation does not change", func(t *testing.T) {
		s := &step{hash: hash, known: known, desired: desired}
		s.Object = schema.ObjectRef{APIVersion: "scheduling.k8s.io/v1", Kind: "PriorityClass", Name: "d"}
		s.known.APIVersion = s.Object.APIVersion
		if s.unchanged(object(t, strings.Replace(live, `"10"`, `"11"`, 1))) {
			t.Error("it was believed")
		}
	})
}
