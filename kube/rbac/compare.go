package rbac

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/component-helpers/auth/rbac/validation"

	"github.com/solutionctl/solutionctl/schema/report"
)

// maxBreakdown bounds into how many single permissions rules are broken down.
const maxBreakdown = 100_000

// maxComparisons bounds how many single permissions are compared with how many entries of rules.
const maxComparisons = 20_000_000

// Widened returns the permissions of next that previous does not have, as few rules as possible, sorted.
func Widened(previous, next []rbacv1.PolicyRule) ([]rbacv1.PolicyRule, error) {
	return Missing(previous, next)
}

// Missing returns the part of need that is not in have, as few rules as possible, sorted: the rules to add to have.
func Missing(have, need []rbacv1.PolicyRule) ([]rbacv1.PolicyRule, error) {
	total, entries := 0, 0
	for _, rule := range have {
		entries += len(rule.APIGroups) + len(rule.Resources) + len(rule.Verbs) + len(rule.ResourceNames) + len(rule.NonResourceURLs)
	}
	for _, rule := range need {
		total += permissions(rule)
		if total > maxBreakdown || total*entries > maxComparisons {
			return nil, report.Errorf(report.Invalid, "the rules name more permissions than can be compared").
				WithHint("use fewer groups, resources and verbs in one rule")
		}
	}
	_, missing := validation.Covers(have, need)
	return compact(missing), nil
}

// permissions is into how many parts a rule breaks, without overflow.
func permissions(rule rbacv1.PolicyRule) int {
	total := 1
	for _, n := range []int{len(rule.APIGroups), len(rule.Resources), len(rule.Verbs), max(1, len(rule.ResourceNames))} {
		if total *= min(n, maxBreakdown+1); total > maxBreakdown {
			return maxBreakdown + 1
		}
	}
	return total + min(len(rule.NonResourceURLs), maxBreakdown)*min(len(rule.Verbs), maxBreakdown)
}

// compact joins single permissions: first the verbs of one resource, then resources with the same verbs.
func compact(single []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	verbs := map[string][]string{} // what → verbs
	kept := map[string]rbacv1.PolicyRule{}
	for _, rule := range single {
		key := identity(rule)
		kept[key] = rule
		verbs[key] = append(verbs[key], rule.Verbs...)
	}
	joined := map[string]*rbacv1.PolicyRule{}
	for _, key := range slices.Sorted(maps.Keys(kept)) {
		rule := kept[key]
		rule.Verbs = sorted(verbs[key])
		if contains(rule.Verbs, "*") {
			rule.Verbs = []string{"*"}
		}
		group := strings.Join(slices.Concat(rule.APIGroups, []string{"\x00"}, rule.ResourceNames, []string{"\x00"}, rule.Verbs), "\x01")
		if first, ok := joined[group]; ok {
			first.Resources = append(first.Resources, rule.Resources...)
			first.NonResourceURLs = append(first.NonResourceURLs, rule.NonResourceURLs...)
			continue
		}
		joined[group] = &rule
	}
	rules := make([]rbacv1.PolicyRule, 0, len(joined))
	for _, rule := range joined {
		rule.Resources, rule.NonResourceURLs = sorted(rule.Resources), sorted(rule.NonResourceURLs)
		rules = append(rules, *rule)
	}
	slices.SortFunc(rules, func(a, b rbacv1.PolicyRule) int { return cmp.Compare(identity(a), identity(b)) })
	return rules
}

// identity returns the groups, resources and names of a rule, without its verbs.
func identity(rule rbacv1.PolicyRule) string {
	return strings.Join(slices.Concat(rule.APIGroups, []string{"\x00"}, rule.Resources, []string{"\x00"},
		rule.ResourceNames, []string{"\x00"}, rule.NonResourceURLs), "\x01")
}

func sorted(list []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(list)))
}
