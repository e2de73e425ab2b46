package page

import (
	"slices"
	"strings"
	"time"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// loaded is a part of a run of the loader as it is shown.
type loaded struct {
	*schema.LoadPart
	Word string   // its state
	Why  []string // it is not ready
	Took string   // time until it was ready; "" while unknown
}

// Rows are the parts, first those that people want to hear of, and of these in the order in which they come up.
func (l *Loader) Rows() []loaded {
	rows := make([]loaded, len(l.Progress.Parts))
	for i := range rows {
		part := &l.Progress.Parts[i]
		rows[i] = loaded{LoadPart: part, Word: string(part.State), Why: part.WaitingFor}
		if part.State == schema.PartWaiting && l.Progress.Phase.Ended() { // it was ready once
			rows[i].Word = "NotReady"
		}
		if part.Error != nil {
			rows[i].Why = append(slices.Clone(rows[i].Why), part.Error.Message)
		}
		if !part.StartedAt.IsZero() && !part.ReadyAt.IsZero() {
			rows[i].Took = part.ReadyAt.Sub(part.StartedAt).Round(time.Second).String()
		}
	}
	slices.SortStableFunc(rows, func(a, b loaded) int { return slices.Index(loadUrgency, a.Word) - slices.Index(loadUrgency, b.Word) })
	return rows
}

// loadUrgency is the order in which people want to hear of parts.
var loadUrgency = []string{"Failed", "Degraded", "NotReady", "Waiting", "Applying", "Blocked", "Pending", "Ready"}

// Failure is why the run failed; nil where it did not.
func (l *Loader) Failure() *Problem {
	e := l.Progress.Error
	if e == nil {
		return nil
	}
	p := &Problem{Code: e.Code, Message: e.Message}
	if e.Hint != "" {
		p.Hints = []string{e.Hint}
	}
	return p
}

// Insisted names the fields that were changed again and again.
func (l *Loader) Insisted() string {
	if r := l.Progress.Repair; r.GivenUp() {
		return Text("loader.insisted", r.Times, schema.MaxLoaderRepairs)
	}
	return ""
}

// Notice is the notice of the overview about the loader; nil where everything is in order.
func (l *Loader) Notice() *Notice {
	p := l.Progress
	ready, all := p.Ready, len(p.Parts)
	switch {
	case p.Phase == schema.LoadFailed:
		return &Notice{ToneBad, Text("loader.notice.failed", ready, all)}
	case p.Phase == schema.LoadInterrupted:
		return &Notice{ToneWarn, Text("loader.notice.interrupted", ready, all)}
	case !p.Phase.Ended():
		return &Notice{ToneInfo, Text("loader.notice.running", ready, all)}
	case !p.IsReady():
		return &Notice{ToneWarn, Text("loader.notice.unready", ready, all)}
	case l.Insisted() != "":
		return &Notice{ToneWarn, Text("loader.notice.insisted", strings.Join(p.Repair.Changed[:min(len(p.Repair.Changed), 3)], "; "))}
	}
	return nil
}

// Left are Solutions that an earlier run has loaded and this one did not look at.
func (l *Loader) Left() []schema.LoadedContent {
	return slices.DeleteFunc(slices.Clone(l.Progress.Loaded), func(c schema.LoadedContent) bool {
		return slices.ContainsFunc(l.Progress.Parts, func(p schema.LoadPart) bool { return p.Environment == c.Environment && p.Solution == c.Solution })
	})
}

// Commands are the commands for the host.
func (l *Loader) Commands() []Fact {
	var facts []Fact
	for _, verb := range []string{"start", "status", "repair", "logs"} {
		facts = append(facts, Fact{Name: Text("loader.command." + verb), Value: report.Run("deploy loader " + verb).String()})
	}
	return facts
}
