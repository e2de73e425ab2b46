package components_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/deployer/components"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// cloud has every kind of component, in no order.
const cloud = `
    - {name: web, chart: charts/web.tgz, dependsOn: [{component: api}, {component: ui, until: Applied}]}
    - {name: api, manifests: components/api, dependsOn: [{component: sync}, {component: database}]}
    - {name: sync, job: components/sync.yaml, once: perVersion, dependsOn: [{component: database}]}
    - {name: database, chart: charts/database.tgz, select: optional}
    - {name: base, manifests: components/base.yaml, select: always, scope: cluster}
    - {name: identity, operator: operators/identity, profiles: [service, micro], dependsOn: [{component: operator}]}
    - {name: all-in-one, manifests: components/one, profiles: [one], select: default}
    - {name: metrics, chart: charts/metrics.tgz, select: optional, dependsOn: [{component: base}]}
`

func parse(t *testing.T, list string) *schema.Solution {
	t.Helper()
	text := "apiVersion: solutions.metalk8s.scality.com/v1alpha1\nkind: Solution\nmetadata: {name: cloud}\nspec:\n  version: 1.0.0\n  components:\n"
	solution, _, err := schema.ParseSolution("manifest.yaml", []byte(text+strings.TrimPrefix(list, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	return solution
}

func graph(t *testing.T, list string) *components.Graph {
	t.Helper()
	g, err := components.New(parse(t, list), schema.NodeOperator, schema.NodeUI)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func names(nodes []*components.Node) string {
	var list []string
	for _, n := range nodes {
		list = append(list, n.Name)
	}
	return strings.Join(list, " ")
}

func TestSelect(t *testing.T) {
	g := graph(t, cloud)
	for _, test := range []struct {
		name                 string
		profiles, components []string
		want                 string
	}{
		{"default", nil, nil, "all-in-one base database operator ui sync api web"},
		{"a profile", []string{"service"}, nil, "base database operator ui identity sync api web"},
		{"the profile that is on by default", []string{"one"}, nil, "all-in-one base database operator ui sync api web"},
		{"two profiles", []string{"micro", "one"}, nil, "all-in-one base database operator ui identity sync api web"},
		{"by name", nil, []string{"metrics", "web=false"}, "all-in-one base database operator ui metrics sync api"},
		{"components that are no longer needed", nil, []string{"web=false", "api=false", "sync=false"}, "all-in-one base operator ui"},
		{"a name beats a profile", []string{"service"}, []string{"identity=false"}, "base database operator ui sync api web"},
		{"what is there always, by name", nil, []string{"base=true", "operator"}, "all-in-one base database operator ui sync api web"},
	} {
		t.Run(test.name, func(t *testing.T) {
			choice, err := components.ParseChoice(test.profiles, test.components)
			if err != nil {
				t.Fatal(err)
			}
			s, err := g.Select(choice)
			if err != nil {
				t.Fatal(err)
			}
			if got := names(s.Nodes()); got != test.want {
				t.Errorf("selected:\n%s\nwant:\n%s", got, test.want)
			}
			for _, n := range g.Nodes() {
				if s.Has(n.Name) != slices.Contains(strings.Fields(test.want), n.Name) {
					t.Errorf("Has(%s) is %t", n.Name, s.Has(n.Name))
				}
			}
		})
	}
}

// TestWith: a later choice wins, and a reset removes the earlier one.
func TestWith(t *testing.T) {
	for _, test := range []struct{ before, later, want string }{
		{"", "", ""},
		{"a b=false", "", "a b=false"},
		{"a b=false", "b c", "a b c"},
		{"a b=false", "a=default", "a=default b=false"},
		{"a", "a=default b=default", "a=default b=default"},
		{"a=default", "a=false", "a=false"},
		{"a=default b=default", "b=default", "a=default b=default"},
	} {
		var choices [2]components.Choice
		for i, text := range []string{test.before, test.later} {
			var err error
			if choices[i], err = components.ParseChoice(nil, strings.Fields(text)); err != nil {
				t.Fatal(err)
			}
		}
		if _, got := choices[0].With(choices[1]).Texts(); strings.Join(got, " ") != test.want {
			t.Errorf("%q with %q: %q, want %q", test.before, test.later, got, test.want)
		}
	}
}

// TestExampleCloud: the profiles of the example match its README.
func TestExampleCloud(t *testing.T) {
	const file = "../../example-cloud/solution.yaml"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	build, err := schema.ParseSolutionBuild(file, data)
	if err != nil {
		t.Fatal(err)
	}
	g, err := components.New(build.Solution(nil, time.Time{}), schema.NodeOperator)
	if err != nil {
		t.Fatal(err)
	}
	for profile, want := range map[string]string{
		"":             "operator",
		"service":      "compute-operator identity-operator network-operator operator",
		"microservice": "api-operator conductor-operator identity-operator network-operator operator scheduler-operator",
		"charts":       "compute conductor identity network operator scheduler",
	} {
		var choice components.Choice
		if profile != "" {
			choice.Profiles = []string{profile}
		}
		s, err := g.Select(choice)
		if err != nil {
			t.Fatal(err)
		}
		selected := strings.Fields(names(s.Nodes()))
		slices.Sort(selected)
		if got := strings.Join(selected, " "); got != want {
			t.Errorf("profile %q: %s, want %s", profile, got, want)
		}
	}
}

func TestRefusedChoices(t *testing.T) {
	g := graph(t, cloud)
	for _, test := range []struct {
		name                  string
		profiles, components  []string
		code                  report.Code
		wantError, wantedHint string
	}{
		{
			"the chain to who needs it", nil,
			[]string{"database=false"},
			report.Refused, "component database cannot be deselected: api needs it (api -> database)", "deselect api, too",
		},
		{
			"through what is there for the sake of others", nil,
			[]string{"web", "base=true", "api=false"},
			report.Refused, "component api cannot be deselected: web needs it (web -> api)", "deselect web, too",
		},
		{"always", nil, []string{"base=false"}, report.Refused, "component base of cloud-1.0.0 is always selected: it cannot be deselected", ""},
		{"the operator", nil, []string{"operator=false"}, report.Refused, "operator is a part of every deployment of cloud-1.0.0: it cannot be deselected", ""},
		{"misspelt", nil, []string{"databse"}, report.Usage, `cloud-1.0.0 has no component "databse"`, "did you mean database?"},
		{"unknown", nil, []string{"x=false"}, report.Usage, `cloud-1.0.0 has no component "x"`, "it has: all-in-one, api, base, database, identity, metrics, operator, sync, ui, web"},
		{"unknown profile", []string{"servise"}, nil, report.Usage, `cloud-1.0.0 has no profile "servise"`, "did you mean service?"},
		{"no value", nil, []string{"web=off"}, report.Usage, `component "web=off" is not NAME, NAME=true, NAME=false or NAME=default`, ""},
		{"no name", nil, []string{"=true"}, report.Usage, `component "=true" is not NAME, NAME=true, NAME=false or NAME=default`, ""},
		{"both", nil, []string{"web", "web=false"}, report.Usage, "component web is chosen in two ways", ""},
		{"wanted and the default", nil, []string{"web", "web=default"}, report.Usage, "component web is chosen in two ways", ""},
		{"the default and not wanted", nil, []string{"web=default", "web=false"}, report.Usage, "component web is chosen in two ways", ""},
		{"the default of nothing", nil, []string{"wed=default"}, report.Usage, `cloud-1.0.0 has no component "wed"`, "did you mean web?"},
	} {
		t.Run(test.name, func(t *testing.T) {
			choice, err := components.ParseChoice(test.profiles, test.components)
			if err == nil {
				_, err = g.Select(choice)
			}
			if report.CodeOf(err) != test.code || err.Error() != test.wantError {
				t.Fatalf("got %s %v\nwant %s %s", report.CodeOf(err), err, test.code, test.wantError)
			}
			if hint := strings.Join(report.Hints(err), "; "); hint != test.wantedHint {
				t.Errorf("hint %q, want %q", hint, test.wantedHint)
			}
		})
	}
	g = graph(t, "\n    - {name: a, job: a.yaml, select: optional}\n    - {name: b, job: b.yaml, select: optional, dependsOn: [{component: a}]}\n"+
		"    - {name: c, job: c.yaml, select: always, dependsOn: [{component: b}]}\n")
	_, err := g.Select(components.Choice{Components: map[string]bool{"a": false}})
	if err == nil || err.Error() != "component a cannot be deselected: b needs it (c -> b -> a)" || report.Hints(err)[0] != "c is always selected" {
		t.Errorf("got %v %q", err, report.Hints(err))
	}
	if _, err := g.Select(components.Choice{Profiles: []string{"x"}}); err == nil || report.Hints(err)[0] != "it has none at all" {
		t.Errorf("a profile of none: %v", err)
	}
}

func TestGraphsThatDoNotEnd(t *testing.T) {
	part := func(name string, needs ...string) schema.Component {
		c := schema.Component{Name: name, Job: "job.yaml"}
		for _, need := range needs {
			c.DependsOn = append(c.DependsOn, schema.ComponentDependency{Component: need})
		}
		return c
	}
	for want, list := range map[string][]schema.Component{
		"component a of cloud-1.0.0 waits for itself":                      {part("a", "b"), part("b", "c"), part("c", "a")},
		"component a waits for operator, which cloud-1.0.0 does not have":  {part("a", "operator")},
		"component a waits for something, which cloud-1.0.0 does not have": {part("a", "something")},
		"component self of cloud-1.0.0 waits for itself":                   {part("self", "self")},
		"component second waits for ui, which cloud-1.0.0 does not have":   {part("first"), part("second", "ui")},
		"component z of cloud-1.0.0 waits for itself":                      {part("b", "z"), part("c"), part("z", "z")},
	} {
		_, err := components.New(&schema.Solution{Metadata: schema.Metadata{Name: "cloud"}, Spec: schema.SolutionSpec{Version: "1.0.0", Components: list}})
		if err == nil || err.Error() != want || report.CodeOf(err) != report.Invalid {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestRandomGraphs: the order does not depend on the order of the manifest, and each node comes after those that it
// needs.
func TestRandomGraphs(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1))
		list := randomComponents(random, 200)
		var first []string
		for range 3 {
			random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
			solution := &schema.Solution{Metadata: schema.Metadata{Name: "cloud"}, Spec: schema.SolutionSpec{Version: "1.0.0", Components: slices.Clone(list)}}
			g, err := components.New(solution)
			if err != nil {
				t.Fatal(err)
			}
			choice := components.Choice{Profiles: []string{"p1"}}
			s, err := g.Select(choice)
			if err != nil {
				t.Fatal(err)
			}
			checkOrder(t, s)
			d := s.Document()
			if err := valid(d); err != nil {
				t.Fatal(err)
			}
			pictures := []string{strings.Join(components.Tree(d), "\n"), components.Dot(d), components.Mermaid(d)}
			if first == nil {
				first = pictures
			}
			if diff := cmp.Diff(pictures, first); diff != "" {
				t.Fatalf("seed %d: another order of the manifest gives another graph:\n%s", seed, diff)
			}
		}
	}
}

func randomComponents(random *rand.Rand, count int) []schema.Component {
	list := make([]schema.Component, count)
	position := random.Perm(count) // so that names say nothing of the order
	for i := range list {
		c := schema.Component{Name: fmt.Sprintf("c%d", position[i]), Manifests: "components/x.yaml"}
		switch random.IntN(4) {
		case 0:
			c.Select = schema.SelectOptional
		case 1:
			c.Profiles = []string{fmt.Sprintf("p%d", random.IntN(3))}
		}
		needs := map[string]bool{}
		for range random.IntN(5) {
			if i > 0 {
				needs[list[random.IntN(i)].Name] = true
			}
		}
		for _, name := range slices.Sorted(maps.Keys(needs)) {
			c.DependsOn = append(c.DependsOn, schema.ComponentDependency{Component: name})
		}
		list[i] = c
	}
	list[0].Profiles = []string{"p1"}
	return list
}

func checkOrder(t *testing.T, s *components.Selection) {
	t.Helper()
	done := map[string]bool{}
	for _, n := range s.Nodes() {
		for _, need := range n.Needs {
			if !done[need.Name] {
				t.Errorf("%s comes before %s, which it needs", n.Name, need.Name)
			}
			if n.Level <= need.Level {
				t.Errorf("%s has level %d and needs %s of level %d", n.Name, n.Level, need.Name, need.Level)
			}
			if !slices.Contains(need.NeededBy, n) {
				t.Errorf("%s does not know that %s needs it", need.Name, n.Name)
			}
		}
		done[n.Name] = true
	}
	if len(done) == 0 {
		t.Error("nothing is selected")
	}
}

func valid(d *schema.ComponentGraph) error {
	data, err := json.Marshal(d)
	return errors.Join(err, schema.ValidateOutput("components", data))
}

func TestPictures(t *testing.T) {
	s, err := graph(t, cloud).Select(components.Choice{Components: map[string]bool{"metrics": false}})
	if err != nil {
		t.Fatal(err)
	}
	d := s.Document()
	if err := valid(d); err != nil {
		t.Error(err)
	}
	for _, test := range []struct{ name, got, want string }{
		{"tree", strings.Join(components.Tree(d), "\n") + "\n", wantTree},
		{"dot", components.Dot(d), wantDot},
		{"mermaid", components.Mermaid(d), wantMermaid},
	} {
		if diff := cmp.Diff(test.got, test.want); diff != "" {
			t.Errorf("%s (-got +want):\n%s", test.name, diff)
		}
	}
}

// TestLongChains makes sure that the tree of a hostile archive stays narrow.
func TestLongChains(t *testing.T) {
	const length = 20_000
	list := []schema.Component{{Name: "c0", Job: "job.yaml"}}
	for i := range length {
		list = append(list, schema.Component{
			Name: fmt.Sprintf("c%d", i+1), Job: "job.yaml", DependsOn: []schema.ComponentDependency{{Component: fmt.Sprintf("c%d", i)}},
		})
	}
	g, err := components.New(&schema.Solution{Metadata: schema.Metadata{Name: "cloud"}, Spec: schema.SolutionSpec{Version: "1.0.0", Components: list}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := g.Select(components.Choice{})
	if err != nil {
		t.Fatal(err)
	}
	if lines := components.Tree(s.Document()); len(lines) > 100 || len(lines) < 30 || !strings.HasSuffix(lines[len(lines)-1], " …") {
		t.Errorf("%d lines, the last one is %q", len(lines), lines[len(lines)-1])
	}
}

const wantTree = `all-in-one  manifests components/one
identity  operator operators/identity, not without profile service or micro
└─ operator Ready  operator
metrics  chart charts/metrics.tgz, deselected
└─ base Ready  manifests components/base.yaml, in the cluster
web  chart charts/web.tgz
├─ api Ready  manifests components/api
│  ├─ sync Complete  job components/sync.yaml
│  │  └─ database Ready  chart charts/database.tgz, as api needs it
│  └─ database Ready  chart charts/database.tgz, as api needs it
└─ ui Applied  ui
`

const wantDot = `digraph "cloud-1.0.0" {
  "all-in-one" [shape=box, label="all-in-one\nmanifests"];
  "base" [shape=box, label="base\nmanifests"];
  "database" [shape=box, label="database\nchart"];
  "operator" [shape=box, label="operator\noperator"];
  "ui" [shape=box, label="ui\nui"];
  "identity" [shape=box, label="identity\noperator", style=dashed];
  "metrics" [shape=box, label="metrics\nchart", style=dashed];
  "sync" [shape=box, label="sync\njob"];
  "api" [shape=box, label="api\nmanifests"];
  "web" [shape=box, label="web\nchart"];
  "operator" -> "identity" [label="Ready"];
  "base" -> "metrics" [label="Ready"];
  "database" -> "sync" [label="Ready"];
  "sync" -> "api" [label="Complete"];
  "database" -> "api" [label="Ready"];
  "api" -> "web" [label="Ready"];
  "ui" -> "web" [label="Applied"];
}
`

const wantMermaid = `flowchart TD
  n0["all-in-one<br/>manifests"]
  n1["base<br/>manifests"]
  n2["database<br/>chart"]
  n3["operator<br/>operator"]
  n4["ui<br/>ui"]
  n5["identity<br/>operator"]:::unselected
  n6["metrics<br/>chart"]:::unselected
  n7["sync<br/>job"]
  n8["api<br/>manifests"]
  n9["web<br/>chart"]
  n3 -->|Ready| n5
  n1 -->|Ready| n6
  n2 -->|Ready| n7
  n7 -->|Complete| n8
  n2 -->|Ready| n8
  n8 -->|Ready| n9
  n4 -->|Applied| n9
  classDef unselected stroke-dasharray: 5 5
`
