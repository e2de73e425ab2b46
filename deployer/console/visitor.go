package console

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"

	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/apps"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/console/live"
	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// A visitor is a user who may not see which environments there are. They name theirs, and see what they may of it.

// yours is the page from which a visitor goes to the environment that is theirs. What was refused to them, and the problem with the
// name that they gave, are said. A program gets what was refused: there is nothing else to show.
func (c *Console) yours(v *visit, section page.Section, refused, problem error) *answer {
	v.frame.Section = section
	a := v.failed(refused)
	content := &page.Yours{
		Name: strings.TrimSpace(cmp.Or(v.FormValue("open"), v.PathValue("environment"))), Opened: v.opened.environments(),
		Unseen: page.ProblemOf(refused).Unseen(page.Text("yours.unseen")),
	}
	a.content = content
	if wantsJSON(v.Request) {
		return a
	}
	a.status = http.StatusOK
	if problem != nil {
		content.Problem, a.status = problem.Error(), statusOf(problem)
	}
	return a
}

// openEnvironment leads a visitor to the environment of which they have given the name, or that of one of its namespaces.
func (c *Console) openEnvironment(v *visit, refused error) (*answer, error) {
	name := strings.TrimSpace(v.FormValue("open"))
	if name == "" {
		return c.yours(v, page.SectionEnvironments, refused, nil), nil
	}
	environment, err := v.deployer(nil).Records.Documents.EnvironmentOf(v.Context(), name)
	switch report.CodeOf(err) {
	case "":
		v.opened.remember(environment, name)
		return &answer{to: page.URL("environments", environment)}, nil
	case report.Forbidden, report.NotFound:
		// Which of both it is tells nobody what there is.
		return c.yours(v, page.SectionEnvironments, refused, report.Errorf(report.NotFound, "%s", page.Text("yours.nothing", name))), nil
	default:
		return nil, err
	}
}

// visible is what a visitor to whom the whole was refused may see of an environment, by the name of one of its namespaces if they
// give that. Where that is nothing, so is the status, and the answer says so.
func (c *Console) visible(v *visit, refused error) (*schema.EnvironmentStatus, *answer, error) {
	v.frame.Section, v.frame.Reload = page.SectionEnvironments, 30
	v.frame.Trail = []page.Link{{Label: page.Text("environments.title"), URL: "/environments"}}
	o := v.instance()
	o.Namespace = cmp.Or(v.FormValue("namespace"), o.Namespace)
	s, err := c.server.environmentFeed(v.Identity, o.Environment, o.Namespace).Read(v.Context(), nil)
	if code := report.CodeOf(err); code == report.Forbidden || code == report.NotFound {
		nothing := report.Errorf(report.NotFound, "%s", page.Text("yours.nothing", o.Environment))
		return nil, c.yours(v, page.SectionEnvironments, refused, nothing), nil
	}
	if err != nil {
		return nil, nil, err
	}
	v.frame.Stale = s.Stale
	v.frame.Feed = page.Query("/events", "seen", s.Mark(), "environment", o.Environment, "namespace", o.Namespace)
	v.opened.remember(o.Environment, cmp.Or(o.Namespace, s.Environment.Namespaces[0].Name))
	return s.Environment, nil, nil
}

// visibleComponents shows a visitor the components of which there is something that they may see. What waits for what is in the
// records: the document is that of the environment.
func (c *Console) visibleComponents(v *visit, refused error) (*answer, error) {
	status, nothing, err := c.visible(v, refused)
	if status == nil {
		return nothing, err
	}
	o := &order{environment: status.Name, namespace: v.FormValue("namespace"), solution: v.PathValue("solution")}
	v.frame.Trail = append(v.frame.Trail, page.Link{Label: o.environment, URL: page.URL("environments", o.environment)})
	namespace, deployment, found := deploymentIn([]schema.EnvironmentStatus{*status}, o)
	if !found {
		return nil, report.Errorf(report.NotFound, "of Solution %s there is nothing in environment %s that you may see", o.solution, o.environment)
	}
	shown := *status
	at := slices.IndexFunc(status.Namespaces, func(n schema.NamespaceStatus) bool { return n.Name == namespace })
	there := status.Namespaces[at]
	there.Deployments = []schema.DeploymentStatus{deployment}
	shown.Namespaces = []schema.NamespaceStatus{there}
	return &answer{document: shown, content: &page.YourComponents{
		Environment: o.environment, Namespace: namespace, Deployment: deployment, Unseen: status.Unseen,
	}}, nil
}

// visibleEnvironment shows a visitor what they may see of an environment.
func (c *Console) visibleEnvironment(v *visit, refused error) (*answer, error) {
	status, nothing, err := c.visible(v, refused)
	if status == nil {
		return nothing, err
	}
	o, d := v.instance(), v.deployer(nil)
	list := page.Action{Label: page.Text("action.apps"), URL: page.URL("environments", o.Environment, "apps")}
	if _, err := d.Apps.List(v.Context(), apps.Options{Environment: o.Environment, Namespace: o.Namespace}); report.CodeOf(err) == report.Forbidden {
		u := page.ProblemOf(err).Unseen(err.Error())
		list.Denied = &page.Denial{Reason: u.What, Rule: u.Rules}
	}
	content := &page.Environment{
		Status: *status, Visitor: true, Heard: c.server.environmentFeed(v.Identity, o.Environment, o.Namespace).LastAlerts().Alerts,
		Deployments: map[page.Deployment][]page.Action{}, Actions: []page.Action{list},
	}
	return &answer{document: status, content: content}, v.offerChanges(content)
}

// offerChanges offers a visitor what they can change in the namespaces that they see, or says all that is missing for it.
func (v *visit) offerChanges(content *page.Environment) error {
	status, d := content.Status, v.deployer(nil)
	for _, n := range status.Namespaces {
		missing, err := d.MayChange(v.Context(), n.Name)
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
		for _, one := range n.Deployments {
			content.Deployments[page.Deployment{Namespace: n.Name, Solution: one.Solution}] = v.changes(s, status.Name, n.Name, one)
		}
	}
	content.Actions = append(content.Actions, page.Action{Label: page.Text("action.history"), URL: page.Query("/history", "environment", status.Name)})
	return nil
}

// lookAtOne is what a plan in one environment is made of, for a user who is not allowed to list all of them.
func (c *Console) lookAtOne(v *visit, environment, namespace string) (*live.Snapshot, error) {
	s, err := c.server.environmentFeed(v.Identity, environment, namespace).Read(v.Context(), nil)
	if err != nil {
		return nil, err
	}
	one := *s
	one.Status = &schema.Status{Environments: []schema.EnvironmentStatus{*s.Environment}}
	one.Status.Solutions, err = v.deployer(nil).Survey.Solutions(v.Context())
	return &one, err
}

// offerOn is an action on objects of a kind, or tells which rights are missing for it.
func (v *visit) offerOn(a page.Action, apiVersion, kind, namespace string, verbs ...string) page.Action {
	wanted, err := v.Cluster.PermissionsOn(v.Context(), kube.FromAPIVersionAndKind(apiVersion, kind), namespace, verbs...)
	if err != nil {
		return a // whoever does it is told
	}
	if missing, err := v.Cluster.Missing(v.Context(), wanted...); err == nil && len(missing) > 0 {
		a.Denied = &page.Denial{Reason: page.Text("denial.kind", kind), Rule: cluster.RulesByPlace(missing...)}
	}
	return a
}
