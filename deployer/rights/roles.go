package rights

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/render"
)

// RolesOptions say for which groups roles are generated.
type RolesOptions struct {
	Solution string // "": only the roles of importers
	// Environment is where the Solution is to be deployed. Roles are bound in its namespaces. Without it there are no rights on the ClusterRoles
	// of operators, whose names depend on the namespace.
	Environment string
	// Installers, Applications and Importers are the groups that the roles are bound to; "" binds none. The roles of importers, which
	// are the same for every Solution, are generated for a group, or alone.
	Installers, Applications, Importers string
	Webhook                             bool // the operator gets a certificate for its webhooks
	ProtectCRDs                         bool // CustomResourceDefinitions are protected
}

// Target has the versions of a Solution, and the namespaces of an environment, that roles are computed for.
type Target struct {
	RolesOptions
	Namespaces []string
	Versions   []Version
}

// Grants are roles with the least permissions to deploy a Solution and to run its applications, and their bindings: a List as Kubernetes
// has it.
type Grants struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Items      []any  `json:"items"`
	// Notices list what no role grants.
	Notices []string `json:"-"`
}

// YAML returns the roles for 'kubectl apply', with the notices in front.
func (g *Grants) YAML() ([]byte, error) {
	var text bytes.Buffer
	for _, notice := range g.Notices {
		fmt.Fprintf(&text, "# %s\n", notice)
	}
	for _, item := range g.Items {
		document, err := yaml.Marshal(item)
		if err != nil {
			return nil, err
		}
		text.WriteString("---\n")
		text.Write(document)
	}
	return text.Bytes(), nil
}

// Roles computes the least permissions to deploy any of the versions of a Solution, from their objects, and those to import archives.
func Roles(ctx context.Context, c *cluster.Cluster, t Target) (*Grants, error) {
	grants := &Grants{APIVersion: "v1", Kind: "List"}
	if t.Solution != "" {
		if err := grants.installers(ctx, c, t); err != nil || t.Importers == "" {
			return grants, err
		}
	}
	return grants, grants.importers(ctx, c, t.Importers)
}

// installers adds the roles of those who deploy a Solution and of those who run its applications.
func (g *Grants) installers(ctx context.Context, c *cluster.Cluster, t Target) error {
	s := &solution{cluster: c, o: t.RolesOptions, wide: slices.Concat(Namespaces(), inEnvironment(""), claims()), served: map[string][]string{}}
	for _, v := range t.Versions {
		if err := s.version(ctx, v); err != nil {
			return fmt.Errorf("%s: %w", v.ID, err)
		}
	}
	g.Notices = s.notices
	installer := "solutionctl-installer-" + t.Solution
	applications := "solutionctl-applications-" + t.Solution
	logs := "solutionctl-logs-" + t.Solution
	roles := []rbacv1.ClusterRole{
		newRole("ClusterRole", installer, "", s.wide),
		newRole("ClusterRole", installer+"-environment", "", s.here),
		newRole("Role", installer, cluster.SystemNamespace, slices.Concat(WriteRecords(), readSite(), Lock(), DeleteLocks())),
		newRole("Role", installer, metalk8s.SolutionsNamespace, withSolutions("get", "update")),
		newRole("ClusterRole", logs, "", Logs("")),
		newRole("ClusterRole", applications, "", append(useApplications(render.ApplicationsName(t.Solution)), s.kinds...)),
	}
	for _, role := range roles {
		g.Items = append(g.Items, role)
	}
	g.bind(roles[0], t.Installers, "")
	g.bind(roles[2], t.Installers, cluster.SystemNamespace)
	g.bind(roles[3], t.Installers, metalk8s.SolutionsNamespace)
	if t.Environment != "" {
		g.bind(roles[1], t.Installers, t.Namespaces...)
		g.bind(roles[4], t.Installers, t.Namespaces...)
		g.bind(roles[5], t.Applications, t.Namespaces...)
	}
	return nil
}

// importers adds the roles of a group that imports and unimports archives of any Solution, also through a console: on the host, on the
// records, and to find where a version is used. Their namespaces are among the objects where they do not exist yet, because only an
// import needs them.
func (g *Grants) importers(ctx context.Context, c *cluster.Cluster, group string) error {
	const name = "solutionctl-importer"
	everywhere := append([]cluster.Permission{OnArchives(VerbImport), OnArchives(VerbUnimport)}, importEverywhere()...)
	for _, kind := range records.Pullers {
		pulls, err := c.PermissionsOn(ctx, kind, "", "list")
		if err != nil {
			return err
		}
		everywhere = append(everywhere, pulls...)
	}
	for _, namespace := range []string{cluster.SystemNamespace, metalk8s.SolutionsNamespace} {
		found, err := c.Get(ctx, cluster.NamespaceKind, "", namespace)
		if err != nil {
			return err
		}
		if found == nil {
			g.Items = append(g.Items, cluster.NewObject(cluster.NamespaceKind, "", namespace).Object)
		}
	}
	for _, role := range []rbacv1.ClusterRole{
		newRole("ClusterRole", name, "", everywhere),
		newRole("Role", name, cluster.SystemNamespace, importSystem()),
		newRole("Role", name, metalk8s.SolutionsNamespace, importSolutions()),
	} {
		g.Items = append(g.Items, role)
		g.bind(role, group, role.Namespace)
	}
	return nil
}

// bind adds bindings of a role to a group, if there is one, in namespaces; "" is the whole cluster.
func (g *Grants) bind(role rbacv1.ClusterRole, group string, namespaces ...string) {
	if group == "" {
		return
	}
	for _, namespace := range namespaces {
		g.Items = append(g.Items, newBinding(role, namespace, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: group}))
	}
}

// newRole returns a Role or ClusterRole; verbs on the same objects are one rule.
func newRole(kind, name, namespace string, permissions []cluster.Permission) rbacv1.ClusterRole {
	return rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: map[string]string{"app.kubernetes.io/managed-by": cluster.FieldManager}},
		Rules:      cluster.PolicyRules(permissions),
	}
}

func newBinding(role rbacv1.ClusterRole, namespace string, subject rbacv1.Subject) rbacv1.RoleBinding {
	kind := "RoleBinding"
	if namespace == "" {
		kind = "ClusterRoleBinding"
	}
	return rbacv1.RoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: role.APIVersion, Kind: kind},
		ObjectMeta: metav1.ObjectMeta{Name: role.Name, Namespace: namespace, Labels: role.Labels},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: role.Kind, Name: role.Name},
		Subjects:   []rbacv1.Subject{subject},
	}
}

// Account returns roles with permissions, one for each namespace and one for the whole cluster, and their bindings to a ServiceAccount of
// solutionctl. All have the name of the account.
func Account(name string, permissions []cluster.Permission) (objects []*unstructured.Unstructured) {
	byNamespace := map[string][]cluster.Permission{}
	for _, p := range permissions {
		byNamespace[p.Namespace] = append(byNamespace[p.Namespace], p)
	}
	account := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: cluster.SystemNamespace, Name: name}
	for _, namespace := range slices.Sorted(maps.Keys(byNamespace)) {
		kind := "Role"
		if namespace == "" {
			kind = "ClusterRole"
		}
		role := newRole(kind, name, namespace, byNamespace[namespace])
		binding := newBinding(role, namespace, account)
		for _, object := range []any{&role, &binding} {
			plain, _ := runtime.DefaultUnstructuredConverter.ToUnstructured(object) // it consists of strings
			objects = append(objects, &unstructured.Unstructured{Object: plain})
		}
	}
	return objects
}
