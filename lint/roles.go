package lint

import (
	"context"
	"slices"
	"strconv"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/solutionctl/solutionctl/build/archive"
	"github.com/solutionctl/solutionctl/kube/powers"
	"github.com/solutionctl/solutionctl/kube/rbac"
	"github.com/solutionctl/solutionctl/lint/target"
	"github.com/solutionctl/solutionctl/schema/report"
)

func checkRoleFile(_ context.Context, t *subject, r *reporter) {
	for _, o := range t.Objects() {
		if o.Part == target.PartRole && !isRole(o) {
			r.Report(o.At(""), "take it out of the file", "%s in role.yaml makes the deployment fail: only Role and ClusterRole are allowed", o)
		}
	}
	documents, _ := t.Documents(archive.RoleFile) // a rule reports an unreadable file
	for _, d := range documents {
		value, _ := d.Value().(map[string]any)
		if _, isList := value["items"].([]any); isList && value["kind"] == "List" { // the objects are its items
			line, column := d.Lookup()
			r.Report(target.Place{File: archive.RoleFile, Line: line, Column: column, Object: "List"}, "separate its items by lines with ---",
				"List in role.yaml makes the deployment fail: only Role and ClusterRole are allowed")
		}
	}
}

func isRole(o *target.Object) bool {
	return (o.Kind == "Role" || o.Kind == "ClusterRole") && o.Group() == rbacv1.GroupName
}

func checkWildcards(_ context.Context, t *subject, r *reporter) {
	t.reportHazards(r, rbac.WildcardGroup, rbac.WildcardResource, rbac.WildcardVerb)
}

func checkMisspelt(_ context.Context, t *subject, r *reporter) {
	t.reportHazards(r, rbac.UnknownResource, rbac.UnknownVerb, rbac.Refused)
}

// reportHazards judges every role and reports the hazards that have one of the reasons.
func (t *subject) reportHazards(r *reporter, reasons ...rbac.Reason) {
	options, bound := rbac.Options{OwnGroups: t.ownGroups(), Scope: t.scope}, t.boundRoles()
	for _, o := range t.appliedRoles() {
		role, err := rbac.FromObject(o.Value)
		if err != nil {
			continue // the rules on Kubernetes objects report malformed ones
		}
		options.ClusterWide = t.everywhere(o, bound)
		hazards := slices.DeleteFunc(rbac.Judge(role, options), func(h rbac.Hazard) bool { return !slices.Contains(reasons, h.Reason) })
		for i := range hazards {
			if hazards[i].Reason == rbac.ClusterScoped && o.Part != target.PartRole {
				hazards[i].Hint = "bind the role with a ClusterRoleBinding, or remove the rule"
			}
		}
		reportTogether(r, o, hazards)
	}
}

// everywhere reports whether a ClusterRole is bound in every namespace. A role without a binding counts as bound in
// either way.
func (t *subject) everywhere(role *target.Object, bound map[boundRole]bool) bool {
	if role.Part == target.PartRole {
		return clusterWide(t) && role.File == archive.RoleFile
	}
	wide, known := bound[roleOf(role, role.Kind, role.Name)]
	return wide || !known
}

// boundRole is a role as those see it that come with it: components by their part, a chart by itself for each component.
type boundRole struct {
	part            target.Part
	file, component string
	kind, name      string
}

func roleOf(o *target.Object, kind, name string) boundRole {
	role := boundRole{part: o.Part, component: o.Component, kind: kind, name: name}
	if o.Part == target.PartChart {
		role.file = o.File
	}
	return role
}

// boundRoles reports for each bound role whether some binding is a ClusterRoleBinding.
func (t *subject) boundRoles() map[boundRole]bool {
	bound := map[boundRole]bool{}
	for _, b := range t.bindings() {
		role := roleOf(b.object, b.Role.Kind, b.Role.Name)
		bound[role] = bound[role] || b.Cluster
	}
	return bound
}

// binding is one that something applies.
type binding struct {
	rbac.Binding
	object *target.Object
}

func (t *subject) bindings() []binding {
	var bindings []binding
	for _, o := range t.Objects() {
		if !o.Part.Applied() || o.Group() != rbacv1.GroupName || !strings.HasSuffix(o.Kind, "Binding") {
			continue
		}
		if b, err := rbac.BindingFromObject(o.Value); err == nil { // else the rules on Kubernetes objects report it
			bindings = append(bindings, binding{b, o})
		}
	}
	return bindings
}

// reportTogether reports hazards with their own severity, those of one place as one finding.
func reportTogether(r *reporter, o *target.Object, hazards []rbac.Hazard) {
	for len(hazards) > 0 {
		n := 1
		for n < len(hazards) && hazards[n].Path == hazards[0].Path && hazards[0].Path != "" {
			n++
		}
		h := together(hazards[:n])
		r.ReportAs(h.Severity, o.At(h.Path), h.Hint, "%s", h.Message)
		hazards = hazards[n:]
	}
}

// together makes one hazard of all those of a rule: as grave as the gravest, with its hint.
func together(hazards []rbac.Hazard) rbac.Hazard {
	one := hazards[0]
	messages := make([]string, len(hazards))
	for i, h := range hazards {
		messages[i] = h.Message
		if h.Severity == report.SeverityError && one.Severity != report.SeverityError {
			one = h
		}
	}
	one.Message = strings.Join(messages, "; ")
	return one
}

// scope knows the resources of Kubernetes and those of the Solution.
func (t *subject) scope(group, resource string) (namespaced, known bool) {
	name, _, _ := strings.Cut(resource, "/")
	for _, d := range t.Definitions() {
		if d.Spec.Group == group && d.Spec.Names.Plural == name {
			return d.Spec.Scope == "Namespaced", true
		}
	}
	return t.Kubernetes().Scope(group, resource)
}

// appliedRoles returns the roles of every part: of operators, components, charts, the user interface.
func (t *subject) appliedRoles() []*target.Object {
	return slices.DeleteFunc(slices.Clone(t.Objects()), func(o *target.Object) bool { return !o.Part.Applied() || !isRole(o) })
}

// roles returns the roles of every operator.
func (t *subject) roles() []*target.Object {
	return slices.DeleteFunc(t.appliedRoles(), func(o *target.Object) bool { return o.Part != target.PartRole })
}

// operatorRules returns the rules of all roles of a kind that operators have.
func (t *subject) operatorRules(kind string) []rbacv1.PolicyRule { return rulesOf(t.roles(), kind) }

// rulesOf returns the rules of those objects that are roles of a kind.
func rulesOf(objects []*target.Object, kind string) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for _, o := range objects {
		if !isRole(o) {
			continue
		}
		if role, err := rbac.FromObject(o.Value); err == nil && o.Kind == kind {
			rules = append(rules, role.Rules...)
		}
	}
	return rules
}

// grantedRules returns the rules of all operators that apply to namespaced or to cluster-scoped resources.
func (t *subject) grantedRules(namespaced bool) []rbacv1.PolicyRule {
	if namespaced {
		return append(t.operatorRules("ClusterRole"), t.operatorRules("Role")...)
	}
	return t.rules(operator{roleFile: archive.RoleFile}, false)
}

func (t *subject) ownGroups() []string {
	groups := powers.OwnGroups(t.Solution.Metadata.Name, t.Solution.Spec.CustomAPIGroups, nil)
	for _, d := range t.Definitions() {
		groups = append(groups, d.Spec.Group)
	}
	return groups
}

func checkWithoutEffect(_ context.Context, t *subject, r *reporter) {
	t.reportHazards(r, rbac.ClusterScoped)
	for _, o := range t.appliedRoles() {
		role, err := rbac.FromObject(o.Value)
		if err != nil {
			continue
		}
		for i, rule := range role.Rules {
			if len(rule.ResourceNames) > 0 && slices.Equal(rule.Verbs, []string{"create"}) {
				r.Report(o.At(pathOf("rules", i)+".resourceNames"), "remove resourceNames", "create is never granted by name: the rule permits nothing")
			}
		}
	}
}

// needs returns the rules that are missing before the verbs are permitted on a resource, as one line; "" when none is.
func needs(have []rbacv1.PolicyRule, group, resource string, verbs ...string) string {
	missing, err := rbac.Missing(have, []rbacv1.PolicyRule{{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}})
	if err != nil || len(missing) == 0 {
		return ""
	}
	lines := make([]string, len(missing))
	for i, rule := range missing {
		lines[i] = rbac.Summary(rule)
	}
	return strings.Join(lines, "; ")
}

// ownDefinitions returns the definitions that activation applies for the operator.
func (t *subject) ownDefinitions() []target.Definition {
	return slices.DeleteFunc(slices.Clone(t.Definitions()), func(d target.Definition) bool { return d.Part != target.PartCRD })
}

func checkOwnResources(_ context.Context, t *subject, r *reporter) {
	for _, d := range t.ownDefinitions() {
		have := t.grantedRules(d.Spec.Scope == "Namespaced")
		if missing := needs(have, d.Spec.Group, d.Spec.Names.Plural, "get", "list", "watch"); missing != "" {
			hint := "add the rule to operator/deploy/role.yaml"
			if d.Spec.Scope != "Namespaced" && !clusterWide(t) {
				hint = "the resource is cluster-scoped: add the rule to a ClusterRole and set spec.operator.clusterWide"
			}
			r.Report(placeOf(d), hint, "the operator lacks permissions: %s", missing)
		}
	}
}

func placeOf(d target.Definition) target.Place {
	if d.Object == nil {
		return target.Place{File: d.File, Object: "CustomResourceDefinition/" + d.Name}
	}
	return d.Object.At("")
}

func checkOwnStatus(_ context.Context, t *subject, r *reporter) {
	for _, d := range t.ownDefinitions() {
		have := t.grantedRules(d.Spec.Scope == "Namespaced")
		if !hasStatus(d) || !permits(have, d.Spec.Group, d.Spec.Names.Plural, "watch") {
			continue // without watch, another program looks after it
		}
		if !mayWriteStatus(have, d) {
			r.Report(placeOf(d), "add update or patch on it to operator/deploy/role.yaml", "the operator watches %[1]s and has no permission to write %[1]s/status", d.Spec.Names.Plural)
		}
	}
}

func hasStatus(d target.Definition) bool {
	for _, version := range d.Spec.Versions {
		if version.Subresources != nil && version.Subresources.Status != nil {
			return true
		}
	}
	return false
}

func mayWriteStatus(rules []rbacv1.PolicyRule, d target.Definition) bool {
	status := d.Spec.Names.Plural + "/status"
	return permits(rules, d.Spec.Group, status, "update") || permits(rules, d.Spec.Group, status, "patch")
}

func checkOwnFinalizers(_ context.Context, t *subject, r *reporter) {
	for _, d := range t.ownDefinitions() {
		have, resource := t.grantedRules(d.Spec.Scope == "Namespaced"), d.Spec.Names.Plural+"/finalizers"
		if permits(have, d.Spec.Group, d.Spec.Names.Plural, "watch") && !permits(have, d.Spec.Group, resource, "update") {
			r.Report(placeOf(d), "add it to operator/deploy/role.yaml", "the operator has no permission to update %s", resource)
		}
	}
}

func checkLeases(_ context.Context, t *subject, r *reporter) {
	for _, o := range t.operatorRights() {
		if missing := t.missingToElect(o); len(missing) > 0 {
			r.Report(target.InFile(o.roleFile), "add it, without resourceNames for create",
				"an election needs %s on leases, which no role permits", strings.Join(missing, " and "))
		}
	}
}

// missingToElect returns the verbs that an operator with some rights on leases lacks for an election.
func (t *subject) missingToElect(o operator) []string {
	const group, resource = "coordination.k8s.io", "leases"
	have := t.rules(o, true)
	var byName []string // verbs on leases with certain names
	elects := false
	for _, rule := range have {
		if !slices.Contains(rule.APIGroups, group) || !slices.Contains(rule.Resources, resource) {
			continue // a wildcard does not say that the operator elects a leader
		}
		elects = true
		if len(rule.ResourceNames) > 0 {
			byName = append(byName, rule.Verbs...)
		}
	}
	if !elects {
		return nil
	}
	may := func(verb string) bool {
		return permits(have, group, resource, verb) || verb != "create" && (slices.Contains(byName, verb) || slices.Contains(byName, "*"))
	}
	var missing []string
	for _, verb := range []string{"create", "get", "update"} {
		if !may(verb) && (verb != "update" || !may("patch")) {
			missing = append(missing, verb)
		}
	}
	return missing
}

func checkRequired(_ context.Context, t *subject, r *reporter) {
	if t.Solution.Spec.Operator == nil {
		return
	}
	for i, required := range t.Solution.Spec.Operator.RequiresCRDs {
		at := t.ManifestPlace("spec", "operator", "requiresCRDs", strconv.Itoa(i))
		plural, group, _ := strings.Cut(required.Name, ".")
		namespaced, known := t.scope(group, plural)
		if missing := needs(t.grantedRules(namespaced || !known), group, plural, "list", "watch"); missing != "" {
			r.ReportAs(report.SeverityWarning, at, "add the rule to operator/deploy/role.yaml", "the operator requires %s and lacks permissions: %s", required.Name, missing)
		}
		d, ok := t.definition(required.Name)
		if !ok {
			continue
		}
		for _, version := range required.Versions {
			if served, _ := d.Serves(version); !served {
				r.Report(at, "serve it, or require another version", "the operator requires version %s of %s, which %s does not serve", version, required.Name, d.File)
			}
		}
	}
}
