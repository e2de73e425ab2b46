package doctor

import (
	"slices"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/schema"
)

// need lists the rights of a group of commands, as docs/installer-role grants them. What a Solution consists of and what
// its roles grant comes on top and is only known when it is deployed: 'deploy plan' says it.
type need struct {
	name, commands string
	rights         []cluster.Permission
}

func of(group, resource, namespace string, verbs ...string) []cluster.Permission {
	return cluster.Permission{Group: group, Resource: resource, Namespace: namespace}.Each(verbs...)
}

func configMap(namespace, name string, verbs ...string) []cluster.Permission {
	return cluster.Permission{Resource: "configmaps", Namespace: namespace, Name: name}.Each(verbs...)
}

// needs are those of the commands, from looking to deploying in namespaces of environments.
func needs(namespaces []string) []need {
	const system, solutions, environment = cluster.SystemNamespace, metalk8s.SolutionsNamespace, metalk8s.EnvironmentConfigMap
	records := slices.Concat(
		of("coordination.k8s.io", "leases", system, "get", "create", "update"),
		of("", "secrets", system, "get", "list", "create", "update", "delete"),
	)
	all := []need{
		{"look", "status, history, plan and diff", slices.Concat(
			of("", "secrets", system, "get", "list"), configMap(system, "registry", "get"), configMap(solutions, solutions, "get"),
			of("", "namespaces", "", "get", "list"), configMap("", environment, "get"),
		)},
		{"import", "import and unimport", slices.Concat(
			records, of("", "configmaps", system, "get", "create", "update"), of("", "configmaps", solutions, "get", "create", "update"),
		)},
		{"activate", "activate and deactivate", slices.Concat(
			records, of("apiextensions.k8s.io", "customresourcedefinitions", "", "get", "list", "watch", "create", "patch", "delete"),
		)},
		{"environments", "env create and env delete", slices.Concat(
			records, of("", "namespaces", "", "get", "list", "watch", "create", "patch", "delete"), configMap("", environment, "get", "create", "patch"),
		)},
	}
	deploy := slices.Concat(records, configMap("", environment, "get", "update"))
	for _, namespace := range namespaces {
		for _, kind := range [][2]string{
			{"", "configmaps"},
			{"", "serviceaccounts"},
			{"apps", "deployments"},
			{"rbac.authorization.k8s.io", "roles"},
			{"rbac.authorization.k8s.io", "rolebindings"},
		} {
			deploy = append(deploy, of(kind[0], kind[1], namespace, "get", "create", "patch", "delete")...)
		}
		deploy = append(deploy, of("apps", "deployments", namespace, "list", "watch")...)
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
