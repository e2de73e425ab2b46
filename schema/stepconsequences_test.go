package schema_test

import (
	"testing"

	"github.com/solutionctl/solutionctl/schema"
)

func TestConsequencesOfSteps(t *testing.T) {
	at := func(solution, version string) schema.SolutionAt {
		return schema.SolutionAt{Solution: solution, Version: version}
	}
	convergence := schema.Convergence{
		Import: []schema.ConvergeImport{{SolutionAt: at("shop", "1.1.0"), Path: "/srv/shop.iso"}}, Activate: []schema.SolutionAt{at("shop", "1.1.0")},
		Deactivate: []schema.SolutionAt{at("db", "1.0.0")}, Unimport: []schema.SolutionAt{at("db", "1.0.0")},
	}
	if got, want := convergence.ConsequencesText(), "shop 1.1.0 can be deployed; shop 1.1.0 becomes active; db 1.0.0 is no longer active; "+
		"db 1.0.0 can no longer be deployed, and its images are no longer served"; got != want {
		t.Errorf("convergence:\ngot  %s\nwant %s", got, want)
	}
	archives := []schema.InstalledArchive{{Solution: "shop", Version: "1.0.0"}, {Solution: "db", Version: "2.0.0"}}
	first := []schema.InstallStep{}
	for _, step := range []string{"trust", "import", "serve", "configure", "deploy"} {
		first = append(first, schema.InstallStep{Step: step, State: schema.StepPlanned})
	}
	for want, steps := range map[string][]schema.InstallStep{
		"": {{Step: "serve", State: schema.StepUnchanged}, {Step: "deploy", State: schema.StepDone}},
		"this host trusts the key of the vendor; this host serves the images; this node fetches images from it; shop 1.0.0 and db 2.0.0 run in environment site": first,
		"shop 1.0.0 and db 2.0.0 run in environment site": {{Step: "serve", State: schema.StepUnchanged}, {Step: "deploy", State: schema.StepPlanned}},
	} {
		installation := schema.Installation{Environment: "site", Archives: archives, Steps: steps}
		if got := installation.ConsequencesText(); got != want {
			t.Errorf("installation:\ngot  %s\nwant %s", got, want)
		}
	}
}
