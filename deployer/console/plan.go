package console

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/console/live"
	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/deployer/console/web"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// plan shows the changes of a verb.
func (c *Console) plan(of verb) web.Handler {
	return func(v *web.Visit) (*web.Answer, error) {
		p, err := c.prospectOf(v, of)
		if err != nil {
			return nil, err
		}
		if p.order.needsSolution() {
			return c.planPage(v, p, nil), nil
		}
		p.foresee(v.Context())
		if report.CodeOf(p.refusal) == report.Unauthenticated {
			return nil, p.refusal
		}
		refusal := p.refusal
		if web.WantsJSON(v.Request) { // a page has boxes
			refusal = cmp.Or(refusal, p.missing())
		}
		return c.planPage(v, p, refusal), nil
	}
}

// perform carries out the plan that was seen, and shows the plan again where it is another one by now, or where not all was
// accepted that it takes.
func (c *Console) perform(of verb) web.Handler {
	return func(v *web.Visit) (*web.Answer, error) {
		if a := c.carryingOut(v); a != nil {
			return a, nil
		}
		p, err := c.prospectOf(v, of)
		if err != nil {
			return nil, err
		}
		p.foresee(v.Context())
		if a := c.carryingOut(v); a != nil { // it was begun while this was planned, which is another plan by now
			return a, nil
		}
		if report.CodeOf(p.refusal) == report.Unauthenticated {
			return nil, p.refusal
		}
		if refusal := cmp.Or(p.refusal, p.missing()); refusal != nil {
			return c.planPage(v, p, refusal), nil
		}
		if live.PlanDigest(p.planned) != v.PostFormValue("plan") {
			return c.changedPlan(v, p), nil
		}
		if name := p.order.Confirmation().Name; name != "" && v.PostFormValue("confirm") != name {
			return nil, report.Errorf(report.Cancelled, "not confirmed: the name that was typed is not %s", name)
		}
		p.order.Expect = p.planned.Digest // checked again under the lock: others may change the cluster until then
		op, err := c.server.Operations.Begin(v.Identity, p.planned, v.URL.EscapedPath()+"?"+p.asked.kept(v).Encode(), func(op *live.Operation) live.Work {
			return func(ctx context.Context, sink report.Sink) (*schema.Operation, error) {
				p.order.Losses.Export = c.exportTo(op, p.asked.subject())
				done, failure := p.order.perform(ctx, v.Deployer(sink))
				if failure == nil {
					v.Drafts.Forget(p.order.draft)
				}
				return done, failure
			}
		})
		if err != nil {
			return nil, err
		}
		return &web.Answer{To: page.URL("operations", op.ID)}, nil
	}
}

// carryingOut leads to the operation that carries out this plan already, as after a double click; nil for none.
func (c *Console) carryingOut(v *web.Visit) *web.Answer {
	op := c.server.Operations.CarryingOut(v.Identity, v.URL.EscapedPath(), v.PostFormValue("plan"))
	if op == nil {
		return nil
	}
	return &web.Answer{To: page.URL("operations", op.ID)}
}

// changedPlan shows a plan that is not the one that was seen.
func (c *Console) changedPlan(v *web.Visit, p *prospect) *web.Answer {
	a := c.planPage(v, p, nil)
	if content, ok := a.Content.(*page.Plan); ok {
		content.Changed, a.Status = true, http.StatusConflict
		content.Differs = v.Plans.Difference(v.PostFormValue("plan"), p.planned)
		a.Document = web.FailureOf(report.Errorf(report.Conflict, "the plan is not the one that was seen any more").
			WithHint("look at the plan, and send its digest as parameter \"plan\""))
	}
	return a
}

// prospect is the plan of an order once all its confirmations are given.
type prospect struct {
	asked    *order // by the user
	order    *order // the same, which accepts all that it takes
	snapshot *live.Snapshot
	deployer *deployer.Deployer // has read what the plan is about
	planned  *schema.Operation  // nil where it is refused all the same
	needs    []need
	refusal  error
}

// need is an option that has to be given, and the refusal that asks for it.
type need struct {
	report.Option
	refusal error
}

// prospectOf reads the order of a page. It is not planned yet.
func (c *Console) prospectOf(v *web.Visit, of verb) (*prospect, error) {
	o, s, err := c.readOrder(of, v)
	if err != nil {
		return nil, err
	}
	if o.lost {
		return nil, report.Errorf(report.NotFound, "the values that you typed are not kept any more: an hour has passed, or the console was started again").
			WithHint("open the form with the values again")
	}
	return &prospect{asked: o, order: o.accepting(), snapshot: s, deployer: v.Deployer(nil)}, nil
}

// foresee plans the order with all needed options accepted, so that users see at once what they have to accept. Accepted options that are
// not needed are left out.
func (p *prospect) foresee(ctx context.Context) {
	if p.asked.accepted.Has(forceFinalizers) {
		p.order.accept(report.Option{Name: forceFinalizers})
	}
	for {
		var err error
		if p.planned, err = p.dryRun(ctx); err == nil {
			return
		}
		known := len(p.needs)
		for _, option := range p.order.acceptable(err) {
			if p.order.accept(option) {
				p.needs = append(p.needs, need{option, err})
			}
		}
		if len(p.needs) > known {
			continue
		}
		if p.refusal = err; report.CodeOf(err) == report.Usage && known > 0 { // the verb does not have an accepted option
			p.refusal = p.needs[0].refusal
		}
		p.needs = nil
		return
	}
}

// missing is why an order is refused that does not accept all it takes.
func (p *prospect) missing() error {
	for _, n := range p.needs {
		if !p.asked.accepts(n.Option) {
			return n.refusal
		}
	}
	return nil
}

// acceptable returns the options that accept a refusal; none where the verb has no boxes for it.
func (o *order) acceptable(refusal error) []report.Option {
	for _, r := range report.RemediesOf(refusal) {
		boxes, ours := []report.Option{}, r.Verb == "" || r.Verb == o.of.command()
		for _, option := range r.Options {
			if slices.Contains(o.of.accepts, option.Name) && !isBlank(option) {
				boxes = append(boxes, option)
			} else if !o.gave(option.Name) {
				ours = false
			}
		}
		if ours && len(boxes) > 0 {
			return boxes
		}
	}
	return nil
}

// isBlank reports whether an option has a placeholder to fill in: COMPONENT=NAMESPACE/RELEASE.
func isBlank(option report.Option) bool {
	_, _, err := plan.ParseHelmRelease(option.Value)
	return option.Name == adoptHelm && err != nil
}

// gave reports whether an order has its own parameter for an option.
func (o *order) gave(option string) bool {
	return option == "namespace" && o.Namespace != "" || option == "delete-data" && o.Data == plan.DeleteData
}

// readOrder reads the order of a page, with the proposed version where it names none.
func (c *Console) readOrder(of verb, v *web.Visit) (*order, *live.Snapshot, error) {
	o, err := of.orderOf(v)
	if err != nil {
		return nil, nil, err
	}
	s, err := c.server.Everything(v.Identity).Read(v.Context(), nil)
	if web.IsVisitor(err) && o.Environment != "" {
		o.Namespace = cmp.Or(o.Namespace, v.Opened.Namespace(o.Environment))
		s, err = c.lookAtOne(v, o.Environment, o.Namespace)
	}
	if err != nil {
		return nil, nil, err
	}
	if known := s.Status.Solutions; o.needsSolution() && len(known) == 1 && known[0].Active != "" {
		o.Solution = known[0].Name // there is no choice
	}
	if o.Version == "" && of.versions != nil {
		o.Version = proposedVersion(s, of.versions(s, &o.Request), o.Solution)
	}
	return o, s, nil
}

// proposedVersion is the active version of a Solution if it can be chosen, else the highest release, else the highest.
func proposedVersion(s *live.Snapshot, choices []string, solution string) string {
	for _, one := range s.Status.Solutions {
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

func (o *order) needsSolution() bool {
	return o.Solution == "" && o.Verb != schema.VerbRepair && o.Verb != schema.VerbDelete
}

func (p *prospect) dryRun(ctx context.Context) (*schema.Operation, error) {
	if look := p.order.of.look; look != nil {
		if err := look(ctx, p.deployer, p.order); err != nil {
			return nil, err
		}
	}
	dry := *p.order
	dry.DryRun, dry.Refuse = true, true // refused parts become boxes
	return dry.perform(ctx, p.deployer)
}

// releaseNotes returns the release notes of the version that a verb deploys, or "" if the user cannot read them.
func (p *prospect) releaseNotes(ctx context.Context) string {
	o := p.asked
	if o.of.versions == nil || o.Version == "" {
		return ""
	}
	imports, err := p.deployer.Records.Imports(ctx)
	i := slices.IndexFunc(imports, func(i schema.Import) bool { return i.Name == o.Solution && i.Version == o.Version })
	if err != nil || i < 0 {
		return ""
	}
	payload, err := p.deployer.Records.Payload(ctx, imports[i])
	if err != nil {
		return ""
	}
	return payload.ReleaseNotes()
}

// planPage is the page of a plan, or of why there is none.
func (c *Console) planPage(v *web.Visit, p *prospect, refusal error) *web.Answer {
	o := p.asked
	v.Frame.Section, v.Frame.Stale = page.SectionEnvironments, p.snapshot.Stale
	up := page.URL("environments", o.Environment)
	v.Frame.Trail = []page.Link{{Label: page.Text("environments.title"), URL: "/environments"}, {Label: o.Environment, URL: up}}
	if o.Environment == "" {
		v.Frame.Section, up = page.SectionSolutions, page.URL("solutions", o.Solution)
		v.Frame.Trail = []page.Link{{Label: page.Text("solutions.title"), URL: "/solutions"}, {Label: o.Solution, URL: up}}
	}
	content := &page.Plan{Operation: p.planned, ReleaseNotes: p.releaseNotes(v.Context()), Choose: p.choices(v), Refusal: page.ProblemOf(refusal)}
	o.offerValues(v, content)
	a := &web.Answer{Document: p.planned, Content: content}
	if p.planned == nil {
		content.Unplanned = true
		content.Operation = &schema.Operation{
			Operation: o.Verb, Solution: o.Solution, Version: o.Version, Environment: o.Environment, Planned: true, Parts: []schema.OperationPart{}, Notices: []string{},
		}
		a.Document = content.Operation
	}
	if refusal != nil {
		content.Images = c.missingImages(v, p, refusal)
		a.Status, a.Document = web.StatusOf(refusal), web.FailureOf(refusal)
	}
	if p.planned == nil || p.planned.Empty() {
		return a
	}
	confirmation := p.order.Confirmation()
	if confirmation.Name != "" {
		content.Dangers = append(content.Dangers, page.Notice{Tone: page.ToneBad, Text: report.Capitalized(confirmation.Question) + "."})
	}
	a.Plan = live.PlanDigest(p.planned)
	v.Plans.Remember(a.Plan, p.planned)
	content.Apply = p.application(v, confirmation)
	content.Apply.Cancel = page.Link{Label: page.Text("action.cancel"), URL: up}
	for _, n := range p.needs {
		content.Apply.Checkboxes = append(content.Apply.Checkboxes, c.box(n.Option, o.accepts(n.Option)))
	}
	return a
}

// application is the form that carries out a plan.
func (p *prospect) application(v *web.Visit, confirmation report.Confirmation) *page.Form {
	action := page.Action{Label: page.Text("plan.apply." + p.order.Verb), URL: v.URL.EscapedPath(), Post: true, Weight: page.WeightPrimary, Confirm: confirmation.Name}
	fields := p.order.parameters(v)
	fields.Set("plan", live.PlanDigest(p.planned))
	if p.order.accepted.Has(forceFinalizers) { // it was chosen, and is part of the plan
		fields.Set(forceFinalizers, "true")
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		for _, value := range fields[name] {
			action.Fields = append(action.Fields, page.Hidden{Name: name, Value: value})
		}
	}
	if len(p.order.of.data) > 0 {
		action.Weight = page.WeightDanger
	}
	return &page.Form{Action: v.Offer(action)}
}

// box is something to accept before a plan is carried out.
func (c *Console) box(o report.Option, ticked bool) page.Checkbox {
	explanation := "accept." + o.Name + ".explanation"
	if o.Name == "accept-data-loss" && c.Exports == "" {
		explanation = "accept.accept-data-loss.unexported"
	}
	return page.Checkbox{
		Name: o.Name, Value: cmp.Or(o.Value, "true"), Label: page.Text("accept."+o.Name, o.Value), Explanation: page.Text(explanation),
		Details: o.Objects, Required: true, Checked: ticked,
	}
}

// choices returns the form with the parameters of a plan; nil where there is nothing to choose. Options accepted so far
// stay.
func (p *prospect) choices(v *web.Visit) *page.Form {
	o, of, s := p.order, p.order.of, p.snapshot
	form := &page.Form{Action: page.Action{Label: page.Text("plan.show"), URL: v.URL.EscapedPath()}}
	if o.needsSolution() {
		choice := page.Select{Name: "solution", Label: page.Text("field.solution")}
		for _, one := range s.Status.Solutions {
			choice.Choices = append(choice.Choices, page.Choice{Value: one.Name, Label: one.DisplayName})
		}
		form.Selects = append(form.Selects, choice)
		return form
	}
	kept := p.asked.kept(v)
	for _, name := range append([]string{"solution", "namespace", valuesDraft}, of.accepts...) {
		for _, value := range kept[name] {
			if name != forceFinalizers { // it has a box here
				form.Action.Fields = append(form.Action.Fields, page.Hidden{Name: name, Value: value})
			}
		}
	}
	if of.versions != nil {
		choices := of.versions(s, &o.Request)
		if o.Version != "" && !slices.Contains(choices, o.Version) { // other values of the deployed version
			choices = append(choices, o.Version)
		}
		if len(choices) > 0 {
			form.Selects = append(form.Selects, choose("version", page.Text("field.version"), o.Version, choices))
		}
	}
	if of.parts && o.Version != "" {
		o.choose(v, form)
	}
	if len(of.data) > 0 {
		choice := page.Select{Name: "data", Label: page.Text("field.data")}
		for _, p := range of.data {
			choice.Choices = append(choice.Choices, page.Choice{Value: policies[p], Label: page.Text("data." + of.name + "." + dataWord(p)), Selected: p == o.Data})
		}
		form.Selects = append(form.Selects, choice)
	}
	if len(o.held) > 0 {
		box := page.Checkbox{
			Name: forceFinalizers, Value: "true", Label: page.Text("accept.force-finalizers"), Explanation: page.Text("accept.force-finalizers.explanation"),
			Checked: o.accepted.Has(forceFinalizers),
		}
		for _, held := range o.held {
			box.Details = append(box.Details, held.String())
		}
		form.Checkboxes = append(form.Checkboxes, box)
	}
	if len(form.Selects)+len(form.Checkboxes)+len(form.Groups) == 0 {
		return nil
	}
	return form
}

func dataWord(p plan.DataPolicy) string {
	if p == plan.RefuseData {
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
