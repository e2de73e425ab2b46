package lint

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/kube/promql"
	"github.com/solutionctl/solutionctl/lint/target"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/lazyregexp"
	"github.com/solutionctl/solutionctl/schema/report"
)

// dashboard is one for Grafana: a file of its own, or a key of a ConfigMap.
type dashboard struct {
	place   target.Place
	stem    string // of its name
	text    string
	content map[string]any
	err     error // why there is no content
}

// dashboards are all that the sidecars of Grafana's charts find.
var dashboards = fact(func(_ context.Context, t *subject) []dashboard {
	var all []dashboard
	for _, file := range t.Files() {
		if isDashboard(file.Path) {
			text, err := t.Text(file.Path)
			all = append(all, newDashboard(target.InFile(file.Path), strings.TrimPrefix(file.Path, dashboardFiles), string(text), err))
		}
	}
	for _, o := range t.named("", "ConfigMap") {
		if lookup(o.Value, "metadata", "labels", schema.LabelDashboard) == nil {
			continue
		}
		data, _ := lookup(o.Value, "data").(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(data)) {
			if text, ok := data[key].(string); ok && path.Ext(key) == ".json" {
				all = append(all, newDashboard(o.At(fmt.Sprintf("data[%q]", key)), key, text, nil))
			}
		}
	}
	return all
})

const dashboardFiles = "monitoring/dashboards/"

func isDashboard(name string) bool {
	return strings.HasPrefix(name, dashboardFiles) && path.Ext(name) == ".json"
}

func newDashboard(place target.Place, name, text string, err error) dashboard {
	d := dashboard{place: place, stem: strings.TrimSuffix(name, ".json"), text: text, err: err}
	if d.err == nil {
		d.err = schema.CheckYAML(place.File, []byte(text)) // JSON takes as much memory as YAML
	}
	if d.err == nil {
		d.err = json.Unmarshal([]byte(text), &d.content)
	}
	if d.err == nil && d.content == nil {
		d.err = errors.New("it is null")
	}
	return d
}

func (d *dashboard) String() string {
	if d.place.Object == "" {
		return d.place.File
	}
	return d.place.File + " (" + d.place.Object + ")"
}

// at is the place of something in the dashboard.
func (d *dashboard) at(field string) target.Place {
	place := d.place
	place.Object = strings.TrimPrefix(place.Object+": "+field, ": ")
	return place
}

// eachDashboard calls see for every dashboard that is one.
func (t *subject) eachDashboard(ctx context.Context, see func(d *dashboard)) {
	all := dashboards(ctx, t)
	for i := range all {
		if all[i].err == nil { // another rule reports it
			see(&all[i])
		}
	}
}

func checkDashboards(ctx context.Context, t *subject, r *reporter) {
	for _, d := range dashboards(ctx, t) {
		switch {
		case d.err != nil:
			if problems := schema.Problems(d.err); len(problems) > 0 {
				r.Report(d.place, "make several dashboards of it", "%s", problems[0].Message)
				continue
			}
			r.Report(d.place, "export the dashboard again", "not a JSON object: %v", d.err)
		case d.content["title"] == nil && d.content["dashboard"] != nil:
			r.Report(d.place, "keep what is in the field dashboard only", "the dashboard is wrapped in a field named dashboard")
		default:
			if title, _ := d.content["title"].(string); title == "" {
				r.Report(d.place, "add a title", "the dashboard has no title")
			}
			if d.content["panels"] == nil && d.content["rows"] == nil {
				r.Report(d.place, "add panels", "the dashboard has no panels")
			}
		}
	}
}

func checkDataSources(ctx context.Context, t *subject, r *reporter) {
	t.eachDashboard(ctx, func(d *dashboard) {
		var fixed []string
		walkDataSources(d.content, func(at, name string) {
			if !strings.Contains(name, "$") && !strings.HasPrefix(name, "-- ") && name != "grafana" && name != "" {
				fixed = append(fixed, at+" = "+name)
			}
		})
		if len(fixed) > 0 {
			r.Report(d.at(fixed[0]), `refer to a variable of type datasource, as "${datasource}"`,
				"the dashboard names a data source of one Grafana (%s)", report.Count(len(fixed), "place"))
		}
	})
}

// walkDataSources finds every field "datasource" and calls see with its name or identifier.
func walkDataSources(dashboard any, see func(at, name string)) {
	walkFields(dashboard, "", 0, func(at, key string, value any) {
		if key != "datasource" {
			return
		}
		switch source := value.(type) {
		case string:
			see(at, source)
		case map[string]any:
			if uid, ok := source["uid"].(string); ok {
				see(at+".uid", uid)
			}
		}
	})
}

// Bounds of a dashboard.
const (
	maxDashboardDepth = 64
	maxDashboardPath  = 1000 // bytes; of a longer path the end is left out
)

// variable matches $name, ${name}, ${name:format} and [[name]], but not the $1 and the $ of regular expressions.
var variable = lazyregexp.New(`\$([A-Za-z_]\w*)|\$\{([A-Za-z_]\w*)[^}]*\}|\[\[([A-Za-z_]\w*)[^\]]*\]\]`)

func checkDashboardVariables(ctx context.Context, t *subject, r *reporter) {
	t.eachDashboard(ctx, func(d *dashboard) {
		known := map[string]bool{}
		inputs, _ := d.content["__inputs"].([]any)
		for _, input := range inputs {
			name, _ := lookup(input, "name").(string)
			known[name] = true
		}
		if len(inputs) > 0 {
			r.Report(d.at("__inputs"), "export it without the option to share it with other instances, with a variable of type datasource",
				"the dashboard has __inputs to fill in by hand: provisioned, it finds no data source")
		}
		variables, _ := lookup(d.content, "templating", "list").([]any)
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
				r.Report(d.at(at), "add it to templating.list", "the dashboard has no variable %s", name)
			}
		}
		walkFields(d.content, "", 0, func(at, key string, value any) {
			if text, ok := value.(string); ok && key == "expr" {
				see(at, text)
			}
		})
		walkDataSources(d.content, see)
	})
}

// stringOrRange matches where a variable stands for any text, or for a duration.
var stringOrRange = lazyregexp.New("\"(?:\\\\.|[^\"\\\\])*\"|'(?:\\\\.|[^'\\\\])*'|`[^`]*`|\\[[^\\]]*\\]")

// checkDashboardExpressions parses the Prometheus queries of panels; queries of other data sources are skipped. A
// variable may stand for any part of the grammar.
func checkDashboardExpressions(ctx context.Context, t *subject, r *reporter) {
	t.eachDashboard(ctx, func(d *dashboard) {
		sources := map[string]any{} // their types, by the panel
		walkFields(d.content, "", 0, func(at, key string, value any) {
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
					r.Report(d.at(pathOf(at, i)+".expr"), "try the expression in Grafana", "not PromQL: %v", err)
				}
			}
		})
	})
}

// sample is a value for a variable, as long as its name, so that later faults keep their places.
func sample(name string) string { return "5m" + strings.Repeat(" ", len(name)-len("5m")) }

// walkFields calls see with every field in a value, those outside first.
func walkFields(value any, at string, depth int, see func(at, key string, value any)) {
	if depth > maxDashboardDepth {
		return
	}
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			here := strings.TrimPrefix(at+"."+report.Cut(key, maxDashboardPath), ".")
			here = report.Cut(here, maxDashboardPath)
			see(here, key, v[key])
			walkFields(v[key], here, depth+1, see)
		}
	case []any:
		for i, entry := range v {
			walkFields(entry, pathOf(at, i), depth+1, see)
		}
	}
}

// dashboardUID is the form of a uid that Grafana accepts.
var dashboardUID = lazyregexp.New(`^[A-Za-z0-9_-]{1,40}$`)

func checkDashboardIdentities(ctx context.Context, t *subject, r *reporter) {
	uids, titles := map[string]*dashboard{}, map[string]*dashboard{}
	t.eachDashboard(ctx, func(d *dashboard) {
		uid, _ := d.content["uid"].(string)
		other := uids[uid]
		switch {
		case uid == "":
			r.ReportAs(report.SeverityWarning, d.place, "add a uid, such as "+t.uidFor(d),
				"the dashboard has no uid: with each Grafana, links to it are other ones")
		case !dashboardUID.MatchString(uid):
			r.Report(d.at("uid"), "use at most 40 letters, digits, - and _", "%q is not a uid for Grafana, which does not load the dashboard", uid)
		case other == nil:
			uids[uid] = d
		case other.stem == d.stem && other.text == d.text:
			return // the sidecar writes one file
		default:
			r.Report(d.at("uid"), "give it another one", "the dashboard in %s has the uid %s, too: Grafana shows one of them only", other, uid)
		}
		title, _ := d.content["title"].(string)
		switch other := titles[title]; {
		case title == "":
		case other == nil:
			titles[title] = d
		default:
			r.ReportAs(report.SeverityWarning, d.at("title"), "give it another one", "the dashboard in %s has the title %q, too", other, title)
		}
	})
}

var notInUID = lazyregexp.New(`[^a-z0-9]+`)

// uidFor is a uid that no other Solution is likely to have.
func (t *subject) uidFor(d *dashboard) string {
	words := d.stem
	if t.Solution != nil {
		words = t.Solution.Metadata.Name + "-" + words
	}
	uid := notInUID.ReplaceAllString(strings.ToLower(words), "-")
	return strings.Trim(uid[:min(len(uid), 40)], "-")
}
