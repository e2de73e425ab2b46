// Package rights computes which permissions the work of solutionctl needs.
//
// Functions such as [Lock] and [Read] return those that every Solution needs. [Work] computes those of a run from its plans, and [Roles]
// those to deploy any imported version from its objects. Commands ask the API server for them before their first change, 'deploy roles'
// and docs/installer-role ([Files]) grant them, the doctor compares them with those of the user ([Needs]), and the loader gives them
// to its accounts ([Account]).
package rights

import (
	"context"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema/report"
)

// on returns verbs on a resource, in one namespace or in all.
func on(group, resource, namespace string, verbs ...string) []cluster.Permission {
	return cluster.Permission{Group: group, Resource: resource, Namespace: namespace}.Each(verbs...)
}

// configMap returns verbs on one ConfigMap.
func configMap(namespace, name string, verbs ...string) []cluster.Permission {
	return cluster.Permission{Resource: "configmaps", Namespace: namespace, Name: name}.Each(verbs...)
}

// Lock returns the permissions to take a lock, which every change does first.
func Lock() []cluster.Permission {
	return on("coordination.k8s.io", "leases", cluster.SystemNamespace, "get", "create", "update")
}

// DeleteLocks returns the permission to delete the locks of environments that are deleted. Without it they stay.
func DeleteLocks() []cluster.Permission {
	return on("coordination.k8s.io", "leases", cluster.SystemNamespace, "delete")
}

// readRecords returns the permissions to read what is deployed and imported.
func readRecords() []cluster.Permission {
	return on("", "secrets", cluster.SystemNamespace, "get", "list")
}

// WriteRecords returns the permissions to read records and to change them.
func WriteRecords() []cluster.Permission {
	return append(readRecords(), on("", "secrets", cluster.SystemNamespace, "create", "update", "delete")...)
}

// readSite returns the permissions to read where nodes find images, and how the site is monitored.
func readSite() []cluster.Permission {
	return slices.Concat(readRegistry(), configMap(cluster.SystemNamespace, records.MonitoringName, "get"), configMap(cluster.SystemNamespace, records.ClusterName, "get"))
}

func readRegistry() []cluster.Permission {
	return configMap(cluster.SystemNamespace, records.RegistryName, "get")
}

// readSolutions returns the permissions to read the document of MetalK8s that lists the versions of Solutions.
func readSolutions() []cluster.Permission { return withSolutions("get") }

// withSolutions returns verbs on the document of MetalK8s that lists the versions of Solutions.
func withSolutions(verbs ...string) []cluster.Permission {
	return configMap(metalk8s.SolutionsNamespace, metalk8s.SolutionsConfigMap, verbs...)
}

// Read returns the permissions to read what is deployed: status, history and plans.
func Read() []cluster.Permission {
	return slices.Concat(readRecords(), readRegistry(), readSolutions(), on("", "namespaces", "", "get", "list"), readEnvironments())
}

// UpdateDocument returns the permissions to change a shared document that exists.
func UpdateDocument(namespace, name string) []cluster.Permission {
	return configMap(namespace, name, "get", "update")
}

// readEnvironments returns the permissions to read the documents of all environments.
func readEnvironments() []cluster.Permission {
	return configMap("", metalk8s.EnvironmentConfigMap, "get")
}

// inEnvironment returns the permissions to change the document of an environment in a namespace; "" is in all of them.
func inEnvironment(namespace string) []cluster.Permission {
	return configMap(namespace, metalk8s.EnvironmentConfigMap, "get", "create", "patch", "update")
}

// Namespaces returns the permissions to create and delete environments.
func Namespaces() []cluster.Permission {
	return on("", "namespaces", "", "get", "list", "watch", "create", "patch", "delete")
}

// CreateNamespace returns the permissions to create a namespace of an environment, or with adopt to take an existing one.
func CreateNamespace(namespace string, adopt bool) []cluster.Permission {
	list := on("", "namespaces", "", "get", "list", "create", "patch")
	if adopt {
		list = append(list, on("", "namespaces", "", "update")...)
	}
	return append(list, configMap(namespace, metalk8s.EnvironmentConfigMap, "get", "create", "patch")...)
}

// claims returns the permission to list the data that a deletion would destroy.
func claims() []cluster.Permission { return on("", "persistentvolumeclaims", "", "list") }

// Definitions returns the permissions to activate a version, which applies its CustomResourceDefinitions.
func Definitions() []cluster.Permission {
	return on(cluster.DefinitionKind.Group, crds, "", "get", "list", "watch", "create", "patch", "delete")
}

const crds = "customresourcedefinitions"

// Change returns the permissions that every change in a namespace of an environment needs, besides those on the changed objects.
func Change(namespace string) []cluster.Permission {
	return slices.Concat(
		cluster.Permission{Resource: "namespaces", Namespace: namespace, Name: namespace}.Each("get"),
		inEnvironment(namespace), WriteRecords(), readRegistry(), Lock(), readSolutions(),
	)
}

// Plan returns the permissions to make any plan, besides those on its objects; write adds those to carry it out.
func Plan(write bool) []cluster.Permission {
	list := slices.Concat(
		on("", "namespaces", "", "get", "list"), on(cluster.DefinitionKind.Group, crds, "", "get"), readRecords(), readSite(), readSolutions(),
	)
	if write {
		list = slices.Concat(list, Lock(), WriteRecords())
	}
	return list
}

// Logs returns the permissions to read and follow the logs of a Solution in a namespace of an environment, and to find its pods by their
// owners; "" is in all of them.
func Logs(namespace string) []cluster.Permission {
	return slices.Concat(
		on("", "pods", namespace, "get", "list", "watch"),
		cluster.Permission{Resource: "pods", Subresource: "log", Namespace: namespace}.Each("get"),
		on("apps", "replicasets", namespace, "get"), on("batch", "jobs", namespace, "get"),
	)
}

// Wait returns the permissions in a namespace of an environment that do not depend on what is deployed there: to write its versions, and
// to find out why a pod does not start.
func Wait(namespace string) []cluster.Permission {
	return slices.Concat(
		inEnvironment(namespace),
		on("", "pods", namespace, "get", "list", "watch"),
		cluster.Permission{Resource: "pods", Subresource: "log", Namespace: namespace}.Each("get"),
		on("", "events", namespace, "list"),
		on("apps", "replicasets", namespace, "list"),
	)
}

// Objects returns the permissions on what every operator consists of, in a namespace of an environment; "" is in all of them.
func Objects(namespace string) []cluster.Permission {
	var list []cluster.Permission
	for _, kind := range [][2]string{{"", "configmaps"}, {"", "serviceaccounts"}, {"apps", "deployments"}, {rbacv1.GroupName, "roles"}, {rbacv1.GroupName, "rolebindings"}} {
		list = append(list, on(kind[0], kind[1], namespace, "get", "create", "patch", "delete")...)
	}
	return append(list, on("apps", "deployments", namespace, "list", "watch")...)
}

// importSystem returns the permissions of an importer in the namespace of the records.
func importSystem() []cluster.Permission {
	return slices.Concat(
		configMap(cluster.SystemNamespace, records.RegistryName, document...), WriteRecords(),
		cluster.Permission{Resource: "secrets", Namespace: cluster.SystemNamespace, Name: records.ImportsName}.Each("patch"), Lock(),
	)
}

// importSolutions returns the permissions of an importer on the document of MetalK8s that lists the versions of Solutions.
func importSolutions() []cluster.Permission { return withSolutions(document...) }

// importing returns the permissions to import and unimport, as far as the cluster grants them.
func importing() []cluster.Permission { return append(importSystem(), importSolutions()...) }

// document are the verbs on a document that an import may have to create.
var document = []string{"get", "create", "patch", "update"}

// importEverywhere returns the permissions by which an importer finds where a version is used, besides those on what pulls images.
func importEverywhere() []cluster.Permission {
	return append(on("", "namespaces", "", "get", "list"), readEnvironments()...)
}

// ArchivesGroup is the API group of the rights on a host that keeps archives. No API server serves it, but roles can name it.
const ArchivesGroup = "archives.solutionctl.io"

// The verbs on archives.
const (
	VerbImport   = "import"
	VerbUnimport = "unimport"
)

// OnArchives returns the permission for a verb on the archives of a host, which the host checks for users of a console.
func OnArchives(verb string) cluster.Permission {
	return cluster.Permission{Verb: verb, Group: ArchivesGroup, Resource: "archives"}
}

// Loader returns the permissions of a run of the loader besides those of its plans: to write its progress to a ConfigMap, to record
// events, and to find out whether the pod of an earlier run has ended.
func Loader(progress string) []cluster.Permission {
	return slices.Concat(
		UpdateDocument(cluster.SystemNamespace, progress),
		on("", "events", cluster.SystemNamespace, "create"),
		on("", "pods", cluster.SystemNamespace, "get"),
	)
}

// RecordPreload returns the permissions to read which images nodes need, and to record which they have.
func RecordPreload() []cluster.Permission {
	return slices.Concat(
		readRecords(), readRegistry(), configMap(cluster.SystemNamespace, records.PreloadName, document...),
	)
}

// Preload returns the permissions to preload images by Jobs on nodes. A pod with the socket of the container runtime can do everything on its
// node, so they make their holder an administrator.
func Preload() []cluster.Permission { return append(nodesOfJobs(), preloadSystem()...) }

func nodesOfJobs() []cluster.Permission {
	return append(on("", "nodes", "", "get", "list"), on("", "namespaces", "", "get")...)
}

// preloadSystem returns the permissions of a preload in the namespace of its Jobs.
func preloadSystem() []cluster.Permission {
	return slices.Concat(
		RecordPreload(), Lock(),
		on("batch", "jobs", cluster.SystemNamespace, "get", "create", "patch", "delete"),
		on("", "pods", cluster.SystemNamespace, "get", "list"),
		on("", "events", cluster.SystemNamespace, "list"),
	)
}

// Need is a group of commands with the permissions that they need. What a Solution consists of and what its roles grant is only known
// when it is deployed: 'deploy plan' shows it.
type Need struct {
	Name, Commands string
	Permissions    []cluster.Permission
}

// Needs returns the groups of commands, from reading to deploying in namespaces of environments.
func Needs(namespaces []string) []Need {
	change := slices.Concat(Lock(), WriteRecords())
	needs := []Need{
		{"look", "status, history, plan and diff", Read()},
		{"import", "import and unimport", importing()},
		{"activate", "activate and deactivate", slices.Concat(change, Definitions())},
		{"environments", "env create and env delete", slices.Concat(change, DeleteLocks(), Namespaces(), inEnvironment(""))},
	}
	deploy := slices.Concat(change, inEnvironment(""))
	for _, namespace := range namespaces {
		deploy = append(deploy, Objects(namespace)...)
	}
	if len(namespaces) > 0 {
		needs = append(needs, Need{"deploy", "add, upgrade and remove", deploy})
	}
	return needs
}

// Explain adds to a refusal for lack of a permission all others that a change in a namespace needs and the user does not have, so
// that an administrator can grant them at once.
func Explain(ctx context.Context, c *cluster.Cluster, refusal error, namespace string) error {
	if report.CodeOf(refusal) != report.Forbidden {
		return refusal
	}
	missing, err := c.Missing(ctx, Change(namespace)...)
	if err != nil || len(missing) == 0 {
		return refusal
	}
	return report.As(report.Forbidden, refusal).
		WithHint("all that a change in namespace %s takes and you do not have: %s", namespace, cluster.RulesByPlace(missing...))
}

const monitoringGroup = "monitoring.coreos.com"

// useApplications returns the permissions to find the kinds of applications in a namespace, which a ConfigMap of this name describes, and to
// read the events there: they are the reasons why an application does not come up.
func useApplications(name string) []cluster.Permission {
	return slices.Concat(on("", "namespaces", "", "get"), readEnvironments(), configMap("", name, "get"), on("", "events", "", "list"))
}
