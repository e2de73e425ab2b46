// Package pagetest has pages for tests, one of each kind: [Samples] as they are, or with hostile names in them, and [Large] with two
// hundred of everything. Tests of package page compare them with golden files; those in a browser look at them.
package pagetest

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Noon is when the samples were made.
var Noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return Noon.Add(-d) }

// Honest returns a text as it is.
func Honest(text string) string { return text }

// Samples are a page of each kind. Each text passes through say: golden pages show it unchanged, the corpus of hostile
// strings replaces it.
func Samples(say func(string) string) map[string]page.View {
	all := map[string]page.View{}
	add := func(name string, section page.Section, c page.Content, change ...func(*page.Frame)) {
		f := page.Frame{
			User: say("oidc:jane@example.com"), Cluster: say("https://10.0.0.1:6443"), Named: &schema.ClusterName{Name: say("Production Berlin"), Colour: "violet"}, Version: "1.0.0", Now: Noon, Section: section,
			LogOut: &page.Action{Label: page.Text("frame.logout"), URL: "/logout", Post: true}, Feed: "/events",
		}
		for _, change := range change {
			change(&f)
		}
		all[name] = page.View{Frame: f, Content: c}
	}
	alone := func(f *page.Frame) { f.User, f.LogOut, f.Feed, f.Section = "", nil, "", "" }
	trail := func(links ...string) func(*page.Frame) {
		return func(f *page.Frame) {
			for i := 0; i+1 < len(links); i += 2 {
				f.Trail = append(f.Trail, page.Link{Label: say(links[i]), URL: links[i+1]})
			}
		}
	}

	add("login", "", &page.Login{
		Ended:        say("Your session has ended after 8 hours without a click."),
		Organisation: &page.Action{Label: page.Text("login.organisation"), URL: "/auth/start?to=%2F", Weight: page.WeightPrimary},
		Token:        &page.Action{Label: page.Text("login.button"), URL: "/login/token", Post: true, Fields: []page.Hidden{{Name: "to", Value: "/"}}},
	}, alone)
	add("overview", page.SectionOverview, &page.Overview{
		Status:  Status(say, 3),
		Pending: []schema.ResumedOperation{samplePending(say)},
		Waiting: []page.Notice{{Tone: page.ToneInfo, Text: say("joe@admin-1 is upgrading shop in production since 11:58 UTC; others wait until that has ended.")}},
		Actions: []page.Action{
			{Label: page.Text("action.import"), URL: "/import", Weight: page.WeightPrimary}, {Label: page.Text("action.createEnvironment"), URL: "/environments/new"},
		},
	}, func(f *page.Frame) { f.Running = 1 })
	add("overview-stale", page.SectionOverview, &page.Overview{Status: Status(say, 3)}, func(f *page.Frame) {
		f.Stale = &page.Stale{Since: Noon.Add(-time.Minute), Why: say("list namespaces: API server https://10.0.0.1:6443: it does not answer")}
	})
	add("overview-checking", page.SectionOverview, page.PreviewOverview(Preview(Status(say, 3)), page.Listing{}))
	add("overview-loader", page.SectionOverview, &page.Overview{Status: Status(say, 2), Loader: sampleLoader(say, schema.LoadFailed)})
	add("loader", page.SectionOverview, sampleLoader(say, schema.LoadRunning), trail("Overview", "/"))
	add("loader-failed", page.SectionOverview, sampleLoader(say, schema.LoadFailed), trail("Overview", "/"))
	add("loader-never", page.SectionOverview, &page.Loader{}, trail("Overview", "/"))
	add("overview-empty", page.SectionOverview, &page.Overview{Status: &schema.Status{Ready: true}, Start: sampleStart(say, 0)})
	add("overview-start", page.SectionOverview, &page.Overview{Status: &schema.Status{Solutions: Status(say, 0).Solutions[:1]}, Start: sampleStart(say, 1)})
	alerts := sampleAlertState(say)
	add("overview-alerts", page.SectionOverview, &page.Overview{Status: Status(say, 1), AlertState: alerts})
	add("alerts", page.SectionOverview, &page.Alerts{AlertState: alerts})
	add("alerts-unknown", page.SectionOverview, &page.Alerts{
		AlertState: &page.AlertState{}, Hints: []string{say("say where it is, as Grafana has it: solutionctl deploy monitoring config --prometheus http://SERVICE.NAMESPACE:9090")},
	})
	alerting, alertingSolution := sampleEnvironment(say), sampleSolution(say)
	alerting.AlertState, alertingSolution.AlertState = alerts, &page.AlertState{Problem: &page.Problem{
		Code: report.Forbidden, Message: say("you do not have permission to read the alerts of a Prometheus of this cluster"),
		Hints: []string{say("an administrator can allow it with this rule of a Role\nin namespace monitoring:\n- apiGroups: [\"\"]\n  resources: [\"services/proxy\"]")},
	}}
	for i := range alerts.List.Alerts {
		if alerts.List.Alerts[i].Environment != "" {
			alerts.List.Alerts[i].Environment = alerting.Status.Name
		}
	}
	add("environment-alerts", page.SectionEnvironments, alerting, trail("Environments", "/environments"))
	add("solution-alerts", page.SectionSolutions, alertingSolution, trail("Solutions", "/solutions"))
	add("yours", page.SectionOverview, &page.Yours{
		Unseen: schema.Unseen{What: say("Which environments there are, what was imported and what is deployed elsewhere."), Rules: say("- apiGroups: [\"\"]\n  resources: [namespaces]\n  verbs: [list]")},
		Name:   say("prod"), Problem: say("There is no environment prod that you can see."), Opened: []string{say("staging"), say("Donaudampfschifffahrtselektrizitätenhauptbetriebswerk")},
	})
	add("environment-part", page.SectionEnvironments, samplePart(say), trail("Environments", "/environments"))
	add("solutions", page.SectionSolutions, &page.Solutions{Result: sampleSearch(say), Import: &page.Action{Label: page.Text("action.import"), URL: "/import", Weight: page.WeightPrimary}})
	add("solution", page.SectionSolutions, sampleSolution(say), trail("Solutions", "/solutions"))
	add("content", page.SectionSolutions, sampleContent(say), trail("Solutions", "/solutions", "Shop", "/solutions/shop"))
	add("content-unknown", page.SectionSolutions, &page.ArchiveContent{Facts: &schema.ArchiveFacts{
		Solution: say("shop"), Version: say("1.9.0"), Statements: []schema.ProductStatement{},
	}}, trail("Solutions", "/solutions", "Shop", "/solutions/shop"))
	add("import", page.SectionImport, sampleImport(say))
	add("import-elsewhere", page.SectionImport, &page.Import{Elsewhere: &page.Elsewhere{
		Host: say("bootstrap-1"), Reason: say("This console runs in the cluster and has no store of archives."), Command: say("solutionctl deploy import FILE.iso"),
	}})
	add("examination", page.SectionImport, sampleExamination(say), trail("Import", "/import"))
	add("environments", page.SectionEnvironments, &page.Environments{
		Environments: Status(say, 3).Environments,
		Create:       &page.Action{Label: page.Text("action.createEnvironment"), URL: "/environments/new", Weight: page.WeightPrimary},
	})
	add("newenvironment", page.SectionEnvironments, &page.NewEnvironment{Form: page.Form{
		Action: page.Action{Label: "Create environment", URL: "/environments/new", Post: true, Weight: page.WeightPrimary},
		Inputs: []page.Input{
			{Name: "name", Label: "Name", Help: "Lower-case letters, digits and dashes.", Value: say("Prod"), Problem: say(`"Prod" has capital letters`), Required: true},
			{Name: "description", Label: "Description"},
		},
		Checkboxes: []page.Checkbox{{Name: "adopt", Label: "Take a namespace that exists already", Explanation: "Whatever is in it stays."}},
		Cancel:     page.Link{URL: "/environments"},
	}}, trail("Environments", "/environments"))
	add("environment", page.SectionEnvironments, sampleEnvironment(say), trail("Environments", "/environments"))
	add("yourcomponents", page.SectionEnvironments, sampleYourComponents(say), trail("Environments", "/environments", "staging", "/environments/staging"))
	add("logs", page.SectionEnvironments, sampleLogs(say), trail("Environments", "/environments", "production", "/environments/production"))
	add("logs-refused", page.SectionEnvironments, sampleRefusedLogs(say), trail("Environments", "/environments", "production", "/environments/production"))
	add("objects", page.SectionEnvironments, sampleObjects(say), trail("Environments", "/environments", "production", "/environments/production"))
	add("components", page.SectionEnvironments, sampleComponents(say), trail("Environments", "/environments", "production", "/environments/production"))
	add("plan", page.SectionSolutions, samplePlan(say), trail("Solutions", "/solutions", "Shop", "/solutions/shop"))
	add("plan-refused", page.SectionEnvironments, &page.Plan{
		Operation: &schema.Operation{Operation: "add", Solution: say("shop"), Version: say("1.10.0"), Environment: say("production"), Planned: true}, Unplanned: true,
		Refusal: &page.Problem{
			Code: report.Refused, Message: say("the cluster has no record of where nodes find images: pods of shop-1.10.0 could not start"),
			Hints: []string{say("on the host where 'solutionctl deploy serve' runs, with its address: solutionctl deploy registry add https://HOST:5000")},
		},
		Images: new(sampleImages(say)),
	}, trail("Environments", "/environments", "production", "/environments/production"))
	add("plan-parts", page.SectionEnvironments, largePlan(say, 12), trail("Environments", "/environments", "production", "/environments/production"))
	add("plan-delete", page.SectionEnvironments, sampleDeletion(say), trail("Environments", "/environments", "staging", "/environments/staging"))
	add("apps", page.SectionEnvironments, &page.Apps{
		Environment: say("production"), List: &schema.AppList{Apps: sampleApps(say)},
		Create: []page.Action{{Label: "New Shop", URL: "/environments/production/apps/new?kind=Shop", Weight: page.WeightPrimary}},
	}, trail("Environments", "/environments", "production", "/environments/production"))
	add("app", page.SectionEnvironments, sampleApp(say), trail("Environments", "/environments", "production", "/environments/production", "Applications", "/environments/production/apps"))
	add("states", page.SectionOverview, &page.States{States: schema.States()}, trail("Overview", "/"))
	add("values", page.SectionEnvironments, sampleValues(say), trail("Environments", "/environments", "production", "/environments/production"))
	add("appedit", page.SectionEnvironments, sampleEdit(say), trail("Environments", "/environments", "production", "/environments/production"))
	add("operations", page.SectionOperations, &page.Operations{
		Running: []page.Running{Run(say, nil)},
		Pending: []schema.ResumedOperation{samplePending(say)},
		Locks:   []page.Lock{{What: say("shop in production"), Holder: say("joe@admin-1"), Since: ago(2 * time.Minute)}},
		Recent:  []page.Running{Run(say, new(ago(time.Hour)))},
		Resume:  &page.Action{Label: "Resume", URL: "/operations/resume", Post: true, Weight: page.WeightPrimary},
	})
	add("progress", page.SectionOperations, Progress(say), trail("Operations", "/operations"), func(f *page.Frame) { f.Feed = "/operations/7/events" })
	stopped := Progress(say)
	stopped.Finished, stopped.Stopped = new(Noon), new(Noon)
	stopped.Failed, stopped.Running.Stopped = true, true
	stopped.Actions = []page.Action{
		{Label: page.Text("action.resume"), URL: "/operations/resume", Post: true, Weight: page.WeightPrimary},
		{Label: page.Text("operation.back"), URL: "/environments/production/plan/rollback?solution=shop"},
	}
	add("progress-done", page.SectionOperations, Done(say), trail("Operations", "/operations"))
	add("progress-failed", page.SectionOperations, Failed(say), trail("Operations", "/operations"))
	add("progress-stopped", page.SectionOperations, stopped, trail("Operations", "/operations"))
	add("history", page.SectionHistory, sampleHistory(say))
	add("doctor", page.SectionDoctor, sampleDoctor(say))
	add("support", page.SectionDoctor, &page.Support{
		Form: page.Form{
			Action:     page.Action{Label: "Collect", URL: "/support", Post: true, Weight: page.WeightPrimary},
			Checkboxes: []page.Checkbox{{Name: "logs", Label: "With the logs of containers", Explanation: "Programs may write anything into their logs, secrets too. Look at them before you send them."}},
		},
		Includes: []string{"nodes, their versions and conditions", "records of imports and deployments", "events"},
		Report:   &schema.SupportReport{Path: say("support-2026-11-22.tar.gz"), Size: 48321, Missing: []string{say("events: forbidden")}},
		Download: &page.Action{Label: "Download", URL: "/support/3"},
	}, trail("Doctor", "/doctor"))
	add("settings", page.SectionSettings, sampleSettings(say))
	add("settings-elsewhere", page.SectionSettings, &page.Settings{
		ReadOnly: page.Text("settings.elsewhere"), TrustElsewhere: page.Text("settings.trustelsewhere"), Registry: &schema.EndpointList{Mode: schema.RegistryOwn},
		About: []page.Fact{{Name: page.Text("settings.version"), Value: say("1.0.0")}},
	})
	add("failure", "", &page.Failure{Problem: page.Problem{
		Code: report.Forbidden, Message: say(`user "joe" has no permission to list secrets in namespace solutionctl-system`), Hints: []string{say("ask an administrator for the role that 'solutionctl deploy roles shop' prints")},
		Rule:     say("- apiGroups: [\"\"]\n  resources: [secrets]\n  verbs: [get, list]"),
		Remedies: []page.Action{{Label: "Back to the overview", URL: "/"}},
	}})
	add("confirmation", page.SectionSolutions, &page.Confirmation{
		Heading:  say("Unimport shop 0.9.0?"),
		Warnings: []page.Notice{{Tone: page.ToneWarn, Text: say("Its archive is deleted from bootstrap-1: 1.2 GiB.")}},
		Form: page.Form{
			Action: page.Action{Label: "Unimport", URL: "/solutions/shop/unimport", Post: true, Weight: page.WeightDanger, Confirm: say("shop-0.9.0")},
			Cancel: page.Link{URL: "/solutions/shop"},
		},
	})
	return all
}

// sampleImages is the step of a checklist about images, on a host that is not this one.
func sampleImages(say func(string) string) page.Stage {
	return page.Stage{
		Name: "images", State: page.StageNext, Text: say("Pods could not start: nodes have no registry that serves the images."),
		Facts: []string{say("https://10.0.0.1:5000 does not answer: connection refused")},
		Tasks: []page.Task{
			{Text: page.Text("start.elsewhere.serve"), Command: "solutionctl deploy serve", Done: true},
			{Text: page.Text("start.elsewhere.register"), Command: "solutionctl deploy registry add https://HOST:5000"},
			{Text: page.Text("start.elsewhere.configure"), Command: "solutionctl deploy node config"},
		},
		Actions: []page.Action{{Label: page.Text("failure.again"), URL: "/"}, {Label: page.Text("settings.title"), URL: "/settings"}},
	}
}

// sampleStart is a checklist of which so many steps are done.
func sampleStart(say func(string) string, done int) *page.Checklist {
	list := &page.Checklist{Steps: []page.Stage{
		{Name: "import", Text: say("shop 1.10.0"), Actions: []page.Action{{Label: page.Text("action.import"), URL: "/import", Weight: page.WeightPrimary}}},
		sampleImages(say),
		{Name: "activate", Text: page.Text("start.activate.left")},
		{Name: "environment", Text: page.Text("start.environment.left")},
		{Name: "add", Text: page.Text("start.add.left")},
	}}
	for i := range list.Steps {
		if list.Steps[i].State = page.StageLater; i < done {
			list.Steps[i].State, list.Steps[i].Actions = page.StageDone, nil
		}
	}
	list.Proceed()
	return list
}

var solutionNames = []string{"shop", "object-storage", "monitoring", "message-queue", "identity"}

// Preview is the part of a status that is known before health.
func Preview(of *schema.Status) *schema.Status {
	preview := &schema.Status{}
	unchecked := func(d schema.DeploymentStatus) schema.DeploymentStatus {
		return schema.DeploymentStatus{Solution: d.Solution, Wanted: cmp.Or(d.Wanted, d.Version)}
	}
	for _, s := range of.Solutions {
		if s.Deployment != nil {
			deployment := unchecked(*s.Deployment)
			s.Deployment = &deployment
		}
		preview.Solutions = append(preview.Solutions, s)
	}
	for _, e := range of.Environments {
		one := schema.EnvironmentStatus{Name: e.Name, Description: e.Description}
		for _, n := range e.Namespaces {
			space := schema.NamespaceStatus{Name: n.Name, Terminating: n.Terminating}
			for _, d := range n.Deployments {
				space.Deployments = append(space.Deployments, unchecked(d))
			}
			one.Namespaces = append(one.Namespaces, space)
		}
		preview.Environments = append(preview.Environments, one)
	}
	return preview
}

// Status is that of a cluster with so many environments.
func Status(say func(string) string, environments int) *schema.Status {
	s := &schema.Status{}
	for _, name := range solutionNames {
		health := schema.HealthReady
		s.Solutions = append(s.Solutions, schema.SolutionStatus{
			Name: say(name), DisplayName: say(strings.ToUpper(name[:1]) + strings.ReplaceAll(name[1:], "-", " ")), Active: say("1.10.0"),
			Versions:   []schema.ImportedVersion{{Version: say("1.9.0")}, {Version: say("1.10.0"), Active: true}},
			Deployment: &schema.DeploymentStatus{Solution: say(name), Version: say("1.10.0"), Health: health, Objects: 6, Ready: 6},
		})
	}
	s.Solutions = append(s.Solutions, schema.SolutionStatus{
		Name: "rechtsschutz", DisplayName: say("Rechtsschutzversicherungsgesellschaftenverwaltung"), Versions: []schema.ImportedVersion{{Version: "2.0.0-rc.1"}},
	})
	first := []string{"production", "staging", "Donaudampfschifffahrtselektrizitätenhauptbetriebswerk"}
	for i := range environments {
		name := fmt.Sprintf("customer-%03d", i)
		if i < len(first) {
			name = first[i]
		}
		e := schema.EnvironmentStatus{Name: say(name), Description: say("Everything that customers see")}
		n := schema.NamespaceStatus{Name: say(name)}
		for j, solution := range solutionNames {
			if i > 0 && (i+j)%7 == 3 {
				continue
			}
			d := schema.DeploymentStatus{Solution: say(solution), Version: say("1.10.0"), Wanted: say("1.10.0"), Health: schema.HealthReady, Objects: 12, Ready: 12}
			switch {
			case i%41 == 1 && j == 1:
				d.Health, d.Ready = schema.HealthFailed, 11
				d.Reasons = []schema.Reason{{
					Log:  schema.ContainerLog{Pod: "object-storage-operator-7d9f64b8c5-x2wvq", Container: "manager", Previous: true},
					Text: say("Deployment " + name + "/object-storage-operator: pod object-storage-operator-7d9f64b8c5-x2wvq: container manager: ends again and again (14 times so far): exit code 1: cannot open /etc/object-storage/configuration.yaml: permission denied"),
				}}
			case i%29 == 2 && j == 0:
				d.Health, d.Ready = schema.HealthDrifted, 12
				d.Reasons = []schema.Reason{{Text: say("ConfigMap " + name + "/shop was changed by kubectl-edit at 2026-11-21T09:12:00Z")}}
			case i%23 == 0 && j == 2:
				d.Health, d.Ready = schema.HealthProgressing, 9
				d.Reasons = []schema.Reason{{Text: say("StatefulSet " + name + "/monitoring: 1 of 3 replicas is ready")}}
			case i%57 == 5 && j == 3:
				d.Health, d.Wanted, d.Ready = schema.HealthPending, say("1.11.0"), 4
				d.Pending = &schema.PendingOperation{Operation: "upgrade", Version: say("1.11.0"), User: say("joe@admin-1"), Started: ago(3 * time.Hour)}
			case i%61 == 6 && j == 4:
				d.Health, d.Version, d.Objects, d.Ready = schema.HealthMissing, "", 0, 0
			}
			if i == 0 && j == 0 {
				d.Waiting = []schema.ObjectRef{{APIVersion: "monitoring.coreos.com/v1", Kind: "ServiceMonitor", Namespace: say(name), Name: say(solution)}}
			}
			n.Deployments = append(n.Deployments, d)
		}
		e.Namespaces = []schema.NamespaceStatus{n}
		s.Environments = append(s.Environments, e)
	}
	return s
}

func sampleAlertState(say func(string) string) *page.AlertState {
	return &page.AlertState{List: &schema.AlertList{
		Asked: []string{say("Prometheus monitoring/kps"), say("Prometheus openshift-user-workload-monitoring/user-workload")},
		Alerts: []schema.Alert{
			{
				Name: say("SolutionctlArchiveDamaged"), State: schema.AlertFiring, Since: Noon, Severity: say("critical"), Summary: say("Archive shop-1.0.0 at 10.0.0.1:5000 differs from the imported one."),
				Description: say("It was cut off or changed."), Runbook: say("Import the archive again: `solutionctl deploy import FILE`"),
			},
			{
				Name: say("WebsiteNotReady"), State: schema.AlertPending, Since: Noon, Severity: say("warning"), Environment: say("production"), Solution: say("shop"),
				Summary: say("Website production/www has had fewer ready servers than requested for ten minutes; its status shows why."),
			},
		},
		Unseen:   []schema.Unseen{{What: say("the alerts of Prometheus team/own"), Rules: say("in namespace team:\n- apiGroups: [\"\"]\n  resources: [\"services/proxy\"]")}},
		Problems: []string{say("the alerts of Prometheus monitoring/other are not known: Service monitoring/other does not answer within 2s")},
	}}
}

func samplePending(say func(string) string) schema.ResumedOperation {
	return schema.ResumedOperation{
		Environment: say("staging"), Namespace: say("staging"), Solution: say("shop"),
		PendingOperation: schema.PendingOperation{Operation: "upgrade", Version: say("1.10.0"), User: say("joe@admin-1"), Started: ago(26 * time.Hour)},
		Error:            say("Deployment staging/shop-operator: image cannot be pulled"),
	}
}
