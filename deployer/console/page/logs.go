package page

import (
	"strings"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Logs are the last lines of the containers of a Solution: /environments/NAME/logs/SOLUTION. Events "begin" and "lines" of the feed have
// those that follow.
type Logs struct {
	Environment, Solution string
	// Choose has the component, the pod, the container, the time, the words and the previous container; sending it shows other lines.
	Choose Form
	Lines  []schema.LogLine
	Single bool // all lines are of one container
	// Cut is true when there are more lines before these, and Late when not all logs were read in time.
	Cut, Late bool
	Follows   bool
	// Notes are the containers without a log, with the reasons.
	Notes []string
	// Denied is why there are no lines: the user is not allowed to read them. Command is for an administrator.
	Denied, Command string
	Actions         []Action // download, follow
}

// maxLogLine bounds a line of a log on a page, in bytes. A downloaded one is whole.
const maxLogLine = 2000

// LogText is a line of a log on a page: its time in UTC, its container unless all lines are of one, and the text.
func LogText(l schema.LogLine, single bool) string {
	var b strings.Builder
	if !l.Time.IsZero() {
		b.WriteString(l.Time.UTC().Format("01-02 15:04:05 "))
	}
	if !single {
		b.WriteString(l.Pod + "/" + l.Container + " ")
	}
	return b.String() + report.Cut(l.Text, maxLogLine)
}

// Text are the lines.
func (c *Logs) Text() string {
	var b strings.Builder
	for _, l := range c.Lines {
		b.WriteString(LogText(l, c.Single) + "\n")
	}
	return b.String()
}

// Sentences explain the lines.
func (c *Logs) Sentences() (list []string) {
	for _, one := range []struct {
		holds bool
		key   string
	}{{c.Cut, "cut"}, {c.Late, "late"}, {len(c.Lines) == 0, "none"}, {c.Follows, "follows"}} {
		if one.holds {
			list = append(list, Text("logs."+one.key))
		}
	}
	return list
}

// LogsURL is the page of the logs of a Solution, with parameters: names and values in turn.
func LogsURL(environment, solution string, pairs ...string) string {
	return Query(URL("environments", environment, "logs", solution), pairs...)
}

func (*Logs) name() string    { return "logs" }
func (c *Logs) title() string { return Text("logs.title", c.Solution, c.Environment) }
