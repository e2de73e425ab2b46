// Package pagetest has pages for tests, one of each kind: [Samples] as they are, or with hostile names in them, and [Large] with two
// hundred of everything. Tests of package page compare them with golden files; those in a browser look at them.
package pagetest

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign"
)

// Noon is when the samples were made.
var Noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return Noon.Add(-d) }

// Honest says a text as it is.
func Honest(text string) string { return text }

// Samples are a page of each kind, each text of which passes through say: a golden page says it as it is, the corpus of
// hostile strings says something else.
func Samples(say func(string) string) map[string]page.View {
	all := map[string]page.View{}
	add := func(name string, section page.Section, c page.Content, change ...func(*page.Frame)) {
		f := page.Frame{
			User: say("oidc:jane@example.com"), Cluster: say("https://10.0.0.1:6443"), Version: "1.0.0", Now: Noon, Section: section,
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
	add("overview-loader", page.SectionOverview, &page.Overview{Status: Status(say, 2), Loader: sampleLoader(say, schema.LoadFailed)})
	add("loader", page.SectionOverview, sampleLoader(say, schema.LoadRunning), trail("Overview", "/"))
	add("loader-failed", page.SectionOverview, sampleLoader(say, schema.LoadFailed), trail("Overview", "/"))
	add("loader-never", page.SectionOverview, &page.Loader{}, trail("Overview", "/"))
	add("overview-empty", page.SectionOverview, &page.Overview{Status: &schema.Status{Ready: true}})
	heard := sampleHeard(say)
	add("overview-alerts", page.SectionOverview, &page.Overview{Status: Status(say, 1), Heard: heard})
	add("alerts", page.SectionOverview, &page.Alerts{Heard: heard})
	add("alerts-nobody", page.SectionOverview, &page.Alerts{
		Heard: &page.Heard{}, Hints: []string{say("say where it is, as Grafana has it: solutionctl deploy monitoring config --prometheus http://SERVICE.NAMESPACE:9090")},
	})
	alerting, alertingSolution := sampleEnvironment(say), sampleSolution(say)
	alerting.Heard, alertingSolution.Heard = heard, &page.Heard{Problem: &page.Problem{
		Code: report.Forbidden, Message: say("you may not ask a Prometheus of this cluster for its alerts"),
		Hints: []string{say("an administrator can allow it with this rule of a Role\nin namespace monitoring:\n- apiGroups: [\"\"]\n  resources: [\"services/proxy\"]")},
	}}
	for i := range heard.List.Alerts {
		if heard.List.Alerts[i].Environment != "" {
			heard.List.Alerts[i].Environment = alerting.Status.Name
		}
	}
	add("environment-alerts", page.SectionEnvironments, alerting, trail("Environments", "/environments"))
	add("solution-alerts", page.SectionSolutions, alertingSolution, trail("Solutions", "/solutions"))
	add("yours", page.SectionOverview, &page.Yours{
		Unseen: schema.Unseen{What: say("Which environments there are, what was imported and what is deployed elsewhere."), Rules: say("- apiGroups: [\"\"]\n  resources: [namespaces]\n  verbs: [list]")},
		Name:   say("prod"), Problem: say("There is no environment prod that you may see."), Opened: []string{say("staging"), say("Donaudampfschifffahrtselektrizitätenhauptbetriebswerk")},
	})
	add("environment-part", page.SectionEnvironments, samplePart(say), trail("Environments", "/environments"))
	add("solutions", page.SectionSolutions, &page.Solutions{Result: sampleSearch(say), Import: &page.Action{Label: page.Text("action.import"), URL: "/import", Weight: page.WeightPrimary}})
	add("solution", page.SectionSolutions, sampleSolution(say), trail("Solutions", "/solutions"))
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
	add("components", page.SectionEnvironments, sampleComponents(say), trail("Environments", "/environments", "production", "/environments/production"))
	add("plan", page.SectionSolutions, samplePlan(say), trail("Solutions", "/solutions", "Shop", "/solutions/shop"))
	add("plan-parts", page.SectionEnvironments, largePlan(say, 12), trail("Environments", "/environments", "production", "/environments/production"))
	add("plan-delete", page.SectionEnvironments, sampleDeletion(say), trail("Environments", "/environments", "staging", "/environments/staging"))
	add("apps", page.SectionEnvironments, &page.Apps{
		Environment: say("production"), List: &schema.AppList{Apps: sampleApps(say)},
		Create: []page.Action{{Label: "New Shop", URL: "/environments/production/apps/new?kind=Shop", Weight: page.WeightPrimary}},
	}, trail("Environments", "/environments", "production", "/environments/production"))
	add("app", page.SectionEnvironments, sampleApp(say), trail("Environments", "/environments", "production", "/environments/production", "Applications", "/environments/production/apps"))
	add("appedit", page.SectionEnvironments, sampleEdit(say), trail("Environments", "/environments", "production", "/environments/production"))
	add("operations", page.SectionOperations, &page.Operations{
		Running: []page.Running{Run(say, nil)},
		Pending: []schema.ResumedOperation{samplePending(say)},
		Locks:   []page.Lock{{What: say("shop in production"), Holder: say("joe@admin-1"), Since: ago(2 * time.Minute)}},
		Recent:  []page.Running{Run(say, new(ago(time.Hour)))},
		Resume:  &page.Action{Label: "Resume", URL: "/operations/resume", Post: true, Weight: page.WeightPrimary},
	})
	add("progress", page.SectionOperations, Progress(say), trail("Operations", "/operations"), func(f *page.Frame) { f.Feed = "/operations/7/events" })
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
	add("failure", "", &page.Failure{Problem: page.Problem{
		Code: report.Forbidden, Message: say(`joe may not list secrets in namespace solutionctl-system`), Hints: []string{say("ask an administrator for the role that 'solutionctl deploy roles shop' prints")},
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

var solutionNames = []string{"shop", "object-storage", "monitoring", "message-queue", "identity"}

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
				d.Reasons = []string{say("Deployment " + name + "/object-storage-operator, container manager: CrashLoopBackOff, exit code 1, 14 restarts: cannot open /etc/object-storage/configuration.yaml: permission denied")}
			case i%29 == 2 && j == 0:
				d.Health, d.Ready = schema.HealthDrifted, 12
				d.Reasons = []string{say("ConfigMap " + name + "/shop was changed by kubectl-edit at 2026-11-21T09:12:00Z")}
			case i%23 == 0 && j == 2:
				d.Health, d.Ready = schema.HealthProgressing, 9
				d.Reasons = []string{say("StatefulSet " + name + "/monitoring: 1 of 3 replicas is ready")}
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

func sampleHeard(say func(string) string) *page.Heard {
	return &page.Heard{List: &schema.AlertList{
		Asked: []string{say("Prometheus monitoring/kps"), say("Prometheus openshift-user-workload-monitoring/user-workload")},
		Alerts: []schema.Alert{
			{
				Name: say("SolutionctlArchiveDamaged"), State: schema.AlertFiring, Since: Noon, Severity: say("critical"), Summary: say("Archive shop-1.0.0 at 10.0.0.1:5000 is not what was imported."),
				Description: say("It was cut off or changed."), Runbook: say("Import the archive again: `solutionctl deploy import FILE`"),
			},
			{
				Name: say("WebsiteNotReady"), State: schema.AlertPending, Since: Noon, Severity: say("warning"), Environment: say("production"), Solution: say("shop"),
				Summary: say("Website production/www has had fewer ready servers than wanted for ten minutes; its status tells why."),
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

func sampleSearch(say func(string) string) *schema.SearchResult {
	r := &schema.SearchResult{}
	for _, name := range solutionNames {
		for i, version := range []string{"1.9.0", "1.10.0", "1.11.0-rc.1"} {
			v := schema.FoundVersion{
				Name: say(name), DisplayName: say(strings.ToUpper(name[:1]) + name[1:]), Version: say(version), ID: say(name + "-" + version),
				Active: i == 1, Imported: i < 2, Stored: true,
				Images: []schema.FoundImage{{Image: say(name + "-operator:" + version), Digest: "sha256:" + strings.Repeat("ab", 32), Origin: say("registry.example.com/acme/" + name + "-operator:" + version), Matches: i == 1 && name == "shop"}},
			}
			if i < 2 {
				v.Environments = []string{say("production"), say("staging")}
			}
			r.Versions = append(r.Versions, v)
		}
	}
	return r
}

func sampleSolution(say func(string) string) *page.Solution {
	status := Status(say, 0).Solutions[0]
	status.Versions = []schema.ImportedVersion{
		{Version: say("1.8.3"), ImportedAt: new(ago(900 * time.Hour)), ImportedBy: say("joe@bootstrap-1")},
		{Version: say("1.9.0"), ImportedAt: new(ago(300 * time.Hour)), ImportedBy: say("joe@bootstrap-1")},
		{Version: say("1.10.0"), Active: true, ImportedAt: new(ago(30 * time.Hour)), ImportedBy: say("jane@bootstrap-1")},
	}
	denied := &page.Denial{Reason: say("You may not import or unimport archives."), Rule: say("- apiGroups: [archives.solutionctl.io]\n  resources: [archives]\n  verbs: [unimport]")}
	return &page.Solution{
		Status: status, Versions: sampleSearch(say).Versions[:3],
		Compatibility: &schema.Compatibility{Solution: say("shop"), Active: say("1.10.0"), Versions: []schema.VersionCompatibility{
			{Version: say("1.8.3"), Verdict: schema.CompatibilityLoss, Losses: []string{say("shops.example.com: spec.storage.tier of 14 objects would be lost")}},
			{Version: say("1.9.0"), Verdict: schema.CompatibilityKeeps, Notices: []string{say("shops.example.com keeps v1alpha1 for production")}},
			{Version: say("1.10.0"), Verdict: schema.CompatibilityYes},
		}},
		Needs: map[string][]schema.Dependency{say("1.10.0"): {{Solution: say("object-storage"), Version: ">= 1.9"}}},
		VersionActions: map[string][]page.Action{
			say("1.8.3"): {{Label: "Activate", URL: "/solutions/shop/plan/activate?version=1.8.3"}, {Label: "Unimport", URL: "/solutions/shop/unimport?version=1.8.3", Denied: denied}},
			say("1.9.0"): {{Label: "Activate", URL: "/solutions/shop/plan/activate?version=1.9.0"}, {Label: "Unimport", URL: "/solutions/shop/unimport?version=1.9.0", Denied: denied}},
		},
		Actions: []page.Action{{Label: "Add to an environment", URL: "/solutions/shop/add", Weight: page.WeightPrimary}, {Label: "Deactivate", URL: "/solutions/shop/plan/deactivate", Weight: page.WeightDanger}},
	}
}

func sampleImport(say func(string) string) *page.Import {
	return &page.Import{
		Upload: &page.Form{Action: page.Action{Label: "Upload", URL: "/import", Post: true, Weight: page.WeightPrimary}},
		Path: &page.Form{
			Action: page.Action{Label: "Look at it", URL: "/import/path", Post: true},
			Inputs: []page.Input{{Name: "path", Label: "Path", Required: true, Value: say("/srv/archives/shop-1.11.0.iso")}},
		},
		Uploads: []page.Upload{
			{ID: "1", Name: say("shop-1.11.0.iso"), Received: 1 << 30, Size: 5 << 30, User: say("oidc:jane@example.com"), Changed: ago(20 * time.Second), Actions: []page.Action{{Label: "Discard", URL: "/import/1/discard", Post: true}}},
			{ID: "2", Name: say("identity-2.0.0.iso"), Received: 1 << 29, Size: 1 << 29, User: say("oidc:jane@example.com"), Changed: ago(time.Hour), Page: "/import/2"},
		},
	}
}

func sampleExamination(say func(string) string) *page.Examination {
	rule := 0
	return &page.Examination{
		Name: say("shop-1.11.0.iso"), Solution: say("shop"), Version: say("1.11.0"), Size: 5 << 30, Signers: []string{say("acme-release")},
		Verdict: &sign.Verdict{
			Verified: true, Archive: sign.ArchiveInfo{Path: say("/x"), Size: 5 << 30, SHA256: strings.Repeat("0123abcd", 8)},
			Policy:     sign.PolicyInfo{File: say("/etc/solutionctl/trust/policy.yaml"), Rule: &rule},
			Signatures: []sign.Signature{{File: say("shop-1.11.0.iso.sigstore.json"), Status: sign.Accepted, KeyName: say("acme-release"), SignedAt: new(ago(50 * time.Hour))}},
			Checks: []sign.Check{
				{Name: "signature", Result: sign.Passed, Detail: say("1 of 1 signers")},
				{Name: "revocation", Result: sign.Passed},
				{Name: "version", Result: sign.Passed, Detail: say("newer than 1.10.0")},
				{Name: "content", Result: sign.Deferred},
			},
		},
		Lint: &schema.LintTarget{Findings: []report.Finding{{
			Rule: "IMG003", Severity: report.SeverityWarning, Path: say("operator/cluster/webhook.yaml"), Line: 14, Object: say("Deployment/webhook"),
			Message: say("the container has no limit of memory"), Hint: say("set resources.limits.memory"),
		}}},
		Brings: []string{say("3 images, 1 of them new since 1.10.0"), say("1 definition, 2 fields more")},
		Plan:   samplePlan(say).Operation,
		Form:   page.Form{Action: page.Action{Label: "Import", URL: "/import/2", Post: true, Weight: page.WeightPrimary}, Cancel: page.Link{URL: "/import"}},
	}
}

func sampleEnvironment(say func(string) string) *page.Environment {
	status := Status(say, 2).Environments[1]
	status.Namespaces[0].Deployments[0].Drift = []schema.Change{{
		Action: schema.ActionUpdate, Object: schema.ObjectRef{APIVersion: "v1", Kind: "ConfigMap", Namespace: say("staging"), Name: say("shop")},
		Fields: []schema.FieldChange{{Path: say("data.level"), From: strconv.Quote(say("debug")), To: `"info"`, Manager: say("kubectl-edit"), Since: new(ago(20 * time.Hour))}},
	}}
	status.Namespaces[0].Deployments[0].Health = schema.HealthDrifted
	status.Namespaces[0].Deployments[0].Reasons = []string{status.Namespaces[0].Deployments[0].Drift[0].Object.String() + say(" was changed: data.level is debug, was info")}
	status.Namespaces[0].Deployments[0].Components = []schema.ComponentStatus{{Name: say("database")}, {Name: say("web")}}
	status.Members = []schema.Member{
		{Namespace: say("staging"), Kind: "User", Name: say("oidc:joe@example.com"), Role: "view"},
		{Namespace: say("staging"), Kind: "Group", Name: say("oidc:shop-operators"), Role: say("solutionctl-shop-admin")},
		{Namespace: say("staging"), Kind: "ServiceAccount", Name: say("staging/shop-operator"), Role: say("shop-operator"), Solution: say("shop")},
	}
	status.Unseen = []schema.Unseen{{What: say("who may do what in namespace staging-2"), Rules: say("in namespace staging-2:\n- apiGroups: [rbac.authorization.k8s.io]\n  resources: [rolebindings]\n  verbs: [list]")}}
	e := &page.Environment{
		Status: status, Deployments: map[page.Deployment][]page.Action{},
		Held: []string{say("Shop staging/old: shops.example.com/cleanup")},
		Actions: []page.Action{
			{Label: "Add a Solution", URL: "/environments/staging/plan/add", Weight: page.WeightPrimary},
			{Label: "Applications", URL: "/environments/staging/apps"},
			{Label: "Delete", URL: "/environments/staging/plan/delete", Weight: page.WeightDanger},
		},
	}
	for _, d := range status.Namespaces[0].Deployments {
		e.Deployments[page.Deployment{Namespace: say("staging"), Solution: d.Solution}] = []page.Action{
			{Label: "Upgrade", URL: "/environments/staging/plan/upgrade?solution=shop"},
			{Label: "Repair", URL: "/environments/staging/plan/repair?solution=shop"},
			{Label: "Remove", URL: "/environments/staging/plan/remove?solution=shop", Weight: page.WeightDanger},
		}
	}
	return e
}

func sampleComponents(say func(string) string) *page.Components {
	node := func(level int, name string, kind schema.ComponentKind, health schema.DeploymentHealth, needs ...string) schema.ComponentNode {
		n := schema.ComponentNode{Name: say(name), Kind: kind, Path: say("charts/" + name + ".tgz"), Scope: schema.ScopeEnvironment, Level: level, Selected: true, Reason: schema.SelectedByDefault}
		if health != "" {
			n.Status = &schema.ComponentStatus{Name: say(name), Health: health, Objects: 12, Ready: 12}
		}
		for _, need := range needs {
			n.DependsOn = append(n.DependsOn, schema.ComponentDependency{Component: say(need), Until: schema.UntilReady})
		}
		return n
	}
	graph := &schema.ComponentGraph{Solution: say("cloud"), Version: say("2.0.0"), Profiles: []string{say("large"), say("small")}, Chosen: []string{say("small")}, Components: []schema.ComponentNode{
		node(0, "database", schema.ComponentChart, schema.HealthReady),
		node(0, "message-queue-with-a-name-that-is-rather-long", schema.ComponentChart, schema.HealthReady),
		node(0, "operator", schema.ComponentOperator, ""),
		node(0, "quota", schema.ComponentManifests, ""),
		node(1, "identity-sync", schema.ComponentJob, schema.HealthReady, "database"),
		node(1, "network", schema.ComponentChart, schema.HealthDrifted, "message-queue-with-a-name-that-is-rather-long", "database"),
		node(2, "identity", schema.ComponentChart, schema.HealthProgressing, "identity-sync", "operator"),
		node(3, "compute", schema.ComponentChart, schema.HealthFailed, "identity", "network", "message-queue-with-a-name-that-is-rather-long", "quota"),
		node(4, "metrics", schema.ComponentChart, "", "compute"),
	}}
	all := graph.Components
	all[2].Name, all[6].DependsOn[1].Component = schema.NodeOperator, schema.NodeOperator
	all[3].Scope, all[5].Reason, all[5].By = schema.ScopeCluster, schema.SelectedAsNeeded, say("compute")
	all[6].Status.Ready, all[6].Status.Reasons = 9, []string{say("Deployment production/identity: 1 of 3 replicas is ready")}
	all[7].Status.Ready, all[7].Status.Reasons = 3, []string{say("Job production/compute-db: failed, exit code 1: cannot reach the database")}
	all[8].Selected, all[8].Reason, all[8].Profiles = false, schema.NotSelected, []string{say("large")}
	return &page.Components{
		Environment: say("production"), Namespace: say("production"), Graph: graph, Deployment: schema.DeploymentStatus{Solution: say("cloud"), Health: schema.HealthFailed},
		Actions: []page.Action{{Label: "Upgrade", URL: "/environments/production/plan/upgrade?solution=cloud"}},
	}
}

func sampleYourComponents(say func(string) string) *page.YourComponents {
	part := func(name string, health schema.DeploymentHealth, reasons ...string) schema.ComponentStatus {
		return schema.ComponentStatus{Name: say(name), Version: say("2.0.0"), Health: health, Objects: 3, Ready: 3 - len(reasons), Reasons: reasons}
	}
	return &page.YourComponents{
		Environment: say("staging"), Namespace: say("staging-1"), Unseen: samplePart(say).Status.Unseen,
		Deployment: schema.DeploymentStatus{Solution: say("cloud"), Version: say("2.0.0"), Health: schema.HealthProgressing, Components: []schema.ComponentStatus{
			part("database", schema.HealthReady), part("Donaudampfschifffahrtselektrizitätenhauptbetriebswerk", schema.HealthProgressing, say("Deployment staging-1/identity: 0 of 1 ready")),
		}},
	}
}

// samplePart is what somebody sees who has rights in one namespace only.
func samplePart(say func(string) string) *page.Environment {
	status := Status(say, 2).Environments[1]
	deployments := status.Namespaces[0].Deployments
	deployments[0].Health, deployments[0].Version = schema.HealthUnknown, ""
	deployments[0].Reasons = []string{say("version 1.10.0 is asked for; what is deployed you may not see")}
	status.Unseen = []schema.Unseen{
		{What: say("other namespaces of this environment, if it has any"), Rules: say("in every namespace:\n- apiGroups: [\"\"]\n  resources: [namespaces]\n  verbs: [list]")},
		{What: say("the records")},
	}
	denied := &page.Denial{Reason: say("Every change takes a lock."), Rule: say("- apiGroups: [coordination.k8s.io]\n  resources: [leases]\n  verbs: [get, create, update]")}
	return &page.Environment{Status: status, Visitor: true, Actions: []page.Action{
		{Label: "Applications", URL: "/environments/staging/apps"}, {Label: page.Text("action.change"), Denied: denied},
	}}
}

func samplePlan(say func(string) string) *page.Plan {
	definition := schema.Change{Action: schema.ActionUpdate, Object: schema.ObjectRef{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: say("shops.example.com")}}
	for i := range 60 {
		f := schema.FieldChange{Path: fmt.Sprintf("spec.versions[name=v1].schema.openAPIV3Schema.properties.spec.properties.settings.properties.option%02d", i)}
		switch i % 3 {
		case 0:
			f.Path = say(f.Path + ".type")
			f.To = strconv.Quote(say("string"))
		case 1:
			f.Path = say(f.Path + ".maximum")
			f.From, f.To = "64", "128"
		case 2:
			f.Path = say(f.Path + ".description")
			f.From = `"How many of them there are. Deprecated: nobody reads it any more since the operator finds out by itself."`
		}
		definition.Fields = append(definition.Fields, f)
	}
	return &page.Plan{
		Operation: &schema.Operation{
			Operation: "activate", Solution: say("shop"), Version: say("1.10.0"), Planned: true, Notices: []string{say("Two environments stay at 1.9.0; both versions work with these definitions.")},
			Parts: []schema.OperationPart{{Changes: []schema.Change{
				definition,
				{Action: schema.ActionUpdate, Object: schema.ObjectRef{Kind: "Deployment", Namespace: say("shop-system"), Name: say("shop-webhook")}, Fields: []schema.FieldChange{
					{Path: "spec.template.spec.containers[name=webhook].image", From: `"registry.solutionctl.invalid/shop-1.9.0/webhook:1.9.0"`, To: `"registry.solutionctl.invalid/shop-1.10.0/webhook:1.10.0"`},
					{Path: "spec.replicas", From: "1", To: "2", Manager: say("kubectl-edit"), Since: new(ago(20 * time.Hour))},
				}},
				{Action: schema.ActionCreate, Object: schema.ObjectRef{Kind: "ConfigMap", Namespace: say("shop-system"), Name: say("shop-dashboards")}},
				{Action: schema.ActionReplace, Object: schema.ObjectRef{Kind: "Job", Namespace: say("shop-system"), Name: say("shop-migrate")}, Note: say("its template cannot be changed")},
				{Action: schema.ActionDelete, Object: schema.ObjectRef{Kind: "ServiceMonitor", Namespace: say("shop-system"), Name: say("shop-old")}},
				{Action: schema.ActionNone, Object: schema.ObjectRef{Kind: "Service", Namespace: say("shop-system"), Name: say("shop-webhook")}},
				{Action: schema.ActionSkip, Object: schema.ObjectRef{Kind: "PrometheusRule", Namespace: say("shop-system"), Name: say("shop")}, Note: say("the cluster does not have the kind")},
			}}},
		},
		Changed: true,
		Choose: &page.Form{
			Action:  page.Action{Label: "Show this plan", URL: "/solutions/shop/plan/activate"},
			Selects: []page.Select{{Name: "version", Label: "Version", Choices: []page.Choice{{Value: "1.10.0", Label: "1.10.0 (newest)", Selected: true}, {Value: "1.9.0", Label: say("1.9.0")}}}},
			Groups: []page.Group{{Legend: "Components", Help: say("What a site says to charts"), Checkboxes: []page.Checkbox{
				{Name: "ticked", Value: say("database"), Label: say("database"), Explanation: say("Helm chart. Always selected."), Checked: true, Fixed: true},
				{Name: "ticked", Value: say("metrics"), Label: say("metrics"), Explanation: say("Manifests. Not without one of these profiles: large.")},
			}}},
		},
		Dangers: []page.Notice{{Tone: page.ToneBad, Text: say("shops.example.com loses spec.storage.tier: the value of 14 objects is gone for good.")}},
		Rights:  []string{say("get, list, watch secrets in the namespaces where shop is deployed")},
		Apply: &page.Form{
			Action: page.Action{Label: "Activate shop 1.10.0", URL: "/solutions/shop/activate", Post: true, Weight: page.WeightPrimary, Fields: []page.Hidden{{Name: "expect", Value: "sha256:0123"}}},
			Checkboxes: []page.Checkbox{
				{Name: "accept-data-loss", Value: say("shops.example.com"), Label: say("Accept that data of shops.example.com is lost"), Explanation: "All of them are exported first.", Details: []string{say("Shop production/main: spec.storage.tier = gold"), say("Shop staging/test: spec.storage.tier = silver")}, Required: true},
				{Name: "protect", Label: "Protect the definitions from being deleted", Checked: true},
			},
			Cancel: page.Link{URL: "/solutions/shop"},
		},
		Downloads: []page.Action{{Label: "Export 14 objects", URL: "/solutions/shop/export"}},
	}
}

func sampleDeletion(say func(string) string) *page.Plan {
	p := &page.Plan{
		Operation: &schema.Operation{Operation: "delete", Environment: say("staging"), Planned: true, Parts: []schema.OperationPart{{Namespace: say("staging")}}},
		Refusal: &page.Problem{
			Code: report.InUse, Message: say("staging still has 3 applications of shop"), Hints: []string{say("delete them first, or all of them together with the environment")},
			Remedies: []page.Action{{Label: "Show the applications", URL: "/environments/staging/apps"}, {Label: "Delete with all applications", URL: "/environments/staging/plan/delete?data=delete", Weight: page.WeightDanger}},
		},
		Dangers: []page.Notice{{Tone: page.ToneBad, Text: say("Everything in namespace staging is deleted, volumes and their data too.")}},
		Apply: &page.Form{
			Action: page.Action{Label: "Delete staging", URL: "/environments/staging/delete", Post: true, Weight: page.WeightDanger, Confirm: say("staging")},
			Cancel: page.Link{URL: "/environments/staging"},
		},
	}
	for _, kind := range []string{"Namespace", "Deployment", "ServiceAccount", "Role", "RoleBinding"} {
		p.Operation.Parts[0].Changes = append(p.Operation.Parts[0].Changes, schema.Change{Action: schema.ActionDelete, Object: schema.ObjectRef{Kind: kind, Namespace: say("staging"), Name: say("shop-operator")}})
	}
	return p
}

func sampleApps(say func(string) string) []schema.App {
	var apps []schema.App
	for i, name := range []string{"main", "blog", "archive-of-the-years-before-the-migration-to-the-second-generation"} {
		apps = append(apps, schema.App{
			Environment: say("production"), Namespace: say("production"), Solution: say("shop"), APIVersion: "example.com/v1", Kind: say("Shop"), Name: say(name),
			Health: []schema.AppHealth{schema.AppReady, schema.AppProgressing, schema.AppFailed}[i], Created: ago(time.Duration(100*(i+1)) * time.Hour),
		})
	}
	apps[2].Reasons = []string{say("Pod production/archive-0, container web: ImagePullBackOff: registry.solutionctl.invalid/shop-1.10.0/web:1.10.0: connection refused")}
	return apps
}

func sampleApp(say func(string) string) *page.App {
	app := sampleApps(say)[2]
	app.Values = map[string]any{"replicas": 3, "storage": map[string]any{"size": say("10Gi"), "tier": say("gold")}, "hosts": []any{say("shop.example.com")}}
	object := func(depth int, kind, name string, health schema.AppHealth, reason string) schema.AppObject {
		o := schema.AppObject{ObjectRef: schema.ObjectRef{APIVersion: "v1", Kind: kind, Namespace: "production", Name: say(name)}, Depth: depth, Health: health}
		if reason != "" {
			o.Reason = say(reason)
		}
		return o
	}
	app.Objects = []schema.AppObject{
		object(1, "StatefulSet", "archive", schema.AppProgressing, "2 of 3 replicas are ready"),
		object(2, "Pod", "archive-0", schema.AppFailed, "container web: ImagePullBackOff"), object(2, "Pod", "archive-1", schema.AppReady, ""),
		object(1, "Service", "archive", schema.AppReady, ""), object(1, "PersistentVolumeClaim", "data", schema.AppReady, ""),
	}
	app.Events = []schema.AppEvent{
		{ObjectRef: schema.ObjectRef{Kind: "Pod", Name: say("archive-0")}, Type: "Warning", Reason: say("Failed"), Message: say("Error: ImagePullBackOff"), Count: 14, Last: ago(time.Minute)},
		{ObjectRef: schema.ObjectRef{Kind: "StatefulSet", Name: say("archive")}, Type: "Normal", Reason: say("SuccessfulCreate"), Message: say("create Pod archive-0 in StatefulSet archive successful"), Count: 1, Last: ago(time.Hour)},
	}
	return &page.App{
		App: &app, YAML: say("apiVersion: example.com/v1\nkind: Shop\nmetadata:\n  name: archive\nspec:\n  replicas: 3\n"),
		Logs: []page.Link{{Label: say("archive-0 / web"), URL: "/environments/production/apps/production/Shop/archive?log=archive-0%2Fweb"}},
		Log:  &page.Log{Pod: say("archive-1"), Container: say("web"), Text: say("2026-11-22T11:58:01Z listening on :8080\n2026-11-22T11:58:09Z GET / 200\n"), Cut: true},
		Scale: &page.Form{
			Action: page.Action{Label: "Scale", URL: "/environments/production/apps/production/Shop/archive/scale", Post: true},
			Inputs: []page.Input{{Name: "replicas", Label: "Replicas", Value: "3", Required: true}},
		},
		Actions: []page.Action{{Label: "Configure", URL: "/environments/production/apps/production/Shop/archive/edit", Weight: page.WeightPrimary}, {Label: "Delete", URL: "/environments/production/apps/production/Shop/archive/delete", Weight: page.WeightDanger}},
	}
}

func sampleEdit(say func(string) string) *page.AppEdit {
	return &page.AppEdit{
		Environment: say("production"), Name: say("main"),
		Form: schema.AppForm{Solution: say("shop"), APIVersion: "example.com/v1", Kind: say("Shop"), Fields: []schema.AppField{
			{Path: say("storage.size"), Type: "string", Required: true, Description: say("How much room there is for its data, such as 10Gi.")},
			{Path: say("replicas"), Type: "integer", Default: "1", Limits: "1 to 5", Description: say("How many of them run."), Details: say("How many of them run. With three of them one may be lost.")},
			{Path: say("storage.tier"), Type: "string", Choices: []string{say("gold"), say("silver")}, Default: `"silver"`, Description: say("Where it is kept.")},
			{Path: say("hosts"), Type: "list of string", Description: say("Names under which it can be reached, as JSON or YAML.")},
			{Path: say("backup.enabled"), Type: "boolean", Default: "false"},
			{Path: say("a"), Type: "string", Secret: true},
			{Path: say("b"), Type: "string"},
			{Path: say("c"), Type: "string"},
			{Path: say("d"), Type: "string"},
		}},
		Values: []page.FieldValue{{Value: say("10 GB"), Problem: say(`quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'`)}, {Value: say("3")}, {}, {Value: say("[shop.example.com]")}},
		YAML:   say("apiVersion: example.com/v1\nkind: Shop\n"),
		Action: page.Action{Label: "Create", URL: "/environments/production/apps/new", Post: true, Weight: page.WeightPrimary}, Cancel: page.Link{URL: "/environments/production/apps"},
	}
}

// Run is an operation that has failed at some time, or is running.
func Run(say func(string) string, finished *time.Time) page.Running {
	return page.Running{
		ID: "7", Operation: &schema.Operation{Operation: "upgrade", Solution: say("shop"), Version: say("1.10.0"), Environment: say("production")},
		User: say("oidc:jane@example.com"), Started: ago(2 * time.Minute), Finished: finished, Failed: finished != nil,
	}
}

// Progress is the page of an operation that is running.
func Progress(say func(string) string) *page.Progress {
	run := Run(say, nil)
	job := schema.ObjectRef{APIVersion: "batch/v1", Kind: "Job", Namespace: "production", Name: say("shop-db-sync")}
	run.Operation.Parts = []schema.OperationPart{{
		Namespace: say("production"), Component: say("db-sync"), Changes: []schema.Change{{Action: schema.ActionCreate, Object: job}},
	}}
	return &page.Progress{
		Running: run,
		Steps: []report.Event{
			{Step: "lock", Name: say("production"), State: report.Done},
			{Step: "apply", Name: say("production/shop"), State: report.Running, Done: 9, Total: 14, Unit: "objects"},
			{Step: "wait", Name: say("Deployment production/shop-operator"), State: report.Running, Note: say("0 of 1 replicas is ready: container manager: ContainerCreating")},
			{Step: "task", Name: job.String(), State: report.Running},
			{Step: "migrate", Name: say("shops.example.com"), State: report.Skipped, Note: say("nothing is stored in the old version")},
		},
	}
}

func sampleHistory(say func(string) string) *page.History {
	h := &page.History{History: &schema.History{}, RollBack: map[int]page.Action{}}
	verbs := []string{"upgrade", "repair", "add", "activate", "downgrade"}
	for i, verb := range verbs {
		e := schema.HistoryEntry{
			Environment: say("production"), Namespace: say("production"), Solution: say("shop"), Revision: int64(len(verbs) - i), Operation: verb, Version: say("1.10.0"),
			Outcome: []schema.DeploymentOutcome{schema.DeploymentPending, schema.DeploymentReplaced, schema.DeploymentDone, schema.DeploymentDone, schema.DeploymentDone}[i],
			User:    say("oidc:jane@example.com"), Tool: "1.0.0", Started: ago(time.Duration(i*20) * time.Hour),
		}
		if i < 2 {
			e.Failure = &schema.DeploymentFailure{Code: report.Timeout, Message: say("Deployment production/shop-operator: 0 of 1 replicas is ready")}
		}
		if verb == "activate" {
			e.Environment, e.Namespace = "", ""
		}
		h.History.Operations = append(h.History.Operations, e)
		if i > 1 {
			h.RollBack[i] = page.Action{Label: "Roll back to this", URL: fmt.Sprintf("/environments/production/plan/rollback?revision=%d", len(verbs)-i)}
		}
	}
	return h
}

func sampleDoctor(say func(string) string) *page.Doctor {
	return &page.Doctor{
		Diagnosis: &schema.Diagnosis{Problems: 1, Warnings: 1, Checks: []schema.Check{
			{Area: "cluster", Name: "version", Result: schema.CheckOK, Message: say("Kubernetes 1.36.3")},
			{Area: "registry", Name: "endpoint", Result: schema.CheckProblem, Message: say("https://10.0.0.1:5000 does not answer: connection refused"), Hint: say("start 'solutionctl deploy serve' on bootstrap-1")},
			{Area: "cluster", Name: "clock", Result: schema.CheckWarning, Message: say("the API server's clock is 42 s ahead of this host's")},
			{Area: "records", Name: "pending", Result: schema.CheckSkipped, Message: say("you may not read records")},
		}},
		Remedies: map[string]page.Action{"registry/endpoint": {Label: "Change the endpoints", URL: "/settings"}},
		Support:  &page.Action{Label: "Support bundle", URL: "/support"},
	}
}

func sampleSettings(say func(string) string) *page.Settings {
	return &page.Settings{
		Registry: &schema.EndpointList{Mode: schema.RegistryOwn, Host: schema.RegistryHostOwn, Endpoints: []schema.Endpoint{{
			URL: say("https://10.0.0.1:5000"), Authorities: []schema.EndpointAuthority{{Fingerprint: "SHA256:" + strings.Repeat("0123ABCD", 8), NotAfter: Noon.Add(9000 * time.Hour)}},
		}}},
		Keys:       []page.TrustedKey{{Name: say("acme-release"), ID: strings.Repeat("01ab", 8), Algorithm: "ECDSA P-256"}, {Name: say("acme-2024"), ID: strings.Repeat("cd23", 8), Algorithm: "Ed25519", Revoked: true}},
		PolicyFile: say("/etc/solutionctl/trust/policy.yaml"),
		ReadOnly:   "These can be changed on bootstrap-1 only.",
		Sessions: []page.Session{
			{User: say("oidc:jane@example.com"), Way: "organisation", Started: ago(time.Hour), Seen: Noon, Current: true},
			{User: say("oidc:jane@example.com"), Way: "token", Started: ago(30 * time.Hour), Seen: ago(5 * time.Hour), End: &page.Action{Label: "Log out", URL: "/sessions/2/end", Post: true}},
		},
		About:   []page.Fact{{Name: "solutionctl", Value: say("1.0.0")}, {Name: "Kubernetes", Value: say("1.36.3")}},
		Actions: []page.Action{{Label: "Log out everywhere", URL: "/logout/everywhere", Post: true, Weight: page.WeightDanger}},
	}
}

// sampleLoader is a run of the loader that is under way, or has failed.
func sampleLoader(say func(string) string, phase schema.LoadPhase) *page.Loader {
	part := func(component string, state schema.LoadState) schema.LoadPart {
		return schema.LoadPart{
			Environment: say("infra"), Namespace: say("infra"), Solution: say("cloud"), Component: component, Version: say("2.0.0"), State: state,
			StartedAt: ago(9 * time.Minute),
		}
	}
	p := &schema.LoadProgress{
		Run: say("4f1c2a9be0"), Phase: phase, Digest: "sha256:" + strings.Repeat("4f", 32), StartedAt: ago(10 * time.Minute), UpdatedAt: ago(time.Minute), Ready: 2,
		Parts: []schema.LoadPart{
			part("", schema.PartReady), part(say("database"), schema.PartReady), part(say("identity"), schema.PartWaiting),
			part(say("compute"), schema.PartBlocked), part(say("metrics"), schema.PartPending),
		},
		Notices: []string{say("Secret solutionctl-system/cloud-values has no values for component metrics")},
		Loaded:  []schema.LoadedContent{{Environment: say("infra"), Solution: say("cloud")}, {Environment: say("test"), Solution: say("shop")}},
	}
	p.Parts[0].ReadyAt, p.Parts[1].ReadyAt = ago(9*time.Minute), ago(7*time.Minute)
	p.Parts[2].WaitingFor = []string{say("Deployment infra/identity: 1 of 3 replicas is ready"), say("Pod infra/identity-0, container main: ImagePullBackOff")}
	p.Parts[4].StartedAt, p.Parts[4].Optional = time.Time{}, true
	if phase == schema.LoadFailed {
		p.Parts[2].State, p.Parts[2].Error = schema.PartFailed, &schema.LoadError{Code: report.Timeout, Message: say("it was not ready after 30m0s")}
		p.Error = &schema.LoadError{Code: report.Timeout, Message: say("component identity was not ready in time"), Hint: say("'solutionctl deploy loader logs' tells what the run has written")}
		p.Repair = &schema.LoadRepair{At: ago(5 * time.Minute), Changed: []string{say("Deployment infra/database was changed by kubectl-scale"), say("ConfigMap infra/database is gone")}, Times: 4}
	}
	return &page.Loader{Progress: p}
}
