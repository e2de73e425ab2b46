package doctor

import (
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/schema"
)

// need is what a group of commands has to be allowed. What the roles of a Solution grant comes on top and is only known
// when it is deployed: 'deploy plan' says it.
type need struct {
	name, commands string
	rights         []cluster.Permission
}

func of(group, resource, namespace string, verbs ...string) []cluster.Permission {
	var list []cluster.Permission
	for _, verb := range verbs {
		list = append(list, cluster.Permission{Verb: verb, Group: group, Resource: resource, Namespace: namespace})
	}
	return list
}

func join(lists ...[]cluster.Permission) []cluster.Permission {
	var all []cluster.Permission
	for _, list := range lists {
		all = append(all, list...)
	}
	return all
}

// needs are those of the commands, from looking to deploying.
func needs() []need {
	const system, rbac = cluster.SystemNamespace, "rbac.authorization.k8s.io"
	change := []string{"get", "create", "patch", "delete"}
	records := join(
		of("coordination.k8s.io", "leases", system, "get", "create", "update"),
		of("", "secrets", system, "get", "list", "create", "update", "delete"),
	)
	return []need{
		{"look", "status, history, plan and diff", join(
			of("", "secrets", system, "get", "list"), of("", "configmaps", system, "get"),
			of("", "configmaps", metalk8s.SolutionsNamespace, "get"), of("", "namespaces", "", "list"), of("", "configmaps", "", "list"),
		)},
		{"import", "import and unimport", join(
			records, of("", "configmaps", system, "get", "create", "update"), of("", "configmaps", metalk8s.SolutionsNamespace, "get", "create", "update"),
		)},
		{"activate", "activate and deactivate", join(records, of("apiextensions.k8s.io", "customresourcedefinitions", "", append(change, "list")...))},
		{"environments", "env create and env delete", join(records, of("", "namespaces", "", "get", "list", "create", "delete"))},
		{"deploy", "add, upgrade and remove", join(
			records, of("", "configmaps", "", append(change, "update")...), of("", "serviceaccounts", "", change...), of("", "services", "", change...),
			of("apps", "deployments", "", change...), of(rbac, "roles", "", change...), of(rbac, "rolebindings", "", change...),
		)},
	}
}

// rights asks what the user may do.
func (x *examination) rights() {
	for _, n := range needs() {
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
