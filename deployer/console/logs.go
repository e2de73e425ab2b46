package console

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/deployer/console/web"
	"github.com/solutionctl/solutionctl/deployer/logs"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

const (
	logLines = 1000             // on a page
	logTail  = 200              // of each container, unless there is a filter or a time
	longTail = 5000             // of each container otherwise; the filter leaves some
	logWait  = 15 * time.Second // for all logs of a page
)

// logPages are the pages with the logs of Solutions.
type logPages struct{ *Console }

// logView is a request for the logs of a Solution.
type logView struct {
	*Console
	visit *web.Visit
	o     logs.Options
	words []string // that each line has
}

func (c logPages) logView(v *web.Visit) (*logView, error) {
	l := &logView{Console: c.Console, visit: v, words: strings.Fields(strings.ToLower(v.FormValue("q")))}
	environment := v.PathValue("environment")
	l.o = logs.Options{
		Scope: survey.Scope{
			Environment: environment, Namespace: cmp.Or(v.FormValue("namespace"), v.Opened.Namespace(environment)),
			Solution: v.PathValue("solution"), Component: v.FormValue("component"),
		},
		Pod: v.FormValue("pod"), Container: v.FormValue("container"), Previous: v.FormValue("previous") == "true", Tail: logTail,
	}
	if since := v.FormValue("since"); since != "" {
		var err error
		if l.o.Since, err = time.ParseDuration(since); err != nil {
			return nil, report.Errorf(report.Usage, "since: %w", err)
		}
		if l.o.Since < 0 {
			return nil, report.Errorf(report.Usage, "since: %q is negative", since)
		}
	}
	if l.o.Since > 0 || len(l.words) > 0 {
		l.o.Tail = longTail
	}
	return l, nil
}

// query returns the parameters of the request, with others: names and values in turn.
func (l *logView) query(pairs ...string) []string {
	for _, name := range []string{"namespace", "component", "pod", "container", "since", "q", "previous"} {
		pairs = append(pairs, name, l.visit.FormValue(name))
	}
	return pairs
}

func (l *logView) url(more string, pairs ...string) string {
	return page.Query(page.URL("environments", l.o.Environment, "logs", l.o.Solution)+more, l.query(pairs...)...)
}

// reader reads the logs with the rights of the user, and passes the lines with all words to take.
func (l *logView) reader(take func(schema.LogLine) error, note func(string)) *logs.Reader {
	return &logs.Reader{Survey: l.visit.Deployer(nil).Survey, Now: l.Now, Note: note, Line: func(line schema.LogLine) error {
		text := strings.ToLower(line.Pod + "/" + line.Container + " " + line.Text)
		if slices.ContainsFunc(l.words, func(word string) bool { return !strings.Contains(text, word) }) {
			return nil
		}
		return take(line)
	}}
}

// show shows the last lines of a Solution.
func (c logPages) show(v *web.Visit) (*web.Answer, error) {
	l, err := c.logView(v)
	if err != nil {
		return nil, err
	}
	v.Frame.Section, v.Frame.Trail = page.SectionEnvironments, environmentTrail(l.o.Environment)
	all := l.o.Scope
	all.Component = ""
	tree, err := v.Deployer(nil).Survey.Tree(v.Context(), all)
	if err != nil {
		return nil, err
	}
	content := &page.Logs{Environment: l.o.Environment, Solution: l.o.Solution, Single: l.o.Pod != "" && l.o.Container != "", Choose: l.form(tree)}
	err = l.read(content)
	switch {
	case report.CodeOf(err) == report.Forbidden:
		return l.refused(content, tree, err), nil
	case l.isEarly(err):
		content.Notes = append(content.Notes, err.Error())
	case err != nil:
		return nil, err
	}
	content.Follows = !l.o.Previous && v.FormValue("follow") != "no"
	content.Actions = []page.Action{{Label: page.Text("logs.download"), URL: l.url("/download")}}
	if content.Follows {
		v.Frame.Feed, v.Frame.Reload = l.url("/events"), 30
		content.Actions = append(content.Actions, page.Action{Label: page.Text("logs.pause"), URL: l.url("", "follow", "no")})
	} else if !l.o.Previous {
		content.Actions = append(content.Actions, page.Action{Label: page.Text("logs.follow"), URL: l.url("")})
	}
	content.Actions = append(content.Actions, page.Action{
		Label: page.Text("objects.link"), URL: page.Query(page.URL("environments", l.o.Environment, "objects", l.o.Solution), "namespace", l.o.Namespace),
	})
	return &web.Answer{Document: struct {
		Lines []schema.LogLine `json:"lines"`
		Notes []string         `json:"notes,omitempty"`
	}{content.Lines, content.Notes}, Content: content}, nil
}

// isEarly reports whether an error is about missing pods: there may be some later.
func (l *logView) isEarly(err error) bool {
	return report.CodeOf(err) == report.NotFound && l.o.Component == ""
}

// read reads the last lines in the order of their times.
func (l *logView) read(content *page.Logs) error {
	ctx, cancel := context.WithTimeout(l.visit.Context(), logWait)
	defer cancel()
	content.Lines = []schema.LogLine{}
	tails := map[string]int{} // how many lines of each container were read
	keep := func() {
		slices.SortStableFunc(content.Lines, func(a, b schema.LogLine) int { return a.Time.Compare(b.Time) })
		if more := len(content.Lines) - logLines; more > 0 {
			content.Lines, content.Cut = slices.Clone(content.Lines[more:]), true
		}
	}
	reader := l.reader(func(line schema.LogLine) error {
		tails[line.Pod+"/"+line.Container]++
		line.Text = report.Cut(line.Text, maxLogText)
		if content.Lines = append(content.Lines, line); len(content.Lines) == 2*logLines {
			keep()
		}
		return nil
	}, func(note string) { content.Notes = append(content.Notes, note) })
	err := reader.Run(ctx, l.o)
	keep()
	for _, n := range tails {
		content.Cut = content.Cut || n >= l.o.Tail
	}
	if err != nil && ctx.Err() != nil && l.visit.Context().Err() == nil {
		content.Late, err = true, nil
	}
	return err
}

// maxLogText bounds a line that is kept for a page, in bytes.
const maxLogText = 8 << 10

// form has the choices of the page.
func (l *logView) form(tree *schema.ObjectTree) page.Form {
	components, pods, containers := []string{""}, []string{"", l.o.Pod}, []string{"", l.o.Container}
	restarted := l.o.Previous
	for _, g := range tree.Groups {
		components = append(components, g.Component)
		if l.o.Component != "" && g.Component != l.o.Component {
			continue
		}
		for _, o := range g.Objects {
			for _, p := range o.Pods {
				pods = append(pods, p.Name)
				for _, one := range p.Containers {
					if l.o.Pod == "" || l.o.Pod == p.Name {
						containers = append(containers, one.Name)
						restarted = restarted || one.Restarts > 0
					}
				}
			}
		}
	}
	form := page.Form{Action: page.Action{Label: page.Text("logs.show"), URL: page.LogsURL(l.o.Environment, l.o.Solution)}}
	if namespace := l.visit.FormValue("namespace"); namespace != "" {
		form.Action.Fields = []page.Hidden{{Name: "namespace", Value: namespace}}
	}
	for _, s := range []struct {
		name, selected string
		values         []string
	}{{"component", l.o.Component, components}, {"pod", l.o.Pod, pods}, {"container", l.o.Container, containers}} {
		slices.Sort(s.values)
		if s.values = slices.Compact(s.values); len(s.values) > 1 {
			choice := choose(s.name, page.Text("logs."+s.name), s.selected, s.values)
			choice.Choices[0].Label = page.Text("logs.all")
			form.Selects = append(form.Selects, choice)
		}
	}
	form.Selects = append(form.Selects, sinceChoice(l.visit.FormValue("since")))
	form.Inputs = []page.Input{{Name: "q", Label: page.Text("logs.words"), Value: l.visit.FormValue("q")}}
	if restarted {
		form.Checkboxes = []page.Checkbox{{
			Name: "previous", Label: page.Text("logs.previous"), Explanation: page.Text("logs.previous.help"), Checked: l.o.Previous,
		}}
	}
	return form
}

func sinceChoice(selected string) page.Select {
	choice := page.Select{Name: "since", Label: page.Text("logs.since"), Choices: []page.Choice{{Label: page.Text("logs.since.all")}}}
	for _, minutes := range []int{5, 15} {
		choice.Choices = append(choice.Choices, page.Choice{Value: strconv.Itoa(minutes) + "m", Label: page.Text("logs.since.minutes", minutes)})
	}
	for _, hours := range []int{1, 6, 24} {
		choice.Choices = append(choice.Choices, page.Choice{Value: strconv.Itoa(hours) + "h", Label: page.Count("logs.since.hours", hours)})
	}
	for i := range choice.Choices {
		choice.Choices[i].Selected = choice.Choices[i].Value == selected
	}
	return choice
}

// refused is the page for a user who is not allowed to read logs, with the commands by which an administrator allows it.
func (l *logView) refused(content *page.Logs, tree *schema.ObjectTree, why error) *web.Answer {
	namespaces := []string{l.o.Namespace}
	for _, g := range tree.Groups {
		namespaces = append(namespaces, g.Namespace)
	}
	slices.Sort(namespaces)
	namespaces = slices.DeleteFunc(slices.Compact(namespaces), func(name string) bool { return name == "" })
	content.Denied = page.Text("logs.denied.reason", strings.Join(namespaces, ", "))
	var commands []string
	for _, namespace := range namespaces {
		kubectl := "kubectl --namespace " + report.ShellWord(namespace) + " create "
		commands = append(commands,
			kubectl+"role solutionctl-logs --verb get,list,watch --resource pods,pods/log,replicasets.apps,jobs.batch",
			kubectl+"rolebinding solutionctl-logs-"+digestOf(l.visit.User)+" --role solutionctl-logs --user "+report.ShellWord(l.visit.User))
	}
	content.Command = strings.Join(commands, "\n")
	return &web.Answer{Status: web.StatusOf(why), Document: web.FailureOf(why), Content: content}
}

// logRights returns the permissions to read the logs of some namespaces.
func logRights(namespaces []string) (wanted []cluster.Permission) {
	for _, namespace := range namespaces {
		wanted = append(wanted, cluster.Permission{Resource: "pods", Subresource: "log", Namespace: namespace}.Each("get")...)
	}
	return wanted
}
