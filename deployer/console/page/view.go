package page

import (
	"time"

	"github.com/solutionctl/solutionctl/schema"
)

// View is one page.
type View struct {
	Frame
	Content Content
}

// Content is the subject of a page: a pointer to one of the types of this package, from [Login] to [Failure].
type Content interface {
	name() string  // of its template
	title() string // the heading, in plain text
}

// Frame is the part around the content of every page.
type Frame struct {
	// User is the name of the logged-in user at the API server; "" shows no navigation.
	User string
	// Cluster names the cluster: a name or the address of the API server.
	Cluster string
	// Named is the recorded name of the cluster; nil without one.
	Named *schema.ClusterName
	// Version is that of the program.
	Version string
	// Now is when the page was made.
	Now time.Time
	// Visitor is a user who is not allowed to see which environments there are; pages about all of them are left out of the navigation.
	Visitor bool
	// Section is marked as current in the navigation.
	Section Section
	// Running is the number of operations that are at work in this console, shown beside the link to them.
	Running int
	// Trail leads from the section to this page; the page itself is not among it.
	Trail []Link
	// Notices are shown above the content, one sentence each: "production was created".
	Notices []Notice
	// Problem is shown above the content, which stays: the operation that was refused, say.
	Problem *Problem
	// Stale is set when the content is not up to date.
	Stale *Stale
	// Feed is the path of the event stream of this page, "" for none. Its events are: "changed" (no data): the page is fetched
	// again and its main part replaced; "stale" with a sentence: what the page shows is not up to date; "end": the page is fetched a
	// last time and the stream is closed.
	Feed string
	// Reload is after how many seconds a browser without scripts loads the page again; 0 is never.
	Reload int
	// LogOut is nil where there is no session to end.
	LogOut *Action
}

// Section is an entry of the navigation.
type Section string

// The sections, in their order.
const (
	SectionOverview     Section = "overview"
	SectionSolutions    Section = "solutions"
	SectionEnvironments Section = "environments"
	SectionImport       Section = "import"
	SectionOperations   Section = "operations"
	SectionHistory      Section = "history"
	SectionDoctor       Section = "doctor"
	SectionSettings     Section = "settings"
)

// Tone is the weight of a message.
type Tone string

// The tones.
const (
	ToneInfo Tone = "info"
	ToneGood Tone = "good"
	ToneWarn Tone = "warn"
	ToneBad  Tone = "bad"
)

// Notice is a sentence for the user of the page.
type Notice struct {
	Tone Tone
	Text string
}

// Stale is the time since when a page is not up to date, and the reason.
type Stale struct {
	Since time.Time
	Why   string
}

// Sentence returns the notice as a sentence.
func (s *Stale) Sentence() string {
	return Text("frame.stale", UTC(s.Since), s.Why)
}

// UTC returns a time of a sentence, to the second.
func UTC(at time.Time) string { return at.UTC().Format("2006-01-02 15:04:05") + " UTC" }

// Link leads to a page of the console.
type Link struct {
	Label string
	URL   string
}

// Action is something to do: a link where Post is false, a button in a form of its own where it is true. Labels come from
// [Text].
type Action struct {
	Label string
	// Explanation is a sentence below the label, for an action that needs one.
	Explanation string
	URL         string
	Post        bool
	// Fields are sent with a POST, hidden: the digest of the plan that was seen, say.
	Fields []Hidden
	Weight Weight
	// Confirm is a word that has to be typed first, sent as field "confirm"; "" asks for none. The server compares it, too.
	Confirm string
	// Denied shows the action as one that the user is not allowed to take.
	Denied *Denial
}

// Hidden is a value that a form sends without showing it.
type Hidden struct{ Name, Value string }

// Weight is how much an action stands out.
type Weight string

// The weights. There is at most one primary action in a group.
const (
	WeightPlain   Weight = ""
	WeightPrimary Weight = "primary"
	WeightDanger  Weight = "danger"
)

// Denial is the reason why a user is not allowed to take an action.
type Denial struct {
	// Reason is one sentence.
	Reason string
	// Rule is the missing rule of a role, in YAML; "" where no role would help.
	Rule string
}

// Choice is one of the values of a [Select].
type Choice struct {
	Value, Label string
	Selected     bool
}

// Select is a choice among few values, in a form.
type Select struct {
	Name, Label string
	Help        string
	Choices     []Choice
}

// Input is a line of text in a form.
type Input struct {
	Name, Label string
	Help        string
	Value       string
	// Problem is the error about Value, one sentence.
	Problem  string
	Required bool
	Secret   bool
}

// Checkbox is something to agree to, or to ask for.
type Checkbox struct {
	Name, Value, Label string
	// Explanation is the effect, one sentence or more.
	Explanation string
	// Details are the objects and fields concerned, one line each.
	Details  []string
	Required bool // the form cannot be sent before it is ticked
	Checked  bool
	Fixed    bool // it cannot be changed
}

// Group are boxes that belong together.
type Group struct {
	Legend, Help string
	Checkboxes   []Checkbox
}

// Form is some fields with one button.
type Form struct {
	Action     Action
	Selects    []Select
	Inputs     []Input
	Checkboxes []Checkbox
	Groups     []Group
	// Cancel is where nothing is done; its URL is "" where the form is part of a page.
	Cancel Link
}

// Title is the heading of the page.
func (v View) Title() string { return v.Content.title() }

// entry is a line of the navigation.
type entry struct {
	Section Section
	URL     string
	Icon    string
	Label   string
	Badge   int
	Current bool
}

// Navigation are the sections.
func (v View) Navigation() []entry {
	var entries []entry
	for _, s := range []Section{
		SectionOverview, SectionSolutions, SectionEnvironments, SectionImport, SectionOperations, SectionHistory, SectionDoctor, SectionSettings,
	} {
		if v.Visitor && (s == SectionOverview || s == SectionSolutions || s == SectionHistory) {
			continue
		}
		e := entry{Section: s, URL: URL(string(s)), Icon: string(s), Label: Text("section." + string(s)), Current: s == v.Section}
		if s == SectionOverview {
			e.URL = URL()
		}
		if s == SectionOperations && v.Running > 0 {
			e.Badge = v.Running
		}
		entries = append(entries, e)
	}
	return entries
}
