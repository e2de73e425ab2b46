package lint

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/lint/promql"
	"github.com/solutionctl/solutionctl/lint/target"
	"github.com/solutionctl/solutionctl/schema/report"
)

func dashboardRules() []Rule {
	return []Rule{
		{ID: "SOL508", Name: "dashboard-variables", Group: GroupMonitoring, Severity: report.SeverityError, check: checkDashboardVariables},
		{ID: "SOL510", Name: "dashboard-identity", Group: GroupMonitoring, Severity: report.SeverityError, check: checkDashboardIdentities},
		{ID: "SOL515", Name: "dashboard-expressions", Group: GroupMonitoring, Severity: report.SeverityWarning, check: checkDashboardExpressions},
	}
}

// eachDashboard calls see for every dashboard that is one.
func (t *subject) eachDashboard(see func(file string, dashboard map[string]any)) {
	for _, file := range t.Files() {
		if !isDashboard(file.Path) {
			continue
		}
		if dashboard, err := t.dashboard(file.Path); err == nil { // another rule reports it
			see(file.Path, dashboard)
		}
	}
}

// variable matches $name, ${name}, ${name:format} and [[name]], but not the $1 and the $ of regular expressions.
var variable = regexp.MustCompile(`\$([A-Za-z_]\w*)|\$\{([A-Za-z_]\w*)[^}]*\}|\[\[([A-Za-z_]\w*)[^\]]*\]\]`)

func checkDashboardVariables(_ context.Context, t *subject, r *Reporter) {
	t.eachDashboard(func(file string, dashboard map[string]any) {
		known := map[string]bool{}
		inputs, _ := dashboard["__inputs"].([]any)
		for _, input := range inputs {
			name, _ := lookup(input, "name").(string)
			known[name] = true
		}
		if len(inputs) > 0 {
			r.Report(target.Place{File: file, Object: "__inputs"}, "export it without the option to share it with other instances, with a variable of type datasource",
				"the dashboard waits for somebody to fill in __inputs: provisioned, it finds no data source")
		}
		variables, _ := lookup(dashboard, "templating", "list").([]any)
		for _, v := range variables {
			name, _ := lookup(v, "name").(string)
			known[name] = true
		}
		reported := map[string]bool{}
		see := func(at, text string) {
			for _, match := range variable.FindAllStringSubmatch(text, -1) {
				name := match[1] + match[2] + match[3]
				if known[name] || reported[name] || strings.HasPrefix(name, "__") { // those are Grafana's own
					continue
				}
				reported[name] = true
				r.Report(target.Place{File: file, Object: at}, "add it to templating.list", "the dashboard has no variable %s", name)
			}
		}
		walkFields(dashboard, "", 0, func(at, key string, value any) {
			if text, ok := value.(string); ok && key == "expr" {
				see(at, text)
			}
		})
		walkDataSources(dashboard, see)
	})
}

// stringOrRange matches where a variable stands for any text, or for a duration.
var stringOrRange = regexp.MustCompile("\"(?:\\\\.|[^\"\\\\])*\"|'(?:\\\\.|[^'\\\\])*'|`[^`]*`|\\[[^\\]]*\\]")

// checkDashboardExpressions parses what panels ask Prometheus; other data sources have expressions, too. Where a variable stands
// for a part of the grammar, which part is not known here.
func checkDashboardExpressions(_ context.Context, t *subject, r *Reporter) {
	t.eachDashboard(func(file string, dashboard map[string]any) {
		sources := map[string]any{} // their types, by the panel
		walkFields(dashboard, "", 0, func(at, key string, value any) {
			panel := strings.TrimSuffix(at, key)
			if key == "datasource" { // which comes before targets
				sources[panel] = lookup(value, "type")
			}
			if key != "targets" {
				return
			}
			targets, _ := value.([]any)
			for i, query := range targets {
				text, _ := lookup(query, "expr").(string)
				source := cmp.Or(lookup(query, "datasource", "type"), sources[panel])
				if text == "" || source != "prometheus" || variable.MatchString(stringOrRange.ReplaceAllString(text, "")) {
					continue
				}
				if _, err := promql.Parse(variable.ReplaceAllStringFunc(text, sample)); err != nil {
					r.Report(target.Place{File: file, Object: pathOf(at, i) + ".expr"}, "try the expression in Grafana", "not PromQL: %v", err)
				}
			}
		})
	})
}

// sample is a value for a variable, as long as its name: what is wrong after it stays in its place.
func sample(name string) string { return "5m" + strings.Repeat(" ", len(name)-len("5m")) }

// walkFields calls see with every field in a value, those outside first.
func walkFields(value any, at string, depth int, see func(at, key string, value any)) {
	if depth > maxDashboardDepth {
		return
	}
	switch v := value.(type) {
	case map[string]any:
		for _, key := range sortedKeys(v) {
			here := strings.TrimPrefix(at+"."+key, ".")
			see(here, key, v[key])
			walkFields(v[key], here, depth+1, see)
		}
	case []any:
		for i, entry := range v {
			walkFields(entry, pathOf(at, i), depth+1, see)
		}
	}
}

// dashboardUID is what Grafana takes for a uid.
var dashboardUID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,40}$`)

func checkDashboardIdentities(_ context.Context, t *subject, r *Reporter) {
	uids, titles := map[string]string{}, map[string]string{}
	t.eachDashboard(func(file string, dashboard map[string]any) {
		uid, _ := dashboard["uid"].(string)
		at := target.Place{File: file, Object: "uid"}
		switch {
		case uid == "":
			r.ReportAs(report.SeverityWarning, target.InFile(file), "add a uid, such as "+suggestedUID(t, file),
				"the dashboard has no uid: with each Grafana, links to it are other ones")
		case !dashboardUID.MatchString(uid):
			r.Report(at, "use at most 40 letters, digits, - and _", "%q is not a uid for Grafana, which does not load the dashboard", uid)
		case uids[uid] != "":
			r.Report(at, "give it another one", "the dashboard in %s has the uid %s, too: Grafana shows one of them only", uids[uid], uid)
		default:
			uids[uid] = file
		}
		switch title, _ := dashboard["title"].(string); {
		case title == "":
		case titles[title] != "":
			r.ReportAs(report.SeverityWarning, target.Place{File: file, Object: "title"}, "give it another one",
				"the dashboard in %s has the title %q, too", titles[title], title)
		default:
			titles[title] = file
		}
	})
}

var notInUID = regexp.MustCompile(`[^a-z0-9]+`)

// suggestedUID is a uid that no other Solution is likely to have.
func suggestedUID(t *subject, file string) string {
	words := strings.Split(strings.TrimSuffix(file, ".json"), "/")[2:]
	if t.Solution != nil {
		words = slices.Insert(words, 0, t.Solution.Metadata.Name)
	}
	uid := notInUID.ReplaceAllString(strings.ToLower(strings.Join(words, "-")), "-")
	return strings.Trim(uid[:min(len(uid), 40)], "-")
}
