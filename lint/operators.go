package lint

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strconv"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/solutionctl/solutionctl/build/archive"
	"github.com/solutionctl/solutionctl/deployer/components"
	"github.com/solutionctl/solutionctl/kube/rbac"
	"github.com/solutionctl/solutionctl/lint/target"
	"github.com/solutionctl/solutionctl/schema"
)

// operator is one of the operators of a Solution: its own, or a component.
type operator struct {
	name     string // of the Deployment
	roleFile string
	image    schema.ImageRef
	setting  []string          // where the manifest names the image
	of       *schema.Component // nil for the Solution's own
}

// operators lists them, the Solution's own first.
func (t *subject) operators() []operator {
	var list []operator
	if t.hasOperator() {
		list = append(list, operator{t.operatorName(), archive.RoleFile, t.Solution.OperatorImage(), []string{"spec", "operator", "image"}, nil})
	}
	if t.Solution == nil {
		return list
	}
	for i := range t.Solution.Spec.Components {
		if c := &t.Solution.Spec.Components[i]; c.Operator != "" {
			setting := []string{"spec", "components", strconv.Itoa(i), "image"}
			list = append(list, operator{c.Name, roleFileOf(*c), t.Solution.ComponentImage(c), setting, c})
		}
	}
	return list
}

// operatorRights are the operators with rights of their own: two that are started with the same ones count once.
func (t *subject) operatorRights() []operator {
	list := t.operators()
	slices.SortStableFunc(list, func(a, b operator) int { return cmp.Compare(a.roleFile, b.roleFile) })
	return slices.CompactFunc(list, func(a, b operator) bool { return a.roleFile == b.roleFile })
}

// rules returns the rules of an operator for namespaced or for cluster-scoped resources.
func (t *subject) rules(o operator, namespaced bool) []rbacv1.PolicyRule {
	if !namespaced && (o.of != nil || !clusterWide(t)) {
		return nil
	}
	var rules []rbacv1.PolicyRule
	for _, object := range t.roles() {
		if role, err := rbac.FromObject(object.Value); err == nil && object.File == o.roleFile && (namespaced || object.Kind == "ClusterRole") {
			rules = append(rules, role.Rules...)
		}
	}
	return rules
}

func checkEdges(_ context.Context, t *subject, r *reporter) {
	if t.Solution == nil {
		return
	}
	there := map[string]bool{schema.NodeOperator: t.hasOperator(), schema.NodeUI: t.hasUI()}
	for i, component := range t.Solution.Spec.Components {
		for j, d := range component.DependsOn {
			if has, part := there[d.Component]; part && !has {
				r.Report(t.ManifestPlace("spec", "components", strconv.Itoa(i), "dependsOn", strconv.Itoa(j), "component"),
					"remove the dependency, or add the component", "component %s waits for %s, which the archive does not have", component.Name, d.Component)
			}
		}
	}
}

// hasUI reports whether a user interface would be deployed.
func (t *subject) hasUI() bool {
	return slices.ContainsFunc(t.Files(), func(f target.File) bool { return path.Dir(f.Path) == "ui" && path.Ext(f.Path) == ".yaml" })
}

func checkUnnamed(_ context.Context, t *subject, r *reporter) {
	if t.Solution == nil {
		return
	}
	named := map[string]bool{}
	for _, component := range t.Solution.Spec.Components {
		named[path.Clean(component.Operator)] = true
	}
	for _, file := range t.Files() {
		parts := strings.SplitN(file.Path, "/", 3)
		if len(parts) < 3 || parts[0] != "operators" || named[path.Join(parts[0], parts[1])] {
			continue
		}
		dir := path.Join(parts[0], parts[1])
		named[dir] = true // once is enough
		r.Report(target.InFile(file.Path), "add {name: "+parts[1]+", operator: "+dir+"} to spec.components, or take the directory out",
			"no component is the operator %s: nothing deploys it", dir)
	}
}

// owner can reconcile custom resources: an operator, or a chart with one.
type owner struct {
	name  string
	parts []string                     // the components that it is deployed as; none if it always is
	rules map[bool][]rbacv1.PolicyRule // on namespaced resources, and on others
}

// owners lists the operators and the charts. A chart of several components counts once.
func (t *subject) owners() []owner {
	var owners []owner
	for _, o := range t.operatorRights() {
		one := owner{name: o.name, rules: map[bool][]rbacv1.PolicyRule{true: t.rules(o, true), false: t.rules(o, false)}}
		for _, other := range t.operators() {
			if other.roleFile == o.roleFile && other.of != nil {
				one.parts = append(one.parts, other.name)
			}
		}
		owners = append(owners, one)
	}
	seen := map[string]int{}
	for _, c := range t.Charts() {
		if c.Rendering == nil {
			continue
		}
		if at, again := seen[c.File]; again {
			owners[at].parts = append(owners[at].parts, c.Component)
			continue
		}
		seen[c.File] = len(owners)
		roles := slices.DeleteFunc(t.appliedRoles(), func(o *target.Object) bool { return o.File != c.File || o.Component != c.Component })
		wide := rulesOf(roles, "ClusterRole")
		one := owner{name: cmp.Or(c.Component, c.File), rules: map[bool][]rbacv1.PolicyRule{true: slices.Concat(wide, rulesOf(roles, "Role")), false: wide}}
		if c.Component != "" {
			one.parts = []string{c.Component}
		}
		owners = append(owners, one)
	}
	return owners
}

// isIn reports whether an owner is part of a deployment.
func (o owner) isIn(s *components.Selection) bool {
	return len(o.parts) == 0 || slices.ContainsFunc(o.parts, s.Has)
}

// deployments returns the selections of users: the default, a profile, or one component that belongs to no profile.
// Profiles are alternatives: components of different profiles are never deployed together.
func (t *subject) deployments() []*components.Selection {
	graph, err := components.New(t.Solution, schema.NodeOperator, schema.NodeUI)
	if err != nil {
		return nil // other rules report the manifest
	}
	choices := []components.Choice{{}}
	for _, c := range t.Solution.Spec.Components {
		for _, profile := range c.Profiles {
			choices = append(choices, components.Choice{Profiles: []string{profile}})
		}
		if len(c.Profiles) == 0 {
			choices = append(choices, components.Choice{Components: map[string]bool{c.Name: true}})
		}
	}
	var selections []*components.Selection
	for _, choice := range choices {
		if s, err := graph.Select(choice); err == nil {
			selections = append(selections, s)
		}
	}
	return selections
}

func checkOwners(_ context.Context, t *subject, r *reporter) {
	candidates, deployments, seen := t.owners(), t.deployments(), map[string]bool{}
	for _, d := range t.Definitions() {
		if !d.Part.Applied() || !hasStatus(d) || seen[d.Name] {
			continue
		}
		seen[d.Name] = true
		writers := slices.DeleteFunc(slices.Clone(candidates), func(o owner) bool {
			return !mayWriteStatus(o.rules[d.Spec.Scope == "Namespaced"], d)
		})
		var owners []string // in the deployment with most of them
		for _, s := range deployments {
			var names []string
			for _, o := range writers {
				if o.isIn(s) {
					names = append(names, o.name)
				}
			}
			if len(names) > len(owners) {
				owners = names
			}
		}
		if len(owners) > 1 {
			r.Report(placeOf(d), "let one of them write "+d.Spec.Names.Plural+"/status; the others may write the resource itself",
				"%s may all write the status of %s: they will undo each other's work", strings.Join(owners, ", "), d.Name)
		}
	}
}

// workloads are the resources that run something.
var workloads = map[string][]string{
	"":      {"pods", "replicationcontrollers"},
	"apps":  {"daemonsets", "deployments", "replicasets", "statefulsets"},
	"batch": {"cronjobs", "jobs"},
}

// checkUmbrella finds permissions of the Solution's own operator that duplicate those of another one in the default
// deployment.
func checkUmbrella(_ context.Context, t *subject, r *reporter) {
	if !t.hasOperator() {
		return
	}
	graph, err := components.New(t.Solution, schema.NodeOperator, schema.NodeUI)
	if err != nil {
		return // other rules report the manifest
	}
	selection, err := graph.Select(components.Choice{})
	if err != nil {
		return
	}
	for _, o := range t.operators() {
		if o.of == nil || !selection.Has(o.name) {
			continue
		}
		if writes := t.writesLike(o); writes != "" {
			own := slices.IndexFunc(t.roles(), func(o *target.Object) bool { return o.File == archive.RoleFile })
			r.Report(t.roles()[own].At(""), "leave it to "+o.roleFile+", and let the operator write what "+o.name+" watches",
				"the operator may write %s, and so may %s, which is deployed beside it", writes, o.name)
		}
	}
}

// writesLike returns the workloads that the Solution's own operator may create, as another one may; "" when there are none.
func (t *subject) writesLike(o operator) string {
	own, others := t.rules(operator{roleFile: archive.RoleFile}, true), t.rules(o, true)
	var both []string
	for group, resources := range workloads {
		for _, resource := range resources {
			if permits(own, group, resource, "create") && permits(others, group, resource, "create") {
				both = append(both, resource)
			}
		}
	}
	slices.Sort(both)
	return strings.Join(both, ", ")
}
