package doctor

import (
	"slices"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/rights"
	"github.com/solutionctl/solutionctl/schema"
)

// need is a group of commands with the permissions that they need, as docs/installer-role grants them. What a Solution consists of and
// what its roles grant is only known when it is deployed: 'deploy plan' shows it.
type need struct {
	name, commands string
	rights         []cluster.Permission
}

// needs lists the groups of commands, from reading to deploying in namespaces of environments.
func needs(namespaces []string) []need {
	records := slices.Concat(rights.Lock(), rights.WriteRecords())
	all := []need{
		{"look", "status, history, plan and diff", rights.Read()},
		{"import", "import and unimport", rights.Import()},
		{"activate", "activate and deactivate", slices.Concat(records, rights.Definitions())},
		{"environments", "env create and env delete", slices.Concat(records, rights.Namespaces(), rights.Environment(""))},
	}
	deploy := slices.Concat(records, rights.Environment(""))
	for _, namespace := range namespaces {
		deploy = append(deploy, rights.Objects(namespace)...)
	}
	if len(namespaces) > 0 {
		all = append(all, need{"deploy", "add, upgrade and remove", deploy})
	}
	return all
}

// rights asks what the user may do.
func (x *examination) rights() {
	for _, n := range needs(x.namespaces()) {
		missing, err := x.Deployer.Cluster.Missing(x.ctx, n.rights...)
		switch {
		case err != nil:
			x.failed("rights", n.name, err)
		case len(missing) > 0:
			x.add(schema.CheckWarning, "rights", n.name, "you may not run all of "+n.commands, "what is missing "+cluster.RulesByPlace(missing...))
		default:
			x.ok("rights", n.name, "you may run %s", n.commands)
		}
	}
}

// namespaces are those of the environments; none when the user may not see them, which is found elsewhere.
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
