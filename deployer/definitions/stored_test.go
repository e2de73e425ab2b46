package definitions_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster/clustertest"
	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

const (
	site   = deployertest.Environment
	shop   = "shop"
	clocks = "clocks.shop.example"
)

var coloured = deployertest.Content{Fields: "colour: {type: string}"}

// next are the definitions of another version, as an activation would apply them.
func next(t *testing.T, c deployertest.Content) []*unstructured.Unstructured {
	t.Helper()
	objects, err := render.Definitions(deployertest.Payload(t, shop, "2.0.0", c))
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// TestJudge: the effects of another CRD on stored instances: a field is removed, a value becomes invalid, objects are
// stored again. Versions that nothing uses can be removed.
func TestJudge(t *testing.T) {
	for _, test := range []struct {
		name     string
		spec     string // of the instance; "" for none
		next     deployertest.Content
		accepted definitions.Losses
		code     report.Code
		words    []string // of the error, or of the notices
		exported int
	}{
		{name: "the same", spec: "colour: red", next: coloured},
		{name: "one more field", spec: "colour: red", next: deployertest.Content{Fields: "colour: {type: string}, size: {type: integer}"}},
		{name: "an unused field is removed", spec: "hands: 2", words: []string{"spec.colour"}},
		{name: "a used field is removed", spec: "colour: red", code: report.DataLoss, words: []string{"Clock site/red", "spec.colour", "--accept-data-loss " + clocks}},
		{
			name: "and that was accepted", spec: "colour: red", accepted: definitions.Losses{AcceptDataLoss: []string{clocks}}, words: []string{clocks}, exported: 1,
		},
		{
			name: "a value is not valid any more", spec: "colour: red", next: deployertest.Content{Fields: "colour: {type: string, enum: [blue]}"},
			code: report.Refused, words: []string{"Clock site/red", "spec.colour", "--accept-invalid " + clocks},
		},
		{
			name: "and that was accepted, too", spec: "colour: red", next: deployertest.Content{Fields: "colour: {type: string, enum: [blue]}"},
			accepted: definitions.Losses{AcceptInvalid: []string{clocks}}, words: []string{clocks},
		},
		{
			name: "another version that knows all fields", spec: "colour: red", next: deployertest.Content{Versions: "v2", Fields: "colour: {type: string}"},
			words: []string{"1 object", "v2"},
		},
		{
			name: "another version that does not", spec: "colour: red", next: deployertest.Content{Versions: "v2"},
			code: report.DataLoss, words: []string{"Clock site/red", "spec.colour"},
		},
		{name: "another version, and no objects", next: deployertest.Content{Versions: "v2"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := deployertest.New(t)
			b.Activated(shop, "1.0.0", coloured)
			if test.spec != "" {
				b.Clock(shop, site, "red", test.spec)
			}
			b.Writes()
			judged, err := b.Definitions.Judge(t.Context(), next(t, test.next), test.accepted)
			if writes := b.Writes(); len(writes) > 0 {
				t.Errorf("judging wrote %q", writes)
			}
			if test.code != "" {
				deployertest.Refused(t, err, test.code, test.words...)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, word := range test.words {
				if !strings.Contains(strings.Join(judged.Notices, "\n"), word) {
					t.Errorf("nothing about %q in %q", word, judged.Notices)
				}
			}
			if len(judged.Exported) != test.exported {
				t.Errorf("%d are exported, want %d", len(judged.Exported), test.exported)
			}
		})
	}
}

// TestScopeNeverChanges: instances in namespaces are not those of the whole cluster.
func TestScopeNeverChanges(t *testing.T) {
	b := deployertest.New(t)
	b.Activated(shop, "1.0.0", coloured)
	b.Clock(shop, site, "red", "hands: 2")
	wide := next(t, coloured)
	if err := unstructured.SetNestedField(wide[0].Object, "Cluster", "spec", "scope"); err != nil {
		t.Fatal(err)
	}
	_, err := b.Definitions.Judge(t.Context(), wide, definitions.Losses{AcceptDataLoss: []string{clocks}, AcceptInvalid: []string{clocks}})
	deployertest.Refused(t, err, report.Refused, clocks)
}

// TestMigration: a version that goes leaves nothing behind that is stored in it, and a run that was interrupted is done again.
func TestMigration(t *testing.T) {
	b := deployertest.New(t)
	b.Activated(shop, "1.0.0", coloured)
	for i := range 3 {
		b.Clock(shop, site, fmt.Sprint("clock-", i), "colour: red")
	}
	activate := func(version string) error {
		_, err := b.Activate(t.Context(), deployer.ActivateOptions{Solution: shop, Version: version})
		return err
	}
	stored := func() string {
		names, _, _ := unstructured.NestedStringSlice(b.Server.Object("CustomResourceDefinition", "", clocks).Object, "status", "storedVersions")
		return strings.Join(names, " ")
	}
	b.Activated(shop, "1.1.0", deployertest.Content{Versions: "v1 v2", Fields: coloured.Fields})
	if stored() != "v1 v2" {
		t.Fatalf("stored in %s", stored())
	}
	b.Imported(shop, "2.0.0", deployertest.Content{Versions: "v2", Fields: coloured.Fields})
	moved, continued := 0, time.Time{}
	b.Server.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "/clocks/") || r.Method == http.MethodGet || r.URL.Query().Has("dryRun") {
			return false
		}
		if moved++; moved != 2 {
			if !continued.IsZero() && time.Since(continued) < 2*time.Second {
				t.Error("an API server may still store the former version, as the interrupted run has just changed it")
			}
			return false
		}
		clustertest.Fail(w, apierrors.NewForbidden(kube.GroupResource{Resource: "clocks"}, "", errors.New(`User "jane@example.com" cannot update resource "clocks" in API group "shop.example"`)))
		return true
	}
	deployertest.Refused(t, activate("2.0.0"), report.Forbidden)
	if stored() != "v1 v2" {
		t.Errorf("half of the objects are stored again, and the definition says %s", stored())
	}
	continued = time.Now()
	if err := activate("2.0.0"); err != nil {
		t.Fatal(err)
	}
	if stored() != "v2" || moved < 5 {
		t.Errorf("stored in %s, after %d writes", stored(), moved)
	}
	if names := b.Server.Names("Clock"); len(names) != 3 {
		t.Errorf("left are %q", names)
	}
}

// TestTwoVersionsInUse: a version that an environment uses stays served, until nothing uses it any more.
func TestTwoVersionsInUse(t *testing.T) {
	b := deployertest.New(t)
	b.Added(shop, "1.0.0", deployertest.Content{})
	b.Clock(shop, site, "wall", "hands: 2")
	b.Imported(shop, "2.0.0", deployertest.Content{Versions: "v2"})
	b.Imported(shop, "3.0.0", deployertest.Content{Versions: "v2", Fields: coloured.Fields})
	served := func() (names []string) {
		versions, _, _ := unstructured.NestedSlice(b.Server.Object("CustomResourceDefinition", "", clocks).Object, "spec", "versions")
		for _, v := range versions {
			if version := v.(map[string]any); version["served"] == true {
				names = append(names, fmt.Sprint(version["name"]))
			}
		}
		slices.Sort(names)
		return names
	}
	activate := func(version string, words ...string) {
		t.Helper()
		done, err := b.Activate(t.Context(), deployer.ActivateOptions{Solution: shop, Version: version})
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range words {
			if !strings.Contains(strings.Join(done.Notices, "\n"), word) {
				t.Errorf("nothing about %q in %q", word, done.Notices)
			}
		}
	}
	_, err := b.Activate(t.Context(), deployer.ActivateOptions{Solution: shop, Version: "3.0.0"})
	deployertest.Refused(t, err, report.InUse, "environment site", clocks+" (v1)", "spec.colour")
	compatible := func(want ...string) {
		t.Helper()
		c, err := b.Definitions.Compatibility(t.Context(), definitions.CompatibilityOptions{Solution: shop})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, verdicts(c)); diff != "" {
			t.Errorf("compatibility (-want +got):\n%s", diff)
		}
	}
	compatible("1.0.0 active: 1.0.0 yes, 2.0.0 keeps, 3.0.0 no")

	activate("2.0.0", "1.0.0", "environment site", clocks+" (v1)")
	if !slices.Equal(served(), []string{"v1", "v2"}) {
		t.Errorf("served are %q", served())
	}
	upgrade := deployer.ChangeOptions{Environment: site, Solution: shop, Direction: records.Up, Version: "2.0.0"}
	if done, err := b.Change(t.Context(), upgrade); err != nil || !strings.Contains(strings.Join(done.Notices, "\n"), "deploy activate shop 2.0.0") {
		t.Errorf("nothing says that v1 can go: %+v, %v", done, err)
	}
	activate("2.0.0", "v2")
	if !slices.Equal(served(), []string{"v2"}) {
		t.Errorf("served are %q", served())
	}
	if _, err := b.Definitions.Compatibility(t.Context(), definitions.CompatibilityOptions{Solution: "other"}); report.CodeOf(err) != report.NotImported {
		t.Errorf("of what was not imported: %v", err)
	}
}

// TestVersionBetween: a version between the deployed and the requested one that works with both is named in the hint,
// even when its own CRDs are not those of the requested version: they are served in addition.
func TestVersionBetween(t *testing.T) {
	b := deployertest.New(t)
	b.Added(shop, "1.0.0", deployertest.Content{})
	b.Imported(shop, "2.0.0", deployertest.Content{Versions: "v2"})
	b.Imported(shop, "3.0.0", deployertest.Content{
		Versions: "v2- v3", Images: []string{"convert"},
		Conversion: "{strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {service: {namespace: somewhere, name: convert, path: /convert}}}}",
		Files: map[string]string{"operator/cluster/webhook.yaml": `apiVersion: v1
kind: Service
metadata: {name: convert}
spec: {selector: {app: convert}, ports: [{port: 443, targetPort: 9443}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: convert}
spec:
  selector: {matchLabels: {app: convert}}
  template:
    metadata: {labels: {app: convert}}
    spec:
      containers: [{name: webhook, image: "{{ repository }}/convert:3.0.0"}]
      volumes: [{name: cert, secret: {secretName: serving}}]
`},
	})
	_, err := b.Activate(t.Context(), deployer.ActivateOptions{Solution: shop, Version: "3.0.0"})
	deployertest.Refused(t, err, report.InUse, "environment site", "deploy activate shop 2.0.0")
	if hints := strings.Join(report.Hints(err), "\n"); strings.Contains(hints, "deploy remove") {
		t.Errorf("what is deployed is to be removed: %s", hints)
	}
}

// verdicts formats the compatibility of each version, the active one first.
func verdicts(c *schema.Compatibility) []string {
	text := c.Active + " active:"
	for i, v := range c.Versions {
		if i > 0 {
			text += ","
		}
		text += fmt.Sprintf(" %s %s", v.Version, v.Verdict)
	}
	return []string{text}
}

// TestRemovedInstances: exported objects are deleted and awaited, but not if they changed after the export.
func TestRemovedInstances(t *testing.T) {
	b := deployertest.New(t)
	b.Activated(shop, "1.0.0", coloured)
	b.Server.Put(t, "{apiVersion: shop.example/v1, kind: Clock, metadata: {name: held, namespace: site, finalizers: [example.com/hold]}, spec: {hands: 2}}")
	b.Clock(shop, site, "free", "hands: 2")
	list := instances(t, b)
	var out bytes.Buffer
	exported, err := b.Definitions.Export(t.Context(), list, func(write func(io.Writer) error) error { return write(&out) })
	if err != nil || len(exported) != 2 || !strings.Contains(out.String(), `"held"`) || strings.Contains(out.String(), "resourceVersion") {
		t.Fatalf("%d exported, %v: %s", len(exported), err, out.String())
	}
	deployertest.Refused(t, b.Definitions.RemoveInstances(t.Context(), exported, time.Nanosecond), report.Timeout, "Clock site/held", "example.com/hold")
	if names := b.Server.Names("Clock"); !slices.Equal(names, []string{"site/held"}) {
		t.Errorf("left are %q", names)
	}
	held := b.Server.Object("Clock", site, "held")
	left := instances(t, b)
	held.SetFinalizers(nil) // its operator comes back
	b.Put(held)
	counts := []int{}
	if err = b.Definitions.AwaitGone(t.Context(), left, time.Minute, func(count int, _ string) { counts = append(counts, count) }); err != nil || !slices.Equal(counts, []int{0}) {
		t.Errorf("%v, counts %d", err, counts)
	}
	// An object that was changed after the export is not deleted.
	b.Clock(shop, site, "late", "hands: 2")
	if exported, err = b.Definitions.Export(t.Context(), instances(t, b), func(write func(io.Writer) error) error { return write(&out) }); err != nil {
		t.Fatal(err)
	}
	b.Clock(shop, site, "late", "hands: 3")
	deployertest.Refused(t, b.Definitions.RemoveInstances(t.Context(), exported, time.Minute), report.Conflict, "Clock site/late")
}

func instances(t *testing.T, b *deployertest.Bed) []definitions.Instance {
	t.Helper()
	list, err := b.Definitions.Instances(t.Context(), []*unstructured.Unstructured{b.Server.Object("CustomResourceDefinition", "", clocks)}, site)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestProtection: a definition is protected when the API server refuses to delete it, and no sooner; a deactivation lifts that.
func TestProtection(t *testing.T) {
	b := deployertest.New(t)
	b.Imported(shop, "1.0.0", coloured)
	tried := 0
	inForce := func(after int) {
		tried = 0
		b.Server.Answer = func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodDelete || !strings.Contains(r.URL.Path, "/customresourcedefinitions/") {
				return false
			}
			definition := b.Server.Object("CustomResourceDefinition", "", clocks)
			if tried++; tried <= after || definition == nil || definition.GetAnnotations()[engine.AnnotationAllowDeletion] == "true" {
				return false
			}
			clustertest.Fail(w, apierrors.NewForbidden(kube.GroupResource{Resource: "customresourcedefinitions"}, clocks, errors.New("it does not say "+engine.AnnotationAllowDeletion)))
			return true
		}
	}
	yes := true
	protect := deployer.ActivateOptions{Solution: shop, ProtectCRDs: &yes, Options: plan.Options{Timeout: time.Nanosecond}}
	_, err := b.Activate(t.Context(), protect)
	deployertest.Refused(t, err, report.Timeout, clocks)
	inForce(0)
	protect.Timeout = 0
	if _, err = b.Activate(t.Context(), protect); err != nil || tried == 0 {
		t.Errorf("tried %d times: %v", tried, err)
	}
	if again, failure := b.Activate(t.Context(), deployer.ActivateOptions{Solution: shop}); failure != nil || !again.Empty() {
		t.Errorf("it is forgotten: %+v, %v", again, failure)
	}
	if _, err = b.Deactivate(t.Context(), deployer.DeactivateOptions{Solution: shop}); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"CustomResourceDefinition", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"} {
		if left := b.Server.Names(kind); len(left) > 0 {
			t.Errorf("left are %q", left)
		}
	}
}

// TestStandAlone: a definition whose webhook goes is served in the version that its objects are stored in, and no other.
func TestStandAlone(t *testing.T) {
	b := deployertest.New(t)
	b.Activated(shop, "1.0.0", deployertest.Content{Versions: "v1 v2"})
	b.Clock(shop, site, "wall", "hands: 2")
	live := b.Server.Object("CustomResourceDefinition", "", clocks)
	webhook := map[string]any{"strategy": "Webhook", "webhook": map[string]any{
		"conversionReviewVersions": []any{"v1"}, "clientConfig": map[string]any{"service": map[string]any{"namespace": "shop-system", "name": "webhook"}},
	}}
	if err := unstructured.SetNestedMap(live.Object, webhook, "spec", "conversion"); err != nil {
		t.Fatal(err)
	}
	b.Put(live)
	for range 2 { // a second time there is nothing to do
		live = b.Server.Object("CustomResourceDefinition", "", clocks)
		if err := b.Definitions.StandAlone(t.Context(), []*unstructured.Unstructured{live}); err != nil {
			t.Fatal(err)
		}
	}
	live = b.Server.Object("CustomResourceDefinition", "", clocks)
	if strategy, _, _ := unstructured.NestedString(live.Object, "spec", "conversion", "strategy"); strategy == "Webhook" {
		t.Error("it has its webhook yet")
	}
	versions, _, _ := unstructured.NestedSlice(live.Object, "spec", "versions")
	for _, v := range versions {
		if version := v.(map[string]any); version["served"] != (version["name"] == "v2") {
			t.Errorf("version %v is served: %v", version["name"], version["served"])
		}
	}
	if b.Server.Object("Clock", site, "wall") == nil {
		t.Error("the object is gone")
	}
}
