package deployer

import (
	"context"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/records"
)

// ArchivesGroup is the API group of the rights to what a console does for somebody on a host that keeps archives. No API server
// serves it, but roles can name it.
const ArchivesGroup = "archives.solutionctl.io"

// The verbs on archives that take a right.
const (
	VerbImport   = "import"
	VerbUnimport = "unimport"
)

// OnArchives is the right to a verb on the archives of a host.
func OnArchives(verb string) cluster.Permission {
	return cluster.Permission{Verb: verb, Group: ArchivesGroup, Resource: "archives"}
}

// importers are the roles of a group that imports and unimports archives, of any Solution, also through a console: what is asked on
// the host, where a version is in use, and the records. Their namespaces are among them where nothing was imported yet, because
// nobody else has a reason to make any.
func (d *Deployer) importers(ctx context.Context, group string) ([]any, error) {
	const name = "solutionctl-importer"
	everywhere := slices.Concat(
		[]cluster.Permission{OnArchives(VerbImport), OnArchives(VerbUnimport)},
		cluster.Permission{Resource: "namespaces"}.Each("get", "list"),
		cluster.Permission{Resource: "configmaps", Name: metalk8s.EnvironmentConfigMap}.Each("get"),
	)
	for _, kind := range records.Pullers {
		pulls, err := d.Cluster.PermissionsOn(ctx, kind, "", "list")
		if err != nil {
			return nil, err
		}
		everywhere = append(everywhere, pulls...)
	}
	document := func(name string) []cluster.Permission {
		return cluster.Permission{Resource: "configmaps", Name: name}.Each("get", "create", "patch", "update")
	}
	system := slices.Concat(
		document(records.RegistryName),
		cluster.Permission{Resource: "secrets"}.Each("get", "list", "create", "update", "delete"),
		cluster.Permission{Resource: "secrets", Name: records.ImportsName}.Each("patch"),
		cluster.Permission{Group: "coordination.k8s.io", Resource: "leases"}.Each("get", "create", "update"),
	)

	var items []any
	for _, namespace := range []string{cluster.SystemNamespace, metalk8s.SolutionsNamespace} {
		found, err := d.Cluster.Get(ctx, cluster.NamespaceKind, "", namespace)
		if err != nil {
			return nil, err
		}
		if found == nil {
			missing := &unstructured.Unstructured{}
			missing.SetGroupVersionKind(cluster.NamespaceKind)
			missing.SetName(namespace)
			items = append(items, missing.Object)
		}
	}
	for _, role := range []rbacv1.ClusterRole{
		grantRole("ClusterRole", name, "", everywhere),
		grantRole("Role", name, cluster.SystemNamespace, system),
		grantRole("Role", name, metalk8s.SolutionsNamespace, document(metalk8s.SolutionsConfigMap)),
	} {
		items = append(items, role)
		if group != "" {
			items = append(items, bindRole(role, role.Namespace, group))
		}
	}
	return items, nil
}
