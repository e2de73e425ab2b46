package records

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

func catalogOf(ids ...string) *Catalog {
	c := &Catalog{}
	for _, id := range ids {
		name, version, _ := strings.Cut(id, "-")
		c.Put(schema.Import{Name: name, Version: version})
	}
	return c
}

func TestFind(t *testing.T) {
	for _, test := range []struct {
		name, version string
		imported      []string
		want          string
		notice        string
		code          report.Code
		hint          string
	}{
		{"exactly", "1.0.0", []string{"db-1.0.0", "db-1.1.0"}, "1.0.0", "", "", ""},
		{"highest by precedence, not by text", "latest", []string{"db-9.0.0", "db-10.0.0"}, "10.0.0", "", "", ""},
		{"a release before a higher pre-release", "", []string{"db-1.0.0", "db-1.1.0-rc.1"}, "1.0.0", "", "", ""},
		{"no release", "latest", []string{"db-1.0.0-rc.2", "db-1.0.0-rc.10"}, "1.0.0-rc.10", "no release", "", ""},
		{"not this version", "2.0.0", []string{"db-1.0.0", "db-1.1.0"}, "", "", report.NotImported, "1.0.0, 1.1.0"},
		{"not this Solution", "1.0.0", []string{"web-1.0.0"}, "", "", report.NotImported, "imported are web"},
		{"nothing", "", nil, "", "", report.NotImported, "deploy import FILE"},
	} {
		t.Run(test.name, func(t *testing.T) {
			found, notice, err := catalogOf(test.imported...).Find("db", test.version)
			if found.Version != test.want || !strings.Contains(notice, test.notice) || report.CodeOf(err) != test.code {
				t.Errorf("got %q, %q, %v", found.Version, notice, err)
			}
			if hints := strings.Join(report.Hints(err), " "); !strings.Contains(hints, test.hint) {
				t.Errorf("hints: %q", hints)
			}
		})
	}
}

func TestSamePrecedence(t *testing.T) {
	s := &schema.Solution{Metadata: schema.Metadata{Name: "db"}, Spec: schema.SolutionSpec{Version: "1.0.0"}}
	c := catalogOf("db-1.0.0", "web-1.0.0")
	if err := c.checkNew(s); err != nil {
		t.Error("the same version again:", err)
	}
	c.Put(schema.Import{Name: "db", Version: "1.0.0+a"})
	if err := c.checkNew(s); report.CodeOf(err) != report.Refused {
		t.Errorf("got %v", err)
	}
}

func TestMissingRulesAreGroupedByPlace(t *testing.T) {
	got := cluster.RulesByPlace([]cluster.Permission{
		{Verb: "get", Resource: "secrets", Namespace: "b"}, {Verb: "create", Group: "apps", Resource: "deployments"}, {Verb: "list", Resource: "secrets", Namespace: "b"},
	}...)
	want := `in every namespace:
- apiGroups: ["apps"]
  resources: ["deployments"]
  verbs: ["create"]
in namespace b:
- apiGroups: [""]
  resources: ["secrets"]
  verbs: ["get", "list"]`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
