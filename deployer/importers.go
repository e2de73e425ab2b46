package deployer

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/rights"
)

// The verbs on archives that take a right.
const (
	VerbImport   = "import"
	VerbUnimport = "unimport"
)

// importers are the roles of a group that imports and unimports archives, of any Solution, also through a console: what is asked on
// the host, where a version is in use, and the records. Their namespaces are among them where nothing was imported yet, because
// nobody else has a reason to make any.
func (d *Deployer) importers(ctx context.Context, group string) ([]any, error) {
	const name = "solutionctl-importer"
	everywhere := append([]cluster.Permission{rights.OnArchives(VerbImport), rights.OnArchives(VerbUnimport)}, rights.ImportEverywhere()...)
	for _, kind := range records.Pullers {
		pulls, err := d.Cluster.PermissionsOn(ctx, kind, "", "list")
		if err != nil {
			return nil, err
		}
		everywhere = append(everywhere, pulls...)
	}
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
		grantRole("Role", name, cluster.SystemNamespace, rights.ImportSystem()),
		grantRole("Role", name, metalk8s.SolutionsNamespace, rights.ImportSolutions()),
	} {
		items = append(items, role)
		if group != "" {
			items = append(items, bindRole(role, role.Namespace, group))
		}
	}
	return items, nil
}
