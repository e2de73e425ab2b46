package report

import "sync"

// State is the progress of a step.
type State string

// The states of a step, in the order in which they occur. A step ends in exactly one of Done, Skipped or Failed.
const (
	Started State = "started"
	Running State = "running"
	Done    State = "done"
	Skipped State = "skipped"
	Failed  State = "failed"
)

// Warning is not a state that a step goes through: its note is something that people should know, whatever becomes of
// the step.
const Warning State = "warning"

// Event is one observation of work in progress.
//
// Step is the kind of work ("resolve", "pull", "write"), Name is its object ("ui:1.0.0"). Both together identify one line of
// progress. Done and Total count bytes, or what Unit names ("objects"); Total is 0 while it is unknown. Note is one short
// remark for a person, such as the reason why a step was skipped or what a running one waits for.
type Event struct {
	Step  string `json:"step"`
	Name  string `json:"name,omitempty"`
	State State  `json:"state"`
	Done  int64  `json:"done,omitempty"`
	Total int64  `json:"total,omitempty"`
	Unit  string `json:"unit,omitempty"`
	Note  string `json:"note,omitempty"`
	// Part is the release that the step belongs to, in a run that changes several at once: NAMESPACE/SOLUTION[.COMPONENT].
	Part string `json:"part,omitempty"`
	// OwnPartReady reports of a release that its own part is ready, while others of its parts are not. It is for this process only.
	OwnPartReady bool `json:"-"`
}

// Sink receives events. Emit is called from several goroutines at once, must not block for long and must not keep
// what the event refers to.
type Sink interface {
	Emit(Event)
}

// Discard is the sink that ignores every event.
var Discard Sink = discard{}

type discard struct{}

func (discard) Emit(Event) {}

// Named puts the name of what is worked on, such as that of an archive, on events that do not know it.
func Named(sink Sink, name string) Sink { return named{sink, name} }

type named struct {
	Sink
	name string
}

func (n named) Emit(e Event) {
	e.Name = n.name
	n.Sink.Emit(e)
}

// Recorder is a sink that keeps every event, for tests. Its zero value is ready to use.
type Recorder struct {
	mu     sync.Mutex
	events []Event
}

// Emit appends the event.
func (r *Recorder) Emit(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

// Events returns a copy of what was recorded so far.
func (r *Recorder) Events() []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Event(nil), r.events...)
}
