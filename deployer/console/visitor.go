package console

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"

	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/apps"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/console/live"
	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/deployer/console/web"
	"github.com/solutionctl/solutionctl/deployer/rights"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// A visitor is a user who is not allowed to list environments. They name one, and see the parts that they are allowed
// to read.

// yours is the page on which a visitor opens an environment. It shows the refusal, and the problem with the name that
// they entered. A program gets the refusal: there is nothing else to show.
func (c *Console) yours(v *web.Visit, section page.Section, refused, problem error) *web.Answer {
	v.Frame.Section = section
	a := v.Failed(refused)
	content := &page.Yours{
		Name: strings.TrimSpace(cmp.Or(v.FormValue("open"), v.PathValue("environment"))), Opened: v.Opened.Environments(),
		Unseen: page.ProblemOf(refused).Unseen(page.Text("yours.unseen")),
	}
	a.Content = content
	if web.WantsJSON(v.Request) {
		return a
	}
	a.Status = http.StatusOK
	if problem != nil {
		content.Problem, a.Status = problem.Error(), web.StatusOf(problem)
	}
	return a
}

// openEnvironment leads a visitor to the environment of which they have given the name, or that of one of its namespaces.
func (c *Console) openEnvironment(v *web.Visit, refused error) (*web.Answer, error) {
	name := strings.TrimSpace(v.FormValue("open"))
	if name == "" {
		return c.yours(v, page.SectionEnvironments, refused, nil), nil
	}
	environment, err := v.Deployer(nil).Records.Documents.EnvironmentOf(v.Context(), name)
	switch report.CodeOf(err) {
	case "":
		v.Opened.Remember(environment, name)
		return &web.Answer{To: page.URL("environments", environment)}, nil
	case report.Forbidden, report.NotFound:
		// The answer does not reveal which of both it is.
		return c.yours(v, page.SectionEnvironments, refused, report.Errorf(report.NotFound, "%s", page.Text("yours.nothing", name))), nil
	default:
		return nil, err
	}
}

// visible returns the part of an environment that a visitor is allowed to read, by its name and perhaps that of a
// namespace. If they are allowed nothing, the status is nil and the answer shows that.
func (c *Console) visible(v *web.Visit, refused error) (*schema.EnvironmentStatus, *web.Answer, error) {
	v.Frame.Section, v.Frame.Reload = page.SectionEnvironments, 30
	v.Frame.Trail = []page.Link{{Label: page.Text("environments.title"), URL: "/environments"}}
	o := instance(v)
	o.Namespace = cmp.Or(v.FormValue("namespace"), o.Namespace)
	s, err := c.server.EnvironmentFeed(v.Identity, o.Environment, o.Namespace).Read(v.Context(), nil)
	if code := report.CodeOf(err); code == report.Forbidden || code == report.NotFound {
		nothing := report.Errorf(report.NotFound, "%s", page.Text("yours.nothing", o.Environment))
		return nil, c.yours(v, page.SectionEnvironments, refused, nothing), nil
	}
	if err != nil {
		return nil, nil, err
	}
	v.Frame.Stale = s.Stale
	v.Frame.Feed = page.Query("/events", "seen", s.Mark(), "environment", o.Environment, "namespace", o.Namespace)
	v.Opened.Remember(o.Environment, cmp.Or(o.Namespace, s.Environment.Namespaces[0].Name))
	return s.Environment, nil, nil
}

// visibleComponents shows a visitor the components with objects that they can see. Dependencies are in the records,
// which they cannot: the document is that of the environment.
func (c *Console) visibleComponents(v *web.Visit, refused error) (*web.Answer, error) {
	status, nothing, err := c.visible(v, refused)
	if status == nil {
		return nothing, err
	}
	r := &deployer.Request{Environment: status.Name, Namespace: v.FormValue("namespace"), Solution: v.PathValue("solution")}
	v.Frame.Trail = append(v.Frame.Trail, page.Link{Label: r.Environment, URL: page.URL("environments", r.Environment)})
	namespace, deployment, found := deploymentIn([]schema.EnvironmentStatus{*status}, r)
	if !found {
		return nil, report.Errorf(report.NotFound, "environment %s has no part of Solution %s that you can see", r.Environment, r.Solution)
	}
	shown := *status
	at := slices.IndexFunc(status.Namespaces, func(n schema.NamespaceStatus) bool { return n.Name == namespace })
	there := status.Namespaces[at]
	there.Deployments = []schema.DeploymentStatus{deployment}
	shown.Namespaces = []schema.NamespaceStatus{there}
	return &web.Answer{Document: shown, Content: &page.YourComponents{
		Environment: r.Environment, Namespace: namespace, Deployment: deployment, Unseen: status.Unseen,
	}}, nil
}

// visibleEnvironment shows a visitor the visible part of an environment.
func (c *Console) visibleEnvironment(v *web.Visit, refused error) (*web.Answer, error) {
	status, nothing, err := c.visible(v, refused)
	if status == nil {
		return nothing, err
	}
	o, d := instance(v), v.Deployer(nil)
	list := page.Action{Label: page.Text("action.apps"), URL: page.URL("environments", o.Environment, "apps")}
	if _, err := d.Apps.List(v.Context(), apps.Options{Environment: o.Environment, Namespace: o.Namespace}); report.CodeOf(err) == report.Forbidden {
		u := page.ProblemOf(err).Unseen(err.Error())
		list.Denied = &page.Denial{Reason: u.What, Rule: u.Rules}
	}
	content := &page.Environment{
		Status: *status, Visitor: true, AlertState: c.server.EnvironmentFeed(v.Identity, o.Environment, o.Namespace).LastAlerts().Alerts,
		Actions: []page.Action{list},
	}
	return &web.Answer{Document: status, Content: content}, offerChanges(v, content)
}

// offerChanges adds the actions that a visitor can take in their namespaces, or the permissions that they lack.
func offerChanges(v *web.Visit, content *page.Environment) error {
	status, d := content.Status, v.Deployer(nil)
	for _, n := range status.Namespaces {
		missing, err := v.Cluster.Missing(v.Context(), rights.Change(n.Name)...)
		if err != nil {
			return err
		}
		if len(missing) > 0 {
			content.Actions = append(content.Actions, page.Action{
				Label: page.Text("action.change"), Denied: &page.Denial{Reason: page.Text("denial.unseen"), Rule: cluster.RulesByPlace(missing...)},
			})
			return nil
		}
	}
	solutions, err := d.Survey.Solutions(v.Context())
	if err != nil {
		return err
	}
	s := &live.Snapshot{Status: &schema.Status{Solutions: solutions, Environments: []schema.EnvironmentStatus{status}}}
	for _, n := range status.Namespaces {
		content.Actions = append(content.Actions, page.Action{
			Label: page.Text("action.add"), URL: planURL("environments", status.Name, "add", url.Values{"namespace": {n.Name}}), Weight: page.WeightPrimary,
		})
	}
	offerVerbs(v, s, content)
	content.Actions = append(content.Actions, page.Action{Label: page.Text("action.history"), URL: page.Query("/history", "environment", status.Name)})
	return nil
}

// lookAtOne returns a snapshot for a plan in one environment, for a user who is not allowed to list all of them.
func (c *Console) lookAtOne(v *web.Visit, environment, namespace string) (*live.Snapshot, error) {
	s, err := c.server.EnvironmentFeed(v.Identity, environment, namespace).Read(v.Context(), nil)
	if err != nil {
		return nil, err
	}
	one := *s
	one.Status = &schema.Status{Environments: []schema.EnvironmentStatus{*s.Environment}}
	one.Status.Solutions, err = v.Deployer(nil).Survey.Solutions(v.Context())
	return &one, err
}

// offerOn is an action on objects of a kind, or shows which permissions are missing for it.
func offerOn(v *web.Visit, a page.Action, apiVersion, kind, namespace string, verbs ...string) page.Action {
	wanted, err := v.Cluster.PermissionsOn(v.Context(), kube.FromAPIVersionAndKind(apiVersion, kind), namespace, verbs...)
	if err != nil {
		return a // the operation reports it
	}
	if missing, err := v.Cluster.Missing(v.Context(), wanted...); err == nil && len(missing) > 0 {
		a.Denied = &page.Denial{Reason: page.Text("denial.kind", kind), Rule: cluster.RulesByPlace(missing...)}
	}
	return a
}
