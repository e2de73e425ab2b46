package console

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/console/live"
	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/deployer/console/web"
	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// earlyContent makes the content of a page that is sent before health is known; of nil it has only the title.
type earlyContent func(preview *schema.Status) page.Content

// titled is the early content of a page without a preview.
func titled(content page.Content) earlyContent {
	return func(*schema.Status) page.Content { return content }
}

// watched is a snapshot for a page that follows it. A browser that has to wait for it gets the frame of the page first, and its early content;
// early is nil for a page that may turn out to be somewhere else, or not to be.
func (c *Console) watched(v *web.Visit, section page.Section, early earlyContent) (*live.Snapshot, error) {
	v.Frame.Section, v.Frame.Reload = section, 30
	var slow func(*schema.Status)
	if early != nil && v.FrameFirst != nil {
		slow = func(preview *schema.Status) { v.FrameFirst(early(preview)) }
	}
	s, err := c.server.Everything(v.Identity).Read(v.Context(), slow)
	v.NoteVisitor(err)
	if err != nil {
		return nil, err
	}
	v.Frame.Stale, v.Frame.Feed = s.Stale, "/events?seen="+s.Mark()
	return s, nil
}

// overview shows the state of everything.
func (c *Console) overview(v *web.Visit) (*web.Answer, error) {
	listing := page.NewListing(v.FormValue)
	s, err := c.watched(v, page.SectionOverview, func(preview *schema.Status) page.Content { return page.PreviewOverview(preview, listing) })
	if web.IsVisitor(err) {
		return c.yours(v, page.SectionOverview, err, nil), nil
	}
	if err != nil {
		return nil, err
	}
	content := &page.Overview{Listing: listing, Status: s.Status, Pending: s.Pending(), AlertState: s.Alerts}
	if s.Loader != nil {
		content.Loader = &page.Loader{Progress: s.Loader}
	}
	for _, held := range s.Locks {
		if !live.IsHeld(held, c.Now()) {
			continue // its program has ended; its operation is among the pending ones
		}
		content.Waiting = append(content.Waiting, page.Notice{Tone: page.ToneInfo, Text: page.Text("overview.lock", held.Person, lockName(held.Name))})
	}
	if len(content.Pending) > 0 {
		content.Actions = append(content.Actions, v.Offer(resumeAction()))
	}
	if s.Loader == nil && s.Stale == nil && !web.WantsJSON(v.Request) { // the loader deploys by itself
		if content.Start, err = c.firstStart(v, s.Status); report.CodeOf(err) == report.Unauthenticated {
			return nil, err
		}
		v.Frame.Problem = page.ProblemOf(err)
	}
	if len(s.Status.Solutions) > 0 && content.Start == nil {
		content.Actions = append(content.Actions, offerNamespace(v, createAction()))
	}
	return &web.Answer{Document: s.Status, Content: content}, nil
}

func createAction() page.Action {
	return page.Action{Label: page.Text("action.createEnvironment"), URL: "/environments/new"}
}

// offerNamespace is an action that creates a namespace, or shows that the user is not allowed to.
func offerNamespace(v *web.Visit, a page.Action) page.Action {
	missing, err := v.Cluster.Missing(v.Context(), cluster.Permission{Resource: "namespaces"}.Each("create")...)
	if err == nil && len(missing) > 0 {
		a.Denied = &page.Denial{Reason: page.Text("denial.namespace"), Rule: cluster.Rules(missing...)}
	}
	return a
}

// solutions shows the versions that were imported.
func (c *Console) solutions(v *web.Visit) (*web.Answer, error) {
	v.Frame.Section = page.SectionSolutions
	listing := page.NewListing(v.FormValue)
	result, err := v.Deployer(nil).Records.Search(v.Context(), records.SearchOptions{Term: listing.Query})
	if web.IsVisitor(err) {
		return c.yours(v, page.SectionSolutions, err, nil), nil
	}
	if err != nil {
		return nil, err
	}
	more := primary(v, page.Text("action.import"), "/import")
	return &web.Answer{Document: result, Content: &page.Solutions{Listing: listing, Result: result, Import: &more}}, nil
}

// solution shows one Solution: which versions there are, and which of them can be active.
func (c *Console) solution(v *web.Visit) (*web.Answer, error) {
	s, err := c.watched(v, page.SectionSolutions, nil)
	if web.IsVisitor(err) {
		return c.yours(v, page.SectionSolutions, err, nil), nil
	}
	if err != nil {
		return nil, err
	}
	v.Frame.Trail = []page.Link{{Label: page.Text("solutions.title"), URL: "/solutions"}}
	name := v.PathValue("solution")
	at := slices.IndexFunc(s.Status.Solutions, func(one schema.SolutionStatus) bool { return one.Name == name })
	if at < 0 {
		return nil, report.Errorf(report.NotFound, "Solution %s was not imported", name)
	}
	content := &page.Solution{AlertState: s.Alerts, Status: s.Status.Solutions[at], Needs: map[string][]schema.Dependency{}, VersionActions: map[string][]page.Action{}}
	d := v.Deployer(nil)
	if content.Compatibility, err = d.Definitions.Compatibility(v.Context(), definitions.CompatibilityOptions{Solution: name}); err != nil {
		v.Frame.Problem = page.ProblemOf(err)
	}
	if found, err := d.Records.Search(v.Context(), records.SearchOptions{Term: name}); err == nil {
		content.Versions = slices.DeleteFunc(found.Versions, func(f schema.FoundVersion) bool { return f.Name != name })
	}
	if imports, err := d.Records.Imports(v.Context()); err == nil {
		for _, i := range imports {
			if i.Name == name && len(i.DependsOn) > 0 {
				content.Needs[i.Version] = i.DependsOn
			}
		}
	}
	for _, one := range content.Status.Versions {
		if !one.Active {
			content.VersionActions[one.Version] = []page.Action{v.Offer(page.Action{
				Label: page.Text("action.activate") + " " + one.Version, URL: planURL("solutions", name, "activate", url.Values{"version": {one.Version}}),
			})}
		}
		content.VersionActions[one.Version] = slices.Concat(
			content.VersionActions[one.Version], c.archives.ContentAction(v, name, one.Version), c.archives.UnimportAction(v, name, one.Version))
	}
	if content.Status.Active != "" {
		content.Actions = append(content.Actions, v.Offer(page.Action{
			Label: page.Text("action.deactivate"), URL: planURL("solutions", name, "deactivate", nil), Weight: page.WeightDanger,
		}))
	}
	return &web.Answer{Document: content.Status, Content: content}, nil
}

// planURL is the page of a plan.
func planURL(of, name, verb string, parameters url.Values) string {
	path := page.URL(of, name, "plan", verb)
	if len(parameters) > 0 {
		path += "?" + parameters.Encode()
	}
	return path
}

// environments shows all environments.
func (c *Console) environments(v *web.Visit) (*web.Answer, error) {
	var early earlyContent
	if v.FormValue("open") == "" { // else a visitor is led there
		early = titled(&page.Environments{})
	}
	s, err := c.watched(v, page.SectionEnvironments, early)
	if web.IsVisitor(err) {
		return c.openEnvironment(v, err)
	}
	if err != nil {
		return nil, err
	}
	create := offerNamespace(v, createAction())
	create.Weight = page.WeightPrimary
	content := &page.Environments{Listing: page.NewListing(v.FormValue), Environments: s.Status.Environments, Create: &create}
	found := []schema.EnvironmentStatus{}
	for _, e := range s.Status.Environments {
		if strings.Contains(strings.ToLower(e.Name+" "+e.Description), strings.ToLower(content.Listing.Query)) {
			found = append(found, e)
		}
	}
	return &web.Answer{Document: struct {
		Environments []schema.EnvironmentStatus `json:"environments"`
	}{found}, Content: content}, nil
}

// environment shows the deployments of one.
func (c *Console) environment(v *web.Visit) (*web.Answer, error) {
	s, err := c.watched(v, page.SectionEnvironments, nil)
	if web.IsVisitor(err) {
		return c.visibleEnvironment(v, err)
	}
	if err != nil {
		return nil, err
	}
	v.Frame.Trail = []page.Link{{Label: page.Text("environments.title"), URL: "/environments"}}
	name := v.PathValue("environment")
	at := slices.IndexFunc(s.Status.Environments, func(e schema.EnvironmentStatus) bool { return e.Name == name })
	if at < 0 {
		return nil, report.Errorf(report.NotFound, "there is no environment %s", name)
	}
	content := &page.Environment{AlertState: s.Alerts, Status: s.Status.Environments[at], Namespaces: map[string][]page.Action{}}
	if err := compare(v, &content.Status); err != nil {
		return nil, err
	}
	if err := members(v, &content.Status); err != nil && (s.Stale == nil || report.CodeOf(err) == report.Unauthenticated) {
		return nil, err // else the last state is shown without members
	}
	if len(content.Status.Namespaces) > 1 {
		for _, n := range content.Status.Namespaces {
			content.Namespaces[n.Name] = []page.Action{v.Offer(page.Action{
				Label: page.Text("action.deleteNamespace"), URL: planURL("environments", name, "delete", url.Values{"namespace": {n.Name}}),
			})}
		}
	}
	add := page.Action{Label: page.Text("action.add"), URL: addURL(s.Status, name)}
	if !offerVerbs(v, s, content) {
		add.Weight = page.WeightPrimary
	}
	content.Actions = []page.Action{v.Offer(add)}
	if slices.ContainsFunc(s.Pending(), func(p schema.ResumedOperation) bool { return p.Environment == name }) {
		content.Actions = append(content.Actions, v.Offer(resumeAction()))
	}
	if len(content.Deployments) > 0 {
		content.Actions = append(content.Actions, page.Action{Label: page.Text("action.apps"), URL: page.URL("environments", name, "apps")},
			page.Action{Label: page.Text("action.compare"), URL: page.Query(page.URL("environments", name), "compare", "fields")})
	}
	content.Actions = append(content.Actions,
		page.Action{Label: page.Text("action.history"), URL: "/history?environment=" + url.QueryEscape(name)},
		offerNamespace(v, page.Action{Label: page.Text("action.addNamespace"), URL: page.Query("/environments/new", "of", name)}),
		v.Offer(page.Action{Label: page.Text("action.delete"), URL: planURL("environments", name, "delete", nil), Weight: page.WeightDanger}))
	return &web.Answer{Document: content.Status, Content: content}, nil
}

// members adds the members of an environment and their permissions.
func members(v *web.Visit, status *schema.EnvironmentStatus) error {
	var names []string
	for _, n := range status.Namespaces {
		names = append(names, n.Name)
	}
	var err error
	status.Members, status.Unseen, err = v.Deployer(nil).Survey.Members(v.Context(), names)
	return err
}

// compare looks at an environment again, field by field: where something is known to have changed since it was deployed, or when
// the visitor asks for that.
func compare(v *web.Visit, status *schema.EnvironmentStatus) error {
	asked := v.FormValue("compare") != ""
	drifted := func(d schema.DeploymentStatus) bool {
		// What is worse than a change can follow from it, such as an image that cannot be pulled.
		return d.Health == schema.HealthDrifted || slices.ContainsFunc(d.Reasons, func(r schema.Reason) bool { return r.Changed })
	}
	if !asked && !slices.ContainsFunc(status.Namespaces, func(n schema.NamespaceStatus) bool { return slices.ContainsFunc(n.Deployments, drifted) }) {
		return nil
	}
	closely, err := v.Deployer(nil).Survey.EnvironmentStatus(v.Context(), survey.EnvironmentOptions{Environment: status.Name, Drift: true})
	switch {
	case report.CodeOf(err) == report.Unauthenticated:
		return err
	case err != nil: // the last state stays
		v.Frame.Problem = page.ProblemOf(err)
		return nil
	}
	*status = *closely
	changed := func(d schema.DeploymentStatus) bool { return len(d.Drift) > 0 }
	if asked && !slices.ContainsFunc(status.Namespaces, func(n schema.NamespaceStatus) bool { return slices.ContainsFunc(n.Deployments, changed) }) {
		v.Frame.Notices = append(v.Frame.Notices, page.Notice{Tone: page.ToneGood, Text: page.Text("environment.nodrift")})
	}
	return nil
}

// offerVerbs adds the actions on the deployments of an environment, and the releases that are ready to be installed in their place. It reports
// whether one of the actions is due.
func offerVerbs(v *web.Visit, s *live.Snapshot, content *page.Environment) (due bool) {
	content.Deployments, content.Newer, content.Signers = map[page.Deployment][]page.Action{}, map[page.Deployment]string{}, map[page.Deployment][]string{}
	for _, n := range content.Status.Namespaces {
		for _, d := range n.Deployments {
			r := &deployer.Request{Environment: content.Status.Name, Namespace: n.Name, Solution: d.Solution}
			at, actions := page.Deployment{Namespace: n.Name, Solution: d.Solution}, changes(v, s, r, d)
			content.Deployments[at] = actions
			due = due || slices.ContainsFunc(actions, func(a page.Action) bool { return a.Weight == page.WeightPrimary })
			if newer := newest(s, r); newer != "" && d.Version != "" {
				content.Newer[at] = newer
			}
			if signers := s.Signers(d.Solution, d.Version); signers != nil {
				content.Signers[at] = signers
			}
		}
	}
	return due
}

// newest returns the highest imported release above the deployed versions; "" for none.
func newest(s *live.Snapshot, r *deployer.Request) string {
	for _, text := range higher(s, r) {
		if v, err := schema.ParseVersion(text); err == nil && !v.IsPrerelease() {
			return text
		}
	}
	return ""
}

// changes returns the actions on a deployment that do something. The one that is due is the primary one.
func changes(v *web.Visit, s *live.Snapshot, r *deployer.Request, d schema.DeploymentStatus) []page.Action {
	drifted := d.Health == schema.HealthDrifted || len(d.Drift) > 0
	parameters := url.Values{"solution": {r.Solution}, "namespace": {r.Namespace}}
	var actions []page.Action
	offer := func(verb, label string, due bool) {
		a := page.Action{Label: page.Text(label), URL: planURL("environments", r.Environment, verb, parameters)}
		if due {
			a.Weight = page.WeightPrimary
		}
		actions = append(actions, v.Offer(a))
	}
	if d.Version != "" && len(higher(s, r)) > 0 {
		offer("upgrade", "action.upgrade", !drifted && newest(s, r) != "")
	}
	if d.Version != "" && len(lower(s, r)) > 0 {
		offer("downgrade", "action.downgrade", false)
	}
	if d.Version != "" && len(d.Components) > 0 {
		actions = append(actions, v.Offer(page.Action{Label: page.Text("values.open"), URL: valuesURL(r.Environment, parameters, d.Version)}))
	}
	if d.Version != "" && d.Health != schema.HealthReady || drifted {
		offer("repair", "action.repair", drifted)
	}
	if d.Version != "" {
		offer("rollback", "operation.back", false)
	}
	offer("remove", "action.remove", false)
	return actions
}

// newEnvironment asks for the name of one.
func (c *Console) newEnvironment(v *web.Visit) (*web.Answer, error) {
	return c.askEnvironment(v, nil), nil
}

func (c *Console) askEnvironment(v *web.Visit, err error) *web.Answer {
	v.Frame.Section = page.SectionEnvironments
	v.Frame.Trail = []page.Link{{Label: page.Text("environments.title"), URL: "/environments"}}
	v.Frame.Problem = page.ProblemOf(err)
	form := page.Form{
		Action: offerNamespace(v, page.Action{Label: page.Text("action.create"), URL: "/environments", Post: true, Weight: page.WeightPrimary}),
		Cancel: page.Link{Label: page.Text("action.cancel"), URL: "/environments"},
	}
	asked, of := []string{"name", "namespace", "description"}, v.FormValue("of")
	if of != "" {
		asked = []string{"namespace"}
		form.Action.Fields = []page.Hidden{{Name: "name", Value: of}, {Name: "of", Value: of}}
		form.Cancel.URL = page.URL("environments", of)
		v.Frame.Trail = append(v.Frame.Trail, page.Link{Label: of, URL: form.Cancel.URL})
	}
	for i, name := range asked {
		help := name
		if of != "" {
			help = "name"
		}
		form.Inputs = append(form.Inputs, page.Input{
			Name: name, Label: page.Text("newenvironment." + name), Help: page.Text("newenvironment." + help + ".help"), Value: v.FormValue(name), Required: i == 0,
		})
	}
	if report.CodeOf(err) == report.Conflict || v.FormValue("adopt") != "" {
		form.Checkboxes = append(form.Checkboxes, page.Checkbox{
			Name: "adopt", Value: "true", Label: page.Text("newenvironment.adopt"), Explanation: page.Text("newenvironment.adopt.explanation"), Checked: v.FormValue("adopt") != "",
		})
	}
	a := &web.Answer{Content: &page.NewEnvironment{Of: of, Form: form}, Document: struct{}{}}
	if err != nil {
		a.Status, a.Document = web.StatusOf(err), web.FailureOf(err)
	}
	return a
}

// createEnvironment makes an environment. That is done at once, and needs no plan.
func (c *Console) createEnvironment(v *web.Visit) (*web.Answer, error) {
	o := metalk8s.CreateOptions{Name: strings.TrimSpace(v.PostFormValue("name")), Namespace: strings.TrimSpace(v.PostFormValue("namespace")), Adopt: v.PostFormValue("adopt") == "true"}
	if text := v.PostFormValue("description"); text != "" {
		o.Description = &text
	}
	o, err := o.Check()
	if err == nil {
		_, err = v.Deployer(nil).CreateEnvironment(context.WithoutCancel(v.Context()), o)
	}
	if report.CodeOf(err) == report.Unauthenticated {
		return nil, err
	}
	if err != nil {
		return c.askEnvironment(v, err), nil
	}
	v.Feeds.Expire()
	return &web.Answer{To: page.URL("environments", o.Name)}, nil
}

// history shows the recorded operations.
func (c *Console) history(v *web.Visit) (*web.Answer, error) {
	v.Frame.Section = page.SectionHistory
	o := records.HistoryOptions{Environment: v.FormValue("environment"), Solution: v.FormValue("solution")}
	h, err := v.Deployer(nil).Records.History(v.Context(), o)
	if web.IsVisitor(err) {
		return c.yours(v, page.SectionHistory, err, nil), nil
	}
	if err != nil {
		return nil, err
	}
	content := &page.History{Environment: o.Environment, Solution: o.Solution, History: h, RollBack: map[int]page.Action{}}
	newest := map[page.Deployment]bool{}
	for i, entry := range h.Operations {
		at := page.Deployment{Namespace: entry.Namespace, Solution: entry.Solution}
		if entry.Environment != "" && newest[at] && entry.Outcome == schema.DeploymentDone && entry.Version != "" {
			content.RollBack[i] = v.Offer(page.Action{Label: page.Text("action.rollback"), URL: planURL("environments", entry.Environment, "rollback", url.Values{
				"solution": {entry.Solution}, "namespace": {entry.Namespace}, "revision": {strconv.FormatInt(entry.Revision, 10)},
			})})
		}
		newest[at] = true
	}
	return &web.Answer{Document: h, Content: content}, nil
}
