package console

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/deployer/console/web"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/kube/chart"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Names of the parameters and fields of a form with the values of charts.
const (
	valuesDraft = "values" // the name of what was typed
	valuesSeen  = "seen"   // the last one when the form was shown
	valuesGroup = "group"  // the name of a group that is shown whole
)

// Bounds of the form.
const (
	maxEdits  = 2000 // values that a user has changed
	maxOpened = 20   // groups that are shown whole
	maxFind   = 200  // bytes of the words to find
	// maxProblems are shown at once.
	maxProblems = 100
)

// valuesPath is the path of the form with the values for a plan.
func valuesPath(planPath string) string { return planPath + "/values" }

// selection names the charts of an order.
func (o *order) selection() deployer.SelectionOptions {
	return deployer.SelectionOptions{
		ComponentsOptions: deployer.ComponentsOptions{Environment: o.Environment, Solution: o.Solution, Namespace: o.Namespace},
		Version:           o.Version, Choice: o.Rendering.Choice,
	}
}

// readDraft reads the values that were typed for an order.
func (o *order) readDraft(v *web.Visit) {
	if o.draft = v.FormValue(valuesDraft); o.draft != "" {
		edits, found := v.Drafts.Find(o.draft, v.Frame.Now)
		if o.edits = edits; !found {
			o.draft, o.lost = "", true
		}
	}
}

// siteValues returns the values of the site with the typed ones.
func (o *order) siteValues(ctx context.Context, d *deployer.Deployer) (map[string]plan.SiteValues, error) {
	values, problems, err := d.EditValues(ctx, o.selection(), o.edits)
	if err == nil && len(problems) > 0 {
		p := problems[0]
		err = report.Errorf(report.Refused, "component %s: the value %s %s", p.Component, p.Path, p.Message)
	}
	return values, err
}

// valuesForm is the form with the values of charts.
type valuesForm struct {
	v         *web.Visit
	order     *order
	described *schema.SolutionValues
	revision  int64
}

// values shows the form with the values of charts for a verb.
func (c *Console) values(of verb) web.Handler {
	return func(v *web.Visit) (*web.Answer, error) {
		f, err := c.valuesForm(v, of)
		if err != nil {
			return nil, err
		}
		return f.show(nil, nil), nil
	}
}

// saveValues keeps what was typed, and leads to the plan that has it.
func (c *Console) saveValues(of verb) web.Handler {
	return func(v *web.Visit) (*web.Answer, error) {
		f, err := c.valuesForm(v, of)
		if err != nil {
			return nil, err
		}
		if f.order.edits = f.edits(); len(f.order.edits) > maxEdits {
			return nil, report.Errorf(report.Usage, "%d values were changed, and a form can change %d at once", len(f.order.edits), maxEdits).
				WithHint("write them to a file, and pass it with --values")
		}
		if query := f.turn(); query != nil {
			return &web.Answer{To: v.URL.EscapedPath() + "?" + query.Encode() + f.fragment()}, nil
		}
		_, problems, err := v.Deployer(nil).EditValues(v.Context(), f.order.selection(), f.order.edits)
		if err != nil {
			return nil, err
		}
		f.order.draft = v.Drafts.Replace(f.order.draft, f.order.edits, v.Frame.Now)
		switch seen := v.PostFormValue(valuesSeen); {
		case seen != strconv.FormatInt(f.revision, 10):
			return f.show(problems, report.Errorf(report.Conflict, "Solution %s was deployed again since this form was opened: check the values below", f.order.Solution)), nil
		case len(problems) > 0:
			return f.show(problems, report.Errorf(report.Invalid, "%s cannot be used as typed", report.Count(len(problems), "value"))), nil
		case f.order.lost:
			return f.show(nil, nil), nil
		}
		return &web.Answer{To: strings.TrimSuffix(v.URL.EscapedPath(), "/values") + "?" + f.order.kept(v).Encode()}, nil
	}
}

// turn keeps what was typed, and returns the query of the form with the other values that were asked for; nil where none were, and where
// the user must see first that the values typed before are lost. The words in the field count when they have changed: a browser presses the first
// button of a form when a user presses Enter in any field.
func (f *valuesForm) turn() url.Values {
	form, shown := f.v.PostForm, f.v.URL.Query()
	find, open := report.Cut(strings.TrimSpace(form.Get(page.ValuesFind)), maxFind), form.Get(page.ValuesOpen)
	changed := form.Get(page.ValuesShow) == page.ValuesFind && find != shown.Get(page.ValuesFind)
	if open == "" && !changed || f.order.lost {
		return nil
	}
	f.order.draft = f.v.Drafts.Replace(f.order.draft, f.order.edits, f.v.Frame.Now) // a search does not displace the drafts of other pages
	query := f.order.kept(f.v)
	query.Set(valuesSeen, form.Get(valuesSeen)) // another deployment since then is noticed at the end
	if find != "" {
		query.Set(page.ValuesFind, find)
	}
	if open != "" {
		groups := append(slices.Clone(shown[valuesGroup]), open)
		query[valuesGroup] = groups[max(0, len(groups)-maxOpened):]
	}
	return query
}

// fragment leads to the group that was opened.
func (f *valuesForm) fragment() string {
	if open := f.v.PostFormValue(page.ValuesOpen); open != "" {
		return "#" + page.ValuesGroupID(open)
	}
	return ""
}

func (c *Console) valuesForm(v *web.Visit, of verb) (*valuesForm, error) {
	o, _, err := c.readOrder(of, v)
	if err != nil {
		return nil, err
	}
	f := &valuesForm{v: v, order: o}
	if f.described, f.revision, err = v.Deployer(nil).Settable(v.Context(), o.selection()); err != nil {
		return nil, err
	}
	return f, nil
}

// edits returns the changes that a form asks for. An empty field of a secret keeps the typed one, or the stored one.
func (f *valuesForm) edits() []plan.ValueEdit {
	form, before := f.v.PostForm, f.typed()
	edits := []plan.ValueEdit{}
	for _, c := range f.described.Components {
		for _, value := range c.Values {
			name := page.ValueName(c.Component, value.Path)
			typed, sent := page.Typed(&value.AppField, form, name)
			old, kept := before[name]
			reset := slices.Contains(form[page.ValuesReset], name)
			switch {
			case reset:
				if value.Set {
					edits = append(edits, plan.ValueEdit{Component: c.Component, Path: value.Path, Unset: true})
				}
			case !sent || value.Secret && typed == "":
				if kept {
					edits = append(edits, old)
				}
			case kept && typed == page.AsSent(old.Text):
				edits = append(edits, old)
			case typed != page.AsSent(currentText(&value)) || page.Emptied(form, name, currentText(&value)):
				edits = append(edits, plan.ValueEdit{Component: c.Component, Path: value.Path, Text: typed, Unset: typed == ""})
			}
		}
	}
	return edits
}

// typed returns what was typed before, by the name of the control.
func (f *valuesForm) typed() map[string]plan.ValueEdit {
	typed := map[string]plan.ValueEdit{}
	for _, e := range f.order.edits {
		typed[page.ValueName(e.Component, e.Path)] = e
	}
	return typed
}

// currentText returns the value of the site as a user types it; "" for none. An empty text has quotes.
func currentText(v *schema.ChartValue) string {
	if !v.Set || v.Secret {
		return ""
	}
	var value any
	_ = json.Unmarshal([]byte(v.Value), &value) // it was encoded before
	if value == "" {
		return `""`
	}
	return v.Text(value)
}

// show is the page with the form; failure is shown above it.
func (f *valuesForm) show(problems []plan.ValueProblem, failure error) *web.Answer {
	v, o := f.v, f.order
	up := v.URL.EscapedPath()[:strings.LastIndex(v.URL.EscapedPath(), "/")]
	kept := o.kept(v)
	back := up + "?" + kept.Encode()
	kept.Del(valuesDraft) // an address that a browser returns to after a login must not need it
	plain, query, seen := up+"?"+kept.Encode(), v.URL.Query(), strconv.FormatInt(f.revision, 10)
	if v.Method == http.MethodGet && query.Has(valuesSeen) {
		seen = query.Get(valuesSeen)
	}
	for _, name := range []string{page.ValuesFind, valuesGroup} {
		if query.Has(name) {
			kept[name] = query[name]
		}
	}
	content := &page.Values{
		Environment: o.Environment, Values: f.described, Cancel: page.Link{URL: back}, Find: query.Get(page.ValuesFind), Opened: query[valuesGroup],
		Action: v.Offer(page.Action{
			Label: page.Text("plan.show"), URL: v.URL.EscapedPath() + "?" + kept.Encode(), Post: true, Weight: page.WeightPrimary,
			Fields: []page.Hidden{{Name: valuesDraft, Value: o.draft}, {Name: valuesSeen, Value: seen}},
		}),
	}
	few := problems[:min(len(problems), maxProblems)]
	for _, c := range f.described.Components {
		content.Inputs = append(content.Inputs, f.inputs(&c, few))
	}
	if o.lost {
		v.Frame.Notices = append(v.Frame.Notices, page.Notice{Tone: page.ToneWarn, Text: page.Text("values.lost")})
	}
	v.Frame.Section, v.Frame.Trail = page.SectionEnvironments, []page.Link{
		{Label: page.Text("environments.title"), URL: "/environments"}, {Label: o.Environment, URL: page.URL("environments", o.Environment)},
	}
	if o.Environment == "" {
		v.Frame.Section, v.Frame.Trail = page.SectionSolutions, []page.Link{{Label: page.Text("solutions.title"), URL: "/solutions"}, {Label: o.Solution, URL: page.URL("solutions", o.Solution)}}
	}
	a := &web.Answer{Document: f.described, Content: content}
	if failure != nil {
		a.Status, a.Document = web.StatusOf(failure), web.FailureOf(withProblems(failure, problems))
		content.Cancel.URL = plain
		v.Frame.Problem = page.ProblemOf(withProblems(failure, f.elsewhere(few)))
	}
	return a
}

// inputs returns what the fields of a chart show: what was typed, else what the site has set. Secrets are left out.
func (f *valuesForm) inputs(c *schema.ComponentValues, problems []plan.ValueProblem) []page.FieldValue {
	inputs, typed := make([]page.FieldValue, len(c.Values)), f.typed()
	for i, value := range c.Values {
		input := page.FieldValue{Value: currentText(&value), Kept: value.Set && value.Secret}
		if e, changed := typed[page.ValueName(c.Component, value.Path)]; changed {
			input.Value, input.Kept, input.Changed = e.Text, value.Secret && !e.Unset, true
		}
		if value.Secret {
			input.Value = ""
		}
		for _, p := range problems {
			if p.Component == c.Component && concerns(p, value.Path) && input.Problem == "" {
				input.Problem = page.Sentence(inField(p, value.Path))
			}
		}
		inputs[i] = input
	}
	return inputs
}

// concerns reports whether a problem is about the value at a path, a part of it, or a table around it.
func concerns(p plan.ValueProblem, path string) bool {
	return p.Path != "" && (chart.IsWithin(p.Path, path) || chart.IsWithin(path, p.Path))
}

// inField returns the message of a problem beside the field of a path, with the part of the value that it is about.
func inField(p plan.ValueProblem, path string) string {
	part, inside := strings.CutPrefix(p.Path, path+".")
	if !inside {
		return p.Message
	}
	if n, err := strconv.Atoi(part); err == nil {
		part = page.Text("values.item", n+1)
	}
	return part + " " + p.Message
}

// elsewhere returns the problems that no field of the form shows.
func (f *valuesForm) elsewhere(problems []plan.ValueProblem) []plan.ValueProblem {
	return slices.DeleteFunc(slices.Clone(problems), func(p plan.ValueProblem) bool {
		return slices.ContainsFunc(f.described.Components, func(c schema.ComponentValues) bool {
			return c.Component == p.Component && slices.ContainsFunc(c.Values, func(v schema.ChartValue) bool { return concerns(p, v.Path) })
		})
	})
}

// withProblems adds problems to an error, each with its path.
func withProblems(err error, problems []plan.ValueProblem) error {
	if len(problems) == 0 {
		return err
	}
	var lines []string
	for _, p := range problems {
		lines = append(lines, fmt.Sprintf("%s: %s %s", p.Component, p.Path, p.Message))
	}
	return report.Errorf(report.CodeOf(err), "%w:\n  %s", err, strings.Join(lines, "\n  "))
}

// offerValues adds the way to the form with the values of charts to the page of a plan, and lists what was typed.
func (o *order) offerValues(v *web.Visit, content *page.Plan) {
	if !o.of.parts || o.Version == "" {
		return
	}
	graph, err := v.Deployer(nil).Selection(v.Context(), o.selection())
	if err != nil || !slices.ContainsFunc(graph.Components, func(n schema.ComponentNode) bool {
		return n.Kind == schema.ComponentChart && n.Selected && (n.Scope == schema.ScopeCluster) == (o.Environment == "")
	}) {
		return
	}
	content.Values = &page.Action{Label: page.Text("values.open"), URL: valuesPath(v.URL.EscapedPath()) + "?" + o.kept(v).Encode()}
	for _, e := range o.edits {
		content.Edited = append(content.Edited, e.Component+"."+e.Path)
	}
}

// valuesURL is the form with the values of a deployed Solution, which the plan of an upgrade to the same version changes.
func valuesURL(environment string, parameters url.Values, version string) string {
	query := url.Values{"version": {version}}
	maps.Copy(query, parameters)
	return valuesPath(page.URL("environments", environment, "plan", schema.VerbUpgrade)) + "?" + query.Encode()
}
