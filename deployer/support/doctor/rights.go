package doctor

import (
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/rights"
	"github.com/solutionctl/solutionctl/schema"
)

// rights checks the permissions of the user.
func (x *examination) rights() {
	for _, n := range rights.Needs(x.namespaces()) {
		missing, err := x.Deployer.Cluster.Missing(x.ctx, n.Permissions...)
		switch {
		case err != nil:
			x.failed("rights", n.Name, err)
		case len(missing) > 0:
			x.add(schema.CheckWarning, "rights", n.Name, "you do not have all permissions for "+n.Commands, "missing: "+cluster.RulesByPlace(missing...))
		default:
			x.ok("rights", n.Name, "you may run %s", n.Commands)
		}
	}
}

// namespaces returns the namespaces of the environments; none when the user is not allowed to list them, which another
// check reports.
func (x *examination) namespaces() []string {
	environments, err := (&metalk8s.Documents{Cluster: x.Deployer.Cluster}).Environments(x.ctx)
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range environments {
		for _, n := range e.Namespaces {
			if !n.Terminating {
				names = append(names, n.Name)
			}
		}
	}
	return names
}
