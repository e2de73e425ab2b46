package powers

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/solutionctl/solutionctl/kube/rbac"
	"github.com/solutionctl/solutionctl/schema"
)

// maxPermissions bounds a role; no honest one comes close.
const maxPermissions = 20_000

// role is one among the objects.
type role struct {
	Object
	rbac.Role
	err         error // why its rules cannot be read
	sources     sources
	all         []rbacv1.PolicyRule // its rules, and those that it gets from others
	permissions int                 // how many single ones these have, see [permissions]
	selectors   string              // by which it gets rules of roles that the archive does not bring
}

// grant is a role and one of those who get it, with all the places where they get it.
type grant struct {
	role    *role // nil for one that is not among the objects
	ref     schema.ObjectRef
	file    string
	rules   []rbacv1.PolicyRule
	subject rbacv1.Subject
	own     bool            // the subject is an account of the Solution
	scopes  map[string]bool // namespaces, * for all
}

// rights judges what bindings grant, and roles that add to those of every cluster.
func (j *judgement) rights() {
	roles := map[string]*role{}
	for _, o := range j.objects {
		if isKind(o, rbacGroup, "Role", "ClusterRole") {
			r, err := rbac.FromObject(o.Object)
			key := roleKey(o.GetKind(), o.GetNamespace(), o.GetName())
			found := &role{Object: o, Role: r, err: err}
			if other, ok := roles[key]; ok && j.spend(refOf(o), len(other.Rules)+len(r.Rules)) {
				found = other.union(found)
			}
			roles[key] = found
		}
	}
	sorted := slices.Sorted(maps.Keys(roles))
	for _, key := range sorted {
		j.findSources(roles[key], roles)
	}
	for _, key := range sorted {
		r := roles[key]
		j.aggregate(r)
		r.permissions = permissions(r.all)
		j.extends(r)
	}
	for _, g := range j.grants(roles) {
		if j.tooLarge != nil {
			return
		}
		j.grant(g)
	}
}

// union returns a role with the rules of two that have one name: either can be applied last.
func (r *role) union(other *role) *role {
	if reflect.DeepEqual(r.Object.Object, other.Object.Object) {
		return r
	}
	both := *r
	both.err = cmp.Or(r.err, other.err)
	if r.Aggregated || other.Aggregated {
		both.err = errors.New("there are two objects of this name, and one gets its rules from others")
	}
	rules := map[string]rbacv1.PolicyRule{}
	for _, rule := range slices.Concat(r.Rules, other.Rules) {
		rules[rule.String()] = rule
	}
	both.Rules = nil
	for _, text := range slices.Sorted(maps.Keys(rules)) {
		both.Rules = append(both.Rules, rules[text])
	}
	return &both
}

func roleKey(kind, namespace, name string) string {
	if kind == "ClusterRole" {
		namespace = ""
	}
	return strings.Join([]string{kind, namespace, name}, "\x00")
}

// grants reads the bindings, one grant for each role and subject, in a stable order.
func (j *judgement) grants(roles map[string]*role) []*grant {
	found := map[string]*grant{}
	for _, o := range j.objects {
		if !isKind(o, rbacGroup, "RoleBinding", "ClusterRoleBinding") {
			continue
		}
		binding, err := rbac.BindingFromObject(o.Object)
		if err != nil {
			j.unreadable(o, err)
			continue
		}
		for _, named := range binding.Subjects {
			subject := subjectOf(named, o.GetNamespace())
			role := roleKey(binding.Role.Kind, o.GetNamespace(), binding.Role.Name)
			key := role + "\x00" + subjectText(subject)
			g, ok := found[key]
			if !ok {
				g = &grant{subject: subject, own: j.isOwn(subject), file: o.File, scopes: map[string]bool{}, role: roles[role]}
				g.ref = schema.ObjectRef{APIVersion: rbacGroup + "/v1", Kind: binding.Role.Kind, Name: binding.Role.Name}
				if binding.Role.Kind == "Role" {
					g.ref.Namespace = o.GetNamespace()
				}
				found[key] = g
			}
			if binding.Cluster {
				g.scopes["*"] = true
			} else {
				g.scopes[o.GetNamespace()] = true
			}
		}
	}
	grants := make([]*grant, 0, len(found))
	for _, key := range slices.Sorted(maps.Keys(found)) {
		grants = append(grants, found[key])
	}
	return grants
}

// subjectOf is a subject with the namespace that the API server sees.
func subjectOf(s rbacv1.Subject, namespace string) rbacv1.Subject {
	if s.Kind == rbacv1.ServiceAccountKind && s.Namespace == "" {
		s.Namespace = namespace
	}
	if s.Kind == rbacv1.UserKind { // an account under its full name is the account
		if name, ok := strings.CutPrefix(s.Name, "system:serviceaccount:"); ok {
			if namespace, account, ok := strings.Cut(name, ":"); ok {
				return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account}
			}
		}
	}
	return s
}

func subjectText(s rbacv1.Subject) string {
	if s.Kind == rbacv1.ServiceAccountKind {
		return s.Kind + " " + s.Namespace + "/" + s.Name
	}
	return s.Kind + " " + s.Name
}

// isOwn reports whether a subject is an account, or all accounts, of one of the Solution's namespaces, or an account that the
// archive brings.
func (j *judgement) isOwn(s rbacv1.Subject) bool {
	if s.Kind == rbacv1.ServiceAccountKind {
		return j.own[s.Namespace] || j.hasAccount(s.Namespace, s.Name)
	}
	namespace, ok := strings.CutPrefix(s.Name, "system:serviceaccounts:")
	return ok && s.Kind == rbacv1.GroupKind && j.own[namespace]
}

// grant judges one grant.
func (j *judgement) grant(g *grant) {
	switch {
	case g.role == nil:
		j.borrowed(g)
	case g.role.err != nil:
		j.unreadable(g.role.Object, g.role.err)
		return
	default:
		g.ref, g.file = refOf(g.role.Object), g.role.File
		if g.role.permissions > maxPermissions {
			power := g.power(schema.PowerAllRights, schema.ReachCluster, nil, nil, "have more rights than can be reviewed")
			power.Need = schema.NeedRefused
			j.record(power)
			return
		}
		if !j.spend(g.ref, g.role.permissions) {
			return
		}
		g.rules = g.role.all
		j.judgeRules(g)
		j.collected(g)
	}
	if !g.own {
		j.forOthers(g)
	}
}

// judgeRules judges the rules of a grant in each place where it is granted.
func (j *judgement) judgeRules(g *grant) {
	if g.scopes["*"] {
		j.judgePlace(g, inCluster, []string{"*"})
		return
	}
	own, others := j.split(g)
	if len(others) > 0 {
		j.judgePlace(g, inOthers, others)
	}
	if len(own) > 0 {
		j.judgePlace(g, inOwn, own)
	}
}

// split returns the Solution's namespaces in which there is a grant, and the others, sorted.
func (j *judgement) split(g *grant) (own, others []string) {
	for _, namespace := range slices.Sorted(maps.Keys(g.scopes)) {
		if j.own[namespace] {
			own = append(own, namespace)
		} else {
			others = append(others, namespace)
		}
	}
	return own, others
}

// permissions bounds how many single permissions rules have.
func permissions(rules []rbacv1.PolicyRule) int {
	total := 0
	for _, rule := range rules {
		n := 1
		for _, list := range [][]string{rule.APIGroups, rule.Resources, rule.Verbs, rule.ResourceNames, rule.NonResourceURLs} {
			n = min(n*max(1, len(list)), maxPermissions+1)
		}
		total += n
		if total > maxPermissions {
			break
		}
	}
	return total
}

// found collects the rules for one power in one place.
type found struct {
	reach schema.Reach
	rules []rbacv1.PolicyRule
	at    []int // their numbers
}

// judgePlace judges the rules of a grant in one place.
func (j *judgement) judgePlace(g *grant, w where, scopes []string) {
	system := slices.ContainsFunc(scopes, schema.IsSystemNamespace)
	powers := map[schema.PowerName]*found{}
	note := func(name schema.PowerName, reach schema.Reach, number int, rules ...rbacv1.PolicyRule) {
		f, ok := powers[name]
		if !ok {
			f = &found{reach: reach}
			powers[name] = f
		}
		if slices.Index(schema.Reaches(), reach) < slices.Index(schema.Reaches(), f.reach) {
			f.reach = reach
		}
		f.rules = append(f.rules, rules...)
		if !slices.Contains(f.at, number) {
			f.at = append(f.at, number)
		}
	}
	for i, rule := range g.rules {
		if isEverything(rule) {
			note(schema.PowerAllRights, reachOfAll(w, system), i, rule)
			continue
		}
		j.judgeRule(rule, w, system, func(name schema.PowerName, reach schema.Reach, rules ...rbacv1.PolicyRule) {
			note(name, reach, i, rules...)
		})
	}
	if all, ok := powers[schema.PowerAllRights]; ok { // the others are part of it
		powers = map[schema.PowerName]*found{schema.PowerAllRights: all}
	}
	for _, name := range slices.Sorted(maps.Keys(powers)) {
		f := powers[name]
		rules, err := rbac.Missing(nil, f.rules)
		if err != nil {
			rules = f.rules
		}
		power := g.power(name, f.reach, rules, scopes, can(name, rules, scopes))
		power.Field = ruleNumbers(g, f.at)
		j.record(power)
	}
}

func reachOfAll(w where, system bool) schema.Reach {
	if w == inCluster || w == inOthers && system {
		return schema.ReachCluster
	}
	return schema.ReachNamespaces
}

// judgeRule finds the powers of one rule.
func (j *judgement) judgeRule(rule rbacv1.PolicyRule, w where, system bool, note func(schema.PowerName, schema.Reach, ...rbacv1.PolicyRule)) {
	if len(rule.NonResourceURLs) > 0 {
		if w == inCluster && slices.ContainsFunc(rule.NonResourceURLs, revealsData) {
			note(schema.PowerReadOthers, schema.ReachNamespaces, rbacv1.PolicyRule{Verbs: rule.Verbs, NonResourceURLs: rule.NonResourceURLs})
		}
		return
	}
	for _, r := range rights {
		if part, ok := r.narrow(rule); ok {
			part.Resources = slices.DeleteFunc(part.Resources, func(resource string) bool { return j.ownsResource(r.group, resource) })
			if reach := r.reachIn(w, rule, system); reach != "" && len(part.Resources) > 0 {
				note(r.name, reach, part)
			}
		}
	}
	identities := writesIdentities(rule, w, system)
	if identities {
		note(schema.PowerIssueIdentities, schema.ReachCluster, rbacv1.PolicyRule{
			APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: writingVerbs(rule.Verbs), ResourceNames: rule.ResourceNames,
		})
	}
	for name, rules := range j.rest(rule, w, identities) {
		reach := map[schema.PowerName]schema.Reach{
			schema.PowerDeleteOthers: schema.ReachCluster, schema.PowerInstructsController: schema.ReachCluster,
		}[name]
		if reach == "" || w == inOthers && !system {
			reach = schema.ReachNamespaces
		}
		note(name, reach, rules...)
	}
}

// revealsData reports whether a path of the API server shows more than its health and its metrics.
func revealsData(url string) bool {
	start, isPattern := strings.CutSuffix(url, "*")
	return slices.ContainsFunc([]string{"/logs", "/debug"}, func(path string) bool {
		return strings.HasPrefix(url, path) || isPattern && strings.HasPrefix(path, start)
	})
}

// identityMaps are ConfigMaps that define users, the address of the API server, or name resolution in some clusters.
var identityMaps = []string{"aws-auth", "cluster-info", "coredns", "extension-apiserver-authentication", "kube-proxy", "kubeadm-config"}

// writesIdentities reports whether a rule lets write one of the ConfigMaps that the cluster relies upon.
func writesIdentities(rule rbacv1.PolicyRule, w where, system bool) bool {
	named := len(rule.ResourceNames) == 0 || slices.ContainsFunc(rule.ResourceNames, func(n string) bool { return slices.Contains(identityMaps, n) })
	return (w == inCluster || system) && named && len(writingVerbs(rule.Verbs)) > 0 &&
		(contains(rule.APIGroups, "") || contains(rule.APIGroups, "*")) && coversResource(rule.Resources, "configmaps")
}

func writingVerbs(verbs []string) []string {
	if contains(verbs, "*") {
		return writing
	}
	return slices.DeleteFunc(slices.Clone(verbs), func(v string) bool { return !contains(writing, v) })
}

// power is one of the grant's.
func (g *grant) power(name schema.PowerName, reach schema.Reach, rules []rbacv1.PolicyRule, scopes []string, why string) schema.Power {
	p := schema.Power{
		Name: name, Reach: reach, Need: schema.NeedApproval, Object: g.ref, File: g.file, Subject: subjectText(g.subject), Why: why, Effects: set(scopes),
	}
	for _, rule := range rules {
		p.Rules = append(p.Rules, ruleOf(rule))
	}
	return p
}

func ruleOf(rule rbacv1.PolicyRule) schema.PolicyRule {
	return schema.PolicyRule{
		Verbs: rule.Verbs, APIGroups: rule.APIGroups, Resources: rule.Resources, ResourceNames: rule.ResourceNames, NonResourceURLs: rule.NonResourceURLs,
	}
}

// ruleNumbers names the rules of a role, as in rules[0], rules[3].
func ruleNumbers(g *grant, at []int) string {
	if g.role == nil {
		return "roleRef"
	}
	fields := make([]string, len(at))
	for i, n := range at {
		fields[i] = fmt.Sprintf("rules[%d]", n)
	}
	return strings.Join(fields, ", ")
}
