package dependencies

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
)

// dependent makes a catalogue of lines such as "shop 1.0.0: storage@>=1.4, dns@cluster".
func dependent(lines ...string) *records.Catalog {
	c := &records.Catalog{}
	for _, line := range lines {
		id, list, _ := strings.Cut(line, ": ")
		name, version, _ := strings.Cut(id, " ")
		i := schema.Import{Name: name, Version: version}
		for part := range strings.SplitSeq(list, ", ") {
			if part == "" {
				continue
			}
			text, isCluster := strings.CutSuffix(part, " in cluster")
			solution, wanted, _ := strings.Cut(text, " ")
			dependency := schema.Dependency{Solution: solution, Version: wanted}
			if isCluster {
				dependency.Scope = schema.ScopeCluster
			}
			i.DependsOn = append(i.DependsOn, dependency)
		}
		c.Put(i)
	}
	return c
}

// TestFirst: a needed Solution comes first, unless it needs the other one in turn, directly or indirectly.
func TestFirst(t *testing.T) {
	c := dependent("shop 1: base, dns in cluster", "base 1: disk", "disk 1", "dns 1", "a 1: b, base", "b 1: c", "c 1: a")
	list := func(names string) (all []schema.SolutionAt) {
		for name := range strings.FieldsSeq(names) {
			all = append(all, schema.SolutionAt{Solution: name, Version: "1"})
		}
		return all
	}
	for _, test := range []struct {
		of, among string
		scope     schema.Scope
		want      string
	}{
		{"shop", "shop base disk dns", schema.ScopeEnvironment, "base"},
		{"shop", "shop disk", schema.ScopeEnvironment, ""},
		{"shop", "shop dns base", schema.ScopeCluster, "dns"},
		{"base", "shop base", schema.ScopeEnvironment, ""},
		{"a", "a b c base", schema.ScopeEnvironment, "base"},
		{"b", "a b c", schema.ScopeEnvironment, ""},
		{"a", "a b", schema.ScopeEnvironment, "b"}, // the rest of the circle is not in the list
	} {
		t.Run(test.of+" among "+test.among, func(t *testing.T) {
			if got := First(c, list(test.among), list(test.of)[0], test.scope); !slices.Equal(got, list(test.want)) {
				t.Errorf("%v come first", got)
			}
		})
	}
}

func TestOrderOfDependencies(t *testing.T) {
	list := func(text string) []schema.SolutionAt {
		var all []schema.SolutionAt
		for name := range strings.FieldsSeq(text) {
			all = append(all, schema.SolutionAt{Solution: name, Version: "1.0.0"})
		}
		return all
	}
	c := dependent("a 1.0.0: c in cluster, b in cluster", "b 1.0.0: c in cluster", "c 1.0.0", "d 1.0.0: a", "x 1.0.0: y in cluster", "y 1.0.0: x in cluster")
	for in, want := range map[string]string{"a b c d": "c b a d", "d x y": "d y x"} {
		if diff := cmp.Diff(InOrder(c, list(in), schema.ScopeCluster), list(want)); diff != "" {
			t.Errorf("%s: %s", in, diff)
		}
	}
	if diff := cmp.Diff(InOrder(c, list("d b a"), schema.ScopeEnvironment), list("a d b")); diff != "" {
		t.Errorf("in an environment: %s", diff)
	}
}

func TestLoopsOfDependencies(t *testing.T) {
	for name, test := range map[string]struct {
		catalog *records.Catalog
		want    string
	}{
		"no version":          {dependent("a 1.0.0: b"), ""},
		"a version without":   {dependent("a 1.0.0: b", "b 1.0.0: a", "b 2.0.0"), ""},
		"two":                 {dependent("a 1.0.0: b", "b 1.0.0: a"), "a → b → a"},
		"only the fitting":    {dependent("a 1.0.0: b <2", "b 1.0.0: a", "b 2.0.0"), "a → b → a"},
		"three, not from us":  {dependent("a 1.0.0: b", "b 1.0.0: c", "c 1.0.0: b"), "b → c → b"},
		"through the cluster": {dependent("a 1.0.0: b", "b 1.0.0: a in cluster"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			first, _ := test.catalog.Get("a-1.0.0")
			way := loop(test.catalog, &unmet{need: need{"test", "a", first.DependsOn[0]}})
			if got := strings.Join(way, " → "); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
