package deployer_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestNameCluster: the name is recorded, changed and shown with the status, and one that cannot be shown is refused.
func TestNameCluster(t *testing.T) {
	b := deployertest.New(t)
	status := func() *schema.Status {
		t.Helper()
		s, err := b.Survey.Status(t.Context(), survey.StatusOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if s := status(); s.Cluster != nil {
		t.Errorf("%+v", s.Cluster)
	}
	for _, name := range []string{" Production ", "Berlin"} {
		if _, err := b.NameCluster(t.Context(), name, "red"); err != nil {
			t.Fatal(err)
		}
		if s := status(); s.Cluster == nil || s.Cluster.String() != strings.TrimSpace(name)+" (red)" {
			t.Errorf("%+v", s.Cluster)
		}
	}
	b.Writes()
	if _, err := b.NameCluster(t.Context(), "Berlin", "red"); err != nil || strings.Contains(fmt.Sprint(b.Writes()), "ConfigMap") {
		t.Errorf("the same name again: %v", err)
	}
	for name, test := range map[string][2]string{
		"no name": {" ", "red"}, "two lines": {"a\nb", "red"}, "too long": {strings.Repeat("ä", 41), "red"}, "no such colour": {"Berlin", "pink"},
	} {
		if _, err := b.NameCluster(t.Context(), test[0], test[1]); report.CodeOf(err) != report.Usage {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := b.NameCluster(t.Context(), strings.Repeat("ä", 40), "grey"); err != nil {
		t.Error(err)
	}
	if n, err := b.NameCluster(t.Context(), "Bonn", ""); err != nil || n.Colour != "grey" {
		t.Errorf("the colour does not stay: %v, %v", n, err)
	}
	b.Server.Put(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: clustername, namespace: solutionctl-system}, data: {clustername.json: '{}'}}")
	if s := status(); s.Cluster != nil || !strings.Contains(fmt.Sprint(s.Problems), "clustername") {
		t.Errorf("a damaged record: %+v", s)
	}
	for range 2 {
		if _, err := b.NameCluster(t.Context(), "", ""); err != nil {
			t.Error(err)
		}
	}
	if s := status(); s.Cluster != nil || len(s.Problems) > 0 {
		t.Errorf("a removed name: %+v", s)
	}
	if n, err := b.NameCluster(t.Context(), "Bonn", ""); err != nil || n.Colour != schema.ClusterColours()[0] {
		t.Errorf("%v, %v", n, err)
	}
}
