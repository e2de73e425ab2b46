// Package rbac reads roles and bindings, checks the form of roles and compares them.
//
// [Judge] finds rules that do not do what their author intended: those without effect, with wildcards, with misspelt
// resources and verbs, and those that the API server refuses. Package powers evaluates the effects of rules. [Widened]
// returns the additional permissions of a new version of a role, [Missing] those that an installer lacks to grant a
// role. Both return rules that can be pasted into a role.
package rbac

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/solutionctl/solutionctl/schema/report"
)

// Reason is the kind of a hazard.
type Reason string

// The reasons.
const (
	SystemName       Reason = "system-name" // a name that belongs to Kubernetes
	WildcardVerb     Reason = "wildcard-verb"
	WildcardResource Reason = "wildcard-resource"
	WildcardGroup    Reason = "wildcard-group"
	ClusterScoped    Reason = "cluster-scoped"   // the binding cannot grant it
	UnknownResource  Reason = "unknown-resource" // probably misspelt
	UnknownVerb      Reason = "unknown-verb"     // probably misspelt
	Refused          Reason = "refused"          // the API server would refuse the role
)

// Hazard is one thing that is wrong with a role. Path leads to the rule, as rules[2], and is empty for the role itself.
type Hazard struct {
	Reason   Reason
	Severity report.Severity
	Path     string
	Message  string
	Hint     string
}

func (h Hazard) String() string {
	if h.Path == "" {
		return h.Message
	}
	return h.Path + ": " + h.Message
}

// Role holds the common fields of Role and ClusterRole.
type Role struct {
	Name       string
	Cluster    bool // a ClusterRole
	Aggregated bool // a ClusterRole with an aggregationRule
	Joined     bool // a ClusterRole with a label that makes its rules part of admin, edit or view
	Rules      []rbacv1.PolicyRule
}

// FromObject reads a decoded Role or ClusterRole.
func FromObject(object map[string]any) (Role, error) {
	var role rbacv1.ClusterRole // its fields are a superset of those of a Role
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, &role); err != nil {
		return Role{}, report.Errorf(report.Invalid, "role: %w", err)
	}
	if role.Kind != "Role" && role.Kind != "ClusterRole" {
		return Role{}, report.Errorf(report.Invalid, "expected Role or ClusterRole, got %q", role.Kind)
	}
	joined := false
	for label, value := range role.Labels {
		joined = joined || strings.HasPrefix(label, rbacv1.GroupName+"/aggregate-to-") && value == "true"
	}
	return Role{
		Name: role.Name, Cluster: role.Kind == "ClusterRole", Aggregated: role.AggregationRule != nil, Joined: joined, Rules: role.Rules,
	}, nil
}

// Options say how a role is used.
type Options struct {
	// ClusterWide reports that a ClusterRole is bound in every namespace. Otherwise it is bound by a RoleBinding, and
	// its permissions end with the namespace.
	ClusterWide bool
	// OwnGroups are the API groups of the Solution's own custom resources.
	OwnGroups []string
	// Scope looks a resource up: kube.Release.Scope. Without it, scopes and names of resources are not judged.
	Scope func(group, resource string) (namespaced, known bool)
}

// maxRules and maxEntries bound a checked role; no real role comes close.
const (
	maxRules   = 1000
	maxEntries = 1000 // of one list in one rule
)

// Judge returns the faults of a role: first of the role itself, then rule by rule.
func Judge(role Role, o Options) []Hazard {
	j := judgement{role: role, options: o}
	j.whole()
	for i, rule := range role.Rules {
		if i == maxRules || tooLong(rule) {
			j.add(Refused, report.SeverityError, "", "the role has more than %d rules or list entries: it cannot be reviewed", maxRules)
			break
		}
		j.path = fmt.Sprintf("rules[%d]", i)
		j.rule(rule)
	}
	return j.hazards
}

func tooLong(rule rbacv1.PolicyRule) bool {
	return max(len(rule.APIGroups), len(rule.Resources), len(rule.Verbs), len(rule.ResourceNames), len(rule.NonResourceURLs)) > maxEntries
}

type judgement struct {
	role    Role
	options Options
	path    string
	hazards []Hazard
}

func (j *judgement) add(reason Reason, severity report.Severity, hint, format string, args ...any) {
	j.hazards = append(j.hazards, Hazard{
		Reason: reason, Severity: severity, Path: j.path, Message: fmt.Sprintf(format, args...), Hint: hint,
	})
}

func (j *judgement) whole() {
	if strings.HasPrefix(j.role.Name, "system:") {
		j.add(SystemName, report.SeverityWarning, "choose a name of your own", "names that begin with system: belong to Kubernetes, got %q", j.role.Name)
	}
}

func (j *judgement) rule(rule rbacv1.PolicyRule) {
	if !j.wellFormed(rule) {
		return
	}
	if contains(rule.APIGroups, "*") && contains(rule.Resources, "*") && contains(rule.Verbs, "*") && len(rule.ResourceNames) == 0 {
		return // the power to do everything contains all others
	}
	j.wildcards(rule)
	j.verbs(rule)
	j.scopes(rule)
}

// wellFormed records the faults for which the API server refuses a rule, in its order.
func (j *judgement) wellFormed(rule rbacv1.PolicyRule) bool {
	refuse := func(why string) { j.add(Refused, report.SeverityError, "", "%s", why) }
	before := len(j.hazards)
	if len(rule.Verbs) == 0 {
		refuse("verbs are missing")
	}
	urls := len(rule.NonResourceURLs) > 0
	switch {
	case urls && !j.role.Cluster:
		refuse("nonResourceURLs are not possible in a Role, only in a ClusterRole")
	case urls && (len(rule.APIGroups) > 0 || len(rule.Resources) > 0 || len(rule.ResourceNames) > 0):
		refuse("nonResourceURLs and resources cannot be in the same rule")
	case urls:
	case len(rule.APIGroups) == 0:
		refuse(`apiGroups are missing; write "" for the core group`)
	case len(rule.Resources) == 0:
		refuse("resources are missing")
	}
	return len(j.hazards) == before
}

func (j *judgement) wildcards(rule rbacv1.PolicyRule) {
	if contains(rule.Verbs, "*") {
		j.add(WildcardVerb, report.SeverityWarning, "list the verbs: get, list, watch, create, update, patch, delete",
			"permits every verb, also those that later releases add")
	}
	if contains(rule.APIGroups, "*") {
		j.add(WildcardGroup, report.SeverityWarning, "list the API groups", "applies to every API group, also to those of other Solutions")
		return
	}
	if !contains(rule.Resources, "*") {
		return
	}
	own := !slices.ContainsFunc(rule.APIGroups, func(g string) bool { return !slices.Contains(j.options.OwnGroups, g) })
	groups := "its own API group"
	if !own {
		groups = fmt.Sprintf("group %q", strings.Join(rule.APIGroups, ", "))
	}
	j.add(WildcardResource, report.SeverityWarning, "list the resources", "applies to every resource of %s", groups)
}

// usualVerbs are the verbs that Kubernetes itself checks.
func usualVerbs() []string {
	return []string{
		"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "*",
		"use", "bind", "escalate", "impersonate", "approve", "sign", "attest", "request-serviceaccounts-token-audience",
		"head", "options", "post", "put", // of URLs
	}
}

func (j *judgement) verbs(rule rbacv1.PolicyRule) {
	for _, verb := range rule.Verbs {
		usual := slices.Contains(usualVerbs(), verb)
		method := slices.Contains([]string{"head", "options", "post", "put"}, verb)
		switch {
		case method && len(rule.NonResourceURLs) == 0:
			j.add(UnknownVerb, report.SeverityWarning, "use create for post and update for put", "%q is not a verb of resources", verb)
		case !usual && verb == strings.ToLower(verb) && !builtIn(rule):
			// verbs of one's own are possible where one's own code checks them
		case !usual:
			j.add(UnknownVerb, report.SeverityWarning, "", "%q is not a verb that Kubernetes knows", verb)
		}
	}
}

func builtIn(rule rbacv1.PolicyRule) bool {
	return slices.ContainsFunc(rule.APIGroups, isBuiltIn)
}

// isBuiltIn reports groups that only Kubernetes itself can have. Other groups below k8s.io may be custom resources.
func isBuiltIn(group string) bool {
	return slices.Contains([]string{"", "apps", "batch", "autoscaling", "policy", "rbac.authorization.k8s.io", "coordination.k8s.io"}, group)
}

// across reports whether the rules can be bound in and outside of every namespace, to any subject.
func (j *judgement) across() bool { return j.role.Cluster && (j.options.ClusterWide || j.role.Joined) }

// scopes finds rules that the binding cannot grant, and resources that do not exist.
func (j *judgement) scopes(rule rbacv1.PolicyRule) {
	const hint = "set spec.operator.clusterWide or remove the rule"
	if len(rule.NonResourceURLs) > 0 && !j.across() {
		j.add(ClusterScoped, report.SeverityWarning, hint, "grants nothing: a RoleBinding cannot grant access to URLs")
	}
	if j.options.Scope == nil {
		return
	}
	var outside []string
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			namespaced, known := j.options.Scope(group, resource)
			switch {
			case strings.Contains(resource, "*"):
			case known && !namespaced && !j.across() && !grantedByName(rule, group, resource):
				outside = append(outside, resource)
			case !known && isBuiltIn(group) && len(rule.APIGroups) == 1:
				j.add(UnknownResource, report.SeverityWarning, "write the plural, in lower case", "there is no resource %q in group %q", resource, group)
			}
		}
	}
	if len(outside) > 0 {
		j.add(ClusterScoped, report.SeverityWarning, hint,
			"grants nothing on %s: they lie outside of namespaces and a binding in a namespace cannot grant them", strings.Join(outside, ", "))
	}
}

// grantedByName reports the two permissions on cluster-scoped resources that a binding in a namespace grants: on the
// namespace itself, and to bind a ClusterRole in it.
func grantedByName(rule rbacv1.PolicyRule, group, resource string) bool {
	verbs := []string{"get", "update", "patch", "delete", "*"}
	switch {
	case group == rbacv1.GroupName && resource == "clusterroles":
		verbs = []string{"bind", "*"}
	case group != "" || resource != "namespaces":
		return false
	}
	return slices.ContainsFunc(verbs, func(verb string) bool { return contains(rule.Verbs, verb) })
}

func contains(list []string, entry string) bool { return slices.Contains(list, entry) }
