package deployer_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/environments"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestCreatedMeanwhile: objects that are created while an environment is deleted are in no export, and refuse the deletion of its namespaces.
// The same command again deletes and exports them.
func TestCreatedMeanwhile(t *testing.T) {
	for kind, create := range map[string]func(*deployertest.Bed){
		"Clock": func(b *deployertest.Bed) { b.Clock(shop, site, "late", "hands: 2") },
		"ConfigMap": func(b *deployertest.Bed) {
			b.Server.Put(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: late, namespace: site}}")
		},
		"PersistentVolumeClaim": func(b *deployertest.Bed) {
			b.Server.Put(t, "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: late, namespace: site}}")
		},
	} {
		t.Run(kind, func(t *testing.T) {
			b := deployertest.New(t)
			b.Added(shop, "1.0.0", plain)
			b.Clock(shop, site, "own", "hands: 2")
			created := false
			b.Server.Answer = func(_ http.ResponseWriter, r *http.Request) bool {
				if r.Method == http.MethodDelete && strings.Contains(r.URL.Path, "/clocks/") && !created {
					created = true
					create(b)
				}
				return false
			}
			var out export
			o := environments.DeleteOptions{Environment: site, Data: plan.DeleteData, Export: out.open}
			_, err := b.DeleteEnvironment(t.Context(), o)
			deployertest.Refused(t, err, report.Conflict, "created at the same time", "late", "run the command again")
			if b.Server.Object(kind, site, "late") == nil || b.Server.Object("Namespace", "", site) == nil {
				t.Fatal("it is deleted")
			}
			if o.Others, err = b.Survey.Others(t.Context(), survey.OthersOptions{Environment: site}); err != nil {
				t.Fatal(err)
			}
			if _, err = b.DeleteEnvironment(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			if b.Server.Object("Namespace", "", site) != nil {
				t.Error("the namespace is there")
			}
			if kind == "Clock" && !strings.Contains(out.String(), "late") {
				t.Errorf("it is not in the export:\n%s", out.String())
			}
		})
	}
}
