package deployer_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/components"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// parts is a Solution with a chart that generates a password, a component that needs it, and an optional component.
func parts(t *testing.T, more map[string]string) deployertest.Content {
	t.Helper()
	files := map[string]string{
		"charts/db.tgz": deployertest.Chart(t, "db", map[string]string{
			"values.yaml": "size: 1\nhosts: {primary: a, standby: b}\n",
			"templates/db.yaml": `apiVersion: v1
kind: Secret
metadata: {name: {{ .Release.Name }}-password}
stringData: {password: {{ randAlphaNum 20 }}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}}
data: {size: {{ .Values.size | quote }}, primary: {{ .Values.hosts.primary }}, standby: {{ .Values.hosts.standby }}}
`,
		}),
		"components/api.yaml":   "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: api}\ndata: {of: one}\n",
		"components/extra.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra}\n",
	}
	maps.Copy(files, more)
	return deployertest.Content{Files: files, Manifest: `components:
  - {name: db, chart: charts/db.tgz}
  - {name: api, manifests: components/api.yaml, dependsOn: [{component: db}, {component: operator, until: Applied}]}
  - {name: extra, manifests: components/extra.yaml, select: optional, profiles: [large]}
`}
}

// choose adds version 1.0.0, or changes it, with a choice of components.
func choose(t *testing.T, change func(*plan.Parts), names ...string) verb {
	t.Helper()
	choice, err := components.ParseChoice(nil, names)
	if err != nil {
		t.Fatal(err)
	}
	parts := plan.Parts{Choice: choice}
	if change != nil {
		change(&parts)
	}
	return func(ctx context.Context, d *deployer.Deployer, o plan.Options) (*schema.Operation, error) {
		return d.Add(ctx, deployer.AddOptions{Options: o, Environment: site, Solution: shop, Version: "1.0.0", Rendering: plan.Rendering{Parts: parts}})
	}
}

func values(component string, said map[string]any, reset bool) func(*plan.Parts) {
	return func(p *plan.Parts) {
		p.Values = map[string]plan.SiteValues{component: {Values: said, Reset: reset}}
	}
}

func upgrade(version string) verb {
	return func(ctx context.Context, d *deployer.Deployer, o plan.Options) (*schema.Operation, error) {
		return d.Change(ctx, deployer.ChangeOptions{Options: o, Environment: site, Solution: shop, Version: version, Direction: records.Up})
	}
}

// state returns the objects of the components, as name: data.
func state(b *deployertest.Bed) map[string]string {
	found := map[string]string{}
	for _, kind := range []string{"ConfigMap", "Secret"} {
		for _, name := range b.Server.Names(kind) {
			short, inSite := strings.CutPrefix(name, site+"/")
			if !inSite || strings.HasPrefix(short, "metalk8s") || strings.HasPrefix(short, shop+"-") {
				continue
			}
			data, _, _ := unstructured.NestedStringMap(b.Server.Object(kind, site, short).Object, "data")
			text := fmt.Sprint(data)
			if kind == "Secret" {
				plain, err := base64.StdEncoding.DecodeString(data["password"])
				if err != nil || len(plain) != 20 {
					b.Errorf("password %q: %v", plain, err)
				}
				text = string(plain)
			}
			found[short] = text
		}
	}
	return found
}

func there(b *deployertest.Bed) string {
	return strings.Join(slices.Sorted(maps.Keys(state(b))), " ")
}

// TestChartsAskOnce: however many charts a plan renders, the cluster is asked once what it is.
func TestChartsAskOnce(t *testing.T) {
	b := deployertest.New(t)
	content := parts(t, nil)
	for _, name := range []string{"mq", "cache"} {
		content.Manifest += fmt.Sprintf("  - {name: %s, chart: charts/db.tgz}\n", name)
	}
	b.Activated(shop, "1.0.0", content)
	for _, o := range []plan.Options{{DryRun: true}, {}} {
		b.Cluster.Refresh()
		b.Server.Requests()
		if _, err := add("1.0.0")(t.Context(), b.Deployer, o); err != nil {
			t.Fatal(err)
		}
		asked := slices.DeleteFunc(b.Server.Requests(), func(request string) bool {
			return !slices.Contains([]string{"GET /version", "GET /api", "GET /apis"}, request)
		})
		slices.Sort(asked)
		if diff := cmp.Diff([]string{"GET /api", "GET /apis", "GET /version"}, asked); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", o, diff)
		}
	}
}

// TestAddHostileChart: a chart that would end the program, or take all memory, ends add with an error that names the template, and nothing changes.
func TestAddHostileChart(t *testing.T) {
	for name, template := range map[string]string{
		"endless": "a: b\n{{- $t := dict }}{{ set $t `t` $t }}",
		"large":   "a: b\n{{ $s := repeat 1000000 `0123456789` }}{{ join $s (list 1 2 3 4) }}",
	} {
		t.Run(name, func(t *testing.T) {
			b := deployertest.New(t)
			b.Activated(shop, "1.0.0", parts(t, map[string]string{
				"charts/db.tgz": deployertest.Chart(t, "db", map[string]string{"templates/db.yaml": template}),
			}))
			before := objects(b)
			_, err := add("1.0.0")(t.Context(), b.Deployer, plan.Options{})
			if err == nil || !strings.Contains(err.Error(), "db/templates/db.yaml:2:") {
				t.Errorf("err = %v", err)
			}
			if diff := cmp.Diff(before, objects(b)); diff != "" {
				t.Errorf("what there is (-before +after):\n%s", diff)
			}
		})
	}
}

// objects are the names of what the cluster has of the kinds that add could have changed.
func objects(b *deployertest.Bed) map[string][]string {
	found := map[string][]string{}
	for _, kind := range []string{"ConfigMap", "Secret", "Namespace", "ServiceAccount", "Role", "RoleBinding", "Deployment"} {
		found[kind] = b.Server.Names(kind)
	}
	return found
}

// TestDefaultAgain: what was chosen by name is forgotten, and decided by profiles again.
func TestDefaultAgain(t *testing.T) {
	b := deployertest.New(t)
	b.Activated(shop, "1.0.0", parts(t, nil))
	for _, step := range []struct {
		profile, component, want string
	}{
		{"", "extra", "api db db-password extra"},
		{"large", "extra=false", "api db db-password"},
		{"", "extra=default", "api db db-password extra"},
		{"", "api=false", "db db-password extra"},
		{"", "api=default", "api db db-password extra"},
	} {
		must(b, choose(t, func(p *plan.Parts) {
			if step.profile != "" {
				p.Choice.Profiles = []string{step.profile}
			}
		}, step.component))
		if got := there(b); got != step.want {
			t.Errorf("%s %s: %s, want %s", step.profile, step.component, got, step.want)
		}
	}
	if again := must(b, choose(t, nil, "api=default", "extra=default")); !again.Empty() {
		t.Errorf("the same again changes %v", changes(again))
	}
	_, err := choose(t, nil, "ext=default")(t.Context(), b.Deployer, plan.Options{})
	deployertest.Refused(t, err, report.Usage, "extra")
}

// TestComponents checks the life of components beside their Solution: selected, changed, rolled back and removed. The test of this name in
// deployer/e2e checks their order, because there pods become ready.
func TestComponents(t *testing.T) {
	b := deployertest.New(t)
	b.Activated(shop, "1.0.0", parts(t, nil))
	b.Imported(shop, "1.1.0", parts(t, map[string]string{"components/api.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: api}\ndata: {of: two}\n"}))

	planned, err := add("1.0.0")(t.Context(), b.Deployer, plan.Options{DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, part := range planned.Parts {
		names = append(names, part.Component)
	}
	if diff := cmp.Diff([]string{"", "db", "api"}, names); diff != "" {
		t.Errorf("parts of the plan (-want +got):\n%s", diff)
	}
	must(b, add("1.0.0"))
	if got := there(b); got != "api db db-password" {
		t.Errorf("added: %s", got)
	}
	password := state(b)["db-password"]

	b.Writes()
	if again := must(b, add("1.0.0")); !again.Empty() {
		t.Errorf("the same again changes %v", changes(again))
	}
	for _, write := range b.Writes() {
		if !strings.Contains(write, "/leases/") {
			t.Errorf("the same again writes %s", write)
		}
	}

	must(b, choose(t, nil, "extra"))
	if got := there(b); got != "api db db-password extra" {
		t.Errorf("with an optional component: %s", got)
	}
	must(b, upgrade("1.1.0")) // keeps the choice
	if got := state(b); got["api"] != "map[of:two]" || got["db-password"] != password || there(b) != "api db db-password extra" {
		t.Errorf("upgraded: %v", got)
	}
	must(b, rollback(0))
	if got := state(b); got["api"] != "map[of:one]" || got["db-password"] != password || there(b) != "api db db-password extra" {
		t.Errorf("rolled back: %v", got)
	}
	must(b, choose(t, nil, "extra=false", "api=false"))
	if got := there(b); got != "db db-password" {
		t.Errorf("without two components: %s", got)
	}

	history, err := b.Records.History(t.Context(), records.HistoryOptions{Solution: shop})
	if err != nil {
		t.Fatal(err)
	}
	deployertest.Valid(t, "history", history)
	must(b, remove(shop))
	if got := there(b); got != "" {
		t.Errorf("removed, and left: %s", got)
	}
	if left := b.Server.Names("Deployment"); len(left) > 0 {
		t.Errorf("removed, and left: %s", left)
	}
}

// TestPasswordsStay checks that generated values survive every verb until an administrator rotates them.
func TestPasswordsStay(t *testing.T) {
	b := deployertest.New(t)
	b.Activated(shop, "1.0.0", parts(t, nil))
	must(b, add("1.0.0"))
	password := state(b)["db-password"]
	same := func(what string) {
		t.Helper()
		if got := state(b)["db-password"]; got != password {
			t.Errorf("%s: %q, was %q", what, got, password)
		}
	}
	b.Deleted("Secret", site, "db-password")
	if _, err := b.Repair(t.Context(), deployer.RepairOptions{Selection: survey.Selection{Environment: site, Solution: shop}}); err != nil {
		t.Fatal(err)
	}
	same("repaired")
	b.Deleted("Secret", site, "db-password")
	must(b, add("1.0.0"))
	same("added again")
	must(b, choose(t, values("db", map[string]any{"size": 3}, false)))
	same("with another value")
	rotated := must(b, choose(t, func(p *plan.Parts) { p.Rotate = []string{"db"} }))
	if said := strings.Join(rotated.Notices, "\n"); !strings.Contains(said, "new values are generated for Secret site/db-password") {
		t.Errorf("nothing names what has another password: %q", said)
	}
	if got := state(b)["db-password"]; got == password {
		t.Error("it was to be another one")
	}
	must(b, rollback(0))
	same("rolled back")
	for _, name := range b.Server.Names("ConfigMap") {
		namespace, short, _ := strings.Cut(name, "/")
		if text := fmt.Sprint(b.Server.Object("ConfigMap", namespace, short)); strings.Contains(text, password) || strings.Contains(text, base64.StdEncoding.EncodeToString([]byte(password))) {
			t.Errorf("ConfigMap %s has the password", name)
		}
	}
}

// TestPlansThatGenerate checks that newly generated values do not change the digest of a plan, and that values of the site do.
func TestPlansThatGenerate(t *testing.T) {
	b := deployertest.New(t)
	b.Activated(shop, "1.0.0", parts(t, nil))
	digest := func(run verb) string {
		t.Helper()
		planned, err := run(t.Context(), b.Deployer, plan.Options{DryRun: true})
		if err != nil {
			t.Fatal(err)
		}
		return planned.Digest
	}
	first := digest(add("1.0.0"))
	if digest(add("1.0.0")) != first {
		t.Error("two plans of the same differ")
	}
	if digest(choose(t, values("db", map[string]any{"size": 3}, false))) == first {
		t.Error("another value is the same plan")
	}
	rotate := choose(t, func(p *plan.Parts) { p.Rotate = []string{"db"} })
	if _, err := add("1.0.0")(t.Context(), b.Deployer, plan.Options{Expect: first}); err != nil {
		t.Fatal(err)
	}
	if again := digest(rotate); digest(rotate) != again || again == digest(add("1.0.0")) {
		t.Error("drawing again is not one plan, or the same as drawing nothing")
	}
}

// TestSiteValues checks that values of the site override those of the archive, are saved until the site sets others, and change only the
// component that they are for.
func TestSiteValues(t *testing.T) {
	b := deployertest.New(t)
	b.Activated(shop, "1.0.0", parts(t, nil))
	for _, test := range []struct {
		name string
		said func(*plan.Parts)
		want string
	}{
		{"nothing", nil, "map[primary:a size:1 standby:b]"},
		{"one value", values("db", map[string]any{"size": 3}, false), "map[primary:a size:3 standby:b]"},
		{"nothing again", nil, "map[primary:a size:3 standby:b]"},
		{"a value deep in a table", values("db", map[string]any{"hosts": map[string]any{"standby": "c"}}, false), "map[primary:a size:3 standby:c]"},
		{"a large number", values("db", map[string]any{"size": int64(12345678901234567)}, false), "map[primary:a size:12345678901234567 standby:c]"},
		{"the large number again", values("db", map[string]any{"hosts": map[string]any{"standby": "c"}}, false), "map[primary:a size:12345678901234567 standby:c]"},
		{"a large number of a file", values("db", map[string]any{"size": 1e7}, false), "map[primary:a size:1e+07 standby:c]"},
		{"all again", values("db", map[string]any{"size": 2}, true), "map[primary:a size:2 standby:b]"},
	} {
		b.Writes()
		must(b, choose(t, test.said))
		if got := state(b)["db"]; got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
		for _, write := range b.Writes() {
			if test.said != nil && !touchesDB.MatchString(write) {
				t.Errorf("%s: it writes %s", test.name, write)
			}
		}
	}
}

// touchesDB finds writes of one component only, which others need: its objects, its record and that of its Solution.
var touchesDB = regexp.MustCompile(`/configmaps/db$|/secrets/(state|content)\.shop\.|/secrets$|/leases`)

// TestRefusedParts: nothing is changed by a choice that cannot be.
func TestRefusedParts(t *testing.T) {
	b := deployertest.New(t)
	b.Activated(shop, "1.0.0", parts(t, nil))
	b.Activated("plain", "1.0.0", deployertest.Content{})
	must(b, add("1.0.0"))
	b.Writes()
	for _, test := range []struct {
		name  string
		run   verb
		code  report.Code
		words []string
	}{
		{"needed", choose(t, nil, "db=false"), report.Refused, []string{"component db cannot be deselected: api needs it", "deselect api, too"}},
		{"misspelt", choose(t, nil, "ap"), report.Usage, []string{`has no component "ap"`, "did you mean api?"}},
		{"components of a Solution that has none", func(ctx context.Context, d *deployer.Deployer, o plan.Options) (*schema.Operation, error) {
			return d.Add(ctx, deployer.AddOptions{
				Options: o, Environment: site, Solution: "plain", Version: "1.0.0",
				Rendering: plan.Rendering{Parts: plan.Parts{Choice: components.Choice{Components: map[string]bool{"api": true}}}},
			})
		}, report.Usage, []string{`plain-1.0.0 has no component "api"`}},
		{"values of what is no chart", choose(t, values("api", nil, false)), report.Usage, []string{`no chart "api" that takes values`, "its charts are db"}},
		{"values of what is not there", choose(t, values("dbb", nil, false)), report.Usage, []string{"did you mean db?"}},
		{"new passwords of what is not selected", choose(t, func(p *plan.Parts) { p.Rotate = []string{"extra"} }), report.Usage, []string{`no chart "extra"`}},
	} {
		_, err := test.run(t.Context(), b.Deployer, plan.Options{})
		t.Log(test.name)
		deployertest.Refused(t, err, test.code, test.words...)
	}
	for _, write := range b.Writes() {
		if !strings.Contains(write, "/leases/") {
			t.Errorf("it writes %s", write)
		}
	}
}

// TestComponentsAreSeen: status, drift and the graph know of components.
func TestComponentsAreSeen(t *testing.T) {
	b := deployertest.New(t)
	b.Activated(shop, "1.0.0", parts(t, nil))
	must(b, add("1.0.0"))
	b.Deleted("ConfigMap", site, "api")
	status, err := b.Survey.EnvironmentStatus(t.Context(), survey.EnvironmentOptions{Environment: site, Drift: true})
	if err != nil {
		t.Fatal(err)
	}
	deployertest.Valid(t, "environment", status)
	one := slices.Collect(status.Deployments())[0]
	if one.Health == schema.HealthReady || len(one.Components) != 2 || one.Components[0].Name != "api" || one.Components[0].Health == schema.HealthReady ||
		one.Components[1].Health != schema.HealthReady || !strings.Contains(strings.Join(schema.Sentences(one.Reasons), "\n"), "component api: ") {
		t.Errorf("%+v", one)
	}
	if len(one.Drift) != 1 || one.Drift[0].Object.Name != "api" {
		t.Errorf("drift %+v", one.Drift)
	}
	graph, err := b.Components(t.Context(), deployer.ComponentsOptions{Environment: site, Solution: shop})
	if err != nil {
		t.Fatal(err)
	}
	deployertest.Valid(t, "components", graph)
	drawn := strings.Join(components.Tree(graph), "\n")
	for _, line := range []string{"extra  manifests components/extra.yaml, not without profile large", "└─ operator Applied  operator", "├─ db Ready  chart charts/db.tgz: ready, 2 of 2 objects ready"} {
		if !strings.Contains(drawn, line) {
			t.Errorf("it does not show %q:\n%s", line, drawn)
		}
	}
	repaired, err := b.Repair(t.Context(), deployer.RepairOptions{})
	if err != nil || !slices.Equal(changes(repaired), []string{"create ConfigMap site/api"}) {
		t.Errorf("repaired %v, %v", repaired, err)
	}
	if diff, err := b.Diff(t.Context(), survey.Selection{}); err != nil || !diff.Empty() {
		t.Errorf("%v %v", diff, err)
	}
}

// TestSaltsView: MetalK8s shows to Salt of a Solution with components what it shows of one without, besides the manifest, which it passes on.
func TestSaltsView(t *testing.T) {
	view := func(content deployertest.Content) map[string]any {
		b := deployertest.New(t)
		b.Activated(shop, "1.0.0", content)
		must(b, add("1.0.0"))
		pillar, err := b.Records.Documents.Pillar(t.Context(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(pillar)
		seen := map[string]any{}
		if err = errors.Join(err, json.Unmarshal(text, &seen)); err != nil {
			t.Fatal(err)
		}
		return seen
	}
	with, without := view(parts(t, nil)), view(deployertest.Content{})
	shown := with["available"].(map[string]any)[shop].([]any)[0].(map[string]any) //nolint:forcetypeassert // a document of ours
	if components, _, _ := unstructured.NestedSlice(shown, "manifest", "spec", "components"); len(components) != 3 {
		t.Errorf("the manifest has %v", components)
	}
	unstructured.RemoveNestedField(shown, "manifest", "spec", "components")
	if diff := cmp.Diff(without, with); diff != "" {
		t.Errorf("(-without +with):\n%s", diff)
	}
}

// TestSomeComponents checks that one component is inspected and repaired without the others, and that an unknown name is an error.
func TestSomeComponents(t *testing.T) {
	b := deployertest.New(t)
	b.Activated(shop, "1.0.0", parts(t, nil))
	must(b, add("1.0.0"))
	b.Deleted("ConfigMap", site, "api")
	b.Deleted("ConfigMap", site, "db")
	b.Deleted("ConfigMap", site, "shop-operator-config")
	for _, test := range []struct {
		components []string
		want       []string
	}{
		{[]string{"db"}, []string{"create ConfigMap site/db"}},
		{[]string{"operator"}, []string{"create ConfigMap site/shop-operator-config"}},
		{[]string{"db"}, nil},
		{[]string{"db", "api"}, []string{"create ConfigMap site/api"}},
		{nil, nil},
	} {
		selected := survey.Selection{Environment: site, Solution: shop, Components: test.components}
		if diff, err := b.Diff(t.Context(), selected); err != nil || !slices.Equal(changes(diff), test.want) {
			t.Errorf("%s: diff %v, %v", test.components, changes(diff), err)
		}
		if done, err := b.Repair(t.Context(), deployer.RepairOptions{Selection: selected}); err != nil || !slices.Equal(changes(done), test.want) {
			t.Errorf("%s: repaired %v, %v", test.components, changes(done), err)
		}
	}
	must(b, choose(t, nil, "extra"))
	must(b, choose(t, nil, "extra=false"))
	for _, name := range []string{"dbb", "extra"} { // mistyped; no longer selected
		selected := survey.Selection{Environment: site, Solution: shop, Components: []string{"api", name}}
		_, err := b.Diff(t.Context(), selected)
		_, failed := b.Repair(t.Context(), deployer.RepairOptions{Selection: selected})
		for _, err := range []error{err, failed} {
			if report.CodeOf(err) != report.NotFound || !strings.Contains(err.Error(), name) || len(report.Hints(err)) == 0 {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// TestNothingButComponents: a Solution that has no operator, and nothing else of its own, is on record with its components: it is seen,
// nothing is to be done where it is there, and it is removed with all of them.
func TestNothingButComponents(t *testing.T) {
	content := parts(t, nil)
	content.Bare, content.Manifest = true, strings.ReplaceAll(content.Manifest, ", {component: operator, until: Applied}", "")
	b := deployertest.New(t)
	b.Activated(shop, "1.0.0", content)
	must(b, add("1.0.0"))
	status, err := b.Survey.EnvironmentStatus(t.Context(), survey.EnvironmentOptions{Environment: site})
	if err != nil {
		t.Fatal(err)
	}
	if one := slices.Collect(status.Deployments())[0]; one.Version != "1.0.0" || one.Health != schema.HealthReady || len(one.Components) != 2 {
		t.Errorf("%+v", one)
	}
	b.Server.Requests()
	must(b, add("1.0.0"))
	for _, request := range b.Server.Requests() {
		if strings.Contains(request, "/secrets/state.") && !strings.HasPrefix(request, "GET") {
			t.Errorf("nothing is to be done, and there is %s", request)
		}
	}
	must(b, remove(shop))
	if left := there(b); left != "" {
		t.Errorf("it leaves %s", left)
	}
}

// TestKindsOfComponents: an object whose kind is not there is not passed over, and what was begun is finished by resume.
func TestKindsOfComponents(t *testing.T) {
	b := deployertest.New(t)
	b.Activated(shop, "1.0.0", parts(t, map[string]string{
		"components/api.yaml": "apiVersion: monitoring.coreos.com/v1\nkind: ServiceMonitor\nmetadata: {name: api}\nspec: {selector: {}, endpoints: []}\n",
	}))
	_, err := add("1.0.0")(t.Context(), b.Deployer, plan.Options{Timeout: 1})
	deployertest.Refused(t, err, report.Timeout, "ServiceMonitor", "the cluster has no ServiceMonitor of monitoring.coreos.com/v1 yet", "shop.api")
	b.Server.Put(t, deployertest.ServiceMonitors)
	resumed, err := b.Resume(t.Context(), deployer.ResumeOptions{})
	if err != nil || len(resumed.Operations) != 1 || !resumed.Operations[0].Finished {
		t.Fatalf("%+v %v", resumed, err)
	}
	if got := b.Server.Names("ServiceMonitor"); len(got) != 1 {
		t.Errorf("there is %v", got)
	}
}

// TestClusterWideKindsOfOthers checks that a component of an environment cannot have an object of a cluster-wide kind that others define.
func TestClusterWideKindsOfOthers(t *testing.T) {
	b := deployertest.New(t, `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: gatewayclasses.gateway.networking.k8s.io},
spec: {group: gateway.networking.k8s.io, scope: Cluster, names: {kind: GatewayClass, plural: gatewayclasses}, versions: [{name: v1, served: true, storage: true}]}}`)
	class := "apiVersion: gateway.networking.k8s.io/v1\nkind: GatewayClass\nmetadata: {name: api}\nspec: {controllerName: shop.example/api}\n"
	b.Activated(shop, "1.0.0", parts(t, map[string]string{"components/api.yaml": class}))
	_, err := add("1.0.0")(t.Context(), b.Deployer, plan.Options{})
	deployertest.Refused(t, err, report.Refused, "GatewayClass site/api: the kind is cluster-wide", "scope: cluster")
	if left := there(b); left != "" || len(b.Server.Names("GatewayClass")) > 0 {
		t.Errorf("it leaves %s", left)
	}
}

// TestEnvironmentsGoWithComponents: nothing is left of an environment that is deleted.
func TestEnvironmentsGoWithComponents(t *testing.T) {
	b := deployertest.New(t)
	b.Activated(shop, "1.0.0", parts(t, nil))
	must(b, add("1.0.0"))
	must(b, deleteSite(plan.DeleteData))
	for _, name := range b.Server.Names("Secret") {
		if strings.HasPrefix(name, cluster.SystemNamespace+"/state."+shop+".db") {
			t.Errorf("there is still %s", name)
		}
	}
}

// TestNamespacesOfClusterComponents: an activation creates the namespaces that its components name, and leaves those alone that exist.
func TestNamespacesOfClusterComponents(t *testing.T) {
	content := parts(t, map[string]string{"components/agent.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: agent}\n---\n" +
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: agent, namespace: monitoring}\n"})
	content.Manifest += "  - {name: agent, manifests: components/agent.yaml, scope: cluster, namespace: agents, namespaces: [monitoring]}\n"
	b := deployertest.New(t)
	b.Imported(shop, "1.0.0", content)
	const other = "apiVersion: v1\nkind: Namespace\nmetadata: {name: monitoring, labels: {team: site}}\n"
	b.Server.Put(t, other)
	activate := deployer.ActivateOptions{Solution: shop, Version: "1.0.0", Options: plan.Options{Allow: []string{string(schema.PowerObjectsElsewhere)}}}
	for range 2 {
		if _, err := b.Activate(t.Context(), activate); err != nil {
			t.Fatal(err)
		}
		created := b.Server.Object("Namespace", "", "agents")
		if created == nil || created.GetLabels()["app.kubernetes.io/part-of"] != shop {
			t.Fatalf("namespace agents is %v", created)
		}
		if existing := b.Server.Object("Namespace", "", "monitoring"); len(existing.GetLabels()) != 1 {
			t.Errorf("namespace monitoring, which existed before, has labels %v", existing.GetLabels())
		}
		if b.Server.Object("ConfigMap", "agents", "agent") == nil || b.Server.Object("ConfigMap", "monitoring", "agent") == nil {
			t.Error("the objects of the component are missing")
		}
	}
	if _, err := b.Deactivate(t.Context(), deployer.DeactivateOptions{Solution: shop}); err != nil {
		t.Fatal(err)
	}
	if b.Server.Object("ConfigMap", "agents", "agent") != nil {
		t.Error("the component is still deployed")
	}
}

// TestDefinitionsOfClusterChart: the first activation applies the CustomResourceDefinitions of a chart that lives in the cluster before its objects.
func TestDefinitionsOfClusterChart(t *testing.T) {
	b := deployertest.New(t)
	content := dials(b, "")
	content.Manifest = strings.Replace(content.Manifest, ".tgz", ".tgz, scope: cluster", 1)
	b.Imported(shop, "1.0.0", content)
	if _, err := b.Activate(t.Context(), deployer.ActivateOptions{Solution: shop, Version: "1.0.0"}); err != nil {
		t.Fatal(err)
	}
	if b.Server.Object("CustomResourceDefinition", "", "dials.shop.example") == nil || b.Server.Object("ConfigMap", "shop-system", "dial") == nil {
		t.Error("the CustomResourceDefinition or the objects of the chart are missing")
	}
}

// TestClusterComponents: what lives in the cluster comes with the activation, before environments that need it, and goes last.
func TestClusterComponents(t *testing.T) {
	content := parts(t, map[string]string{
		"components/agent.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: agent}\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: agent}\nrules: [{apiGroups: [''], resources: [nodes], verbs: [get]}]\n" +
			"---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: agent}\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: agent}\n" +
			"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: agent}\nsubjects: [{kind: ServiceAccount, name: agent}]\n",
	})
	content.Manifest += "  - {name: agent, manifests: components/agent.yaml, scope: cluster}\n  - {name: user, manifests: components/extra.yaml, dependsOn: [{component: agent}]}\n"
	b := deployertest.New(t)
	b.Imported(shop, "1.0.0", content)
	activate := func(o deployer.ActivateOptions) error {
		o.Solution, o.Version = shop, "1.0.0"
		_, err := b.Activate(t.Context(), o)
		return err
	}
	deployertest.Refused(t, activate(deployer.ActivateOptions{}), report.Refused, "read objects of others (nodes)", "for account shop-system/agent", "--allow read-others:ClusterRole/")
	approved := true
	if err := activate(deployer.ActivateOptions{ClusterWide: &approved}); err != nil { // its namespace comes with it
		t.Fatal(err)
	}
	without, err := components.ParseChoice(nil, []string{"agent=false", "user=false"})
	if err != nil {
		t.Fatal(err)
	}
	if err = activate(deployer.ActivateOptions{Parts: plan.Parts{Choice: without}}); err != nil {
		t.Fatal(err)
	}
	_, err = add("1.0.0")(t.Context(), b.Deployer, plan.Options{})
	deployertest.Refused(t, err, report.Refused, "component agent of shop-1.0.0, which others need, is not in the cluster", "deploy activate shop 1.0.0 --component agent")

	with, err := components.ParseChoice(nil, []string{"agent"})
	if err != nil {
		t.Fatal(err)
	}
	if err = activate(deployer.ActivateOptions{ClusterWide: &approved, Parts: plan.Parts{Choice: with}}); err != nil {
		t.Fatal(err)
	}
	if b.Server.Object("ConfigMap", "shop-system", "agent") == nil {
		t.Error("the component is not in the namespace of the Solution")
	}
	must(b, add("1.0.0"))
	_, err = deactivate(shop)(t.Context(), b.Deployer, plan.Options{})
	deployertest.Refused(t, err, report.InUse)
	must(b, remove(shop))
	must(b, deactivate(shop))
	if b.Server.Object("ConfigMap", "shop-system", "agent") != nil {
		t.Error("the component is still there")
	}
}

// TestRemovalGoesOn: a removal that was interrupted is finished, in the same order.
func TestRemovalGoesOn(t *testing.T) {
	b := deployertest.New(t)
	b.Activated(shop, "1.0.0", parts(t, nil))
	must(b, add("1.0.0"))
	b.Server.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		body, err := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		if err != nil || r.Method != http.MethodDelete || !strings.HasSuffix(r.URL.Path, "/configmaps/db") || bytes.Contains(body, []byte("dryRun")) {
			return false
		}
		http.Error(w, "not now", http.StatusTeapot)
		return true
	}
	_, err := remove(shop)(t.Context(), b.Deployer, plan.Options{})
	deployertest.Refused(t, err, report.Unavailable, "shop.db", "shop: it was not started, because it needs shop.db, which failed")
	b.Server.Answer = nil
	must(b, remove(shop))
	if got := there(b); got != "" {
		t.Errorf("there is still %s", got)
	}
}
