package console

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"time"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/apps"
	"github.com/solutionctl/solutionctl/deployer/console/live"
	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/deployer/console/web"
	"github.com/solutionctl/solutionctl/deployer/logs"
	"github.com/solutionctl/solutionctl/deployer/rights"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

const (
	outcomeWait = 5 * time.Second // for everything that is shown beside the result
	maxTails    = 4               // logs on the page of an operation
	tailLines   = 12              // of each
	maxNext     = 3               // proposals of one kind
)

// outcome describes the state after an operation. Parts that cannot be read are left out: the result of the operation does not depend on them.
func (c *Console) outcome(v *web.Visit, m live.OperationState) *page.Outcome {
	ctx, cancel := context.WithTimeout(v.Context(), outcomeWait)
	defer cancel()
	o := m.Operation()
	outcome := &page.Outcome{Heading: page.Text("ended."+o.Operation, o.Solution, o.Version, o.Environment)}
	if isDeployed(o) {
		c.addDeployment(ctx, v, outcome, m)
	}
	if m.Err == nil {
		outcome.Actions = append(outcome.Actions, c.next(ctx, v, m.Planned)...)
	}
	if len(outcome.Actions) > 0 && !slices.ContainsFunc(outcome.Actions, func(a page.Action) bool { return a.Weight == page.WeightPrimary }) && len(outcome.Interface) == 0 {
		outcome.Actions[0].Weight = page.WeightPrimary
	}
	if m.Err != nil && outcome.Deployment == nil {
		return nil // the error is all that is known
	}
	return outcome
}

// isDeployed reports whether a Solution is in an environment after an operation.
func isDeployed(o *schema.Operation) bool {
	verbs := []string{schema.VerbAdd, schema.VerbUpgrade, schema.VerbDowngrade, schema.VerbRollback, schema.VerbRepair}
	return o.Environment != "" && o.Solution != "" && slices.Contains(verbs, o.Operation)
}

// addDeployment adds how the Solution is now, where its user interface is, and the logs of its failing containers.
func (c *Console) addDeployment(ctx context.Context, v *web.Visit, outcome *page.Outcome, m live.OperationState) {
	o, d := m.Operation(), v.Deployer(nil)
	scope := survey.Scope{Environment: o.Environment, Namespace: v.Opened.Namespace(o.Environment), Solution: o.Solution}
	status, err := d.Survey.EnvironmentStatus(ctx, survey.EnvironmentOptions{Environment: scope.Environment, Namespace: scope.Namespace})
	if err != nil {
		return
	}
	_, deployment, found := deploymentIn([]schema.EnvironmentStatus{*status}, &deployer.Request{Environment: scope.Environment, Namespace: scope.Namespace, Solution: scope.Solution})
	if !found {
		return
	}
	outcome.Deployment = &deployment
	word := "runs"
	switch {
	case m.Err != nil:
		word = "now"
	case deployment.Health != schema.HealthReady:
		word = "unready"
	}
	outcome.Heading = page.Text("ended."+word, o.Solution, deployment.Version, o.Environment)
	if deployment.Health != schema.HealthReady {
		outcome.Logs = c.failingLogs(ctx, v, scope)
	}
	if word != "runs" {
		return
	}
	ui, err := d.Survey.Interface(ctx, scope, "")
	switch {
	case err != nil:
	case len(ui.URLs) > 0:
		for _, address := range ui.URLs {
			if link, ok := page.ExternalLink(address); ok {
				outcome.Interface = append(outcome.Interface, link)
			}
		}
	case ui.Backend != nil:
		outcome.Command = report.Run("deploy open", o.Environment, o.Solution).String()
	}
}

// errEnough ends the reading of logs.
var errEnough = errors.New("that is enough")

// failingLogs returns the last lines of the containers of a Solution that do not work, or why they have written none.
func (c *Console) failingLogs(ctx context.Context, v *web.Visit, scope survey.Scope) (tails []page.LogTail) {
	reader := logs.Reader{
		Survey: v.Deployer(nil).Survey, Now: c.Now,
		Line: func(l schema.LogLine) error {
			name := l.Pod + " " + l.Container
			if len(tails) == 0 || tails[len(tails)-1].Name != name {
				if len(tails) == maxTails {
					return errEnough
				}
				tails = append(tails, page.LogTail{Name: name})
			}
			last := &tails[len(tails)-1]
			last.Lines = append(last.Lines, report.Cut(l.Text, maxLogLine))
			return nil
		},
		Note: func(string) {}, // the reasons of the deployment have it
	}
	_ = reader.Run(ctx, logs.Options{Scope: scope, Failing: true, Tail: tailLines}) // the lines up to an error are shown
	return tails
}

// maxLogLine bounds a line of a log on the page of an operation.
const maxLogLine = 500

// next proposes the actions after an operation.
func (c *Console) next(ctx context.Context, v *web.Visit, o *schema.Operation) []page.Action {
	switch {
	case isDeployed(o):
		actions := append(c.createApps(ctx, v, o), results(o)...)
		return append(actions, wayBack(v, o)...)
	case o.Operation == rights.VerbImport:
		activate := page.Action{Label: page.Text("action.activate") + " " + o.Version, URL: planURL("solutions", o.Solution, "activate", url.Values{"version": {o.Version}})}
		return slices.Concat(c.firstSteps(ctx, v), []page.Action{v.Offer(activate)}, results(o))
	case o.Operation == schema.VerbActivate:
		return append(c.deployments(ctx, v, o), results(o)...)
	case slices.Contains([]string{"create-app", "configure", "scale"}, o.Operation):
		return append([]page.Action{{
			Label: page.Text("operation.open", o.Solution), URL: page.Query(page.URL("environments", o.Environment, "apps"), "q", o.Solution), Weight: page.WeightPrimary,
		}}, results(o)...)
	}
	return results(o)
}

// firstSteps leads back to the first steps until a Solution runs: they check whether nodes can fetch images before one is activated.
func (c *Console) firstSteps(ctx context.Context, v *web.Visit) []page.Action {
	s, err := c.server.Everything(v.Identity).Read(ctx, nil)
	if err != nil || s.Status == nil || s.Loader != nil || isStarted(s.Status) {
		return nil
	}
	return []page.Action{{Label: page.Text("start.continue"), URL: "/", Weight: page.WeightPrimary}}
}

// createApps offers to create an application of a Solution that was deployed.
func (c *Console) createApps(ctx context.Context, v *web.Visit, o *schema.Operation) (actions []page.Action) {
	kinds, err := v.Deployer(nil).Apps.Kinds(ctx, apps.Options{Environment: o.Environment, Namespace: v.Opened.Namespace(o.Environment)})
	if err != nil {
		return nil
	}
	for _, k := range kinds {
		if k.Solution == o.Solution && len(actions) < maxNext {
			actions = append(actions, createApp(v, o.Environment, k))
		}
	}
	return actions
}

// deployments offers to bring an active version into the environments.
func (c *Console) deployments(ctx context.Context, v *web.Visit, o *schema.Operation) (actions []page.Action) {
	s, err := c.server.Everything(v.Identity).Read(ctx, nil)
	if err != nil || s.Status == nil {
		return nil
	}
	if len(s.Status.Environments) == 0 {
		return []page.Action{offerNamespace(v, createAction())}
	}
	for _, e := range s.Status.Environments {
		r := &deployer.Request{Environment: e.Name, Solution: o.Solution}
		verb := schema.VerbAdd
		if len(deployedVersions(s, r)) > 0 {
			verb = schema.VerbUpgrade
			if !slices.Contains(higher(s, r), o.Version) {
				continue
			}
		}
		if len(actions) == maxNext {
			break
		}
		actions = append(actions, v.Offer(page.Action{
			Label: page.Text("ended.next."+verb, e.Name), URL: planURL("environments", e.Name, verb, url.Values{"solution": {o.Solution}, "version": {o.Version}}),
		}))
	}
	return actions
}
