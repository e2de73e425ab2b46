package deployer_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorization "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/components"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// wanted are Solutions as an environment is to have them: NAME or NAME=VERSION.
func wanted(names ...string) deployer.EnsureOptions {
	o := deployer.EnsureOptions{Environment: site}
	for _, name := range names {
		solution, version, _ := strings.Cut(name, "=")
		o.Solutions = append(o.Solutions, plan.Wanted{Solution: solution, Version: version})
	}
	return o
}

// withBase is a Solution with components that needs another one in its environment.
func withBase(t *testing.T, version string) deployertest.Content {
	t.Helper()
	content := parts(t, map[string]string{"components/api.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: api}\ndata: {of: '" + version + "'}\n"})
	content.Manifest += "  dependsOn: [{solution: base, version: '^" + version[:1] + "'}]"
	return content
}

// environmentWithTwo has an environment without anything in it, and two versions of two Solutions of which one needs the other.
func environmentWithTwo(t *testing.T) *deployertest.Bed {
	t.Helper()
	b := deployertest.New(t)
	b.Namespace(site, site)
	for _, version := range []string{"1.0.0", "2.0.0"} {
		b.Imported("base", version, plain)
		b.Imported(shop, version, withBase(t, version))
	}
	b.Activated("base", "2.0.0", plain)
	b.Activated(shop, "2.0.0", withBase(t, "2.0.0"))
	return b
}

func ensure(t *testing.T, b *deployertest.Bed, o deployer.EnsureOptions) *schema.Operation {
	t.Helper()
	done, err := b.Ensure(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// versions returns the versions in MetalK8s' document of the environment.
func versions(b *deployertest.Bed) map[string]string {
	document := b.Server.Object("ConfigMap", site, metalk8s.EnvironmentConfigMap)
	if document == nil {
		return nil
	}
	data, _, _ := unstructured.NestedStringMap(document.Object, "data")
	return data
}

func TestEnsure(t *testing.T) {
	b := environmentWithTwo(t)
	// The one that needs the other is named first, and neither could be added before the other was judged with it.
	ensure(t, b, wanted(shop+"=1.0.0", "base=1.0.0"))
	if diff := cmp.Diff(map[string]string{shop: "1.0.0", "base": "1.0.0"}, versions(b)); diff != "" {
		t.Fatal(diff)
	}
	order := slices.DeleteFunc(b.Sink.Events(), func(e report.Event) bool { return e.Step != "apply" || !strings.HasPrefix(e.Name, site+"/") })
	if first, last := order[0].Name, order[len(order)-1].Name; !strings.HasPrefix(first, site+"/base") || !strings.HasPrefix(last, site+"/"+shop) {
		t.Errorf("%s came first and %s last", first, last)
	}
	if done := ensure(t, b, wanted(shop+"=1.0.0", "base=1.0.0")); !done.Empty() {
		t.Errorf("there is something to do: %v", done.Parts)
	}

	// Both change together, in either direction; components are chosen with it.
	up := wanted(shop, "base")
	up.Solutions[0].Choice = components.Choice{Components: map[string]bool{"extra": true}}
	ensure(t, b, up)
	if diff := cmp.Diff(map[string]string{shop: "2.0.0", "base": "2.0.0"}, versions(b)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff("api base-applications base-operator-config db db-password extra", there(b)); diff != "" {
		t.Error(diff)
	}
	ensure(t, b, wanted(shop+"=1.0.0", "base=1.0.0"))
	if got := state(b)["api"]; got != "map[of:1.0.0]" {
		t.Errorf("after the way back there is %s", got)
	}
}

// TestEnsureRefuses checks that an error in one Solution stops all of them.
func TestEnsureRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		of   deployer.EnsureOptions
		code report.Code
		want []string
	}{
		"what it needs is not wanted": {wanted(shop + "=1.0.0"), report.Refused, []string{"base"}},
		"it needs another version":    {wanted(shop+"=2.0.0", "base=1.0.0"), report.Refused, []string{"base"}},
		"not imported":                {wanted("base", "cloud"), report.NotImported, []string{"cloud"}},
		"an unknown component": {func() deployer.EnsureOptions {
			o := wanted("base", shop)
			o.Solutions[1].Choice.Components = map[string]bool{"x": true}
			return o
		}(), report.Usage, []string{`"x"`}},
		"an environment that does not exist": {deployer.EnsureOptions{Environment: "other"}, report.NotFound, []string{"other"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := environmentWithTwo(t)
			b.Writes()
			_, err := b.Ensure(t.Context(), test.of)
			deployertest.Refused(t, err, test.code, test.want...)
			written := slices.DeleteFunc(b.Writes(), func(r string) bool { return strings.Contains(r, "/leases") })
			if len(written) > 0 {
				t.Errorf("written were %v", written)
			}
		})
	}
}

// TestEnsureKeepsEdits checks that edits of an administrator stay, and that deleted objects are created again.
func TestEnsureKeepsEdits(t *testing.T) {
	b := environmentWithTwo(t)
	o := wanted(shop, "base")
	ensure(t, b, o)
	edited := b.Server.Object("ConfigMap", site, "api")
	edited.Object["data"] = map[string]any{"of": "mine"}
	b.Put(edited)
	b.Deleted("ConfigMap", site, "db")
	_, err := b.Ensure(t.Context(), o)
	deployertest.Refused(t, err, report.Conflict, "api")
	o.KeepEdits = true
	ensure(t, b, o)
	if got := state(b); got["api"] != "map[of:mine]" || got["db"] == "" {
		t.Errorf("there is %v", got)
	}
	if done := ensure(t, b, o); !done.Empty() {
		t.Errorf("there is something to do: %v", done.Parts)
	}
	o.Solutions[0].Choice = components.Choice{Components: map[string]bool{"extra": true}} // all of it is put on record again
	ensure(t, b, o)
	if diff, err := b.Diff(t.Context(), survey.Selection{}); err != nil || diff.Empty() {
		t.Errorf("the edit is no difference any more: %v", err)
	}
}

// mayOnly answers access reviews for a user with exactly these rights.
func mayOnly(rights []cluster.Permission) func(authorization.ResourceAttributes) bool {
	return func(a authorization.ResourceAttributes) bool {
		return slices.ContainsFunc(rights, func(p cluster.Permission) bool {
			is := func(have, asked string) bool { return have == asked || have == "*" }
			return is(p.Verb, a.Verb) && is(p.Group, a.Group) && is(p.Resource, a.Resource) && p.Subresource == a.Subresource &&
				(p.Namespace == "" || p.Namespace == a.Namespace) && (p.Name == "" || p.Name == a.Name)
		})
	}
}

// TestLeastRights: with the rights that the plan names, all of it can be done; it names no right on all objects of all kinds, nor on
// what it does not touch. Without any one of them that changes something nothing is changed.
func TestLeastRights(t *testing.T) {
	b := environmentWithTwo(t)
	o := wanted(shop, "base")
	plan, least, err := b.PlanEnsure(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, missing := range least {
		if !slices.Contains([]string{"create", "patch", "update", "delete"}, missing.Verb) || missing.Name == metalk8s.EnvironmentConfigMap {
			continue // without the right to read, the run is refused; whether the document will exist is unknown
		}
		b.Server.May = mayOnly(slices.DeleteFunc(slices.Clone(least), func(p cluster.Permission) bool { return p == missing }))
		b.Writes()
		_, err := b.Connect().Ensure(t.Context(), o)
		deployertest.Refused(t, err, report.Forbidden, missing.Verb, missing.Resource)
		if written := slices.DeleteFunc(b.Writes(), isLock); len(written) > 0 {
			t.Fatalf("without the right to %v written were %v", missing, written)
		}
	}
	b.Server.May = mayOnly(least)
	for _, p := range least {
		if p.Verb == "*" || p.Resource == "*" || p.Namespace == "" && slices.Contains([]string{"create", "patch", "update", "delete"}, p.Verb) {
			t.Errorf("the right to %v is not one of the least", p)
		}
	}
	o.Expect = plan.Digest
	ensure(t, b, o)
	if diff := cmp.Diff(map[string]string{shop: "2.0.0", "base": "2.0.0"}, versions(b)); diff != "" {
		t.Error(diff)
	}
}

// TestLeastRightsOfTheInterrupted checks the rights for finishing an interrupted run: it asks the API server for a dry run on objects that
// exist already.
func TestLeastRightsOfTheInterrupted(t *testing.T) {
	b := environmentWithTwo(t)
	b.Server.Stall("Deployment")
	o := wanted(shop, "base")
	o.Timeout = 1
	_, err := b.Ensure(t.Context(), o)
	deployertest.Refused(t, err, report.Timeout)
	_, least, err := b.PlanEnsure(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	has := func(verb string, of cluster.Permission) bool {
		of.Verb = verb
		return slices.Contains(least, of)
	}
	written := 0
	for _, p := range least {
		if p.Verb != "get" || p.Namespace != site || p.Name == "" || p.Name == metalk8s.EnvironmentConfigMap {
			continue
		}
		if written++; !has("patch", p) {
			t.Errorf("%v is to be looked at, and may not be planned with", p)
		}
	}
	if written == 0 {
		t.Errorf("nothing is to be looked at: %v", least)
	}
}

// TestReadOnlyRights checks that looking for changes needs no right to change anything, not even for operators.
func TestReadOnlyRights(t *testing.T) {
	b := environmentWithTwo(t)
	ensure(t, b, wanted(shop, "base"))
	look, err := b.RepairRights(t.Context(), site, false)
	if err != nil || len(look) == 0 {
		t.Fatalf("%v, %v", look, err)
	}
	for _, p := range look {
		if !slices.Contains([]string{"get", "list", "watch"}, p.Verb) {
			t.Errorf("who looks may %v", p)
		}
	}
	b.Deleted("ConfigMap", site, "db")
	b.Server.May = mayOnly(look)
	if found, err := b.Connect().Diff(t.Context(), survey.Selection{Environment: site, Solution: shop}); err != nil || found.Empty() {
		t.Errorf("found is %+v, %v", found, err)
	}
}

// TestResumeOfSeveral: what was added in one run and interrupted is finished in one run: neither could be added alone.
func TestResumeOfSeveral(t *testing.T) {
	b := environmentWithTwo(t)
	b.Server.Stall("Deployment")
	o := wanted(shop, "base")
	o.Timeout = 1
	_, err := b.Ensure(t.Context(), o)
	deployertest.Refused(t, err, report.Timeout)
	b.Server.Stall()
	if _, err = b.Resume(t.Context(), deployer.ResumeOptions{}); err != nil {
		t.Fatal(err)
	}
	if done := ensure(t, b, wanted(shop, "base")); !done.Empty() {
		t.Errorf("there is something to do: %v", done.Parts)
	}
}

// dependent has a Solution with components for each NAME-VERSION: what it needs in its environment.
func dependent(t *testing.T, list map[string]string) *deployertest.Bed {
	t.Helper()
	b := deployertest.New(t)
	b.Namespace(site, site)
	for _, id := range slices.Sorted(maps.Keys(list)) {
		name, version, _ := strings.Cut(id, "-")
		content := deployertest.Content{
			Manifest: "components: [{name: api, manifests: api.yaml}, {name: web, manifests: web.yaml, dependsOn: [{component: api}]}]\n",
			Files: map[string]string{
				"api.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "-api}\ndata: {of: '" + version + "'}\n",
				"web.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "-web}\ndata: {of: '" + version + "'}\n",
			},
		}
		if list[id] != "" {
			content.Manifest += "  dependsOn: [{solution: " + list[id] + "}]\n"
		}
		b.Imported(name, version, content)
		b.Activated(name, version, content)
	}
	return b
}

// applied are Solutions of the environment in the order in which the first object of each was applied, by events.
func applied(events []report.Event) (order []string) {
	for _, e := range events {
		name, _, _ := strings.Cut(strings.TrimPrefix(e.Name, site+"/"), " ")
		name, _, _ = strings.Cut(name, ".") // without the component
		if e.Step == "apply" && strings.HasPrefix(e.Name, site+"/") && !slices.Contains(order, name) {
			order = append(order, name)
		}
	}
	return order
}

// TestNeedsOfOthers: a Solution that is upgraded waits for one that is new and that only its new version needs.
func TestNeedsOfOthers(t *testing.T) {
	b := dependent(t, map[string]string{"app-1.0.0": "", "app-2.0.0": "base", "base-1.0.0": ""})
	ensure(t, b, wanted("app=1.0.0"))
	before := len(b.Sink.Events())
	ensure(t, b, wanted("app=2.0.0", "base"))
	if diff := cmp.Diff([]string{"base", "app"}, applied(b.Sink.Events()[before:])); diff != "" {
		t.Error(diff)
	}
	for part, want := range map[string][]string{"": nil, "api": nil, "web": {"api"}} {
		state, err := b.Records.Engine.State(t.Context(), record.Key{Namespace: site, Name: "app", Component: part})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, state.Current.Needs); diff != "" {
			t.Errorf("what component %q needs of its Solution: %s", part, diff)
		}
	}
	repairs(t, b)
}

// repairs restores deleted objects of all deployments, in the recorded order.
func repairs(t *testing.T, b *deployertest.Bed) {
	t.Helper()
	for name := range versions(b) {
		b.Deleted("ConfigMap", site, name+"-api")
		b.Deleted("ConfigMap", site, name+"-web")
	}
	if _, err := b.Repair(t.Context(), deployer.RepairOptions{Selection: survey.Selection{Environment: site}}); err != nil {
		t.Fatal(err)
	}
	for name := range versions(b) {
		if b.Server.Object("ConfigMap", site, name+"-web") == nil {
			t.Errorf("%s was not repaired", name)
		}
	}
}

// TestNeedEachOther: Solutions that need each other come up together, and neither waits for the other.
func TestNeedEachOther(t *testing.T) {
	b := dependent(t, map[string]string{"left-1.0.0": "right", "right-1.0.0": "left"})
	ensure(t, b, wanted("left", "right"))
	if diff := cmp.Diff(map[string]string{"left": "1.0.0", "right": "1.0.0"}, versions(b)); diff != "" {
		t.Error(diff)
	}
	repairs(t, b)
}

// TestEnsureActive: versions become active in the order of their needs, and a higher one stays.
func TestEnsureActive(t *testing.T) {
	b := deployertest.New(t)
	b.Imported(shop, "1.0.0", deployertest.Content{Manifest: "dependsOn: [{solution: base, scope: cluster}]"})
	b.Imported("base", "1.0.0", plain)
	b.Imported("base", "2.0.0", plain)
	b.Activated("base", "2.0.0", plain)
	list := []plan.Wanted{{Solution: shop}, {Solution: "base", Version: "1.0.0"}}
	for _, want := range []string{"shop", ""} {
		planned, err := b.EnsureActive(t.Context(), plan.Options{DryRun: true}, list)
		if err != nil {
			t.Fatal(err)
		}
		done, err := b.EnsureActive(t.Context(), plan.Options{}, list)
		if err != nil {
			t.Fatal(err)
		}
		for _, operations := range [][]*schema.Operation{planned, done} {
			var names []string
			for _, o := range operations {
				names = append(names, o.Solution)
			}
			if got := strings.Join(names, " "); got != want {
				t.Errorf("done is %q, want %q", got, want)
			}
		}
	}
	if active, err := b.Records.Active(t.Context(), "base"); err != nil || active != "2.0.0" {
		t.Errorf("active is %s, %v", active, err)
	}
}
