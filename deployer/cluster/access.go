package cluster

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/schema/report"
)

// onceUser holds the user as whom the API server knows us, asked for once with each token.
type onceUser struct {
	mu    sync.Mutex
	token string // of whom this is known
	known bool
	name  string
	asked bool // whether the user may do all
	all   bool
}

// with discards what is known of the previous token's user: a token may also be replaced because the groups of the same user
// changed. The caller holds the mutex.
func (u *onceUser) with(token string) {
	if u.token != token {
		u.token, u.known, u.name, u.asked, u.all = token, false, "", false, false
	}
}

// errNoToken marks the error of a request that was not sent because it has no token.
var errNoToken = errors.New("there is no token")

// token returns the bearer token of a request, "" for the credentials of the kubeconfig. It returns the errors of [Options.Token] and
// [Options.Admit] as they are.
func (c *Cluster) token(ctx context.Context) (token string, err error) {
	if c.options.Admit != nil {
		err = c.options.Admit(ctx)
	}
	if c.options.Token != nil && err == nil {
		token, err = c.options.Token(ctx)
		if err == nil && (token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' })) {
			err = errors.New("it is empty or has characters that no token has") // not which: it may be most of one
		}
	}
	if err == nil {
		return token, nil
	}
	known, ok := errors.AsType[*report.Error](err)
	if !ok {
		known = report.As(report.Unauthenticated, err).WithHint("log in again")
	}
	return "", &report.Error{Code: known.Code, Err: &failure{text: "no token for the API server: " + err.Error(), kind: errNoToken, err: known}}
}

// User returns the name by which the server knows the user, for records of who did what. When the server does not report
// one, it is the name in the kubeconfig.
func (c *Cluster) User(ctx context.Context) string {
	token, err := c.token(ctx)
	c.user.mu.Lock()
	defer c.user.mu.Unlock()
	c.user.with(token)
	if c.user.known && err == nil {
		return c.user.name
	}
	name, err := c.WhoAmI(ctx)
	if err != nil || name == "" {
		return cmp.Or(c.options.As, c.source.user)
	}
	c.user.known, c.user.name = true, name
	return name
}

// WhoAmI asks the server by which name it knows the user. The error has the code Unauthenticated when it knows none.
func (c *Cluster) WhoAmI(ctx context.Context) (string, error) {
	review := authentication.SelfSubjectReview{TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "SelfSubjectReview"}}
	err := c.ask(ctx, "authentication.k8s.io", "selfsubjectreviews", &review)
	return review.Status.UserInfo.Username, err
}

// Permission is one action that RBAC allows or denies a user.
type Permission struct {
	Verb        string // get, list, watch, create, patch, update, delete, …
	Group       string // API group; "" is the core group
	Resource    string // plural: "deployments"
	Subresource string
	Namespace   string // "" asks for every namespace, or is that of a resource without namespaces
	Name        string // "" asks for every object
	// One is the object that is asked for, where permission for that object is enough. If it is missing, the permission for every
	// object is reported, since rules are rarely written for single objects.
	One string
}

// Each is the permission once for each of these verbs.
func (p Permission) Each(verbs ...string) []Permission {
	list := make([]Permission, len(verbs))
	for i, verb := range verbs {
		p.Verb = verb
		list[i] = p
	}
	return list
}

// Missing returns those of the permissions that the user does not have, each once. A user who may do everything, or an
// action in every namespace or on every object, is not checked for each part of it.
func (c *Cluster) Missing(ctx context.Context, wanted ...Permission) ([]Permission, error) {
	if len(wanted) == 0 {
		return nil, nil
	}
	if everything, err := c.mayDoAll(ctx); err != nil || everything {
		return nil, err
	}
	wanted = c.withoutGranted(ctx, wanted)
	single := map[Permission][]Permission{} // those on one object, by that on all of them
	var general []Permission
	for _, p := range wanted {
		all := p
		all.One = ""
		if _, known := single[all]; !known {
			general, single[all] = append(general, all), nil
		}
		if p.One == "" {
			p = all
		} else {
			p.Name, p.One = p.One, ""
		}
		if !slices.Contains(single[all], p) {
			single[all] = append(single[all], p)
		}
	}
	missing, err := c.missing(ctx, general)
	if err != nil {
		return nil, err
	}
	var refused []Permission
	for _, all := range missing {
		lacks := slices.Contains(single[all], all)
		if !lacks {
			granted, err := c.allowed(ctx, single[all])
			if err != nil {
				return nil, err
			}
			lacks = slices.Contains(granted, false)
		}
		if lacks {
			refused = append(refused, all)
		}
	}
	return refused, nil
}

// severalHere is the number of permissions in a namespace from which on its rules are read instead of asking for each.
const severalHere = 3

// withoutGranted leaves out the permissions that the rules of their namespace grant, with one question for each of a few namespaces. The others
// have to be asked for: rules that an API server cannot list completely prove nothing, and those of a namespace nothing about the cluster.
func (c *Cluster) withoutGranted(ctx context.Context, wanted []Permission) []Permission {
	here := map[string]int{}
	for _, p := range wanted {
		here[p.Namespace]++
	}
	delete(here, "")
	maps.DeleteFunc(here, func(_ string, n int) bool { return n < severalHere })
	if len(here) > manyPlaces {
		return wanted
	}
	namespaces := slices.Collect(maps.Keys(here))
	granted := make([][]authorization.ResourceRule, len(namespaces))
	_ = All(len(namespaces), func(i int) error {
		if rules, complete, _ := c.rulesIn(ctx, namespaces[i]); complete { // an error is met again by the questions
			granted[i] = rules
		}
		return nil
	})
	rules := map[string][]authorization.ResourceRule{}
	for i, namespace := range namespaces {
		rules[namespace] = granted[i]
	}
	return slices.DeleteFunc(slices.Clone(wanted), func(p Permission) bool {
		return slices.ContainsFunc(rules[p.Namespace], p.grantedBy)
	})
}

// grantedBy reports whether a rule grants a permission, as the API server reads it.
func (p Permission) grantedBy(rule authorization.ResourceRule) bool {
	has := func(list []string, names ...string) bool {
		return slices.ContainsFunc(list, func(entry string) bool { return entry == "*" || slices.Contains(names, entry) })
	}
	resources := []string{p.Resource}
	if p.Subresource != "" {
		resources = []string{p.Resource + "/" + p.Subresource, "*/" + p.Subresource}
	}
	name := cmp.Or(p.One, p.Name)
	return has(rule.Verbs, p.Verb) && has(rule.APIGroups, p.Group) && has(rule.Resources, resources...) &&
		(len(rule.ResourceNames) == 0 || name != "" && slices.Contains(rule.ResourceNames, name))
}

// rulesIn lists the rules of the user in a namespace, with those that hold in every namespace, and reports whether the API server can list all of
// them: not those of a webhook.
func (c *Cluster) rulesIn(ctx context.Context, namespace string) (rules []authorization.ResourceRule, complete bool, err error) {
	review := authorization.SelfSubjectRulesReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectRulesReview"},
		Spec:     authorization.SelfSubjectRulesReviewSpec{Namespace: namespace},
	}
	err = c.ask(ctx, "authorization.k8s.io", "selfsubjectrulesreviews", &review)
	return review.Status.ResourceRules, err == nil && !review.Status.Incomplete, err
}

// missing returns those of distinct permissions that the user does not have.
func (c *Cluster) missing(ctx context.Context, wanted []Permission) ([]Permission, error) {
	places := map[Permission]int{}
	for _, p := range wanted {
		places[everywhere(p)]++
	}
	var general []Permission
	for p, n := range places {
		if n > manyPlaces {
			general = append(general, p)
		}
	}
	granted, err := c.allowed(ctx, general)
	if err != nil {
		return nil, err
	}
	have := map[Permission]bool{}
	for i, p := range general {
		have[p] = granted[i]
	}
	wanted = slices.DeleteFunc(slices.Clone(wanted), func(p Permission) bool { return have[everywhere(p)] })
	if granted, err = c.allowed(ctx, wanted); err != nil {
		return nil, err
	}
	var missing []Permission
	for i, p := range wanted {
		if !granted[i] {
			missing = append(missing, p)
		}
	}
	return missing, nil
}

// mayDoAll reports whether a rule lets the user do everything, as administrators may. It is asked once.
func (c *Cluster) mayDoAll(ctx context.Context) (bool, error) {
	token, err := c.token(ctx)
	if err != nil {
		return false, c.translate(ctx, request{about: aboutUser}, err)
	}
	c.user.mu.Lock()
	defer c.user.mu.Unlock()
	c.user.with(token)
	if !c.user.asked {
		c.user.all, err = c.MayDoAll(ctx)
		c.user.asked = err == nil
	}
	return c.user.all, err
}

// MayDoAll asks, each time, whether a rule lets the user do everything.
func (c *Cluster) MayDoAll(ctx context.Context) (bool, error) {
	answers, err := c.allowed(ctx, []Permission{doAll})
	return answers[0], err
}

// doAll is the permission of administrators.
var doAll = Permission{Verb: "*", Group: "*", Resource: "*"} //nolint:gochecknoglobals // a constant

// PermissionsIn returns a digest of what the user is allowed to do in a namespace, with the permissions that hold in every namespace. It
// is "" where the API server cannot list them, such as those that a webhook grants.
func (c *Cluster) PermissionsIn(ctx context.Context, namespace string) (string, error) {
	granted, complete, err := c.rulesIn(ctx, namespace)
	if err != nil || !complete {
		return "", err
	}
	rules := make([]string, len(granted))
	for i, rule := range granted {
		rules[i] = rule.String()
	}
	slices.Sort(rules) // the API server lists them in any order
	digest := sha256.Sum256([]byte(strings.Join(rules, "\n")))
	return hex.EncodeToString(digest[:]), nil
}

// manyPlaces is in how many namespaces the same permission is asked for one by one.
const manyPlaces = 3

// everywhere is the same permission in every namespace.
func everywhere(p Permission) Permission {
	p.Namespace = ""
	return p
}

// allowed reports for each of the permissions whether the user has it.
func (c *Cluster) allowed(ctx context.Context, wanted []Permission) ([]bool, error) {
	answers := make([]bool, len(wanted))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for i, p := range wanted {
		group.Go(func() error {
			review := authorization.SelfSubjectAccessReview{
				TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectAccessReview"},
				Spec:     authorization.SelfSubjectAccessReviewSpec{ResourceAttributes: p.attributes()},
			}
			err := c.ask(ctx, "authorization.k8s.io", "selfsubjectaccessreviews", &review)
			answers[i] = review.Status.Allowed
			return err
		})
	}
	return answers, group.Wait()
}

// AccountMay reports whether a ServiceAccount has a permission. The caller needs permission to create SubjectAccessReviews.
func (c *Cluster) AccountMay(ctx context.Context, namespace, account string, p Permission) (bool, error) {
	review := authorization.SubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SubjectAccessReview"},
		Spec: authorization.SubjectAccessReviewSpec{
			User:               "system:serviceaccount:" + namespace + ":" + account,
			Groups:             []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
			ResourceAttributes: p.attributes(),
		},
	}
	err := c.ask(ctx, "authorization.k8s.io", "subjectaccessreviews", &review)
	return review.Status.Allowed, err
}

// attributes is the permission as the API server asks for it.
func (p Permission) attributes() *authorization.ResourceAttributes {
	return &authorization.ResourceAttributes{
		Verb: p.Verb, Group: p.Group, Version: "*", Resource: p.Resource, Subresource: p.Subresource, Namespace: p.Namespace, Name: p.Name,
	}
}

const aboutUser = "ask what the user may do"

// ask sends a review, which is a question in the shape of an object that is created, and reads the answer into it.
func (c *Cluster) ask(ctx context.Context, group, resource string, review any) error {
	question, err := json.Marshal(review)
	if err != nil {
		return err
	}
	answer, _, err := c.do(ctx, request{
		verb: "create", method: http.MethodPost, path: "/apis/" + group + "/v1/" + resource, body: question, about: aboutUser,
	})
	if err != nil {
		return err
	}
	return json.Unmarshal(answer, review)
}

// Rules writes permissions as the rules of a Role or ClusterRole, as YAML: what an administrator adds to grant them.
// Verbs of one resource are one rule; the order is that of the permissions.
func Rules(permissions ...Permission) string {
	type target struct{ group, resource, name string }
	var order []target
	verbs := map[target][]string{}
	for _, p := range permissions {
		t := target{p.Group, p.Resource, p.Name}
		if p.Subresource != "" {
			t.resource += "/" + p.Subresource
		}
		if verbs[t] == nil {
			order = append(order, t)
		}
		if !slices.Contains(verbs[t], p.Verb) {
			verbs[t] = append(verbs[t], p.Verb)
		}
	}
	var rules strings.Builder
	for _, t := range order {
		fmt.Fprintf(&rules, "- apiGroups: [%q]\n  resources: [%q]\n", t.group, t.resource)
		if t.name != "" {
			fmt.Fprintf(&rules, "  resourceNames: [%q]\n", t.name)
		}
		fmt.Fprintf(&rules, "  verbs: [%s]\n", quoted(verbs[t]))
	}
	return strings.TrimSuffix(rules.String(), "\n")
}

// PolicyRules are rules of a Role or ClusterRole with the verbs of permissions, sorted; what is permitted by name stays apart from what
// is permitted of all objects, unless that is more.
func PolicyRules(permissions []Permission) []rbacv1.PolicyRule {
	all := map[Permission]bool{}
	for _, p := range permissions {
		p.Namespace, p.One = "", ""
		all[p] = true
	}
	verbs := map[Permission][]string{}
	for p := range all {
		general := p
		general.Name = ""
		if p.Name != "" && all[general] {
			continue
		}
		target := p
		target.Verb = ""
		verbs[target] = append(verbs[target], p.Verb)
	}
	targets := slices.SortedFunc(maps.Keys(verbs), func(a, b Permission) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Subresource, b.Subresource), cmp.Compare(a.Name, b.Name))
	})
	var rules []rbacv1.PolicyRule
	for _, t := range targets {
		rule := rbacv1.PolicyRule{APIGroups: []string{t.Group}, Resources: []string{t.Resource}, Verbs: slices.Sorted(slices.Values(verbs[t]))}
		if t.Subresource != "" {
			rule.Resources[0] += "/" + t.Subresource
		}
		if t.Name != "" {
			rule.ResourceNames = []string{t.Name}
		}
		rules = append(rules, rule)
	}
	return rules
}

// RulesByPlace writes permissions as the rules of one role for each namespace.
func RulesByPlace(permissions ...Permission) string {
	places := map[string][]Permission{}
	for _, p := range permissions {
		place := "in every namespace"
		if p.Namespace != "" {
			place = "in namespace " + p.Namespace
		}
		places[place] = append(places[place], p)
	}
	var texts []string
	for _, place := range slices.Sorted(maps.Keys(places)) {
		texts = append(texts, place+":\n"+Rules(places[place]...))
	}
	return strings.Join(texts, "\n")
}

func quoted(words []string) string {
	quotes := make([]string, len(words))
	for i, word := range words {
		quotes[i] = fmt.Sprintf("%q", word)
	}
	return strings.Join(quotes, ", ")
}

// PermissionsOn are permissions on the objects of a kind in a namespace.
func (c *Cluster) PermissionsOn(ctx context.Context, kind schema.GroupVersionKind, namespace string, verbs ...string) ([]Permission, error) {
	mapping, err := c.Mapping(ctx, kind)
	if err != nil {
		return nil, err
	}
	resource := mapping.Resource
	return Permission{Group: resource.Group, Resource: resource.Resource, Namespace: namespace}.Each(verbs...), nil
}

// Only limits permissions to the object with a name, for verbs that RBAC can limit to a name.
func Only(name string, permissions []Permission) []Permission {
	for i, p := range permissions {
		if slices.Contains([]string{"get", "patch", "update", "delete"}, p.Verb) && p.Name == "" {
			permissions[i].One = name
		}
	}
	return permissions
}

// Require fails with the rules that the user lacks.
func (c *Cluster) Require(ctx context.Context, wanted []Permission) error {
	missing, err := c.Missing(ctx, wanted...)
	if err != nil || len(missing) == 0 {
		return err
	}
	user := c.User(ctx)
	if user == "" {
		user = "the user"
	}
	return report.Errorf(report.Forbidden, "%s has no permission to do this; nothing was changed", user).
		WithHint("missing %s", RulesByPlace(missing...))
}
