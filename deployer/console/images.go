package console

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/deployer/console/session"
	"github.com/solutionctl/solutionctl/deployer/console/web"
	"github.com/solutionctl/solutionctl/deployer/host"
	"github.com/solutionctl/solutionctl/deployer/host/node"
	"github.com/solutionctl/solutionctl/deployer/install"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// HostImages is how this host serves images, and gets them if it is a node. Only root can change that.
type HostImages struct {
	Services install.Services
	Root     string // below it are the files of the node and the units: "/"
	Program  string // the path of this program, which serves
	Serve    host.ServeOptions
	Endpoint string // at which nodes reach this host; "" is its address on the way to the API server
}

// setUpPath is where this host is set up to serve images, and to get them.
const setUpPath = "/settings/images"

// imageCheck is the answer to the question whether nodes can fetch images.
type imageCheck struct {
	registry *schema.ClusterRegistry // nil before the first import
	imports  []schema.Import         // with images
	answers  []records.Answer
	setUp    *install.Plan // the remaining steps of this host; nil where another host has to do them
	byHand   string        // the command that serves, for a host without a service manager; "" for others
}

// checkImages asks the recorded endpoints as a node does, and looks at this host where the user can set it up.
func (c *Console) checkImages(v *web.Visit) (*imageCheck, error) {
	d, check := v.Deployer(nil), &imageCheck{}
	var err error
	if check.registry, err = d.Records.Registry(v.Context()); err != nil {
		return nil, err
	}
	imports, err := d.Records.Imports(v.Context())
	if err != nil {
		return nil, err
	}
	check.imports = slices.DeleteFunc(imports, func(i schema.Import) bool { return len(i.Images) == 0 })
	if check.isOfMetalK8s() || len(check.imports) == 0 {
		return check, nil
	}
	if check.registry != nil {
		check.answers = records.AskRegistry(v.Context(), check.registry, check.imports, records.Briefly)
	}
	if c.Settings != nil && c.Settings.Images != nil && c.Settings.mayChange(v) == nil {
		check.setUp, err = c.planSetUp(v, check)
	}
	return check, err
}

func (c *imageCheck) isOfMetalK8s() bool {
	return c.registry != nil && c.registry.Mode == schema.RegistryMetalK8s
}

// serving returns an endpoint that serves every image; "" for none.
func (c *imageCheck) serving() string {
	for _, a := range c.answers {
		if a.Err == nil && len(a.Missing) == 0 {
			return a.Endpoint
		}
	}
	return ""
}

// isSilent reports whether no endpoint answers from here, which nodes may still reach.
func (c *imageCheck) isSilent() bool {
	return len(c.answers) > 0 && !slices.ContainsFunc(c.answers, func(a records.Answer) bool { return a.Err == nil || a.IsUntrusted() })
}

// planSetUp plans the missing parts of the set-up of this host.
func (c *Console) planSetUp(v *web.Visit, check *imageCheck) (*install.Plan, error) {
	h, err := c.openHost(v)
	if err != nil {
		return nil, err
	}
	s := c.Settings.Images
	if !s.Services.Available() {
		check.byHand = report.Run("deploy serve").With("store", s.Serve.Store).With("listen", s.Serve.Listen).String()
	}
	installer := &install.Installer{Host: h, Deployer: v.Deployer(nil), Services: s.Services, Root: s.Root, Program: s.Program, TrustDir: c.Settings.TrustDir}
	o := install.Options{Serve: s.Serve, Endpoint: s.Endpoint, Node: node.Config{Node: c.Host}}
	if check.serving() != "" {
		return installer.PlanNode(v.Context(), o, check.registry)
	}
	return installer.PlanImages(v.Context(), o)
}

// setUpImages makes this host serve images, records its address and configures its container runtime, where that is not done yet.
func (c *Console) setUpImages(v *web.Visit) (*web.Answer, error) {
	err := c.Settings.mayChange(v)
	if err == nil && c.Settings.Images == nil {
		err = report.Errorf(report.Forbidden, "only root can set this host up").WithHint("run the console as root: %s", report.Run("deploy ui"))
	}
	if err != nil {
		return nil, err
	}
	check, err := c.checkImages(v)
	if err == nil && check.setUp != nil {
		err = check.setUp.Run(context.WithoutCancel(v.Context()))
	}
	if err != nil {
		return nil, err
	}
	v.Feeds.Expire()
	return &web.Answer{To: session.LocalPath(v.PostFormValue("to"))}, nil
}

// imagesStage is the step of a checklist about images. Back is the page that shows it.
func (c *Console) imagesStage(v *web.Visit, back string) (page.Stage, error) {
	stage := page.Stage{Name: "images"}
	check, err := c.checkImages(v)
	if err != nil {
		return stage, err
	}
	switch serving := check.serving(); {
	case check.isOfMetalK8s():
		stage.State, stage.Text = page.StageDone, page.Text("start.images.metalk8s")
	case len(check.imports) == 0:
		stage.State, stage.Text = page.StageDone, page.Text("start.images.none")
	case serving != "" && (check.setUp == nil || check.setUp.Empty()):
		stage.State, stage.Text = page.StageDone, page.Text("start.images.done", serving)
	default:
		stage.Text = page.Text("start.images.left")
		if check.isSilent() && check.setUp == nil {
			stage.State, stage.Text = page.StageDoubt, page.Text("start.images.doubt")
		}
		stage.Facts = check.facts()
		stage.Tasks = check.tasks()
		stage.Actions = check.actions(v, back)
	}
	return stage, nil
}

// facts are the faults of the recorded endpoints.
func (c *imageCheck) facts() (facts []string) {
	for _, a := range c.answers {
		switch {
		case a.IsUntrusted():
			facts = append(facts, page.Text("start.images.untrusted", a.Endpoint))
		case a.Err != nil:
			facts = append(facts, page.Text("start.images.silent", a.Endpoint, a.Err))
		case len(a.Missing) > 0:
			facts = append(facts, page.Text("start.images.missing", a.Endpoint, strings.Join(a.Missing, ", ")))
		}
	}
	if c.setUp != nil {
		facts = append(facts, c.setUp.Notices...)
	}
	return facts
}

// tasks are the remaining tasks: of this host, or commands for others.
func (c *imageCheck) tasks() (tasks []page.Task) {
	if c.setUp == nil {
		answers := slices.ContainsFunc(c.answers, func(a records.Answer) bool { return a.Err == nil })
		return []page.Task{
			{Text: page.Text("start.elsewhere.serve"), Command: report.Run("deploy serve").String(), Done: answers},
			{Text: page.Text("start.elsewhere.register"), Command: records.RegistryRemedy().String(), Done: len(c.answers) > 0},
			{Text: page.Text("start.elsewhere.configure"), Command: report.Run("deploy node config").String()},
		}
	}
	for _, s := range c.setUp.Steps {
		task := page.Task{Text: page.Text("start.here."+s.Step, s.Name), Done: s.State == schema.StepUnchanged}
		if !task.Done && c.startsByHand(s) {
			task.Text, task.Command = page.Text("start.here.byhand"), c.byHand
		}
		tasks = append(tasks, task)
	}
	return tasks
}

// startsByHand reports whether a step is for the user: serving images on a host without a service manager.
func (c *imageCheck) startsByHand(s schema.InstallStep) bool {
	return c.byHand != "" && s.Step == "serve" && s.State == schema.StepPlanned
}

// actions continue: this host does the tasks, unless one is left for the user.
func (c *imageCheck) actions(v *web.Visit, back string) (actions []page.Action) {
	if c.setUp != nil && !c.setUp.Empty() && !slices.ContainsFunc(c.setUp.Steps, c.startsByHand) {
		actions = append(actions, v.Offer(page.Action{
			Label: page.Text("start.images.setup"), URL: setUpPath, Post: true, Fields: []page.Hidden{{Name: "to", Value: back}}, Weight: page.WeightPrimary,
		}))
	}
	return append(actions, page.Action{Label: page.Text("failure.again"), URL: back}, page.Action{Label: page.Text("settings.title"), URL: "/settings"})
}

// missingImages returns the remaining tasks before nodes can fetch the images of a plan; nil where it is refused for another reason.
func (c *Console) missingImages(v *web.Visit, p *prospect, refusal error) *page.Stage {
	if _, ok := errors.AsType[plan.ImagesError](refusal); !ok {
		return nil
	}
	stage, err := c.imagesStage(v, v.URL.EscapedPath()+"?"+p.asked.kept(v).Encode())
	if err != nil || stage.State == page.StageDone {
		return nil
	}
	return &stage
}
