package rights

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
)

// Role is a role that an administrator grants by hand.
type Role struct {
	Comment     string // what it is for, and where to bind it
	Kind, Name  string
	Namespace   string // of a Role
	Permissions []cluster.Permission
}

// File is a file of docs/installer-role.
type File struct {
	Name  string
	Roles []Role
}

// The Solution of the roles that are about one.
const (
	exampleSolution = "shop"
	exampleGroup    = "shop.example.com"
)

// Files returns the roles for people who deploy Solutions, or only read or run them, without being administrators of the cluster.
func Files() []File {
	const system, solutions = cluster.SystemNamespace, metalk8s.SolutionsNamespace
	all := []string{"get", "list", "watch", "create", "patch", "update", "delete"}
	some := []string{"get", "list", "watch", "create", "patch", "delete"}
	return []File{
		{"installer.yaml", []Role{
			{`Deploys Solutions without being an administrator of the cluster: see docs/guides/rights.md. The first import creates the namespaces
solutionctl-system and metalk8s-solutions.

In the whole cluster: environments and CustomResourceDefinitions.`, "ClusterRole", "solutionctl-installer", "", slices.Concat(Namespaces(), inEnvironment(""), claims(), Definitions())},
			{"In the namespaces of environments: the objects of Solutions. Bind it in each of them.", "ClusterRole", "solutionctl-installer-environment", "", Objects("")},
			{"Records of deployments, and locks.", "Role", "solutionctl-installer", system, slices.Concat(WriteRecords(), readSite(), Lock(), DeleteLocks())},
			{"The versions of Solutions that MetalK8s lists.", "Role", "solutionctl-installer", solutions, withSolutions("get", "update")},
		}},
		{"solution.yaml", []Role{
			{`What the installer needs in addition for one Solution, here for shop, whose custom resources are in the group shop.example.com.

In the whole cluster: a CustomResourceDefinition is compared with every custom resource.`, "ClusterRole", "solutionctl-installer-shop", "", on(exampleGroup, "*", "", all...)},
			{
				`In the namespaces of environments: Kubernetes lets users grant only rights that they have, except on the roles named here. Instead of
this rule the installer can have the rights of the operator.`, "ClusterRole", "solutionctl-installer-shop-environment", "",
				cluster.Permission{Group: rbacv1.GroupName, Resource: "roles", Name: exampleSolution + "-operator"}.Each("bind", "escalate"),
			},
		}},
		{"extras.yaml", []Role{
			{`For Solutions that have more: a user interface, a certificate for webhooks, monitoring. Bind it in the namespaces of environments,
beside solutionctl-installer-environment.`, "ClusterRole", "solutionctl-installer-extras", "", slices.Concat(
				on("", "services", "", some...), on("", "secrets", "", "get", "create", "patch", "delete"), on("networking.k8s.io", "ingresses", "", some...),
				on(monitoringGroup, "servicemonitors", "", some...), on(monitoringGroup, "podmonitors", "", some...), on(monitoringGroup, "prometheusrules", "", some...),
			)},
			{`In the whole cluster: to store custom resources again when an API version is removed, and for --protect-crds. An activation that brings
webhooks, dashboards or cluster-wide alerting rules needs an administrator.`, "ClusterRole", "solutionctl-installer-definitions", "", slices.Concat(
				on(cluster.DefinitionKind.Group, crds, "", "update"),
				cluster.Permission{Group: cluster.DefinitionKind.Group, Resource: crds, Subresource: "status"}.Each("update"),
				on(admissionGroup, "validatingadmissionpolicies", "", some...), on(admissionGroup, "validatingadmissionpolicybindings", "", some...),
			)},
		}},
		{"reader.yaml", []Role{
			{`Reads what is deployed: status, history, search, diff and env list. It can change nothing. Records are Secrets, because they hold
rendered objects: a reader of them reads what was deployed, Secrets included.`, "ClusterRole", "solutionctl-reader", "", slices.Concat(
				on("", "namespaces", "", "get", "list"), readEnvironments(), on(cluster.DefinitionKind.Group, crds, "", "get"),
			)},
			{"In the namespaces of environments.", "ClusterRole", "solutionctl-reader-environment", "", slices.Concat(
				on("", "configmaps", "", "get"), on("", "serviceaccounts", "", "get"), on("", "services", "", "get"), on("apps", "deployments", "", "get"),
				on("networking.k8s.io", "ingresses", "", "get"), on(rbacv1.GroupName, "roles", "", "get"), on(rbacv1.GroupName, "rolebindings", "", "get"),
			)},
			{"Records of deployments.", "Role", "solutionctl-reader", system, slices.Concat(readRecords(), readSite())},
			{"The versions of Solutions that MetalK8s lists.", "Role", "solutionctl-reader", solutions, readSolutions()},
		}},
		{"preloader.yaml", []Role{
			{`Preloads images with 'deploy node preload --nodes'. Its Jobs have the socket of the container runtime, so its holders can do everything on
every node: give it to administrators only.

In the whole cluster: which nodes there are.`, "ClusterRole", "solutionctl-preloader", "", nodesOfJobs()},
			{"Records of deployments and of preloaded images, locks, and the Jobs.", "Role", "solutionctl-preloader", system, preloadSystem()},
		}},
		{"logs.yaml", []Role{
			{"Reads and follows the logs of Solutions, in the namespaces of environments in which this is bound.", "ClusterRole", "solutionctl-logs", "", Logs("")},
		}},
		{"applications.yaml", []Role{
			{`Runs the applications of one Solution, here shop, in the namespaces of environments in which this is bound, with 'deploy app', and
reads the events there, nothing else. Bind the role view of Kubernetes beside it to show the objects of an application, too, and why it is not ready.
'solutionctl deploy roles shop' writes this role with the kinds of the Solution by name.`, "ClusterRole", "solutionctl-applications-shop", "", slices.Concat(
				useApplications(exampleSolution+"-applications"), on(exampleGroup, "*", "", all...),
			)},
		}},
	}
}

const admissionGroup = "admissionregistration.k8s.io"

// YAML returns the file for 'kubectl apply'.
func (f File) YAML() []byte {
	var b bytes.Buffer
	for i, r := range f.Roles {
		if i > 0 {
			b.WriteString("---\n")
		}
		for line := range strings.SplitSeq(r.Comment, "\n") {
			b.WriteString(strings.TrimSuffix("# "+line, " ") + "\n")
		}
		fmt.Fprintf(&b, "apiVersion: %s/v1\nkind: %s\nmetadata:\n  name: %s\n", rbacv1.GroupName, r.Kind, r.Name)
		if r.Namespace != "" {
			fmt.Fprintf(&b, "  namespace: %s\n", r.Namespace)
		}
		b.WriteString("rules:\n")
		for _, one := range rules(r.Permissions) {
			fmt.Fprintf(&b, "- apiGroups: %s\n  resources: %s\n", list(one.group), list(one.resources...))
			if len(one.names) > 0 {
				fmt.Fprintf(&b, "  resourceNames: %s\n", list(one.names...))
			}
			fmt.Fprintf(&b, "  verbs: %s\n", list(one.verbs...))
		}
	}
	return b.Bytes()
}

// rule is a rule of a role as people write it: resources with the same verbs, or names of one resource, in one rule.
type rule struct {
	group                   string
	resources, names, verbs []string
}

// rules writes permissions as rules, in the order of the permissions.
func rules(permissions []cluster.Permission) []rule {
	var rules []rule
	for _, of := range cluster.PolicyRules(permissions) {
		next := rule{of.APIGroups[0], of.Resources, of.ResourceNames, slices.SortedFunc(slices.Values(of.Verbs), byHabit)}
		at := slices.IndexFunc(rules, func(r rule) bool {
			same := r.group == next.group && slices.Equal(r.verbs, next.verbs)
			return same && (len(r.names)+len(next.names) == 0 || len(r.names) > 0 && len(next.names) > 0 && slices.Equal(r.resources, next.resources))
		})
		if at < 0 {
			rules = append(rules, next)
			continue
		}
		if len(next.names) == 0 {
			rules[at].resources = append(rules[at].resources, next.resources...)
		}
		rules[at].names = append(rules[at].names, next.names...)
	}
	return rules
}

// byHabit orders verbs as roles are usually written: those that read first.
func byHabit(a, b string) int {
	order := []string{"get", "list", "watch", "create", "patch", "update", "delete"}
	return cmp.Or(cmp.Compare(slices.Index(order, a), slices.Index(order, b)), cmp.Compare(a, b))
}

// list writes words as a list of YAML.
func list(words ...string) string {
	quoted := slices.Clone(words)
	for i, word := range quoted {
		if word == "" || word == "*" {
			quoted[i] = fmt.Sprintf("%q", word)
		}
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}
