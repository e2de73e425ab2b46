package console

import (
	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/deployer/console/web"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// objects shows a deployed Solution down to the containers of its pods.
func (c *Console) objects(v *web.Visit) (*web.Answer, error) {
	environments, nothing, err := c.environmentsOf(v)
	if environments == nil {
		return nothing, err
	}
	r := &deployer.Request{Environment: v.PathValue("environment"), Namespace: v.FormValue("namespace"), Solution: v.PathValue("solution")}
	v.Frame.Trail = environmentTrail(r.Environment)
	namespace, deployment, found := deploymentIn(environments, r)
	if !found {
		return nil, report.Errorf(report.NotFound, "Solution %s is not in environment %s", r.Solution, r.Environment)
	}
	tree, err := v.Deployer(nil).Survey.Tree(v.Context(), survey.Scope{Environment: r.Environment, Namespace: namespace, Solution: r.Solution})
	if err != nil {
		return nil, err
	}
	content := &page.Objects{Environment: r.Environment, Namespace: namespace, Deployment: deployment, Tree: tree}
	content.Actions = []page.Action{{Label: page.Text("objects.logs"), URL: page.LogsURL(r.Environment, r.Solution, "namespace", namespace)}}
	if len(deployment.Components) > 0 {
		content.Actions = append(content.Actions, page.Action{
			Label: page.Text("components.table"), URL: page.Query(page.URL("environments", r.Environment, "components", r.Solution), "namespace", namespace),
		})
	}
	return &web.Answer{Document: tree, Content: content}, nil
}

// environmentsOf returns the environments that a user can see: all, or for a visitor the one of the page. Without them, the answer shows
// why.
func (c *Console) environmentsOf(v *web.Visit) ([]schema.EnvironmentStatus, *web.Answer, error) {
	s, err := c.watched(v, page.SectionEnvironments, nil)
	if err == nil {
		return s.Status.Environments, nil, nil
	}
	if !web.IsVisitor(err) {
		return nil, nil, err
	}
	status, nothing, err := c.visible(v, err)
	if status == nil {
		return nil, nothing, err
	}
	return []schema.EnvironmentStatus{*status}, nil, nil
}

// environmentTrail leads to a page of an environment.
func environmentTrail(environment string) []page.Link {
	return []page.Link{{Label: page.Text("environments.title"), URL: "/environments"}, {Label: environment, URL: page.URL("environments", environment)}}
}
