package pagetest

import (
	"fmt"
	"strconv"
	"time"

	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

func sampleEnvironment(say func(string) string) *page.Environment {
	status := Status(say, 2).Environments[1]
	status.Namespaces[0].Deployments[0].Drift = []schema.Change{{
		Action: schema.ActionUpdate, Object: schema.ObjectRef{APIVersion: "v1", Kind: "ConfigMap", Namespace: say("staging"), Name: say("shop")},
		Fields: []schema.FieldChange{{Path: say("data.level"), From: strconv.Quote(say("debug")), To: `"info"`, Manager: say("kubectl-edit"), Since: new(ago(20 * time.Hour))}},
	}}
	status.Namespaces[0].Deployments[0].Health = schema.HealthDrifted
	changed := status.Namespaces[0].Deployments[0].Drift[0].Object
	status.Namespaces[0].Deployments[0].Reasons = []schema.Reason{{
		Component: "web", Object: changed, Changed: true, Text: changed.String() + say(" was changed: data.level is debug, was info"),
	}}
	status.Namespaces[0].Deployments[0].Components = []schema.ComponentStatus{{Name: say("database")}, {Name: say("web")}}
	status.Members = []schema.Member{
		{Namespace: say("staging"), Kind: "User", Name: say("oidc:joe@example.com"), Role: "view"},
		{Namespace: say("staging"), Kind: "Group", Name: say("oidc:shop-operators"), Role: say("solutionctl-shop-admin")},
		{Namespace: say("staging"), Kind: "ServiceAccount", Name: say("staging/shop-operator"), Role: say("shop-operator"), Solution: say("shop")},
	}
	status.Unseen = []schema.Unseen{{What: say("who may do what in namespace staging-2"), Rules: say("in namespace staging-2:\n- apiGroups: [rbac.authorization.k8s.io]\n  resources: [rolebindings]\n  verbs: [list]")}}
	status.Namespaces = append(status.Namespaces, schema.NamespaceStatus{Name: say("staging-eu")})
	e := &page.Environment{
		Status: status, Deployments: map[page.Deployment][]page.Action{}, Namespaces: map[string][]page.Action{},
		Signers: map[page.Deployment][]string{
			{Namespace: say("staging"), Solution: status.Namespaces[0].Deployments[0].Solution}: {say("acme-release")},
			{Namespace: say("staging"), Solution: status.Namespaces[0].Deployments[1].Solution}: {},
		},
		Newer: map[page.Deployment]string{{Namespace: say("staging"), Solution: status.Namespaces[0].Deployments[1].Solution}: say("1.11.0")},
		Held:  []string{say("Shop staging/old: shops.example.com/cleanup")},
		Actions: []page.Action{
			{Label: "Add a Solution", URL: "/environments/staging/plan/add"},
			{Label: "Applications", URL: "/environments/staging/apps"},
			{Label: page.Text("action.addNamespace"), URL: "/environments/new?of=staging"},
			{Label: "Delete", URL: "/environments/staging/plan/delete", Weight: page.WeightDanger},
		},
	}
	for _, n := range status.Namespaces {
		e.Namespaces[n.Name] = []page.Action{{Label: page.Text("action.deleteNamespace"), URL: "/environments/staging/plan/delete?namespace=eu"}}
	}
	for i, d := range status.Namespaces[0].Deployments {
		actions := []page.Action{
			{Label: page.Text("operation.back"), URL: "/environments/staging/plan/rollback?solution=shop"},
			{Label: page.Text("action.remove"), URL: "/environments/staging/plan/remove?solution=shop"},
		}
		if due := map[int]string{0: "repair", 1: "upgrade"}[i]; due != "" {
			actions = append([]page.Action{{Label: page.Text("action." + due), URL: "/environments/staging/plan/" + due + "?solution=shop", Weight: page.WeightPrimary}}, actions...)
		}
		e.Deployments[page.Deployment{Namespace: say("staging"), Solution: d.Solution}] = actions
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
	all[6].Status.Ready, all[6].Status.Reasons = 9, []schema.Reason{{Text: say("Deployment production/identity: 1 of 3 replicas is ready")}}
	all[7].Status.Ready, all[7].Status.Reasons = 3, []schema.Reason{{Text: say("Job production/compute-db: failed, exit code 1: cannot reach the database")}}
	all[8].Selected, all[8].Reason, all[8].Profiles = false, schema.NotSelected, []string{say("large")}
	return &page.Components{
		Environment: say("production"), Namespace: say("production"), Graph: graph, Deployment: schema.DeploymentStatus{Solution: say("cloud"), Health: schema.HealthFailed},
		Actions: []page.Action{{Label: "Upgrade", URL: "/environments/production/plan/upgrade?solution=cloud"}},
	}
}

func sampleYourComponents(say func(string) string) *page.YourComponents {
	part := func(name string, health schema.DeploymentHealth, reasons ...schema.Reason) schema.ComponentStatus {
		return schema.ComponentStatus{Name: say(name), Version: say("2.0.0"), Health: health, Objects: 3, Ready: 3 - len(reasons), Reasons: reasons}
	}
	return &page.YourComponents{
		Environment: say("staging"), Namespace: say("staging-1"), Unseen: samplePart(say).Status.Unseen,
		Deployment: schema.DeploymentStatus{Solution: say("cloud"), Version: say("2.0.0"), Health: schema.HealthProgressing, Components: []schema.ComponentStatus{
			part("database", schema.HealthReady), part("Donaudampfschifffahrtselektrizitätenhauptbetriebswerk", schema.HealthProgressing, schema.Reason{Text: say("Deployment staging-1/identity: 0 of 1 ready")}),
		}},
	}
}

// samplePart is the page of an environment for a user with permissions in one namespace only.
func samplePart(say func(string) string) *page.Environment {
	status := Status(say, 2).Environments[1]
	deployments := status.Namespaces[0].Deployments
	deployments[0].Health, deployments[0].Version = schema.HealthUnknown, ""
	deployments[0].Reasons = []schema.Reason{{Text: say("version 1.10.0 is requested; you do not have permission to see the deployed one")}}
	status.Unseen = []schema.Unseen{
		{What: say("other namespaces of this environment, if it has any"), Rules: say("in every namespace:\n- apiGroups: [\"\"]\n  resources: [namespaces]\n  verbs: [list]")},
		{What: say("the records")},
	}
	denied := &page.Denial{Reason: say("Every change takes a lock."), Rule: say("- apiGroups: [coordination.k8s.io]\n  resources: [leases]\n  verbs: [get, create, update]")}
	return &page.Environment{Status: status, Visitor: true, Actions: []page.Action{
		{Label: "Applications", URL: "/environments/staging/apps"}, {Label: page.Text("action.change"), Denied: denied},
	}}
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
		if verb == "repair" {
			e.Component = say("database")
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
