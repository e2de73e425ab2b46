package page

// Checklist is the way to the first running Solution. The overview has it until one runs.
type Checklist struct {
	Steps []Stage
}

// Stage is a step of a [Checklist].
type Stage struct {
	Name  string // import, images, activate, environment or add
	State StageState
	Text  string   // one sentence: the present state, or the lack
	Facts []string // findings, one sentence each
	Tasks []Task   // the remaining ones, in this order
	// Actions continue here; empty where only commands on another host do.
	Actions []Action
}

// StageState is the state of a step.
type StageState string

// The states of a step.
const (
	StageDone  StageState = "done"
	StageNext  StageState = "next"
	StageDoubt StageState = "doubt" // it cannot be checked from here, and holds nothing up
	StageLater StageState = "later"
)

// Task is a part of a step that a command carries out.
type Task struct {
	Text    string
	Command string // "" where there is nothing to type
	Done    bool
}

// Symbol names the icon of a step.
func (s Stage) Symbol() string {
	return map[StageState]string{StageDone: "ready", StageNext: "progressing", StageDoubt: "warn", StageLater: "pending"}[s.State]
}

// Tone is the weight of the state.
func (s Stage) Tone() Tone {
	return map[StageState]Tone{StageDone: ToneGood, StageNext: ToneInfo, StageDoubt: ToneWarn}[s.State]
}

// Done counts the steps that are done.
func (c *Checklist) Done() int {
	n := 0
	for _, s := range c.Steps {
		if s.State == StageDone {
			n++
		}
	}
	return n
}

// Proceed marks the first step that is left as the next one, and the rest as later ones. Only the next one has actions.
func (c *Checklist) Proceed() {
	for i, found := 0, false; i < len(c.Steps); i++ {
		s := &c.Steps[i]
		switch {
		case s.State == StageDone || s.State == StageDoubt && !found:
		case !found:
			s.State, found = StageNext, true
		default:
			s.State, s.Actions, s.Tasks, s.Facts = StageLater, nil, nil, nil
		}
	}
}
