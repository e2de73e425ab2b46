package render

import (
	"slices"

	"github.com/solutionctl/solutionctl/kube/promql"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// isClusterRule reports whether an archive requests one copy of a rule for the whole cluster.
func isClusterRule(o object) bool {
	return o.is(monitoringGroup, "PrometheusRule") && o.GetAnnotations()[schema.AnnotationScope] == string(schema.ScopeCluster)
}

// scopeRules makes the rules of an environment judge this environment only, and say which one it is. A Prometheus that
// enforces the namespace of rules finds nothing to change, and one that does not cannot mix up environments.
func (r *renderer) scopeRules(o object) error {
	switch {
	case !o.is(monitoringGroup, "PrometheusRule"):
		return nil
	case isClusterRule(o):
		r.labelClusterRules(o)
		return nil
	}
	spec, _ := o.Object["spec"].(map[string]any)
	for i, group := range listOf(spec["groups"]) {
		for j, rule := range listOf(group["rules"]) {
			text, ok := rule["expr"].(string)
			if !ok {
				continue // a number, or nothing: the API server judges that
			}
			expression, err := promql.Parse(text)
			if err != nil {
				return o.refuse(report.Invalid, []string{"spec", "groups", index(i), "rules", index(j), "expr"}, "the expression is not PromQL: %w", err).
					WithHint("check the archive with: %s", report.Run("lint"))
			}
			rule["expr"] = expression.In(r.s.Namespace)
			r.labelRule(rule, expression)
		}
	}
	return nil
}

// labelRule adds the labels that separate the series and alerts of environments, whatever labels an expression leaves;
// labels of the archive stay. If an expression selects namespaces itself, its results can be from any of them.
func (r *renderer) labelRule(rule map[string]any, expression *promql.Expression) {
	if !slices.ContainsFunc(expression.Selectors(), func(s promql.Selector) bool { return s.Matches(promql.Namespace) }) {
		addLabel(rule, promql.Namespace, r.s.Namespace)
	}
	if rule["alert"] != nil {
		addLabel(rule, "solution", r.name)
		addLabel(rule, "environment", r.environmentName())
	}
}

// labelClusterRules adds the name of the Solution to its alerts about the cluster. Nothing else in such rules is checked or changed.
func (r *renderer) labelClusterRules(o object) {
	spec, _ := o.Object["spec"].(map[string]any)
	for _, group := range listOf(spec["groups"]) {
		for _, rule := range listOf(group["rules"]) {
			if rule["alert"] != nil {
				addLabel(rule, "solution", r.name)
			}
		}
	}
}

// addLabel sets a label of a rule unless it exists. Invalid labels are left for the API server to refuse.
func addLabel(rule map[string]any, name, value string) {
	labels, ok := rule["labels"].(map[string]any)
	if !ok && rule["labels"] == nil {
		labels, ok = map[string]any{}, true
		rule["labels"] = labels
	}
	if _, given := labels[name]; ok && !given {
		labels[name] = value
	}
}
