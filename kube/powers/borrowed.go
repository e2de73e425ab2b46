package powers

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/solutionctl/solutionctl/schema"
)

// reviewers are ClusterRoles of every cluster that only allow token and access reviews.
var reviewers = []string{"system:auth-delegator", "system:discovery", "system:basic-user", "system:public-info-viewer"}

// authenticationReader is a Role of every cluster that only allows to read the CA of clients.
var authenticationReader = schema.ObjectRef{APIVersion: rbacGroup + "/v1", Kind: "Role", Namespace: "kube-system", Name: "extension-apiserver-authentication-reader"}

// everything is the rule of cluster-admin.
var everything = rbacv1.PolicyRule{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}

// borrowed judges a grant of a role that is not among the objects.
func (j *judgement) borrowed(g *grant) {
	if g.ref.Kind == "ClusterRole" && slices.Contains(reviewers, g.ref.Name) || g.ref == authenticationReader {
		return
	}
	if g.ref.Kind == "ClusterRole" {
		switch g.ref.Name {
		case "cluster-admin":
			g.rules = []rbacv1.PolicyRule{everything}
			j.judgeRules(g)
			return
		case "admin", "edit", "view":
			j.standard(g)
			return
		}
	}
	scopes := slices.Sorted(maps.Keys(g.scopes))
	power := g.power(schema.PowerBorrowsRights, schema.ReachNamespaces, nil, scopes,
		fmt.Sprintf("have the rights of a role that the archive does not bring, %s, in %s", g.ref.Name, placeText(scopes)))
	if strings.HasPrefix(g.ref.Name, "system:") || g.scopes["*"] {
		power.Reach = schema.ReachCluster
	}
	power.Field = "roleRef"
	j.record(power)
}

// ofStandard are the rights over rights that admin and edit have in a namespace; view has none.
var ofStandard = map[string][]rbacv1.PolicyRule{
	"admin": append(slices.Clip(rulesOfEdit), rbacv1.PolicyRule{Verbs: writing, APIGroups: []string{rbacGroup}, Resources: []string{"roles", "rolebindings"}}),
	"edit":  rulesOfEdit,
}

var rulesOfEdit = []rbacv1.PolicyRule{
	{Verbs: []string{"impersonate"}, APIGroups: []string{""}, Resources: []string{"serviceaccounts"}},
	{Verbs: []string{"create"}, APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}},
}

// standard judges a grant of admin, edit or view. In its own namespaces view gives no more than the namespace has. To admin and edit, others
// add rights on kinds whose controllers can have every right.
func (j *judgement) standard(g *grant) {
	own, scopes := j.split(g)
	if rules := ofStandard[g.ref.Name]; len(own) > 0 && len(rules) > 0 {
		inside := *g
		inside.rules = rules
		j.judgePlace(&inside, inOwn, own)
		power := g.power(schema.PowerBorrowsRights, schema.ReachCluster, nil, own,
			fmt.Sprintf("have the rights that controllers add to the role %s, in %s", g.ref.Name, placeText(own)))
		power.Field = "roleRef"
		j.record(power)
	}
	if len(scopes) == 0 {
		return
	}
	system := slices.ContainsFunc(scopes, schema.IsSystemNamespace)
	name, reach, all := schema.PowerAllRights, schema.ReachNamespaces, everything
	if g.scopes["*"] || system {
		reach = schema.ReachCluster
	}
	if g.ref.Name == "view" {
		name, reach, all.Verbs = schema.PowerReadOthers, schema.ReachNamespaces, reading
	}
	power := g.power(name, reach, []rbacv1.PolicyRule{all}, scopes, can(name, nil, scopes))
	power.Field = "roleRef"
	j.record(power)
}

// forOthers adds the power of a grant to a subject outside of the Solution: a user, a group or an account of another namespace.
func (j *judgement) forOthers(g *grant) {
	scopes := slices.Sorted(maps.Keys(g.scopes))
	power := g.power(schema.PowerRightsForPeople, schema.ReachPeople, g.rules, scopes,
		fmt.Sprintf("give the role %s to %s in %s", g.ref.Name, describeSubject(g.subject), placeText(scopes)))
	j.record(power)
}

// describeSubject describes a subject whose name does not explain it.
func describeSubject(s rbacv1.Subject) string {
	text := subjectText(s)
	if s.Kind == rbacv1.ServiceAccountKind {
		return text
	}
	switch s.Name {
	case "system:anonymous", "system:unauthenticated":
		return text + " (everybody who reaches the API server)"
	case "system:authenticated":
		return text + " (every user and every pod)"
	case "system:serviceaccounts":
		return text + " (every pod)"
	case "system:masters":
		return text + " (administrators)"
	}
	return text
}

// sources are where a role with an aggregationRule gets rules from.
type sources struct {
	roles    []*role         // among the objects
	standard bool            // roles that every cluster has
	others   map[string]bool // selectors of roles that the archive does not bring
}

// findSources finds where a role gets rules from directly.
func (j *judgement) findSources(r *role, roles map[string]*role) {
	var whole rbacv1.ClusterRole
	o := r.Object
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &whole); err != nil || whole.AggregationRule == nil {
		return
	}
	r.sources.others = map[string]bool{}
	for i := range whole.AggregationRule.ClusterRoleSelectors {
		selector, err := metav1.LabelSelectorAsSelector(&whole.AggregationRule.ClusterRoleSelectors[i])
		if err != nil {
			continue // the API server refuses it
		}
		switch {
		case selectsStandard(selector): // cluster-admin, or the parts of admin, edit and view
			r.sources.standard = true
		case !j.selectsOwn(selector):
			r.sources.others[selector.String()] = true
		}
		if !j.spend(refOf(o), len(roles)) {
			return
		}
		for _, key := range slices.Sorted(maps.Keys(roles)) {
			if source := roles[key]; source.GetKind() == "ClusterRole" && selector.Matches(labels.Set(source.GetLabels())) {
				r.sources.roles = append(r.sources.roles, source)
			}
		}
	}
}

// aggregate collects the rules of a role, and of those that it gets rules from: the cluster copies them again and again, until
// the rules of the last one have arrived.
func (j *judgement) aggregate(r *role) {
	if !r.Aggregated {
		r.all = r.Rules
		return
	}
	others := map[string]bool{}
	seen := map[*role]bool{r: true}
	for next := []*role{r}; len(next) > 0; {
		source := next[0]
		next = next[1:]
		if !j.spend(refOf(r.Object), len(source.Rules)+len(source.sources.roles)) {
			return
		}
		r.err = cmp.Or(r.err, source.err)
		r.all = append(r.all, source.Rules...)
		if source.sources.standard {
			r.all = append(r.all, everything)
		}
		maps.Copy(others, source.sources.others)
		for _, further := range source.sources.roles {
			if !seen[further] {
				seen[further] = true
				next = append(next, further)
			}
		}
	}
	r.selectors = shortened(strings.Join(slices.Sorted(maps.Keys(others)), " or "), "of selectors with SHA-256 ")
}

// bootstrapping is a label of all roles that every cluster has, such as cluster-admin.
const bootstrapping = "kubernetes.io/bootstrapping"

const aggregateTo = rbacGroup + "/aggregate-to-"

// selectsStandard reports whether a selector is about roles that every cluster has: by their labels, or because it asks for none.
func selectsStandard(selector labels.Selector) bool {
	requirements, _ := selector.Requirements()
	asked := slices.DeleteFunc(slices.Clone(requirements), func(r labels.Requirement) bool {
		return r.Operator() == selection.NotIn || r.Operator() == selection.NotEquals || r.Operator() == selection.DoesNotExist
	})
	return len(asked) == 0 || slices.ContainsFunc(requirements, func(r labels.Requirement) bool {
		return r.Key() == bootstrapping || strings.HasPrefix(r.Key(), aggregateTo)
	})
}

// selectsOwn reports whether a selector asks for a label below one of the Solution's groups. Other roles of the Solution that have it
// have a power themselves, see [judgement.extends].
func (j *judgement) selectsOwn(selector labels.Selector) bool {
	requirements, _ := selector.Requirements()
	return slices.ContainsFunc(requirements, func(r labels.Requirement) bool {
		if !isOfVendor(r.Key()) {
			return false
		}
		domain, _, _ := strings.Cut(r.Key(), "/")
		for range strings.Count(domain, ".") {
			if j.groups[domain] && (r.Operator() == selection.In || r.Operator() == selection.Equals || r.Operator() == selection.Exists) {
				return true
			}
			_, domain, _ = strings.Cut(domain, ".")
		}
		return false
	})
}

// collected adds the power of a grant to get the rules of roles that the archive does not bring.
func (j *judgement) collected(g *grant) {
	if g.role.selectors == "" {
		return
	}
	scopes := slices.Sorted(maps.Keys(g.scopes))
	power := g.power(schema.PowerBorrowsRights, schema.ReachCluster, nil, append(scopes, "roles labelled "+g.role.selectors),
		fmt.Sprintf("have the rights of every role that others label so, in %s (%s)", placeText(scopes), g.role.selectors))
	power.Field = "aggregationRule"
	j.record(power)
}

// standardRoles are names, or the starts of names, of roles and bindings that every cluster has.
var standardRoles = slices.Concat(reviewers, []string{
	"cluster-admin", "admin", "edit", "view", "system:node", "system:kube-", "system:controller:", "system:certificates.k8s.io:",
	"system:service-account-issuer-discovery", "system:monitoring", "system:volume-scheduler", "system:aggregate-to-",
})

// replaces judges whether an object would replace a role of every cluster, or who has it.
func (j *judgement) replaces(o Object) {
	name := o.GetName()
	if slices.ContainsFunc(standardRoles, func(standard string) bool {
		prefix := strings.HasSuffix(standard, ":") || strings.HasSuffix(standard, "-")
		return name == standard || prefix && strings.HasPrefix(name, standard)
	}) && o.GetNamespace() == "" {
		j.place(o, "metadata.name").add(schema.PowerChangeRights, schema.ReachCluster, "replace "+o.GetKind()+" "+name+", which every cluster has", name)
	}
}

// extends judges a role whose rules become part of others: of admin, edit and view, or of those that select it by a label of their own.
// The latter can be in another part of the Solution, or in another Solution, whose roles were judged without this one.
func (j *judgement) extends(r *role) {
	if r.GetKind() != "ClusterRole" {
		return
	}
	var standard, others []string
	for label, value := range r.GetLabels() {
		if role, ok := strings.CutPrefix(label, aggregateTo); ok {
			if value == "true" && isStandard(role) {
				standard = append(standard, role)
			}
		} else if isOfVendor(label) {
			others = append(others, label)
		}
	}
	slices.Sort(standard)
	slices.Sort(others)
	if len(standard) > 0 {
		j.extend(r, schema.PowerExtendsRoles, schema.ReachPeople, standard, "add rights to the roles of every cluster for people")
	}
	if len(others) > 0 {
		j.extend(r, schema.PowerChangeRights, schema.ReachCluster, others, "add rights to roles that get those of roles with its labels")
	}
}

// isOfVendor reports whether a label is neither one of Kubernetes nor one that tools put on all that they deploy. No role counts as one's own
// because of these, see [judgement.selectsOwn].
func isOfVendor(label string) bool {
	domain, _, ok := strings.Cut(label, "/")
	return ok && !slices.ContainsFunc([]string{"helm.sh", "k8s.io", "kubernetes.io", "solutionctl.io"}, func(common string) bool {
		return domain == common || strings.HasSuffix(domain, "."+common)
	})
}

// extend adds the power to extend other roles with rules that are about more than the Solution.
func (j *judgement) extend(r *role, name schema.PowerName, reach schema.Reach, which []string, what string) {
	if r.err != nil {
		j.unreadable(r.Object, r.err)
		return
	}
	all := r.all
	if r.selectors != "" {
		all = append(slices.Clip(all), everything)
	}
	var rules []rbacv1.PolicyRule
	var at []int
	for i, rule := range all {
		foreign := slices.ContainsFunc(rule.APIGroups, func(group string) bool {
			return !j.ownsAll(group) && slices.ContainsFunc(rule.Resources, func(resource string) bool { return !j.ownsResource(group, resource) })
		})
		if foreign || len(rule.NonResourceURLs) > 0 {
			rules, at = append(rules, rule), append(at, i)
		}
	}
	if len(rules) == 0 {
		return
	}
	g := &grant{role: r, ref: refOf(r.Object), file: r.File}
	power := g.power(name, reach, rules, which, fmt.Sprintf("%s (%s)", what, shortened(strings.Join(which, ", "), "of labels with SHA-256 ")))
	power.Subject, power.Field = "", ruleNumbers(g, at)
	j.record(power)
}

func isStandard(role string) bool {
	return slices.Contains([]string{"admin", "edit", "view", "cluster-reader", "cluster-admin"}, role)
}

// unreadable adds the power of an object that cannot be judged.
func (j *judgement) unreadable(o Object, err error) {
	j.place(o, "").refuse(schema.PowerAllRights, schema.ReachCluster, "do what cannot be judged: "+err.Error())
}

// nested reads a list of objects in an object.
func nested(object map[string]any, path ...string) []map[string]any {
	value, _, _ := unstructured.NestedFieldNoCopy(object, path...)
	return listOf(value)
}

func listOf(value any) []map[string]any {
	entries, _ := value.([]any)
	var list []map[string]any
	for _, entry := range entries {
		if m, ok := entry.(map[string]any); ok {
			list = append(list, m)
		}
	}
	return list
}
