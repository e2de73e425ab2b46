package pagetest

import (
	"fmt"
	"slices"

	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// times returns a list of this length, which repeats a sample. Name makes each element another one.
func times[T any](sample []T, n int, name func(one *T, i int)) []T {
	list := make([]T, n)
	for i := range list {
		list[i] = sample[i%len(sample)]
		name(&list[i], i)
	}
	return list
}

// suffixed is a text that differs from those of other numbers.
func suffixed(text string, i int) string {
	if i == 0 {
		return text
	}
	return fmt.Sprintf("%s-%02d", text, i)
}

// Sized are the pages that show lists, by name, with n objects in each list.
func Sized(n int) map[string]page.View {
	all := Samples(Honest)
	sized := map[string]page.View{}
	for name, content := range sizedContents(n) {
		view := all[name]
		view.Content = content
		sized[name] = view
	}
	for shape, perLevel := range map[string]int{"chain": 1, "three": max(1, n/3), "flat": max(1, n)} {
		view := all["components"]
		view.Content = sizedComponents(n, perLevel)
		sized["components-"+shape] = view
	}
	return sized
}

func sizedContents(n int) map[string]page.Content {
	solutions := sizedSolutions(n)
	environments := sizedEnvironments(n)
	solution, environment := sizedSolution(n), sizedEnvironment(n)
	status := &schema.Status{Solutions: solutions, Environments: environments}
	contents := map[string]page.Content{
		"overview": &page.Overview{Status: status, Pending: sizedPending(n), AlertState: sizedAlerts(n), Actions: []page.Action{
			{Label: page.Text("action.import"), URL: "/import", Weight: page.WeightPrimary}, {Label: page.Text("action.createEnvironment"), URL: "/environments/new"},
		}},
		"alerts":       &page.Alerts{AlertState: sizedAlerts(n)},
		"solutions":    sizedSearch(n),
		"solution":     solution,
		"environments": &page.Environments{Environments: environments, Create: &page.Action{Label: page.Text("action.createEnvironment"), URL: "/environments/new", Weight: page.WeightPrimary}},
		"environment":  environment,
		"operations":   sizedOperations(n),
		"progress":     sizedProgress(n),
		"history":      sizedHistory(n),
		"doctor":       sizedDoctor(n),
		"examination":  sizedExamination(n),
		"content":      sizedArchive(n),
		"settings":     sizedSettings(n),
		"loader":       sizedLoader(n),
		"components":   sizedComponents(n, max(1, n/6)),
		"values":       sizedValues(n),
		"plan":         sizedPlan(n),
	}
	addSizedLists(contents, n)
	return contents
}

// addSizedLists adds the pages that have one list.
func addSizedLists(contents map[string]page.Content, n int) {
	apps := &page.Apps{Environment: "production", List: &schema.AppList{}, Create: []page.Action{{Label: "New Shop", URL: "/environments/production/apps/new?kind=Shop", Weight: page.WeightPrimary}}}
	apps.List.Apps = times(sampleApps(Honest), n, func(a *schema.App, i int) { a.Name = suffixed(a.Name, i) })
	app := sampleApp(Honest)
	app.App.Objects = times(app.App.Objects, n, func(o *schema.AppObject, i int) { o.Name = suffixed(o.Name, i) })
	app.App.Events = times(app.App.Events, n, func(e *schema.ObjectEvent, i int) { e.Name = suffixed(e.Name, i) })
	app.Logs = times(app.Logs, n, func(l *page.Link, i int) { l.Label = suffixed(l.Label, i) })
	app.App.Values = map[string]any{}
	for i := range n {
		app.App.Values[suffixed("option", i)] = i
	}
	edit := sampleEdit(Honest)
	edit.Form.Fields = times(edit.Form.Fields, n, func(f *schema.AppField, i int) { f.Path = suffixed(f.Path, i) })
	edit.Values = nil
	imports := sampleImport(Honest)
	imports.Uploads = times(imports.Uploads, n, func(u *page.Upload, i int) { u.ID, u.Name = suffixed(u.ID, i), suffixed(u.Name, i) })
	logs := sampleLogs(Honest)
	logs.Lines = times(logs.Lines, n, func(*schema.LogLine, int) {})
	objects := sampleObjects(Honest)
	objects.Tree.Groups = times(objects.Tree.Groups, n, func(g *schema.ObjectGroup, i int) { g.Component = suffixed("cache", i) })
	yours := &page.Yours{Unseen: samplePart(Honest).Status.Unseen[0]}
	yours.Opened = times([]string{"staging", "Donaudampfschifffahrtselektrizitätenhauptbetriebswerk"}, n, func(name *string, i int) { *name = suffixed(*name, i) })
	parts := sampleYourComponents(Honest)
	parts.Deployment.Components = times(parts.Deployment.Components, n, func(c *schema.ComponentStatus, i int) { c.Name = suffixed(c.Name, i) })
	contents["apps"], contents["app"], contents["appedit"], contents["import"] = apps, app, edit, imports
	contents["logs"], contents["objects"], contents["yours"], contents["yourcomponents"] = logs, objects, yours, parts
}

func sizedSolutions(n int) []schema.SolutionStatus {
	return times(Status(Honest, 0).Solutions, n, func(s *schema.SolutionStatus, i int) {
		s.Name, s.DisplayName = suffixed(s.Name, i), suffixed(s.DisplayName, i)
	})
}

// sizedEnvironments have a deployment each that is not ready, so that there are as many of them.
func sizedEnvironments(n int) []schema.EnvironmentStatus {
	notReady := Status(Honest, 2).Environments[1]
	return times(Status(Honest, 60).Environments, n, func(e *schema.EnvironmentStatus, _ int) {
		e.Namespaces = slices.Clone(e.Namespaces)
		e.Namespaces[0].Deployments = append(slices.Clone(e.Namespaces[0].Deployments[:3]), notReady.Namespaces[0].Deployments[1])
	})
}

func sizedPending(n int) []schema.ResumedOperation {
	return times([]schema.ResumedOperation{samplePending(Honest)}, n, func(r *schema.ResumedOperation, i int) { r.Environment = suffixed(r.Environment, i) })
}

func sizedAlerts(n int) *page.AlertState {
	h := sampleAlertState(Honest)
	h.List.Alerts = times(h.List.Alerts, n, func(a *schema.Alert, i int) { a.Name = suffixed(a.Name, i) })
	return h
}

func sizedSearch(n int) *page.Solutions {
	list := &page.Solutions{Result: &schema.SearchResult{}, Import: &page.Action{Label: page.Text("action.import"), URL: "/import", Weight: page.WeightPrimary}}
	for i := range n {
		for _, v := range sampleSearch(Honest).Versions[:3] {
			v.Name, v.DisplayName = suffixed(v.Name, i), suffixed(v.DisplayName, i)
			list.Result.Versions = append(list.Result.Versions, v)
		}
	}
	return list
}

func sizedSolution(n int) *page.Solution {
	s := sampleSolution(Honest)
	version := func(i int) string { return fmt.Sprintf("1.%d.0", i) }
	s.Status.Versions = times(s.Status.Versions[:2], n, func(v *schema.ImportedVersion, i int) { v.Version = version(i) })
	s.Compatibility.Versions = times(s.Compatibility.Versions, n, func(v *schema.VersionCompatibility, i int) { v.Version = version(i) })
	used := sizedEnvironments(n)
	s.Versions = times(s.Versions, n, func(v *schema.FoundVersion, i int) {
		v.Version, v.Environments = version(i), nil
		for _, e := range used {
			v.Environments = append(v.Environments, e.Name)
		}
		v.Images = times(v.Images, min(n, 4), func(image *schema.FoundImage, i int) { image.Image = suffixed(image.Image, i) })
	})
	for i := range n {
		s.VersionActions[version(i)] = s.VersionActions["1.8.3"]
	}
	return s
}

func sizedEnvironment(n int) *page.Environment {
	e := sampleEnvironment(Honest)
	space := &e.Status.Namespaces[0]
	space.Deployments = times(space.Deployments, n, func(d *schema.DeploymentStatus, i int) {
		actions := e.Deployments[page.Deployment{Namespace: space.Name, Solution: d.Solution}]
		d.Solution = suffixed(d.Solution, i)
		e.Deployments[page.Deployment{Namespace: space.Name, Solution: d.Solution}] = actions
	})
	e.Status.Namespaces = times(e.Status.Namespaces, min(n, 2), func(*schema.NamespaceStatus, int) {})
	e.Status.Members = times(e.Status.Members, n, func(m *schema.Member, i int) { m.Name = suffixed(m.Name, i) })
	e.Held = times(e.Held, n, func(line *string, i int) { *line = suffixed(*line, i) })
	return e
}

func sizedOperations(n int) *page.Operations {
	o := &page.Operations{Pending: sizedPending(n)}
	o.Running = times([]page.Running{Run(Honest, nil)}, n, func(*page.Running, int) {})
	o.Recent = times([]page.Running{Run(Honest, new(Noon))}, n, func(*page.Running, int) {})
	o.Locks = times([]page.Lock{{What: "shop in production", Holder: "joe@admin-1", Since: Noon}}, n, func(*page.Lock, int) {})
	if n > 0 {
		o.Resume = &page.Action{Label: "Resume", URL: "/operations/resume", Post: true, Weight: page.WeightPrimary}
	}
	return o
}

func sizedProgress(n int) *page.Progress {
	p := Progress(Honest)
	p.Steps = times(p.Steps, n, func(e *report.Event, i int) { e.Name = suffixed(e.Name, i) })
	return p
}

func sizedHistory(n int) *page.History {
	h := sampleHistory(Honest)
	h.History.Operations = times(h.History.Operations, n, func(e *schema.HistoryEntry, i int) {
		e.Revision = int64(n - i)
		if i > 1 {
			h.RollBack[i] = page.Action{Label: "Roll back to this", URL: fmt.Sprintf("/environments/production/plan/rollback?revision=%d", n-i)}
		}
	})
	return h
}

func sizedDoctor(n int) *page.Doctor {
	d := sampleDoctor(Honest)
	d.Diagnosis.Checks = times(d.Diagnosis.Checks, n, func(c *schema.Check, i int) { c.Message = suffixed(c.Message, i) })
	d.Diagnosis.Problems, d.Diagnosis.Warnings = n/4, n/4
	return d
}

func sizedExamination(n int) *page.Examination {
	e := sampleExamination(Honest)
	e.Lint.Findings = times(e.Lint.Findings, n, func(f *report.Finding, i int) { f.Line = i })
	e.Brings = times(e.Brings, n, func(line *string, i int) { *line = suffixed(*line, i) })
	e.Facts = sizedArchive(n).Facts
	e.Facts.Packages = nil
	return e
}

func sizedArchive(n int) *page.ArchiveContent {
	c := sampleContent(Honest)
	f := c.Facts
	f.Statements = times(f.Statements, n, func(s *schema.ProductStatement, i int) { s.Vulnerability = suffixed(s.Vulnerability, i) })
	f.Provenance.Materials = times(f.Provenance.Materials, n, func(r *schema.ResourceFacts, i int) { r.Name = suffixed(r.Name, i) })
	f.Packages.Packages = times(f.Packages.Packages, n, func(p *schema.ListedPackage, i int) { p.Name = suffixed(p.Name, i) })
	f.Packages.Images = times(f.Packages.Images, n, func(b *schema.ImageBills, i int) { b.Image = suffixed(b.Image, i) })
	return c
}

func sizedSettings(n int) *page.Settings {
	s := sampleSettings(Honest)
	s.Registry.Endpoints = times(s.Registry.Endpoints, n, func(e *schema.Endpoint, i int) {
		remove := s.RemoveEndpoint[e.URL]
		e.URL = fmt.Sprintf("https://10.0.0.%d:5000", i+1)
		s.RemoveEndpoint[e.URL] = remove
	})
	s.Keys = times(s.Keys, n, func(k *page.TrustedKey, i int) { k.Name = suffixed(k.Name, i) })
	s.Sessions = times(s.Sessions, max(n, 1), func(one *page.Session, i int) { one.Current = i == 0 })
	return s
}

func sizedLoader(n int) *page.Loader {
	if n == 0 {
		return &page.Loader{}
	}
	l := sampleLoader(Honest, schema.LoadRunning)
	l.Progress.Ready = n / 2
	l.Progress.Parts = times(l.Progress.Parts, n, func(p *schema.LoadPart, i int) { p.Component = suffixed(p.Component, i) })
	return l
}

// sizedComponents are levels of so many components, each of which waits for two of the level before.
func sizedComponents(n, perLevel int) *page.Components {
	c := sampleComponents(Honest)
	c.Graph.Components = times(c.Graph.Components, n, func(node *schema.ComponentNode, i int) {
		node.Name, node.Level, node.DependsOn = suffixed(node.Name, i), i/perLevel, nil
	})
	for i := range c.Graph.Components {
		for need := i - perLevel; need >= 0 && need < i-perLevel+2 && need < i; need++ {
			c.Graph.Components[i].DependsOn = append(c.Graph.Components[i].DependsOn, schema.ComponentDependency{Component: c.Graph.Components[need].Name, Until: schema.UntilReady})
		}
	}
	return c
}

func sizedValues(n int) *page.Values {
	v := sampleValues(Honest)
	v.Inputs = nil
	v.Values.Components = times(v.Values.Components, min(n, 2), func(c *schema.ComponentValues, _ int) {
		c.Values = times(c.Values, n, func(one *schema.ChartValue, i int) { one.Path = suffixed(one.Path, i) })
	})
	return v
}

func sizedPlan(n int) *page.Plan {
	p := samplePlan(Honest)
	o := p.Operation
	p.Changed = n > 0
	o.Parts[0].Changes = times(o.Parts[0].Changes, n, func(c *schema.Change, i int) { c.Object.Name = suffixed(c.Object.Name, i) })
	o.Consequences.Permissions = times(o.Consequences.Permissions, n, func(line *string, i int) { *line = suffixed(*line, i) })
	o.Notices = times(o.Notices, n, func(line *string, i int) { *line = suffixed(*line, i) })
	o.Preflight = times(o.Preflight, min(n, 4), func(*schema.PreflightCheck, int) {})
	p.Choose.Groups[0].Checkboxes = times(p.Choose.Groups[0].Checkboxes, n, func(b *page.Checkbox, i int) { b.Value, b.Label = suffixed(b.Value, i), suffixed(b.Label, i) })
	p.Dangers = times(p.Dangers, min(n, 3), func(*page.Notice, int) {})
	p.Edited = times(p.Edited, n, func(path *string, i int) { *path = suffixed(*path, i) })
	if n == 0 {
		p.Apply.Checkboxes, p.Downloads, p.Operation = nil, nil, &schema.Operation{Operation: "upgrade", Solution: "shop", Version: "1.10.0", Environment: "production", Planned: true}
	}
	return p
}
