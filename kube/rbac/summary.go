package rbac

import (
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Summary renders a rule as one line, for messages.
func Summary(rule rbacv1.PolicyRule) string {
	if len(rule.NonResourceURLs) > 0 {
		return fmt.Sprintf("%s on %s", strings.Join(rule.Verbs, ", "), strings.Join(rule.NonResourceURLs, ", "))
	}
	resources := make([]string, 0, len(rule.Resources))
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			if group != "" {
				resource += "." + group
			}
			resources = append(resources, resource)
		}
	}
	text := fmt.Sprintf("%s on %s", strings.Join(rule.Verbs, ", "), strings.Join(resources, ", "))
	if len(rule.ResourceNames) > 0 {
		text += " named " + strings.Join(rule.ResourceNames, ", ")
	}
	return text
}
