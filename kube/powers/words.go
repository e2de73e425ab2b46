package powers

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/solutionctl/solutionctl/schema"
)

// phrases say what rights let their holder do. Where a phrase has no place, one that is not the whole cluster follows it.
var phrases = map[schema.PowerName]string{
	schema.PowerAllRights:           "do everything in %s",
	schema.PowerChangeRights:        "change who may do what in %s",
	schema.PowerActAsOthers:         "act as other users and accounts",
	schema.PowerReadSecrets:         "read every Secret of %s",
	schema.PowerRunPodsElsewhere:    "run pods, or commands in pods, as any account of %s",
	schema.PowerControlNodes:        "control nodes and what runs on them",
	schema.PowerIssueIdentities:     "change whom the cluster trusts",
	schema.PowerInterceptRequests:   "see and change every request, by webhooks, CRDs or API services",
	schema.PowerMarkNamespaces:      "change labels of namespaces, such as their Pod Security level",
	schema.PowerRawStorage:          "mount any path of a node",
	schema.PowerRedirectTraffic:     "redirect traffic of others",
	schema.PowerStarveOrPreempt:     "change priorities and quotas of others",
	schema.PowerDeleteOthers:        "delete objects of others",
	schema.PowerReadOthers:          "read objects of others",
	schema.PowerChangeOthers:        "change objects of others",
	schema.PowerInstructsController: "instruct controllers that have rights of their own",
	schema.PowerPodOnNode:           "run privileged pods",
}

// phrasesOfOne describe rights on a single resource whose effect is not obvious.
var phrasesOfOne = map[schema.PowerName]struct{ resource, phrase string }{
	schema.PowerActAsOthers:     {"secrets", "get the token of any account, by writing Secrets"},
	schema.PowerIssueIdentities: {"configmaps", "change ConfigMaps that the cluster relies on, such as coredns, cluster-info or aws-auth"},
}

// can describes the effect of rules, as in "read every Secret of the cluster".
func can(name schema.PowerName, rules []rbacv1.PolicyRule, scopes []string) string {
	text := phrases[name]
	if names := resourceNames(rules); name == schema.PowerReadSecrets && len(names) > 0 {
		text = "read the Secrets named " + enumerate(names) + " of %s"
	}
	resources := resourcesOf(rules)
	if only, ok := phrasesOfOne[name]; ok && slices.Equal(resources, []string{only.resource}) {
		text, resources = only.phrase, nil
	}
	switch {
	case strings.HasSuffix(text, "%s"):
		text = strings.TrimSuffix(text, "%s") + placeText(scopes)
	case !slices.Contains(scopes, "*"):
		text += " in " + placeText(scopes)
	}
	switch name {
	case schema.PowerAllRights, schema.PowerReadSecrets, schema.PowerMarkNamespaces:
		return text
	}
	if len(resources) > 0 {
		text += " (" + enumerate(resources) + ")"
	}
	return text
}

// resourceNames are the names to which all rules are narrowed; nil where one is not.
func resourceNames(rules []rbacv1.PolicyRule) []string {
	var names []string
	for _, rule := range rules {
		if len(rule.ResourceNames) == 0 {
			return nil
		}
		names = append(names, rule.ResourceNames...)
	}
	return set(names)
}

// resourcesOf lists the resources of rules, sorted.
func resourcesOf(rules []rbacv1.PolicyRule) []string {
	var list []string
	for _, rule := range rules {
		list = append(list, rule.NonResourceURLs...)
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				if resource == "*" {
					resource = "everything"
					if group != "" && group != "*" {
						resource += " of " + group
					}
				}
				list = append(list, resource)
			}
		}
	}
	return set(list)
}

// enumerate joins words; of many it gives the first ones and a count.
func enumerate(words []string) string {
	const most = 6
	if len(words) > most+1 {
		return fmt.Sprintf("%s and %d more", strings.Join(words[:most], ", "), len(words)-most)
	}
	return strings.Join(words, ", ")
}

// placeText describes namespaces; * stands for the cluster.
func placeText(scopes []string) string {
	switch {
	case slices.Contains(scopes, "*"):
		return "the cluster"
	case len(scopes) == 1:
		return "namespace " + scopes[0]
	}
	return "namespaces " + enumerate(scopes)
}
