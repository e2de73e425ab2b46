package install

import (
	"strings"

	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/schema"
)

// planned returns the names of the planned steps of a kind.
func (p *UninstallPlan) planned(kind string) (names []string) {
	for _, s := range p.Steps {
		if s.Step == kind && s.State == schema.StepPlanned {
			names = append(names, s.Name)
		}
	}
	return names
}

// ConsequencesText describes what the planned steps end, in one sentence without a full stop; "" if nothing is planned.
func (p *UninstallPlan) ConsequencesText() string {
	var clauses []string
	clause := func(names []string, one, many string) {
		if len(names) == 1 {
			clauses = append(clauses, names[0]+one)
		} else if len(names) > 1 {
			clauses = append(clauses, strings.Join(names, " and ")+many)
		}
	}
	removed := p.planned("remove")
	clause(removed, " no longer runs in environment "+p.Environment, " no longer run in environment "+p.Environment)
	if p.o.Data == plan.DeleteData && len(removed)+len(p.planned("deactivate")) > 0 {
		clauses = append(clauses, "every custom resource is exported to a file and deleted")
	}
	clause(p.planned("delete"), " is deleted with its namespaces", "")
	clause(p.planned("deactivate"), " cannot be added to any environment", " cannot be added to any environment")
	clause(p.planned("unimport"), " has to be imported again before it is used", " have to be imported again before they are used")
	if len(p.planned("stop")) > 0 {
		clauses = append(clauses, "this host serves no images")
	}
	if len(p.planned("unconfigure")) > 0 {
		clauses = append(clauses, "this node fetches no images of Solutions")
	}
	clause(p.planned("untrust"), " is not trusted: archives with its signature are refused", "")
	return strings.Join(clauses, "; ")
}

// Kept lists what the plan leaves, with the option that removes it, too.
func (p *UninstallPlan) Kept() []string {
	if p.Empty() {
		return nil
	}
	var kept []string
	if p.o.Data == plan.KeepData {
		kept = append(kept, "custom resources and their CustomResourceDefinitions")
	}
	if p.keepsEnvironment {
		kept = append(kept, "environment "+p.Environment+" (--delete-env deletes it)")
	}
	if !p.o.CleanHost {
		kept = append(kept, "the registry of this host and the settings of this node, where there are any (--clean-host removes them)")
	}
	if p.o.Untrust == "" {
		kept = append(kept, "the trusted keys (--untrust NAME removes one)")
	}
	return kept
}
