package lint_test

import (
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/build/archive"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/schema/report"
)

// SOL419 finds the refusals of a deployment, and nothing else.
func TestScopeAsDeployed(t *testing.T) {
	for _, name := range []string{"bad", "good"} {
		e := readExample(t, "base.txtar", "SOL419/"+name+".txtar")
		addImages(t, e.files, e.images)
		a, err := archive.FromFS(e.files)
		check(t, err)
		payload, err := render.FromArchive(a)
		check(t, err)
		for _, c := range a.Solution.Spec.Components {
			settings := render.Settings{Registry: "registry.solutionctl.invalid", Namespace: "site", Now: time.Now()}
			if c.Chart != "" {
				_, err = render.Chart(t.Context(), payload, c.Name, settings, render.ChartSettings{})
			} else {
				_, err = render.Component(payload, c.Name, settings)
			}
			if (err == nil) != (name == "good") || err != nil && report.CodeOf(err) != report.Refused {
				t.Errorf("%s: component %s is deployed with: %v", name, c.Name, err)
			}
		}
	}
}
