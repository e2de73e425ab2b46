package console

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// plan shows what a verb would change.
func (c *Console) plan(of verb) handler {
	return func(v *visit) (*answer, error) {
		o, s, err := c.readOrder(of, v)
		if err != nil {
			return nil, err
		}
		if of.needsSolution(o) {
			return c.planPage(of, v, o, s, nil, nil), nil
		}
		planned, err := c.dryRun(v, of, o)
		if report.CodeOf(err) == report.Unauthenticated {
			return nil, err
		}
		return c.planPage(of, v, o, s, planned, err), nil
	}
}

// perform carries out the plan that was seen, and shows the plan again where it is another one by now.
func (c *Console) perform(of verb) handler {
	return func(v *visit) (*answer, error) {
		o, s, err := c.readOrder(of, v)
		if err != nil {
			return nil, err
		}
		if of.named && v.PostFormValue("confirm") != o.subject() {
			return nil, report.Errorf(report.Cancelled, "not confirmed: the name that was typed is not %s", o.subject())
		}
		planned, err := c.dryRun(v, of, o)
		if report.CodeOf(err) == report.Unauthenticated {
			return nil, err
		}
		if err != nil || planDigest(planned) != v.PostFormValue("plan") {
			a := c.planPage(of, v, o, s, planned, err)
			if content, ok := a.content.(*page.Plan); ok && err == nil {
				content.Changed, a.status = true, http.StatusConflict
				a.document = failureOf(report.Errorf(report.Conflict, "the plan is not the one that was seen any more").
					WithHint("look at the plan, and send its digest as parameter \"plan\""))
			}
			return a, nil
		}
		o.Expect = planned.Digest // again under the lock: until then others may change what the plan was made of
		op, err := c.operations.begin(v.identity, planned, func(op *operation) work {
			return func(ctx context.Context, sink report.Sink) (*schema.Operation, error) {
				o.export = c.exportTo(op, o.subject())
				return of.run(ctx, v.deployer(sink), o)
			}
		})
		if err != nil {
			return nil, err
		}
		return &answer{to: page.URL("operations", op.id)}, nil
	}
}

// readOrder reads what a page asks for, with the version that is proposed where it names none.
func (c *Console) readOrder(of verb, v *visit) (*order, *snapshot, error) {
	o, err := of.orderOf(v)
	if err != nil {
		return nil, nil, err
	}
	s, err := c.look(v.Context(), v.identity)
	if err != nil {
		return nil, nil, err
	}
	if o.version == "" && of.versions != nil {
		o.version = s.proposal(of.versions(s, o), o.solution)
	}
	return o, s, nil
}

// proposal is the active version of a Solution if it can be chosen, else the highest release, else the highest.
func (s *snapshot) proposal(choices []string, solution string) string {
	for _, one := range s.status.Solutions {
		if one.Name == solution && slices.Contains(choices, one.Active) {
			return one.Active
		}
	}
	for _, text := range choices {
		if v, err := schema.ParseVersion(text); err == nil && !v.IsPrerelease() {
			return text
		}
	}
	if len(choices) > 0 {
		return choices[0]
	}
	return ""
}

func (of verb) needsSolution(o *order) bool {
	return o.solution == "" && !slices.Contains([]string{"repair", "delete"}, of.name)
}

func (c *Console) dryRun(v *visit, of verb, o *order) (*schema.Operation, error) {
	dry := *o
	dry.DryRun = true
	return of.run(v.Context(), v.deployer(nil), &dry)
}

// planDigest tells one plan from another. Creating an environment has no digest of its own: it is all that is shown.
func planDigest(o *schema.Operation) string { return cmp.Or(o.Digest, digest(o)) }

// planPage is the page of a plan, or of why there is none.
func (c *Console) planPage(of verb, v *visit, o *order, s *snapshot, planned *schema.Operation, refusal error) *answer {
	v.frame.Section, v.frame.Stale = page.SectionEnvironments, s.stale
	up := page.URL("environments", o.environment)
	v.frame.Trail = []page.Link{{Label: page.Text("environments.title"), URL: "/environments"}, {Label: o.environment, URL: up}}
	if o.environment == "" {
		v.frame.Section, up = page.SectionSolutions, page.URL("solutions", o.solution)
		v.frame.Trail = []page.Link{{Label: page.Text("solutions.title"), URL: "/solutions"}, {Label: o.solution, URL: up}}
	}
	content := &page.Plan{Operation: planned, Choose: of.choices(v, o, s, refusal), Refusal: page.ProblemOf(refusal)}
	a := &answer{document: planned, content: content}
	if planned == nil {
		content.Operation = &schema.Operation{
			Operation: of.name, Solution: o.solution, Version: o.version, Environment: o.environment, Planned: true, Parts: []schema.OperationPart{}, Notices: []string{},
		}
		a.document = content.Operation
	}
	switch {
	case refusal != nil:
		a.status, a.document = statusOf(refusal), failureOf(refusal)
	case planned != nil && !planned.Empty():
		a.plan = planDigest(planned)
		content.Apply = of.application(v, o, planned)
		content.Apply.Cancel = page.Link{Label: page.Text("action.cancel"), URL: up}
	}
	if o.data == deployer.DeleteData {
		content.Dangers = append(content.Dangers, page.Notice{Tone: page.ToneBad, Text: page.Text("plan.danger.data")})
	}
	return a
}

// application is the form that carries out a plan.
func (of verb) application(v *visit, o *order, planned *schema.Operation) *page.Form {
	action := page.Action{Label: page.Text("plan.apply." + of.name), URL: v.URL.EscapedPath(), Post: true, Weight: page.WeightPrimary}
	for name, values := range o.parameters(v) {
		for _, value := range values {
			action.Fields = append(action.Fields, page.Hidden{Name: name, Value: value})
		}
	}
	slices.SortFunc(action.Fields, func(a, b page.Hidden) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Value, b.Value)) })
	action.Fields = append(action.Fields, page.Hidden{Name: "plan", Value: planDigest(planned)})
	if of.named || len(of.data) > 0 {
		action.Weight = page.WeightDanger
	}
	if of.named {
		action.Confirm = o.subject()
	}
	return &page.Form{Action: v.offer(action)}
}

// choices is the form for what a plan depends on; nil where there is nothing to choose.
func (of verb) choices(v *visit, o *order, s *snapshot, refusal error) *page.Form {
	form := &page.Form{Action: page.Action{Label: page.Text("plan.show"), URL: v.URL.EscapedPath()}}
	if of.needsSolution(o) {
		choice := page.Select{Name: "solution", Label: page.Text("field.solution")}
		for _, one := range s.status.Solutions {
			choice.Choices = append(choice.Choices, page.Choice{Value: one.Name, Label: one.DisplayName})
		}
		form.Selects = append(form.Selects, choice)
		return form
	}
	hide := func(name, value string) {
		if value != "" {
			form.Action.Fields = append(form.Action.Fields, page.Hidden{Name: name, Value: value})
		}
	}
	if v.PathValue("solution") == "" {
		hide("solution", o.solution)
	}
	hide("namespace", o.namespace)
	if of.versions != nil {
		if choices := of.versions(s, o); len(choices) > 0 {
			form.Selects = append(form.Selects, choose("version", page.Text("field.version"), o.version, choices))
		}
	}
	if len(of.data) > 0 {
		choice := page.Select{Name: "data", Label: page.Text("field.data")}
		for _, p := range of.data {
			choice.Choices = append(choice.Choices, page.Choice{Value: policies[p], Label: page.Text("data." + of.name + "." + dataWord(p)), Selected: p == o.data})
		}
		form.Selects = append(form.Selects, choice)
	}
	if report.CodeOf(refusal) == report.Conflict || o.Adopt || o.Force {
		form.Checkboxes = append(form.Checkboxes, tick("adopt", o.Adopt), tick("force", o.Force))
	}
	if report.CodeOf(refusal) == report.Refused || o.clusterWide != nil {
		form.Checkboxes = append(form.Checkboxes, tick("cluster-wide", o.clusterWide != nil))
	}
	if len(form.Selects)+len(form.Checkboxes) == 0 {
		return nil
	}
	return form
}

func dataWord(p deployer.DataPolicy) string {
	if p == deployer.RefuseData {
		return "refuse"
	}
	return policies[p]
}

func choose(name, label, selected string, values []string) page.Select {
	s := page.Select{Name: name, Label: label}
	for _, value := range values {
		s.Choices = append(s.Choices, page.Choice{Value: value, Label: value, Selected: value == selected})
	}
	return s
}

// tick is a box to accept something with.
func tick(name string, ticked bool) page.Checkbox {
	return page.Checkbox{Name: name, Value: "true", Label: page.Text("accept." + name), Explanation: page.Text("accept." + name + ".explanation"), Checked: ticked}
}
