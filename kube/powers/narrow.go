package powers

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/solutionctl/solutionctl/schema"
)

// where is the place in which rules are granted.
type where int

const (
	inCluster where = iota // in all namespaces and outside them
	inOthers               // in namespaces that are not its own
	inOwn                  // in its own namespaces
)

// allVerbs are the verbs of a wildcard on resources without verbs of their own.
var allVerbs = slices.Concat(reading, writing, erasing)

// narrow returns the part of a rule that the right is about; false when there is none.
func (r right) narrow(rule rbacv1.PolicyRule) (rbacv1.PolicyRule, bool) {
	if !contains(rule.APIGroups, r.group) && !contains(rule.APIGroups, "*") {
		return rule, false
	}
	part := rbacv1.PolicyRule{APIGroups: []string{r.group}, ResourceNames: rule.ResourceNames}
	for _, resource := range rule.Resources {
		if r.hasResource(resource) {
			part.Resources = append(part.Resources, resource)
		}
	}
	for _, resource := range r.resources {
		if !contains(part.Resources, resource) && coversResource(rule.Resources, resource) {
			part.Resources = append(part.Resources, resource)
		}
	}
	switch {
	case r.verbs == nil:
		part.Verbs = rule.Verbs
	case contains(rule.Verbs, "*"):
		part.Verbs = r.verbs
	default:
		part.Verbs = slices.DeleteFunc(slices.Clone(r.verbs), func(verb string) bool { return !permitsVerb(rule.Verbs, verb) })
	}
	return part, len(part.Resources) > 0 && len(part.Verbs) > 0
}

// permitsVerb reports whether verbs permit one. Impersonation has further verbs, each for a part of it.
func permitsVerb(verbs []string, verb string) bool {
	return contains(verbs, verb) || verb == "impersonate" && slices.ContainsFunc(verbs, func(v string) bool { return strings.HasPrefix(v, "impersonate") })
}

// matches reports whether the right is about a permission.
func (r right) matches(group, resource, verb string) bool {
	if r.group != group || !r.hasResource(resource) {
		return false
	}
	return r.verbs == nil || contains(r.verbs, verb) || contains(r.verbs, "impersonate") && strings.HasPrefix(verb, "impersonate")
}

// hasResource reports whether the right is about a resource. A right on userextras/* is about every subresource of it.
func (r right) hasResource(resource string) bool {
	main, _, _ := strings.Cut(resource, "/")
	return contains(r.resources, resource) || contains(r.resources, "*") && main != "*" || contains(r.resources, main+"/*")
}

// reachIn is how far the right reaches in a place; "" where it is nothing special.
func (r right) reachIn(w where, rule rbacv1.PolicyRule, system bool) schema.Reach {
	reach := r.reach
	switch {
	case w != inCluster && r.wide, w == inOwn && r.own == "":
		return ""
	case w == inOwn:
		return r.own
	case w == inOthers && !system && (reach == schema.ReachCluster || reach == schema.ReachNode):
		return schema.ReachNamespaces
	case len(rule.ResourceNames) > 0 && r.named != "":
		return r.named
	}
	return reach
}

// coversResource follows the API server: "*" is every resource and subresource, "*/scale" one subresource of all.
func coversResource(have []string, resource string) bool {
	if contains(have, "*") || contains(have, resource) {
		return true
	}
	_, sub, found := strings.Cut(resource, "/")
	return found && contains(have, "*/"+sub)
}

func contains(list []string, entry string) bool { return slices.Contains(list, entry) }

// isEverything reports whether a rule permits every verb on every resource of groups with which that is all that matters: the
// core group has impersonation, that of RBAC has escalation.
func isEverything(rule rbacv1.PolicyRule) bool {
	if contains(rule.NonResourceURLs, "*") && contains(rule.Verbs, "*") {
		return true
	}
	core := contains(rule.APIGroups, "*") || contains(rule.APIGroups, "") || contains(rule.APIGroups, rbacGroup)
	return core && contains(rule.Resources, "*") && contains(rule.Verbs, "*") && len(rule.ResourceNames) == 0
}

// rest returns what of a rule has no name among the rights, by what it does to others.
func (j *judgement) rest(rule rbacv1.PolicyRule, w where, identities bool) map[schema.PowerName][]rbacv1.PolicyRule {
	found := map[schema.PowerName][]rbacv1.PolicyRule{}
	verbs := rule.Verbs
	if contains(verbs, "*") {
		verbs = allVerbs
	}
	for _, group := range rule.APIGroups {
		if j.ownsAll(group) {
			continue
		}
		for _, resource := range rule.Resources {
			if j.ownsResource(group, resource) {
				continue
			}
			for _, verb := range verbs {
				if identities && group == "" && resource == "configmaps" && contains(writing, verb) {
					continue // listed already
				}
				if name := classify(group, resource, verb, w); name != "" {
					found[name] = append(found[name], rbacv1.PolicyRule{
						APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{verb}, ResourceNames: rule.ResourceNames,
					})
				}
			}
		}
	}
	return found
}

// classify names a permission that is none of the rights; "" for one that is, and for one that is nothing special.
func classify(group, resource, verb string, w where) schema.PowerName {
	if harmless(group, resource, verb) || slices.ContainsFunc(rights, func(r right) bool { return r.matches(group, resource, verb) }) {
		return ""
	}
	foreign := group != "*" && !isBuiltIn(group) && (w != inOwn || !quiet(group, resource))
	switch {
	case w == inOwn && (!foreign || slices.Contains(slices.Concat(reading, erasing), verb)):
		return ""
	case slices.Contains(reading, verb):
		return schema.PowerReadOthers
	case slices.Contains(erasing, verb):
		return schema.PowerDeleteOthers
	case foreign:
		return schema.PowerInstructsController
	}
	return schema.PowerChangeOthers
}
