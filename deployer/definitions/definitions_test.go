package definitions

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/kube/crd"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// clock is a CRD. Each of its versions is "NAME [served] [stored] PROPERTIES", such as "v1 served stored {hands: {type:
// integer}}".
func clock(t *testing.T, conversion string, versions ...string) *unstructured.Unstructured {
	t.Helper()
	var text strings.Builder
	fmt.Fprintf(&text, "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: clocks.demo.example}\nspec:\n"+
		"  group: demo.example\n  scope: Namespaced\n  names: {kind: Clock, listKind: ClockList, plural: clocks, singular: clock}\n%s  versions:\n", conversion)
	var stored []string
	for _, version := range versions {
		flags, properties, _ := strings.Cut(version, "{")
		words := strings.Fields(flags)
		fmt.Fprintf(&text, "  - name: %s\n    served: %t\n    storage: %t\n    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {%s}}}}\n",
			words[0], slices.Contains(words, "served"), slices.Contains(words, "stored"), properties)
		stored = append(stored, words[0])
	}
	fmt.Fprintf(&text, "status: {storedVersions: [%s]}\n", strings.Join(stored, ", "))
	return object(t, text.String())
}

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return o
}

func parsed(t *testing.T, o *unstructured.Unstructured) *crd.Definition {
	t.Helper()
	d, err := Parse(o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

const webhook = "  conversion:\n    strategy: Webhook\n    webhook: {conversionReviewVersions: [v1], clientConfig: {service: {namespace: any, name: webhook}}}\n"

// TestLosses replaces one definition by another, under which an object is stored that has two hands and a colour.
func TestLosses(t *testing.T) {
	const (
		v1    = "v1 served stored {hands: {type: integer}, colour: {type: string}}"
		plain = "v1 served stored {hands: {type: integer}}"
	)
	for _, test := range []struct {
		name          string
		conversion    string
		before, after []string
		lost, invalid string // of the object
		moves         string // the version that objects have to be stored in first
		removed       int
		hooked        bool
	}{
		{name: "the same", before: []string{v1}, after: []string{v1}},
		{name: "a field more", before: []string{plain}, after: []string{v1}},
		{name: "a field less", before: []string{v1}, after: []string{plain}, lost: "spec.colour"},
		{name: "a type that the value has not", before: []string{v1}, after: []string{"v1 served stored {hands: {type: string}, colour: {type: string}}"}, invalid: "spec.hands"},
		{name: "a bound that the value breaks", before: []string{v1}, after: []string{"v1 served stored {hands: {type: integer, maximum: 1}, colour: {type: string}}"}, invalid: "spec.hands"},
		{name: "a bound that was broken before", before: []string{"v1 served stored {hands: {type: integer, maximum: 1}, colour: {type: string}}"}, after: []string{"v1 served stored {hands: {type: integer, maximum: 1}, colour: {type: string}}"}},
		{
			name: "another version beside, which lacks a field", before: []string{v1}, after: []string{v1, "v2 served {hands: {type: integer}}"},
			lost: "spec.colour",
		},
		{
			name: "another version instead", before: []string{v1}, after: []string{"v2 served stored {hands: {type: integer}, colour: {type: string}}"},
			moves: "v2", removed: 1,
		},
		{
			name: "a version goes away in which nothing is stored now", before: []string{"v1 served {hands: {type: integer}, colour: {type: string}}", "v2 served stored {hands: {type: integer}, colour: {type: string}}"},
			after: []string{"v2 served stored {hands: {type: integer}, colour: {type: string}}"}, removed: 1,
		},
		{
			name: "a webhook knows what becomes of it", conversion: webhook, before: []string{v1, "v2 served {hands: {type: integer}}"},
			after: []string{"v2 served stored {hands: {type: integer}}"}, moves: "v2", removed: 1, hooked: true, lost: "spec.colour",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			j, err := newLossJudge(parsed(t, clock(t, test.conversion, test.before...)), parsed(t, clock(t, test.conversion, test.after...)))
			if err != nil {
				t.Fatal(err)
			}
			stored := object(t, "apiVersion: demo.example/v1\nkind: Clock\nmetadata: {name: one, namespace: test}\nspec: {hands: 2, colour: red}\n")
			if err := j.look(t.Context(), stored); err != nil {
				t.Fatal(err)
			}
			check := func(what string, got []string, want string) {
				if text := strings.Join(got, "\n"); want == "" && text != "" || !strings.Contains(text, want) {
					t.Errorf("%s: %q, want %q", what, text, want)
				}
			}
			check("lost", j.losses(), test.lost)
			check("invalid", j.invalid(), test.invalid)
			if j.moves != test.moves || len(j.removed) != test.removed || j.hooked != test.hooked {
				t.Errorf("moves to %q, %q go away, hooked %t", j.moves, j.removed, j.hooked)
			}
		})
	}
}

// TestManyLosses: many losses are counted, and only the first are listed.
func TestManyLosses(t *testing.T) {
	before := parsed(t, clock(t, "", "v1 served stored {hands: {type: integer}, colour: {type: string}}"))
	j, err := newLossJudge(before, parsed(t, clock(t, "", "v1 served stored {hands: {type: string}}")))
	if err != nil {
		t.Fatal(err)
	}
	for i := range report.MaxSome + 3 {
		stored := object(t, fmt.Sprintf("apiVersion: demo.example/v1\nkind: Clock\nmetadata: {name: c%d}\nspec: {hands: 2, colour: red}\n", i))
		if err := j.look(t.Context(), stored); err != nil {
			t.Fatal(err)
		}
	}
	for what, lines := range map[string][]string{"lost": j.losses(), "invalid": j.invalid()} {
		if len(lines) != report.MaxSome+1 || lines[report.MaxSome] != "and 3 more" {
			t.Errorf("%s: %q", what, lines)
		}
	}
}

// TestKeepVersion: a CRD continues to serve a version that an operator uses.
func TestKeepVersion(t *testing.T) {
	const hands = "{hands: {type: integer}}"
	old := clock(t, "", "v1 served stored "+hands)
	for _, test := range []struct {
		name       string
		definition *unstructured.Unstructured
		version    string
		why        string
		served     []string
	}{
		{"it has it and does not serve it", clock(t, "", "v1 "+hands, "v2 served stored "+hands), "v1", "", []string{"v1", "v2"}},
		{"another definition describes it", clock(t, "", "v2 served stored "+hands), "v1", "", []string{"v1", "v2"}},
		{"no version describes it", clock(t, "", "v2 served stored "+hands), "v0", "nothing describes v0", []string{"v2"}},
		{"a webhook is not known to convert it", clock(t, webhook, "v2 served stored "+hands), "v1", "its webhook is not known to convert v1", []string{"v2"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			why, err := keepVersion(t.Context(), test.definition, test.version, nil, old)
			if err != nil || !strings.Contains(why, test.why) || test.why == "" && why != "" {
				t.Fatalf("%q, %v", why, err)
			}
			var served []string
			for _, v := range parsed(t, test.definition).Spec.Versions {
				if v.Served {
					served = append(served, v.Name)
				}
			}
			slices.Sort(served)
			if diff := cmp.Diff(test.served, served); diff != "" {
				t.Error(diff)
			}
		})
	}
	if ServedVersion(parsed(t, old)) != "v1" || parsed(t, old).StorageVersion() != "v1" {
		t.Error("what the version was copied from has changed")
	}
}

func TestVersionToReadIn(t *testing.T) {
	for name, test := range map[string]struct {
		versions       []string
		served, stored string
	}{
		"the stored one":                     {[]string{"v1 served {}", "v2 served stored {}"}, "v2", "v2"},
		"the first, if that is not served":   {[]string{"v1 served {}", "v2 stored {}", "v3 served {}"}, "v1", "v2"},
		"nothing is served":                  {[]string{"v1 stored {}"}, "", "v1"},
		"the stored one, wherever it stands": {[]string{"v3 served stored {}", "v1 served {}"}, "v3", "v3"},
	} {
		d := parsed(t, clock(t, "", test.versions...))
		if served, stored := ServedVersion(d), d.StorageVersion(); served != test.served || stored != test.stored {
			t.Errorf("%s: reads %q, stored in %q", name, served, stored)
		}
	}
}

// TestSetStorage changes the version that objects are stored in, once.
func TestSetStorage(t *testing.T) {
	d := clock(t, "", "v1 served stored {}")
	added, _, _ := unstructured.NestedSlice(clock(t, "", "v2 served {}").Object, "spec", "versions")
	m := Migration{Definition: d, version: "v2", added: added[0].(map[string]any)}
	for i, want := range []bool{true, false} {
		changed, err := setStorage(d, m)
		if err != nil || changed != want || parsed(t, d).StorageVersion() != "v2" || len(parsed(t, d).Spec.Versions) != 2 {
			t.Errorf("time %d: changed %t, %v: %v", i, changed, err, d.Object["spec"])
		}
	}
}

// TestOwnersIn: owners survive the version that they wrote in.
func TestOwnersIn(t *testing.T) {
	entry := func(manager, version, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "demo.example/" + version, FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(fields),
		}
	}
	got, err := ownersIn("demo.example/v2", []metav1.ManagedFieldsEntry{
		entry("argo", "v1", `{"f:spec":{"f:hands":{}}}`), entry("operator", "v1", `{"f:status":{}}`), entry("argo", "v2", `{"f:spec":{"f:colour":{}}}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, e := range got {
		lines = append(lines, fmt.Sprintf("%s %s %s", e.Manager, e.APIVersion, e.FieldsV1.GetRawString()))
	}
	if diff := cmp.Diff([]string{
		`argo demo.example/v2 {"f:spec":{"f:colour":{},"f:hands":{}}}`, `operator demo.example/v2 {"f:status":{}}`,
	}, lines); diff != "" {
		t.Error(diff)
	}
	if _, err := ownersIn("demo.example/v2", []metav1.ManagedFieldsEntry{entry("argo", "v1", "{"), entry("argo", "v2", "{}")}); err == nil {
		t.Error("fields that nobody can read were merged")
	}
}

// TestVerdicts: the worst counts.
func TestVerdicts(t *testing.T) {
	some := []schema.CRDRequirement{{Name: "clocks.demo.example", Versions: []string{"v1"}}}
	for name, test := range map[string]struct {
		fits             []fit
		losses, refusals []string
		want             schema.CompatibilityVerdict
	}{
		"nothing is there":                    {nil, nil, nil, schema.CompatibilityYes},
		"the operators work with it":          {[]fit{{}}, nil, nil, schema.CompatibilityYes},
		"a version stays served":              {[]fit{{}, {kept: some}}, nil, nil, schema.CompatibilityKeeps},
		"data gets lost, and a version stays": {[]fit{{kept: some}}, []string{"x"}, nil, schema.CompatibilityLoss},
		"one operator cannot work":            {[]fit{{kept: some}, {kept: some, missing: some}}, []string{"x"}, nil, schema.CompatibilityNo},
		"the API server never replaces it":    {[]fit{{}}, nil, []string{"scope"}, schema.CompatibilityNo},
	} {
		v := &schema.VersionCompatibility{Losses: test.losses, Refusals: test.refusals}
		for _, f := range test.fits {
			one := f.verdict()
			if one.Kept == nil || one.Missing == nil || one.Reasons == nil {
				t.Errorf("%s: lists that JSON would show as null: %+v", name, one)
			}
			v.Operators = append(v.Operators, one)
		}
		if got := overall(v); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// TestRefusals: loss of data has its own error code, and hints name the flags that accept it.
func TestRefusals(t *testing.T) {
	accept := func(lossy, rejecting []string) (a acceptable) {
		for _, name := range rejecting {
			a.rejects(name, []string{"i"})
		}
		for _, name := range lossy {
			a.loses(name, []string{"l"})
		}
		return a
	}
	for name, test := range map[string]struct {
		judgement Judgement
		code      report.Code
		words     []string
	}{
		"nothing":        {Judgement{Notices: []string{"x"}}, "", nil},
		"data":           {Judgement{losses: []string{"clock one: spec.colour"}, acceptable: accept([]string{"clocks.demo.example"}, nil)}, report.DataLoss, []string{"spec.colour", "--accept-data-loss clocks.demo.example"}},
		"not valid":      {Judgement{invalid: []string{"clock one: spec.hands"}, acceptable: accept(nil, []string{"a.b", "c.d"})}, report.Refused, []string{"spec.hands", "--accept-invalid a.b,c.d"}},
		"both":           {Judgement{losses: []string{"l"}, invalid: []string{"i"}, acceptable: accept([]string{"a.b"}, []string{"c.d"})}, report.DataLoss, []string{"--accept-data-loss a.b --accept-invalid c.d"}},
		"never replaced": {Judgement{impossible: []string{"its scope"}, losses: []string{"l"}}, report.Refused, []string{"its scope", "ask the vendor"}},
	} {
		err := test.judgement.refusal()
		if test.code == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		text := fmt.Sprint(err, report.Hints(err))
		for _, word := range test.words {
			if report.CodeOf(err) != test.code || !strings.Contains(text, word) {
				t.Errorf("%s: %s, nothing about %q: %s", name, report.CodeOf(err), word, text)
			}
		}
	}
	definitions := map[string]*unstructured.Unstructured{"clocks.demo.example": clock(t, "", "v1 served stored {}")}
	if err := (Losses{AcceptDataLoss: []string{"clocks.demo.example"}}).CheckLosses(definitions); err != nil {
		t.Error(err)
	}
	if err := (Losses{AcceptInvalid: []string{"clock.demo.example"}}).CheckLosses(definitions); report.CodeOf(err) != report.Usage || !strings.Contains(fmt.Sprint(report.Hints(err)), "clocks.demo.example") {
		t.Errorf("a name mistyped: %v", err)
	}
}

// TestProtect: the policy covers the CRDs of this Solution only, and each CRD has an annotation with the way to lift
// it.
func TestProtect(t *testing.T) {
	key := record.Key{Name: "demo"}
	definition := clock(t, "", "v1 served stored {}")
	made := Protect(key, []*unstructured.Unstructured{definition, object(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: x}\n")})
	if len(made) != 2 || made[0].GetName() != ProtectionName(key) || made[1].GetName() != ProtectionName(key) {
		t.Fatalf("%+v", made)
	}
	selected, _, _ := unstructured.NestedStringMap(made[0].Object, "spec", "matchConstraints", "objectSelector", "matchLabels")
	if diff := cmp.Diff(map[string]string{schema.LabelRelease: key.ID()}, selected); diff != "" {
		t.Error(diff)
	}
	if definition.GetAnnotations()[engine.AnnotationAllowDeletion] != "false" {
		t.Errorf("%v", definition.GetAnnotations())
	}
	made[0].SetName("other")
	if made[1].GetName() == "other" {
		t.Error("the two share their metadata")
	}
	for _, test := range []struct {
		state record.State
		want  bool
	}{
		{record.State{}, false},
		{record.State{Current: &schema.DeploymentRevision{Settings: map[string]string{SettingProtect: "true"}}}, true},
		{record.State{Pending: &schema.DeploymentRevision{Settings: map[string]string{SettingProtect: "true"}}}, true},
		{record.State{Current: &schema.DeploymentRevision{Settings: map[string]string{SettingProtect: "false"}}}, false},
	} {
		if got := IsProtected(&test.state); got != test.want {
			t.Errorf("%+v: %t", test.state, got)
		}
	}
}

// TestExportable: an instance that was exported can be made again, in a cluster that has never seen its owner.
func TestExportable(t *testing.T) {
	live := object(t, `
apiVersion: demo.example/v1
kind: Clock
metadata:
  {name: one, namespace: test, labels: {a: b}, uid: u, resourceVersion: "7", generation: 3, creationTimestamp: "2026-01-01T00:00:00Z", finalizers: [x],
   ownerReferences: [{apiVersion: v1, kind: Pod, name: p, uid: q}], managedFields: [{manager: m}]}
spec: {hands: 2}
status: {time: noon}
`)
	want := object(t, "apiVersion: demo.example/v1\nkind: Clock\nmetadata: {name: one, namespace: test, labels: {a: b}, finalizers: [x]}\nspec: {hands: 2}\nstatus: {time: noon}\n")
	if diff := cmp.Diff(want.Object, exportable(live).Object); diff != "" {
		t.Error(diff)
	}
	before, err := digestOf(live)
	if err != nil {
		t.Fatal(err)
	}
	for field, same := range map[string]bool{"status": true, "spec": false} {
		changed := live.DeepCopy()
		changed.Object[field] = map[string]any{"other": "x"}
		if after, err := digestOf(changed); err != nil || (after == before) != same {
			t.Errorf("a change of %s: %v", field, err)
		}
	}
}

func TestGroupsAndCounts(t *testing.T) {
	var list []Instance
	for _, one := range []struct{ kind, namespace string }{{"Clock", "a"}, {"Watch", "a"}, {"Clock", "b"}, {"Clock", "a"}} {
		o := &unstructured.Unstructured{Object: map[string]any{}}
		o.SetNamespace(one.namespace)
		list = append(list, Instance{Kind: kube.GroupVersionKind{Group: "demo.example", Version: "v1", Kind: one.kind}, Object: o})
	}
	if got := CountText(list); got != "3 of kind Clock, 1 of kind Watch" {
		t.Error(got)
	}
	if got := groups(list); len(got) != 3 || got[0].Namespace != "a" || got[2].Namespace != "b" {
		t.Errorf("%+v", got)
	}
}

// TestRights: the permissions for a migration are sufficient, and not more than needed.
func TestRights(t *testing.T) {
	definition := clock(t, "", "v1 served stored {}")
	for _, p := range MayMigrate(definition) {
		if p.Group != "demo.example" && p.Group != cluster.DefinitionKind.Group || p.Verb == "delete" || p.Verb == "*" {
			t.Errorf("%+v", p)
		}
	}
	if got := OnObjects(definition, "get", "list"); len(got) != 2 || got[0].Resource != "clocks" || got[1].Verb != "list" {
		t.Errorf("%+v", got)
	}
}

func ExampleRequirements() {
	fmt.Println(Requirements([]schema.CRDRequirement{{Name: "clocks.demo.example", Versions: []string{"v1", "v2"}}}))
	// Output: clocks.demo.example (v1, v2)
}
