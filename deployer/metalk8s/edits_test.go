package metalk8s

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// entry is a version in ConfigMap metalk8s-solutions, with a field that this program does not know.
func entry(version string, active bool) string {
	return fmt.Sprintf(`{"archive":"/%[1]s.iso","name":"DB","version":%[1]q,"id":"db-%[1]s","active":%[2]t,"mountpoint":"/srv/%[1]s","theirs":"x"}`, version, active)
}

// TestEditsOfSolutions: each edit changes one Solution and nothing that others wrote.
func TestEditsOfSolutions(t *testing.T) {
	imported := func(version string) schema.ImportedSolution {
		return schema.ImportedSolution{Name: "DB", Version: version, ID: "db-" + version, Archive: "/new.iso", Mountpoint: "/srv/new", Active: true}
	}
	for name, test := range map[string]struct {
		db   string // the value of its key; "" for none
		edit func(map[string]string) error
		want []string // version, active and archive; nil when the key is gone
		code report.Code
	}{
		"import the first":               {"", putVersion("db", imported("1.0.0")), []string{"1.0.0 false /new.iso"}, ""},
		"import a lower one":             {"[" + entry("2.0.0", true) + "]", putVersion("db", imported("1.0.0")), []string{"1.0.0 false /new.iso", "2.0.0 true /2.0.0.iso"}, ""},
		"import the active one again":    {"[" + entry("1.0.0", true) + "]", putVersion("db", imported("1.0.0")), []string{"1.0.0 true /new.iso"}, ""},
		"import what was not active":     {"[" + entry("1.0.0", false) + "]", putVersion("db", imported("1.0.0")), []string{"1.0.0 false /new.iso"}, ""},
		"unimport one of two":            {"[" + entry("1.0.0", false) + "," + entry("2.0.0", true) + "]", removeVersion("db", "1.0.0"), []string{"2.0.0 true /2.0.0.iso"}, ""},
		"unimport the last":              {"[" + entry("1.0.0", false) + "]", removeVersion("db", "1.0.0"), nil, ""},
		"unimport what is not there":     {"[" + entry("1.0.0", false) + "]", removeVersion("db", "2.0.0"), []string{"1.0.0 false /1.0.0.iso"}, ""},
		"unimport of nothing":            {"", removeVersion("db", "2.0.0"), nil, ""},
		"activate another":               {"[" + entry("1.0.0", true) + "," + entry("2.0.0", false) + "]", setActive("db", "2.0.0"), []string{"1.0.0 false /1.0.0.iso", "2.0.0 true /2.0.0.iso"}, ""},
		"deactivate":                     {"[" + entry("1.0.0", true) + "]", setActive("db", ""), []string{"1.0.0 false /1.0.0.iso"}, ""},
		"activate what was not imported": {"[" + entry("1.0.0", true) + "]", setActive("db", "2.0.0"), nil, report.NotImported},
		"an unreadable value":            {"{", putVersion("db", imported("1.0.0")), nil, report.Invalid},
		"a version that is there twice":  {"[" + entry("1.0.0", true) + "," + entry("1.0.0", false) + "]", setActive("db", "1.0.0"), nil, report.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			data := map[string]string{"web": "nonsense of others"}
			if test.db != "" {
				data["db"] = test.db
			}
			before := maps.Clone(data)
			err := test.edit(data)
			if test.code != "" {
				if report.CodeOf(err) != test.code || cmp.Diff(before, data) != "" {
					t.Errorf("%v; %v", err, data)
				}
				return
			}
			if err != nil || data["web"] != "nonsense of others" {
				t.Fatalf("%v; %v", err, data)
			}
			var got []string
			for _, e := range parseSolutions(data).Versions["db"] {
				got = append(got, fmt.Sprint(e.Version, " ", e.Active, " ", e.Archive))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if _, there := data["db"]; there != (test.want != nil) {
				t.Error("a Solution without versions has a key")
			}
			if strings.Count(data["db"], "theirs") < min(1, strings.Count(test.db, "theirs")*len(test.want)) {
				t.Errorf("a field of others is gone: %s", data["db"])
			}
		})
	}
	written := "[ " + entry("1.0.0", true) + " ]" // not as we would write it
	data := map[string]string{"db": written}
	if err := setActive("db", "1.0.0")(data); err != nil || data["db"] != written {
		t.Errorf("nothing to change, and it was written: %v, %s", err, data["db"])
	}
}

// TestSetVersion sets the requested version of one Solution; those of others stay.
func TestSetVersion(t *testing.T) {
	for name, test := range map[string]struct {
		before            map[string]string
		solution, version string
		want              map[string]string
	}{
		"the first":          {map[string]string{}, "db", "1.0.0", map[string]string{"db": "1.0.0"}},
		"another version":    {map[string]string{"db": "1.0.0", "Odd key": "x"}, "db", "2.0.0", map[string]string{"db": "2.0.0", "Odd key": "x"}},
		"none any more":      {map[string]string{"db": "1.0.0", "web": "1.0.0"}, "db", "", map[string]string{"web": "1.0.0"}},
		"none, as before":    {map[string]string{"web": "1.0.0"}, "db", "", map[string]string{"web": "1.0.0"}},
		"the same once more": {map[string]string{"db": "1.0.0"}, "db", "1.0.0", map[string]string{"db": "1.0.0"}},
	} {
		if err := setVersion(test.solution, test.version)(test.before); err != nil || cmp.Diff(test.want, test.before) != "" {
			t.Errorf("%s: %v, %v", name, test.before, err)
		}
	}
}

// TestAdopt: which namespaces can become part of an environment, and which fields that changes.
func TestAdopt(t *testing.T) {
	text := func(s string) *string { return &s }
	const label, described = `"labels":{"` + EnvironmentLabel + `":"%s","mine":"x"}`, `,"annotations":{"` + descriptionAnnotation + `":"old","mine":"y"}`
	for name, test := range map[string]struct {
		metadata    string
		adopt       bool
		description *string
		want        Creation
		says        string // of the environment, afterwards
		message     string
	}{
		"there already":                         {metadata: "," + fmt.Sprintf(label, "prod") + described, want: Unchanged, says: "old"},
		"there already, described the same":     {metadata: "," + fmt.Sprintf(label, "prod") + described, description: text("old"), want: Unchanged, says: "old"},
		"there already, described otherwise":    {metadata: "," + fmt.Sprintf(label, "prod") + described, description: text("new"), want: Changed, says: "new"},
		"of another environment":                {metadata: "," + fmt.Sprintf(label, "test"), message: "namespace shop is part of environment test"},
		"of another environment, to be adopted": {metadata: "," + fmt.Sprintf(label, "test"), adopt: true, want: Adopted, says: "common"},
		"of no environment":                     {message: "namespace shop exists and is not part of an environment"},
		"with a label without a value":          {metadata: "," + fmt.Sprintf(label, ""), message: "is not part of an environment"},
		"of no environment, to be adopted":      {adopt: true, want: Adopted, says: "common"},
		"to be adopted, described already":      {metadata: strings.Replace(described, "old", "common", 1), adopt: true, want: Adopted, says: "common"},
	} {
		t.Run(name, func(t *testing.T) {
			live := namespace(t, "shop", test.metadata)
			description := "common" // of the environment's other namespaces
			if test.description != nil {
				description = *test.description
			}
			got, err := adopt(live, CreateOptions{Name: "prod", Namespace: "shop", Adopt: test.adopt, Description: test.description}, description)
			if test.message != "" {
				if report.CodeOf(err) != report.Conflict || !strings.Contains(err.Error(), test.message) || !strings.Contains(strings.Join(report.Hints(err), ""), "--adopt") {
					t.Errorf("%v; %q", err, report.Hints(err))
				}
				return
			}
			if err != nil || got != test.want || live.GetLabels()[EnvironmentLabel] != "prod" || live.GetAnnotations()[descriptionAnnotation] != test.says {
				t.Errorf("%s, %v: %v", got, err, live.Object)
			}
			if strings.Contains(test.metadata, `"mine":"x"`) && live.GetLabels()["mine"] != "x" {
				t.Error("a label of somebody else is gone")
			}
		})
	}
}

// TestPillar: Salt gets the parsed entries, and the others among the errors.
func TestPillar(t *testing.T) {
	solutions := parseSolutions(map[string]string{"db": "[" + entry("1.0.0", true) + "]", "web": "{"})
	empty, second := "", "for customers"
	environments := []Environment{{Name: "prod", Namespaces: []Namespace{
		{Name: "a", Config: map[string]string{"db": "1.0.0", "Odd": "x"}}, {Name: "b", Description: &empty}, {Name: "c", Description: &second},
	}}}
	configuration := &schema.SolutionsConfiguration{}
	p := pillarOf(solutions, environments, configuration, errors.New("solutions.yaml: line 1"))
	if len(p.Available["db"]) != 1 || p.Config != configuration {
		t.Errorf("%+v", p)
	}
	if e := p.Environments["prod"]; e.Name != "prod" || e.Description != &empty || cmp.Diff(map[string]string{"db": "1.0.0", "Odd": "x"}, e.Namespaces["a"].Config) != "" || len(e.Namespaces) != 3 {
		t.Errorf("%+v", e)
	}
	if len(p.Errors.Available) != 1 || !strings.Contains(p.Errors.Available[0], "key web") || cmp.Diff([]string{"solutions.yaml: line 1"}, p.Errors.Config) != "" {
		t.Errorf("%+v", p.Errors)
	}
	if p = pillarOf(&Solutions{}, nil, configuration, nil); p.Errors.Available != nil || p.Errors.Config != nil || p.Environments == nil {
		t.Errorf("nothing is wrong: %+v", p)
	}
}

// TestSortKinds: custom resources are created by users; all other objects are deleted with their namespace.
func TestSortKinds(t *testing.T) {
	kind := func(group, resource, kind string, scope meta.RESTScope) *meta.RESTMapping {
		version := kube.GroupVersion{Group: group, Version: "v1"}
		return &meta.RESTMapping{Resource: version.WithResource(resource), GroupVersionKind: version.WithKind(kind), Scope: scope}
	}
	custom, plain := sortKinds([]*meta.RESTMapping{
		kind("", "pods", "Pod", meta.RESTScopeNamespace), kind("", "nodes", "Node", meta.RESTScopeRoot), kind("example.com", "dbs", "Db", meta.RESTScopeNamespace),
		kind("example.com", "sites", "Site", meta.RESTScopeRoot), kind("metrics.k8s.io", "pods", "PodMetrics", meta.RESTScopeNamespace),
	}, map[string]bool{"dbs.example.com": true, "sites.example.com": true})
	if got := fmt.Sprint(custom, plain); got != "[example.com/v1, Kind=Db] [/v1, Kind=Pod metrics.k8s.io/v1, Kind=PodMetrics]" {
		t.Error(got)
	}
}

// TestStuck: a namespace that does not go away within the time.
func TestStuck(t *testing.T) {
	d, shop := &Documents{}, namespace(t, "shop", `,"deletionTimestamp":"2026-01-02T03:04:05Z","finalizers":["example.com/hold"]`)
	ended, stop := context.WithCancel(t.Context())
	stop()
	if err := d.stuck(ended, shop); report.CodeOf(err) != report.Interrupted || !strings.Contains(err.Error(), "example.com/hold") {
		t.Errorf("interrupted: %v", err)
	}
	if err := d.stuck(ended, namespace(t, "shop", "")); !strings.Contains(err.Error(), notYet) {
		t.Errorf("interrupted at once: %v", err)
	}
	if err := d.stuck(t.Context(), namespace(t, "shop", "")); report.CodeOf(err) != report.Timeout || !strings.Contains(err.Error(), notYet) {
		t.Errorf("too late: %v", err)
	}
	identity := identityOf(namespace(t, "shop", `,"uid":"u","resourceVersion":"7","labels":{"a":"b"}`))
	if identity.GetUID() != "u" || identity.GetResourceVersion() != "" || identity.GetLabels() != nil || identity.GetKind() != "Namespace" {
		t.Errorf("what is deleted: %v", identity.Object)
	}
}

func TestNoEnvironment(t *testing.T) {
	for want, all := range map[string][]Environment{
		"create it: solutionctl deploy env create demo": nil,
		"the environments are prod, test":               {{Name: "prod"}, {Name: "test"}},
	} {
		if err := noEnvironment("demo", all); report.CodeOf(err) != report.NotFound || strings.Join(report.Hints(err), "") != want {
			t.Errorf("%v; %q", err, report.Hints(err))
		}
	}
}

// TestDataOf: a ConfigMap that no API server would store is one without data.
func TestDataOf(t *testing.T) {
	object := cluster.NewObject(cluster.ConfigMapKind, "shop", EnvironmentConfigMap)
	for name, test := range map[string]struct {
		data any
		want map[string]string
	}{
		"texts":         {map[string]any{"db": "1.0.0"}, map[string]string{"db": "1.0.0"}},
		"empty":         {map[string]any{}, nil},
		"a number":      {map[string]any{"db": int64(1)}, nil},
		"no map at all": {"text", nil},
	} {
		object.Object["data"] = test.data
		if diff := cmp.Diff(test.want, dataOf(object)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if dataOf(nil) != nil {
		t.Error("no ConfigMap has data")
	}
	for _, err := range []error{cluster.ErrChanged, cluster.ErrExists} {
		if !isOutdated(fmt.Errorf("update: %w", err)) {
			t.Errorf("%v is not tried again", err)
		}
	}
	if isOutdated(errors.New("refused")) {
		t.Error("a refusal is tried again")
	}
}
