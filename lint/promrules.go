package lint

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/kube/promql"
	"github.com/solutionctl/solutionctl/lint/target"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/lazyregexp"
)

func checkPrometheusRules(_ context.Context, t *subject, r *reporter) {
	for _, o := range t.named(monitoringGroup, "PrometheusRule") {
		if scope := ruleScope(o); scope != schema.ScopeEnvironment && scope != schema.ScopeCluster {
			r.Report(o.At(`metadata.annotations["`+schema.AnnotationScope+`"]`), "write cluster, or leave the annotation out", "%q is not a scope", scope)
		}
		groups, ok := lookup(o.Value, "spec", "groups").([]any)
		if !ok {
			r.Report(o.At("spec"), "add spec.groups", "%s has no groups", o)
			continue
		}
		seen := map[string]bool{}
		for i, group := range groups {
			at := pathOf("spec.groups", i)
			name, _ := lookup(group, "name").(string)
			switch {
			case name == "":
				r.Report(o.At(at), "name the group", "the group has no name")
			case seen[name]:
				r.Report(o.At(at+".name"), "give it another name", "there are two groups with the name %s", name)
			}
			seen[name] = true
			reportDuration(r, o, at+".interval", lookup(group, "interval"))
			rules, _ := lookup(group, "rules").([]any)
			for j, rule := range rules {
				reportRule(r, o, pathOf(at+".rules", j), rule)
			}
		}
	}
}

func reportRule(r *reporter, o *target.Object, at string, rule any) {
	alert, _ := lookup(rule, "alert").(string)
	record, _ := lookup(rule, "record").(string)
	switch {
	case (alert == "") == (record == ""):
		r.Report(o.At(at), "keep one of alert and record", "a rule has either alert or record")
	case record != "" && !metricName.MatchString(record):
		r.Report(o.At(at+".record"), "use letters, digits, underscores and colons", "%s is not the name of a metric", record)
	}
	switch expression := lookup(rule, "expr").(type) {
	case string:
		if _, err := promql.Parse(expression); err != nil {
			r.Report(o.At(at+".expr"), "try the expression in Prometheus", "not PromQL: %v", err)
		}
	case nil, bool, map[string]any, []any:
		r.Report(o.At(at), "write expr", "the rule has no expression")
	}
	reportDuration(r, o, at+".for", lookup(rule, "for"))
	reportDuration(r, o, at+".keep_firing_for", lookup(rule, "keep_firing_for"))
}

// eachPrometheusRule calls see for every alert and every recording.
func (t *subject) eachPrometheusRule(see func(o *target.Object, at string, rule any)) {
	for _, o := range t.named(monitoringGroup, "PrometheusRule") {
		groups, _ := lookup(o.Value, "spec", "groups").([]any)
		for i, group := range groups {
			rules, _ := lookup(group, "rules").([]any)
			for j, rule := range rules {
				see(o, pathOf(pathOf("spec.groups", i)+".rules", j), rule)
			}
		}
	}
}

// checkAlerts requires the labels and annotations that people on call need.
func checkAlerts(_ context.Context, t *subject, r *reporter) {
	t.eachPrometheusRule(func(o *target.Object, at string, rule any) {
		alert, _ := lookup(rule, "alert").(string)
		if alert == "" {
			return
		}
		if severity, _ := lookup(rule, "labels", "severity").(string); severity == "" {
			r.Report(o.At(at), "add the label severity, such as warning or critical", "alert %s has no severity: it cannot be routed", alert)
		}
		summary, _ := lookup(rule, "annotations", "summary").(string)
		message, _ := lookup(rule, "annotations", "message").(string) // the form of older alerts
		if summary == "" && message == "" {
			r.Report(o.At(at), "add the annotation summary: a sentence about the fault", "alert %s has no summary", alert)
		}
	})
}

var (
	// everybodys matches metrics that a cluster has of everything that runs in it.
	everybodys = lazyregexp.New(`^(up|ALERTS|(apiserver|container|go|kube|kubelet|node|process|scrape)_[a-z0-9_]+)$`)
	// clusters matches metrics of nodes and of the cluster itself, whose series are in no namespace of an environment.
	clusters = lazyregexp.New(`^(apiserver|kube_node|kube_persistentvolume|kube_storageclass|machine|node)_[a-z0-9_]+$`)
)

// checkRuleScope finds rules about series outside of the Solution, or of the environment.
func checkRuleScope(_ context.Context, t *subject, r *reporter) {
	t.eachPrometheusRule(func(o *target.Object, at string, rule any) {
		text, _ := lookup(rule, "expr").(string)
		expression, err := promql.Parse(text)
		if err != nil {
			return // another rule reports it
		}
		mine, wide := o.Part == target.PartMonitoring, ruleScope(o) == schema.ScopeCluster
		for _, s := range expression.Selectors() {
			switch {
			case mine && !wide && clusters.MatchString(s.Metric) && !s.Matches(promql.Namespace):
				r.Report(o.At(at+".expr"), "annotate the PrometheusRule with "+schema.AnnotationScope+": cluster",
					"%s is a metric of the cluster, and the rule looks for it in the namespace of each environment", s.Metric)
				return
			case everybodys.MatchString(s.Metric) && len(s.Labels) == 0:
				r.Report(o.At(at+".expr"), "say which series are meant, such as "+s.Metric+`{job="…"}`,
					"%s is a metric of everything in the cluster, and nothing selects what belongs to the Solution", s.Metric)
				return
			}
		}
		if mine && wide && expression.Mixes() && !slices.ContainsFunc(expression.Metrics(), clusters.MatchString) {
			r.Report(o.At(at+".expr"), "keep them apart, as in sum by (namespace) (…), or take the annotation "+schema.AnnotationScope+" off",
				"the rule takes the series of all environments together")
		}
	})
}

// metricsFile lists the metrics of the pods of a Solution: the answer of one of them, or its lines that begin with #
// TYPE.
const metricsFile = "monitoring/metrics.prom"

// checkDeclaredMetrics finds rules that never have a result, because of a name that is written wrongly or has changed.
func checkDeclaredMetrics(_ context.Context, t *subject, r *reporter) {
	text, err := t.Text(metricsFile)
	if err != nil {
		return // nothing is declared
	}
	known := declaredMetrics(string(text))
	t.eachPrometheusRule(func(_ *target.Object, _ string, rule any) {
		record, _ := lookup(rule, "record").(string)
		known[record] = true
	})
	t.eachPrometheusRule(func(o *target.Object, at string, rule any) {
		text, _ := lookup(rule, "expr").(string)
		expression, err := promql.Parse(text)
		if err != nil || o.Part != target.PartMonitoring {
			return // another rule reports it; components bring metrics of others
		}
		for _, name := range expression.Metrics() {
			if !known[name] && !everybodys.MatchString(name) && !clusters.MatchString(name) {
				r.Report(o.At(at+".expr"), "write it as it is in "+metricsFile+", or add it there", "nothing declares the metric %s", name)
			}
		}
	})
}

// series are the suffixes of the series of a metric, by its kind, besides the name of the metric itself.
var series = map[string][]string{
	"counter": {"_total"}, "info": {"_info"}, "summary": {"_sum", "_count"}, "histogram": {"_bucket", "_sum", "_count"},
}

// declaredMetrics are the names that a text in the format of Prometheus has a type, a help or a value of.
func declaredMetrics(text string) map[string]bool {
	names := map[string]bool{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		switch {
		case len(fields) > 2 && fields[0] == "#" && (fields[1] == "TYPE" || fields[1] == "HELP"):
			names[fields[2]] = true
			if len(fields) > 3 && fields[1] == "TYPE" {
				for _, end := range series[fields[3]] {
					names[fields[2]+end] = true
				}
			}
		case len(fields) > 0 && !strings.HasPrefix(line, "#"):
			name, _, _ := strings.Cut(fields[0], "{")
			names[name] = true
		}
	}
	return names
}

// ruleScope is that of a PrometheusRule of the archive.
func ruleScope(o *target.Object) schema.Scope {
	scope, _ := lookup(o.Value, "metadata", "annotations", schema.AnnotationScope).(string)
	return cmp.Or(schema.Scope(scope), schema.ScopeEnvironment)
}

var (
	metricName   = lazyregexp.New(`^[a-zA-Z_:][a-zA-Z0-9_:]*$`)
	promDuration = lazyregexp.New(`^(0|([0-9]+y)?([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?)$`)
)

func reportDuration(r *reporter, o *target.Object, at string, value any) {
	if text, ok := value.(string); value != nil && (!ok || text == "" || !promDuration.MatchString(text)) {
		r.Report(o.At(at), "write a number and a unit, as 5m", "%v is not a duration", value)
	}
}
