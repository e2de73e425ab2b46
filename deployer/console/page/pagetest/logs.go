package pagetest

import (
	"time"

	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/schema"
)

func sampleLogs(say func(string) string) *page.Logs {
	line := func(second int, pod, text string) schema.LogLine {
		return schema.LogLine{Namespace: "production", Pod: say(pod), Container: say("manager"), Time: Noon.Add(time.Duration(second) * time.Second), Text: say(text)}
	}
	all := page.Choice{Label: page.Text("logs.all")}
	pods := []page.Choice{all, {Value: say("shop-operator-7c9f5d-x2k8p"), Label: say("shop-operator-7c9f5d-x2k8p")}}
	return &page.Logs{
		Environment: say("production"), Solution: say("shop"), Cut: true, Follows: true,
		Choose: page.Form{
			Action: page.Action{Label: page.Text("logs.show"), URL: page.LogsURL("production", "shop")},
			Selects: []page.Select{
				{Name: "component", Label: page.Text("logs.component"), Choices: []page.Choice{all, {Value: say("cache"), Label: say("cache"), Selected: true}}},
				{Name: "pod", Label: page.Text("logs.pod"), Choices: pods},
			},
			Inputs:     []page.Input{{Name: "q", Label: page.Text("logs.words"), Value: say("error")}},
			Checkboxes: []page.Checkbox{{Name: "previous", Label: page.Text("logs.previous"), Explanation: page.Text("logs.previous.help")}},
		},
		Lines: []schema.LogLine{
			line(0, "shop-operator-7c9f5d-x2k8p", "starting <b>shop</b>"), line(1, "cache-0", "error: cannot open /etc/shop/configuration.yaml: permission denied"),
			{Pod: say("cache-0"), Container: say("main"), Text: say("\x1b[31mno time")},
		},
		Notes:   []string{say("cache-1/main has not started: no node can take it: 0/3 nodes are available")},
		Actions: []page.Action{{Label: page.Text("logs.download"), URL: "/environments/production/logs/shop/download"}, {Label: page.Text("logs.pause"), URL: "/environments/production/logs/shop?follow=no"}},
	}
}

func sampleRefusedLogs(say func(string) string) *page.Logs {
	return &page.Logs{
		Environment: say("production"), Solution: say("shop"), Denied: page.Text("logs.denied.reason", say("production")),
		Command: say("kubectl --namespace production create role solutionctl-logs --verb get,list,watch --resource pods,pods/log,replicasets.apps,jobs.batch"),
	}
}

func sampleObjects(say func(string) string) *page.Objects {
	object := func(kind, version, name string, pods ...schema.TreePod) schema.TreeObject {
		return schema.TreeObject{ObjectRef: schema.ObjectRef{APIVersion: version, Kind: kind, Namespace: "production", Name: name}, Pods: pods}
	}
	ready := func(name string) schema.TreePod {
		return schema.TreePod{Name: say(name), Node: say("node-2"), State: schema.ObjectReady, Containers: []schema.TreeContainer{
			{Name: say("prepare"), State: schema.ObjectCompleted}, {Name: say("main"), State: schema.ObjectReady, Restarts: 1, Reason: say("runs again; it has ended (1 time so far): exit code 137, killed")},
		}}
	}
	crashing := schema.TreePod{Name: say("cache-0"), Node: say("node-1"), State: schema.ObjectFailed, Claims: []string{say("data-cache-0")}, Containers: []schema.TreeContainer{
		{Name: say("main"), State: schema.ObjectFailed, Restarts: 4, Reason: say("ends again and again (4 times so far): it needs more memory than its limit allows")},
	}}
	return &page.Objects{
		Environment: say("production"), Namespace: say("production"),
		Deployment: schema.DeploymentStatus{
			Solution: say("shop"), Version: say("1.2.0"), Health: schema.HealthProgressing,
			Reasons: []schema.Reason{{
				Component: "cache", Object: schema.ObjectRef{Kind: "StatefulSet", Namespace: "production", Name: "cache"},
				Text: "StatefulSet production/cache: " + say("1 of 2 pods are ready"),
			}},
		},
		Tree: &schema.ObjectTree{
			Environment: say("production"), Solution: say("shop"),
			Groups: []schema.ObjectGroup{
				{Objects: []schema.TreeObject{object("CustomResourceDefinition", "apiextensions.k8s.io/v1", say("shops.example.com"))}},
				{Namespace: say("production"), Objects: []schema.TreeObject{
					object("Deployment", "apps/v1", say("shop-operator"), ready("shop-operator-7c9f5d-x2k8p")), object("Service", "v1", say("shop-webhook")),
					object("ConfigMap", "v1", say("shop-operator-config")),
				}},
				{Namespace: say("production"), Component: say("cache"), Objects: []schema.TreeObject{
					object("StatefulSet", "apps/v1", "cache", crashing, ready("cache-1")), object("CronJob", "batch/v1", say("clean")),
				}},
				{Namespace: say("production"), Operated: true, Objects: []schema.TreeObject{object("StatefulSet", "apps/v1", say("archive-db"), schema.TreePod{
					Name: say("archive-db-0"), State: schema.ObjectFailed, Reason: say("no node can take it: 0/3 nodes are available"), Containers: []schema.TreeContainer{{Name: say("db"), State: schema.ObjectProgressing, Reason: say("it has not started")}},
				})}},
			},
			Unseen: []schema.Unseen{{What: say(`user "jane" has no permission to list pods in namespace production-2`), Rules: say("- apiGroups: [\"\"]\n  resources: [\"pods\"]\n  verbs: [\"list\"]")}},
		},
		Actions: []page.Action{{Label: page.Text("objects.logs"), URL: page.LogsURL("production", "shop")}},
	}
}
