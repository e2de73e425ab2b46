package page

import (
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// step is a line of progress as it is shown.
type step struct {
	ID          string
	State       string // in words
	Symbol      string
	Tone        Tone
	What, Note  string
	Component   string // of which it is a step, "" for the Solution's own ones
	Logs        string // where those of its component are, for a step that has failed; "" for none
	Done, Total int64  // Total is 0 while unknown
}

func stepOf(e report.Event) step {
	s := step{
		ID: ident("step", e.Step, e.Name), State: Text("state." + string(e.State)), Symbol: symbolOf(e.State), Tone: toneOf(e.State),
		What: report.Clean(Text("step."+e.Step) + " " + e.Name), Note: report.Clean(e.Note),
	}
	if e.State == report.Started || e.State == report.Running {
		s.Done, s.Total = min(e.Done, e.Total), e.Total
		if s.Note == "" && e.Total > 0 {
			s.Note = amount(s.Done, e.Total, e.Unit)
		}
	}
	return s
}

func amount(done, total int64, unit string) string {
	if unit == "" {
		return Text("step.of", report.Bytes(done), report.Bytes(total))
	}
	return Text("step.of", done, total) + " " + unit
}

// Lines are the shown steps. A step on an object has the component that the plan assigns it to.
func (p *Progress) Lines() []step {
	owners := map[string]string{}
	if p.Operation != nil {
		for _, part := range p.Operation.Parts {
			for _, c := range part.Changes {
				owners[c.Object.String()] = part.Component
			}
		}
	}
	lines := make([]step, len(p.Steps))
	for i, e := range p.Steps {
		lines[i] = stepOf(e)
		unfinished := e.State == report.Started || e.State == report.Running || p.Stopped != nil && e.State == report.Failed
		if p.Finished != nil && unfinished { // no more steps follow
			lines[i].State, lines[i].Symbol, lines[i].Tone, lines[i].Total = Text("state.unfinished"), "pending", ToneWarn, 0
		}
		lines[i].Component = owners[e.Name]
		if o := p.Operation; e.State == report.Failed && o != nil && o.Environment != "" && o.Solution != "" && o.Operation != schema.VerbRemove {
			lines[i].Logs = LogsURL(o.Environment, o.Solution, "component", owners[e.Name])
		}
	}
	return lines
}

// Announcement is the text for a screen reader: the last completed step.
func (p *Progress) Announcement() string {
	for _, e := range slices.Backward(p.Steps) {
		if s := stepOf(e); e.State != report.Started && e.State != report.Running {
			return strings.TrimSpace(s.State + ": " + s.What + " " + s.Note)
		}
	}
	return ""
}
