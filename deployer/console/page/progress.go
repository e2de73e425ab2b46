package page

import (
	"encoding/json"

	"github.com/solutionctl/solutionctl/schema/report"
)

// step is a line of progress as it is shown.
type step struct {
	ID     string `json:"id"`
	State  string `json:"state"` // in words
	Symbol string `json:"symbol"`
	Tone   Tone   `json:"tone"`
	What   string `json:"what"`
	Note   string `json:"note"`
	Done   int64  `json:"done"`
	Total  int64  `json:"total"` // 0 while nobody knows
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

// Step returns the data of a "step" event in the stream of a [Progress] page.
func (p *Pages) Step(e report.Event) []byte {
	data, err := json.Marshal(stepOf(e))
	if err != nil {
		panic(err) // strings and numbers
	}
	return data
}
