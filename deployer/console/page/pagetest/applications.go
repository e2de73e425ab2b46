package pagetest

import (
	"fmt"
	"time"

	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/schema"
)

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
	app.Shown = map[string]any{"replicas": 3, "storage": map[string]any{"size": say("10Gi"), "tier": say("gold")}, "hosts": []any{say("shop.example.com")}}
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
	app.Events = []schema.ObjectEvent{
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
			{Path: say("users"), Type: "list of object", Description: say("People who administer it."), Items: &schema.AppField{Type: "object", Fields: []schema.AppField{
				{Path: "name", Type: "string", Required: true}, {Path: "limits.cpu", Type: "string"}, {Path: "admin", Type: "boolean"},
			}}},
			{Path: say("backup.enabled"), Type: "boolean", Default: "false"},
			{Path: say("a"), Type: "string", Secret: true},
			{Path: say("b"), Type: "string"},
			{Path: say("c"), Type: "string"},
			{Path: say("d"), Type: "string"},
		}},
		Values: []page.FieldValue{{Value: "10 GB", Problem: say(`quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'`)}, {Value: say("3")}, {}, {Value: say("[shop.example.com]")}, {Value: `[{"admin":true,"name":"jane"},{"limits":{"cpu":"250m"},"name":"joe"}]`}},
		YAML:   say("apiVersion: example.com/v1\nkind: Shop\n"),
		Action: page.Action{Label: "Create", URL: "/environments/production/apps/new", Post: true, Weight: page.WeightPrimary}, Cancel: page.Link{URL: "/environments/production/apps"},
	}
}

// sampleValues are two charts, one of which has many values.
func sampleValues(say func(string) string) *page.Values {
	value := func(path, kind string, change ...func(*schema.ChartValue)) schema.ChartValue {
		v := schema.ChartValue{AppField: schema.AppField{Path: path, Type: kind}}
		for _, change := range change {
			change(&v)
		}
		return v
	}
	described := func(text string) func(*schema.ChartValue) {
		return func(v *schema.ChartValue) { v.Describe(say(text)) }
	}
	preset := func(json string) func(*schema.ChartValue) { return func(v *schema.ChartValue) { v.Default = json } }
	required := func(v *schema.ChartValue) { v.Required = true }
	secret := func(v *schema.ChartValue) { v.Secret, v.Set = true, true }
	locked := func(v *schema.ChartValue) { v.Locked = true }
	database := []schema.ChartValue{
		value("auth.adminPassword", "string", described("Of the administrator. It is asked for at each start."), secret),
		value("auth.username", "string", preset(`"shop"`)),
		value("host", "string", described("Where users reach it."), required),
		value("primary.persistence.size", "string", described("Space for its data."), preset(`"8Gi"`)),
		value("primary.replicas", "integer", preset("1"), func(v *schema.ChartValue) { v.Set, v.Value, v.Limits = true, "3", "1 to 9" }),
		value("tls.mode", "string", preset(`"strict"`), locked),
	}
	web := []schema.ChartValue{
		value("hosts", "list of string", described("Names under which it can be reached."), preset("[]")),
		value("mode", "string", preset(`"fast"`), func(v *schema.ChartValue) { v.Choices, v.Title = []string{"fast", "safe"}, say("How it writes") }),
	}
	for i := range 20 {
		web = append(web, value(say(fmt.Sprintf("resources.option%02d", i)), "any"))
	}
	return &page.Values{
		Environment: say("production"),
		Values: &schema.SolutionValues{Solution: say("shop"), Version: say("1.10.0"), Environment: say("production"), Components: []schema.ComponentValues{
			{Component: say("database"), Chart: say("database-15.2.1"), Values: database}, {Component: say("web"), Chart: say("web-1.10.0"), Values: web},
		}},
		Inputs: [][]page.FieldValue{{{Kept: true}, {}, {Value: "shop example", Problem: page.Sentence(say("does not match pattern ^[a-z.]+$"))}, {Value: "20Gi"}, {Value: say("3")}}, {{Value: say("shop.example.com\nwww.example.com")}}},
		Action: page.Action{
			Label: "Show this plan", URL: "/environments/production/plan/upgrade/values?solution=shop&version=1.10.0", Post: true, Weight: page.WeightPrimary,
			Fields: []page.Hidden{{Name: "seen", Value: "4"}},
		},
		Cancel: page.Link{URL: "/environments/production/plan/upgrade?solution=shop&version=1.10.0"},
	}
}
