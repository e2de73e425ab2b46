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

// ended is an operation that has ended, on the page of a visit.
type ended struct {
	*Console
	visit *web.Visit
	state live.OperationState
}

// outcome describes the state after the operation. Parts that cannot be read are left out: the result of the operation does not depend on them.
func (e *ended) outcome() *page.Outcome {
	ctx, cancel := context.WithTimeout(e.visit.Context(), outcomeWait)
	defer cancel()
	o, m := e.state.Operation(), e.state
	outcome := &page.Outcome{Heading: page.Text("ended."+o.Operation, o.Solution, o.Version, o.Environment)}
	if isDeployed(o) {
		e.addDeployment(ctx, outcome)
	}
	if m.Err == nil {
		outcome.Actions = append(outcome.Actions, e.next(ctx)...)
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
func (e *ended) addDeployment(ctx context.Context, outcome *page.Outcome) {
	m, v := e.state, e.visit
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
		outcome.Logs = e.failingLogs(ctx, scope)
		outcome.LogsURL = page.LogsURL(scope.Environment, scope.Solution, "namespace", scope.Namespace)
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
func (e *ended) failingLogs(ctx context.Context, scope survey.Scope) (tails []page.LogTail) {
	reader := logs.Reader{
		Survey: e.visit.Deployer(nil).Survey, Now: e.Now,
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
func (e *ended) next(ctx context.Context) []page.Action {
	o, v := e.state.Planned, e.visit
	switch {
	case isDeployed(o):
		actions := append(e.createApps(ctx), results(o)...)
		return append(actions, wayBack(v, o)...)
	case o.Operation == rights.VerbImport:
		activate := page.Action{Label: page.Text("action.activate") + " " + o.Version, URL: planURL("solutions", o.Solution, "activate", url.Values{"version": {o.Version}})}
		return slices.Concat(e.firstSteps(ctx), []page.Action{v.Offer(activate)}, results(o))
	case o.Operation == rights.VerbUnimport:
		return e.otherVersions(ctx)
	case o.Operation == schema.VerbActivate:
		return append(e.deployments(ctx), results(o)...)
	case slices.Contains([]string{"create-app", "configure", "scale"}, o.Operation):
		changed := e.state.Operation().Parts[0].Changes[0].Object
		at := appURL(apps.Options{Environment: o.Environment, Namespace: changed.Namespace, Kind: changed.Kind, Name: changed.Name})
		return append([]page.Action{{Label: page.Text("operation.open", changed.Name), URL: at, Weight: page.WeightPrimary}}, results(o)...)
	}
	return results(o)
}

// firstSteps leads back to the first steps until a Solution runs: they check whether nodes can fetch images before one is activated.
func (e *ended) firstSteps(ctx context.Context) []page.Action {
	s, err := e.server.Everything(e.visit.Identity).Read(ctx, nil)
	if err != nil || s.Status == nil || s.Loader != nil || isStarted(s.Status) {
		return nil
	}
	return []page.Action{{Label: page.Text("start.continue"), URL: "/", Weight: page.WeightPrimary}}
}

// otherVersions leads back to a Solution of which one version was unimported, if it has others.
func (e *ended) otherVersions(ctx context.Context) []page.Action {
	o := e.state.Planned
	s, err := e.server.Everything(e.visit.Identity).Read(ctx, nil)
	if err != nil || s.Status == nil {
		return nil
	}
	for _, solution := range s.Status.Solutions {
		others := func(v schema.ImportedVersion) bool { return v.Version != o.Version }
		if solution.Name == o.Solution && slices.ContainsFunc(solution.Versions, others) {
			return []page.Action{{Label: page.Text("operation.open", o.Solution), URL: page.URL("solutions", o.Solution)}}
		}
	}
	return nil
}

// createApps offers to create an application of a Solution that was deployed.
func (e *ended) createApps(ctx context.Context) (actions []page.Action) {
	o, v := e.state.Planned, e.visit
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
func (e *ended) deployments(ctx context.Context) (actions []page.Action) {
	o, v := e.state.Planned, e.visit
	s, err := e.server.Everything(v.Identity).Read(ctx, nil)
	if err != nil || s.Status == nil {
		return nil
	}
	if len(s.Status.Environments) == 0 {
		return []page.Action{offerNamespace(v, createAction())}
	}
	for _, environment := range s.Status.Environments {
		r := &deployer.Request{Environment: environment.Name, Solution: o.Solution}
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
			Label: page.Text("ended.next."+verb, environment.Name), URL: planURL("environments", environment.Name, verb, url.Values{"solution": {o.Solution}, "version": {o.Version}}),
		}))
	}
	return actions
}
