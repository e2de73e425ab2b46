package deployer

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/deployer/rights"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// RolesOptions say for whom roles are made.
type RolesOptions struct {
	Solution string // "": only the roles of importers
	// Environment is where the Solution is to be deployed. Roles are bound in its namespaces, and what an operator may do in
	// the whole cluster can only be granted by the names that it has there.
	Environment string
	// Installers, Applications and Importers are the groups that the roles are bound to; "" binds none. The roles of importers, who
	// are those of every Solution, are made for a group, or alone.
	Installers, Applications, Importers string
	Webhook, ProtectCRDs                bool // as [Deployer.Add] and [Deployer.Activate] are to be told
}

// Grants are roles with the least rights that deploying a Solution, and running its applications, take, and what binds them: a
// List as Kubernetes has it.
type Grants struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Items      []any  `json:"items"`
	// Notices say what no role grants.
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

// Roles computes the least rights to deploy any imported version of a Solution from the objects of the versions, and those to
// import them.
func (d *Deployer) Roles(ctx context.Context, o RolesOptions) (*Grants, error) {
	grants := &Grants{APIVersion: "v1", Kind: "List"}
	if o.Solution != "" {
		var err error
		if grants, err = d.solutionRoles(ctx, o); err != nil || o.Importers == "" {
			return grants, err
		}
	}
	items, err := d.importers(ctx, o.Importers)
	grants.Items = append(grants.Items, items...)
	return grants, err
}

func (d *Deployer) solutionRoles(ctx context.Context, o RolesOptions) (*Grants, error) {
	catalog, err := d.Records.Catalog(ctx)
	if err != nil {
		return nil, err
	}
	if _, _, err = catalog.Find(o.Solution, ""); err != nil {
		return nil, err
	}
	namespaces := []string{""}
	if o.Environment != "" {
		if namespaces, err = d.namespaceNames(ctx, o.Environment); err != nil {
			return nil, err
		}
	}
	g := &granting{o: o, d: d, wide: slices.Concat(rights.Namespaces(), rights.Environment(""), rights.Claims()), served: map[string][]string{}}
	for _, i := range catalog.Of(o.Solution) {
		if err = g.version(ctx, catalog, i, namespaces); err != nil {
			return nil, fmt.Errorf("%s: %w", i.ID(), err)
		}
	}
	return g.finish(namespaces), nil
}

// namespaceNames are those of an environment; one that does not exist is going to have a namespace of its name.
func (d *Deployer) namespaceNames(ctx context.Context, environment string) ([]string, error) {
	found, err := d.Records.Documents.Environment(ctx, environment)
	if report.CodeOf(err) == report.NotFound {
		return []string{environment}, nil
	}
	if err != nil {
		return nil, err
	}
	return found.Names(), nil
}

// granting collects rights.
type granting struct {
	o          RolesOptions
	d          *Deployer
	wide, here []cluster.Permission // in the whole cluster, and in the namespaces of environments
	kinds      []cluster.Permission // on the custom resources, for who runs applications
	served     map[string][]string  // of each definition the versions that any archive has
	notices    []string
}

// version adds what a version consists of.
func (g *granting) version(ctx context.Context, catalog *records.Catalog, i schema.Import, namespaces []string) error {
	payload, settings, err := g.d.settings(ctx, catalog, i)
	if err != nil {
		return err
	}
	settings.Webhook = g.o.Webhook
	activation, err := render.Activation(payload, settings)
	if err != nil {
		return err
	}
	if g.o.ProtectCRDs {
		activation = append(activation, definitions.Protect(engine.Key{Name: i.Name}, activation)...)
	}
	for _, object := range activation {
		switch group := object.GroupVersionKind().Group; {
		case object.GetKind() == cluster.DefinitionKind.Kind:
			g.define(object)
			err = g.object(ctx, &g.wide, object)
		case object.GetKind() == cluster.NamespaceKind.Kind:
		case group == "monitoring.coreos.com", object.GetNamespace() == "" && strings.HasPrefix(object.GetKind(), "ValidatingAdmissionPolicy"):
			err = g.object(ctx, &g.wide, object)
		default:
			g.notice("activating %s brings %s %s, which takes an administrator: no role grants it", i.ID(), object.GetKind(), object.GetName())
		}
		if err != nil {
			return err
		}
	}
	for _, namespace := range namespaces {
		settings.Environment, settings.Namespace = g.o.Environment, cmp.Or(namespace, "environment")
		objects, err := render.Environment(payload, settings)
		if err != nil {
			return err
		}
		for _, object := range objects {
			if err = g.placed(ctx, object); err != nil {
				return err
			}
		}
		if err = g.parts(ctx, payload, settings); err != nil {
			return err
		}
	}
	return nil
}

// define adds the rights on the objects of a definition, which are judged, exported and deleted.
func (g *granting) define(definition *unstructured.Unstructured) {
	name := definition.GetName()
	g.served[name] = slices.Compact(slices.Sorted(slices.Values(append(g.served[name], render.ServedVersions(definition)...))))
	g.wide = append(g.wide, definitions.OnObjects(definition, "get", "list", "watch", "delete")...)
	if len(g.served[name]) > 1 { // they are stored again when a version goes
		g.wide = append(g.wide, definitions.MayMigrate(definition)...)
	}
	g.kinds = append(g.kinds, definitions.OnObjects(definition, "get", "list", "watch", "create", "patch", "update", "delete")...)
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, version := range versions {
		if v, ok := version.(map[string]any); ok {
			if _, scales, _ := unstructured.NestedMap(v, "subresources", "scale"); scales {
				scale := definitions.OnObjects(definition, "patch")
				scale[0].Subresource = "scale"
				g.kinds = append(g.kinds, scale...)
			}
		}
	}
}

// placed adds what an object in a namespace of an environment takes, or one that belongs to it.
func (g *granting) placed(ctx context.Context, object *unstructured.Unstructured) error {
	if object.GroupVersionKind().Group != rbacGroup {
		return g.object(ctx, &g.here, object)
	}
	resource, isRole := map[string]string{"Role": "roles", "ClusterRole": "clusterroles"}[object.GetKind()]
	if object.GetNamespace() != "" {
		if isRole {
			g.here = append(g.here, cluster.Permission{Group: rbacGroup, Resource: resource, Name: object.GetName()}.Each("bind", "escalate")...)
		}
		return g.object(ctx, &g.here, object)
	}
	if g.o.Environment == "" {
		g.notice("the operator of %s wants %s %s, whose name depends on the namespace: say --environment to have rights on it", g.o.Solution, object.GetKind(), object.GetName())
		return nil
	}
	if isRole {
		g.wide = append(g.wide, cluster.Permission{Group: rbacGroup, Resource: resource, Name: object.GetName()}.Each("bind", "escalate")...)
	}
	return g.object(ctx, &g.wide, object)
}

// object adds every verb that some change of an object takes. A kind that the cluster does not have is not deployed.
func (g *granting) object(ctx context.Context, to *[]cluster.Permission, object *unstructured.Unstructured) error {
	ref := records.RefOf(object.GroupVersionKind(), object)
	for _, action := range []schema.Action{schema.ActionCreate, schema.ActionDelete} {
		wanted, err := g.d.needed(ctx, schema.Change{Action: action, Object: ref}, true)
		if errors.Is(err, cluster.ErrNoKind) {
			return nil
		}
		if err != nil {
			return err
		}
		*to = append(*to, wanted...)
	}
	return nil
}

func (g *granting) notice(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(g.notices, text) {
		g.notices = append(g.notices, text)
	}
}

// finish makes roles of the rights.
func (g *granting) finish(namespaces []string) *Grants {
	installer := "solutionctl-installer-" + g.o.Solution
	applications := "solutionctl-applications-" + g.o.Solution
	changes := slices.Concat(rights.WriteRecords(), rights.ReadSite(), rights.Lock())
	roles := []rbacv1.ClusterRole{
		grantRole("ClusterRole", installer, "", g.wide),
		grantRole("ClusterRole", installer+"-environment", "", g.here),
		grantRole("Role", installer, cluster.SystemNamespace, changes),
		grantRole("Role", installer, metalk8s.SolutionsNamespace, rights.WithSolutions("get", "update")),
		grantRole("ClusterRole", applications, "", append(rights.Applications(render.ApplicationsName(g.o.Solution)), g.kinds...)),
	}
	result := &Grants{APIVersion: "v1", Kind: "List", Notices: g.notices}
	for _, role := range roles {
		result.Items = append(result.Items, role)
	}
	bind := func(role rbacv1.ClusterRole, group string, namespaces ...string) {
		for _, namespace := range namespaces {
			if group != "" {
				result.Items = append(result.Items, bindRole(role, namespace, group))
			}
		}
	}
	bind(roles[0], g.o.Installers, "")
	bind(roles[2], g.o.Installers, cluster.SystemNamespace)
	bind(roles[3], g.o.Installers, metalk8s.SolutionsNamespace)
	if g.o.Environment != "" {
		bind(roles[1], g.o.Installers, namespaces...)
		bind(roles[4], g.o.Applications, namespaces...)
	}
	return result
}

// grantRole makes a role; verbs on the same objects are one rule.
func grantRole(kind, name, namespace string, permissions []cluster.Permission) rbacv1.ClusterRole {
	return rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacGroup + "/v1", Kind: kind},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: map[string]string{"app.kubernetes.io/managed-by": cluster.FieldManager}},
		Rules:      cluster.PolicyRules(permissions),
	}
}

func bindRole(role rbacv1.ClusterRole, namespace, group string) rbacv1.RoleBinding {
	kind := "RoleBinding"
	if namespace == "" {
		kind = "ClusterRoleBinding"
	}
	return rbacv1.RoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: role.APIVersion, Kind: kind},
		ObjectMeta: metav1.ObjectMeta{Name: role.Name, Namespace: namespace, Labels: role.Labels},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacGroup, Kind: role.Kind, Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacGroup, Kind: rbacv1.GroupKind, Name: group}},
	}
}
