package console

import (
	"net/url"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/deployer/console/web"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// isStarted reports whether a Solution runs in an environment, or was begun there.
func isStarted(status *schema.Status) bool {
	return slices.ContainsFunc(status.Environments, func(e schema.EnvironmentStatus) bool {
		for d := range e.Deployments() {
			if d.Version != "" || d.Pending != nil {
				return true
			}
		}
		return false
	})
}

// firstStart returns the way to the first running Solution; nil once one runs in an environment.
func (c *Console) firstStart(v *web.Visit, status *schema.Status) (*page.Checklist, error) {
	if isStarted(status) {
		return nil, nil
	}
	list := &page.Checklist{Steps: []page.Stage{importStage(status)}}
	if list.Steps[0].State == page.StageDone {
		images, err := c.imagesStage(v, "/")
		if report.CodeOf(err) == report.Forbidden {
			images.State, images.Text, err = page.StageDoubt, page.Text("start.images.unseen"), nil
		}
		if err != nil {
			return nil, err
		}
		list.Steps = append(list.Steps, images)
	} else {
		list.Steps[0].Actions = []page.Action{primary(v, page.Text("action.import"), "/import")}
		list.Steps = append(list.Steps, page.Stage{Name: "images", Text: page.Text("start.images.later")})
	}
	list.Steps = append(list.Steps, activateStage(v, status), environmentStage(v, status), addStage(v, status))
	list.Proceed()
	return list, nil
}

// primary is the action that continues a step.
func primary(v *web.Visit, label, to string) page.Action {
	return v.Offer(page.Action{Label: label, URL: to, Weight: page.WeightPrimary})
}

func importStage(status *schema.Status) page.Stage {
	var names []string
	for _, s := range status.Solutions {
		for _, version := range s.Versions {
			names = append(names, s.Name+" "+version.Version)
		}
	}
	if len(names) == 0 {
		return page.Stage{Name: "import", Text: page.Text("start.import.left")}
	}
	return page.Stage{Name: "import", State: page.StageDone, Text: report.Cut(strings.Join(names, ", "), 200)}
}

func activateStage(v *web.Visit, status *schema.Status) page.Stage {
	stage := page.Stage{Name: "activate", Text: page.Text("start.activate.left")}
	var active []string
	for _, s := range status.Solutions {
		if s.Active != "" {
			active = append(active, s.Name+" "+s.Active)
		}
	}
	switch {
	case len(active) > 0:
		stage.State, stage.Text = page.StageDone, strings.Join(active, ", ")
	case len(status.Solutions) == 1:
		stage.Actions = []page.Action{primary(v, page.Text("action.activate"), planURL("solutions", status.Solutions[0].Name, "activate", nil))}
	default:
		stage.Actions = []page.Action{primary(v, page.Text("start.activate.choose"), "/solutions")}
	}
	return stage
}

func environmentStage(v *web.Visit, status *schema.Status) page.Stage {
	stage := page.Stage{Name: "environment", Text: page.Text("start.environment.left")}
	var names []string
	for _, e := range status.Environments {
		names = append(names, e.Name)
	}
	if len(names) > 0 {
		stage.State, stage.Text = page.StageDone, report.Cut(strings.Join(names, ", "), 200)
		return stage
	}
	create := createAction()
	create.Weight = page.WeightPrimary
	stage.Actions = []page.Action{offerNamespace(v, create)}
	return stage
}

func addStage(v *web.Visit, status *schema.Status) page.Stage {
	stage := page.Stage{Name: "add", Text: page.Text("start.add.left")}
	to := "/environments"
	if len(status.Environments) == 1 {
		to = addURL(status, status.Environments[0].Name)
	}
	stage.Actions = []page.Action{primary(v, page.Text("action.add"), to)}
	return stage
}

// addURL is the plan to add a Solution to an environment: the only one that is active, unless it is there already, or one that the user selects.
func addURL(status *schema.Status, environment string) string {
	parameters := url.Values{}
	only := soleActive(status)
	if _, _, there := deploymentIn(status.Environments, &deployer.Request{Environment: environment, Solution: only}); only != "" && !there {
		parameters.Set("solution", only)
	}
	return planURL("environments", environment, "add", parameters)
}

// soleActive returns the Solution that is active where only one is; "" otherwise.
func soleActive(status *schema.Status) (name string) {
	for _, s := range status.Solutions {
		if s.Active != "" {
			if name != "" {
				return ""
			}
			name = s.Name
		}
	}
	return name
}
