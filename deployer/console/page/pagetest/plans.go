package pagetest

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"time"

	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

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
			f.From = `"How many of them there are. Deprecated: ignored since the operator finds out by itself."`
		}
		definition.Fields = append(definition.Fields, f)
	}
	return &page.Plan{
		Operation: &schema.Operation{
			Operation: "activate", Solution: say("shop"), Version: say("1.10.0"), Planned: true, Notices: []string{say("Two environments stay at 1.9.0; both versions work with these definitions.")},
			Consequences: sampleConsequences(say), Preflight: samplePreflight(say), Powers: samplePowers(say),
			Signers: []schema.VersionSigners{{Solution: say("shop"), Version: say("1.10.0"), Signers: []string{say("acme-release")}}, {Solution: say("db"), Version: say("2.0.0"), Signers: []string{}}},
			Parts: []schema.OperationPart{{Changes: []schema.Change{
				definition,
				{Action: schema.ActionUpdate, Object: schema.ObjectRef{Kind: "Deployment", Namespace: say("shop-system"), Name: say("shop-webhook")}, Fields: []schema.FieldChange{
					{Path: "spec.template.spec.containers[name=webhook].image", From: `"registry.solutionctl.invalid/shop-1.9.0/webhook:1.9.0"`, To: `"registry.solutionctl.invalid/shop-1.10.0/webhook:1.10.0"`},
					{Path: "spec.replicas", From: "1", To: "2", Manager: say("kubectl-edit"), Since: new(ago(20 * time.Hour))},
				}},
				{Action: schema.ActionUpdate, Object: schema.ObjectRef{Kind: "Role", Namespace: say("shop-system"), Name: say("shop-webhook")}, Fields: []schema.FieldChange{
					{Path: "metadata.labels[app.kubernetes.io/version]", From: `"1.9.0"`, To: `"1.10.0"`},
				}},
				{Action: schema.ActionUpdate, Object: schema.ObjectRef{Kind: "ConfigMap", Namespace: say("shop-system"), Name: say("shop-forms")}, Fields: []schema.FieldChange{
					{Path: say("data.forms"), From: strconv.Quote(compressed(1200)), To: strconv.Quote(compressed(1500))},
				}},
				{Action: schema.ActionCreate, Object: schema.ObjectRef{Kind: "ConfigMap", Namespace: say("shop-system"), Name: say("shop-dashboards")}},
				{Action: schema.ActionReplace, Object: schema.ObjectRef{Kind: "Job", Namespace: say("shop-system"), Name: say("shop-migrate")}, Note: say("its template cannot be changed")},
				{Action: schema.ActionDelete, Object: schema.ObjectRef{Kind: "ServiceMonitor", Namespace: say("shop-system"), Name: say("shop-old")}},
				{Action: schema.ActionNone, Object: schema.ObjectRef{Kind: "Service", Namespace: say("shop-system"), Name: say("shop-webhook")}},
				{Action: schema.ActionSkip, Object: schema.ObjectRef{Kind: "PrometheusRule", Namespace: say("shop-system"), Name: say("shop")}, Note: say("the cluster does not have the kind")},
			}}},
		},
		Changed: true,
		Differs: &page.Difference{
			New:   []string{say("Create Role shop-system/shop-webhook")},
			Other: []string{say("Change Deployment shop-system/shop-webhook")},
			Gone:  []string{say("Delete ConfigMap shop-system/shop-old")},
		},
		Choose: &page.Form{
			Action:  page.Action{Label: "Show this plan", URL: "/solutions/shop/plan/activate"},
			Selects: []page.Select{{Name: "version", Label: "Version", Choices: []page.Choice{{Value: "1.10.0", Label: "1.10.0 (newest)", Selected: true}, {Value: "1.9.0", Label: say("1.9.0")}}}},
			Groups: []page.Group{{Legend: "Components", Help: say("Values that a site supplies to charts"), Checkboxes: []page.Checkbox{
				{Name: "ticked", Value: say("database"), Label: say("database"), Explanation: say("Helm chart. Always selected."), Checked: true, Fixed: true},
				{Name: "ticked", Value: say("metrics"), Label: say("metrics"), Explanation: say("Manifests. Not without one of these profiles: large.")},
			}}},
		},
		Values:  &page.Action{Label: page.Text("values.open"), URL: "/solutions/shop/plan/activate/values?version=1.10.0"},
		Edited:  []string{say("database.primary.persistence.size"), say("web.hosts")},
		Dangers: []page.Notice{{Tone: page.ToneBad, Text: say("shops.example.com loses spec.storage.tier: the value of 14 objects is gone for good.")}},
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

// compressed is a record of so many bytes as it is stored.
func compressed(size int) string {
	return base64.StdEncoding.EncodeToString(append([]byte{0x1f, 0x8b}, make([]byte, size-2)...))
}

func sampleConsequences(say func(string) string) *schema.Consequences {
	return &schema.Consequences{
		Versions: []schema.VersionChange{{Solution: say("shop"), From: say("1.9.0"), To: say("1.10.0")}},
		Programs: []schema.ProgramChange{
			{Object: schema.ObjectRef{Kind: "Deployment", Namespace: say("shop-system"), Name: say("shop-webhook")}, Effect: schema.ProgramRestarts, Image: true},
			{Object: schema.ObjectRef{Kind: "Job", Namespace: say("shop-system"), Name: say("shop-migrate")}, Effect: schema.ProgramRuns},
		},
		Permissions: []string{say("get, list, watch secrets in the namespaces where shop is deployed")},
		Data:        []schema.DataChange{{Definition: say("shops.example.com"), Kind: say("Shop"), Outcome: schema.DataChecked, Objects: 14, Losing: 2}},
	}
}

func samplePowers(say func(string) string) []schema.PlannedPower {
	power := func(name schema.PowerName, why string, approved bool) schema.PlannedPower {
		return schema.PlannedPower{Solution: say("shop"), Approved: approved, Power: schema.Power{
			Name: name, Need: schema.NeedApproval, Why: say(why), Subject: say("ServiceAccount shop-system/shop-webhook"),
			Object: schema.ObjectRef{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: say("shop-webhook")},
		}}
	}
	return []schema.PlannedPower{
		power(schema.PowerReadSecrets, "read every Secret of the cluster", false),
		power(schema.PowerInterceptRequests, "change webhooks that the API server asks", true),
	}
}

func samplePreflight(say func(string) string) []schema.PreflightCheck {
	return []schema.PreflightCheck{
		{Name: schema.PreflightKubernetes, Result: schema.PreflightPass, Message: say("Kubernetes v1.36.3")},
		{Name: schema.PreflightImages, Result: schema.PreflightWarning, Message: say("1 of 2 endpoints serve the images: https://10.0.0.2:5000: no route to host"), Hint: "solutionctl deploy doctor"},
		{Name: schema.PreflightStorage, Result: schema.PreflightFail, Message: say("StatefulSet shop-system/shop-db waits for a volume: there is no StorageClass fast, and no free volume fits"), Hint: say("create the class, or give the Solution the name of another one")},
		{Name: schema.PreflightRoom, Result: schema.PreflightUnknown, Message: "not known: you do not have permission to look"},
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

// Done is the page of an operation that has ended well.
func Done(say func(string) string) *page.Progress {
	p := Progress(say)
	p.Finished = new(Noon)
	deployment := schema.ObjectRef{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "production", Name: say("shop-operator")}
	p.Operation.Parts[0].Changes = append(p.Operation.Parts[0].Changes, schema.Change{Action: schema.ActionUpdate, Object: deployment})
	for i := range p.Steps {
		p.Steps[i].State, p.Steps[i].Note = report.Done, ""
	}
	p.Operation.Notices = []string{say("Prometheus selects no rule of shop")}
	p.Outcome = &page.Outcome{
		Heading:    say("shop 1.10.0 runs in production"),
		Deployment: &schema.DeploymentStatus{Solution: say("shop"), Version: say("1.10.0"), Health: schema.HealthReady, Objects: 12, Ready: 12},
		Interface:  []page.External{{Label: say("shop.example.com"), URL: "https://shop.example.com/"}},
		Actions: []page.Action{
			{Label: page.Text("action.createApp", "Shop"), URL: "/environments/production/apps/new?kind=Shop"},
			{Label: page.Text("operation.open", say("production")), URL: "/environments/production"},
			{Label: page.Text("operation.back"), URL: "/environments/production/plan/rollback?solution=shop"},
		},
	}
	return p
}

// Failed is the page of an operation that was not ready in time.
func Failed(say func(string) string) *page.Progress {
	p := Done(say)
	p.Failed, p.Operation.Notices = true, nil
	p.Steps[2].State, p.Steps[2].Note = report.Failed, say("0 of 1 replicas is ready: container manager: CrashLoopBackOff")
	p.Problem = &page.Problem{Code: report.Timeout, Message: say("Deployment production/shop-operator: container manager: CrashLoopBackOff"), Hints: []string{say("its log shows why")}}
	p.Outcome = &page.Outcome{
		Heading: say("In production now: shop 1.9.0"),
		Deployment: &schema.DeploymentStatus{
			Solution: say("shop"), Version: say("1.9.0"), Health: schema.HealthFailed, Objects: 12, Ready: 11,
			Reasons: []schema.Reason{{
				Component: "operator", Object: schema.ObjectRef{Kind: "Deployment", Namespace: "production", Name: say("shop-operator")},
				Text: "Deployment production/" + say("shop-operator") + ": pod shop-operator-7c9f: container manager: ends again and again (14 times so far): exit code 1",
			}},
		},
		LogsURL: page.LogsURL("production", "shop"),
		Logs:    []page.LogTail{{Name: say("shop-operator-7c9f manager"), Lines: []string{say("starting"), say("cannot open /etc/shop/configuration.yaml: permission denied")}}},
	}
	p.Actions = []page.Action{
		{Label: page.Text("operation.again"), URL: "/environments/production/plan/upgrade?solution=shop", Weight: page.WeightPrimary},
		{Label: page.Text("operation.back"), URL: "/environments/production/plan/rollback?solution=shop"},
	}
	return p
}
