package pagetest

import (
	"fmt"
	"time"

	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/schema"
)

// many is how much there is of everything in [Large].
const many = 200

// Large are pages with two hundred of everything, each text of which passes through say.
func Large(say func(string) string) map[string]page.View {
	all := Samples(say)
	large := func(of string, content page.Content) page.View {
		return page.View{Frame: all[of].Frame, Content: content}
	}
	return map[string]page.View{
		"large-overview":   large("overview", &page.Overview{Status: Status(say, many)}),
		"large-components": large("components", largeComponents(say)),
		"large-loader":     large("loader", largeLoader(say)),
		"large-plan":       large("plan", largePlan(say, many)),
		"large-values":     large("values", largeValues(say)),
	}
}

// largeName is that of one of many components.
func largeName(i int) string {
	return fmt.Sprintf("%s-%03d", [...]string{"database", "api", "network-agent", "scheduler", "identity-sync"}[i%5], i)
}

func largeComponents(say func(string) string) *page.Components {
	c := sampleComponents(say)
	c.Graph.Components = nil
	for i := range many {
		n := schema.ComponentNode{
			Name: say(largeName(i)), Kind: schema.ComponentChart, Path: say("charts/" + largeName(i) + ".tgz"), Scope: schema.ScopeEnvironment, Level: i / 20,
			Selected: true, Reason: schema.SelectedByDefault, Status: &schema.ComponentStatus{Name: say(largeName(i)), Health: schema.HealthReady, Objects: 6, Ready: 6},
		}
		for need := max(0, i-23); need < i-19; need++ {
			n.DependsOn = append(n.DependsOn, schema.ComponentDependency{Component: say(largeName(need)), Until: schema.UntilReady})
		}
		if i%37 == 5 {
			n.Status.Health, n.Status.Ready = schema.HealthProgressing, 4
			n.Status.Reasons = []schema.Reason{{Text: say("Deployment production/" + largeName(i) + ": 1 of 3 replicas is ready")}}
		}
		c.Graph.Components = append(c.Graph.Components, n)
	}
	return c
}

// largeValues are more than one page shows: a search, and groups that are folded.
func largeValues(say func(string) string) *page.Values {
	v := sampleValues(say)
	c := schema.ComponentValues{Component: say("monitoring"), Chart: say("monitoring-61.9.0")}
	for i := range 3 * many {
		path := fmt.Sprintf("table%02d.option%03d", i%7, i)
		c.Values = append(c.Values, schema.ChartValue{AppField: schema.AppField{Path: say(path), Type: "any", Required: i%150 == 0}})
	}
	v.Values.Components = append(v.Values.Components, c)
	return v
}

// largePlan upgrades a Solution with so many components, and many of its monitors will not be seen.
func largePlan(say func(string) string, parts int) *page.Plan {
	p := samplePlan(say)
	p.Changed, p.Downloads, p.Dangers = false, nil, nil
	o := &schema.Operation{Operation: "upgrade", Solution: say("cloud"), Version: say("2.0.0"), Environment: say("production"), Planned: true}
	group := page.Group{Legend: "Components"}
	for i := range parts {
		name := largeName(i)
		object := func(action schema.Action, kind, suffix string) schema.Change {
			return schema.Change{Action: action, Object: schema.ObjectRef{Kind: kind, Namespace: say("production"), Name: say(name + suffix)}}
		}
		image := object(schema.ActionUpdate, "Deployment", "")
		image.Fields = []schema.FieldChange{{Path: "spec.template.spec.containers[name=main].image", From: `"registry.solutionctl.invalid/cloud-1.0.0/main:1"`, To: `"registry.solutionctl.invalid/cloud-2.0.0/main:2"`}}
		part := schema.OperationPart{Namespace: say("production"), Component: say(name), Changes: []schema.Change{
			object(schema.ActionNone, "Service", ""), object(schema.ActionNone, "ServiceAccount", ""), object(schema.ActionNone, "ConfigMap", "-settings"),
		}}
		switch {
		case i%10 == 3:
			part.Changes = append(part.Changes, image, object(schema.ActionCreate, "ServiceMonitor", ""), object(schema.ActionDelete, "ConfigMap", "-old"))
		case i%4 > 0:
			part.Changes = append(part.Changes, image)
		}
		o.Parts = append(o.Parts, part)
		if i%5 == 0 || parts < many {
			o.Notices = append(o.Notices, say("ServiceMonitor production/"+name+": no Prometheus selects it: monitoring/k8s wants label release=prometheus"))
		}
		group.Checkboxes = append(group.Checkboxes, page.Checkbox{Name: "ticked", Value: say(name), Label: say(name), Explanation: "Helm chart. Selected by default.", Checked: true})
	}
	p.Operation, p.Choose.Groups = o, []page.Group{group}
	return p
}

func largeLoader(say func(string) string) *page.Loader {
	l := sampleLoader(say, schema.LoadRunning)
	l.Progress.Ready, l.Progress.Parts = many-6, nil
	for i := range many {
		p := schema.LoadPart{
			Environment: say("production"), Namespace: say("production"), Solution: say("cloud"), Component: say(largeName(i)), Version: say("2.0.0"),
			State: schema.PartReady, StartedAt: ago(10 * time.Minute), ReadyAt: ago(8 * time.Minute),
		}
		if i%37 == 5 {
			p.State, p.ReadyAt, p.WaitingFor = schema.PartWaiting, time.Time{}, []string{say("Deployment production/" + largeName(i) + ": 1 of 3 replicas is ready")}
		}
		l.Progress.Parts = append(l.Progress.Parts, p)
	}
	return l
}
