package page

import (
	"time"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign"
)

// Login is the page before everything else: /login.
type Login struct {
	// Ended is the reason why the last session ended; "" where there was none.
	Ended string
	// Organisation is the link to the identity provider; nil where none is configured.
	Organisation *Action
	// Token is where a pasted token goes, as field "token"; nil where that is not allowed.
	Token *Action
	// Local explains how to get a link on the host; "" where there is none.
	Local string
}

// Overview is the state of everything: /.
type Overview struct {
	Status *schema.Status
	// Listing is how the environments are listed.
	Listing Listing
	// Waiting are sentences about obstacles: a held lock, an interrupted operation.
	Waiting []Notice
	// Pending are operations that were begun and have not ended.
	Pending    []schema.ResumedOperation
	AlertState *AlertState // alerts
	// Actions are the most useful actions: import, create an environment, resume.
	Actions []Action
	// Loader is nil where it never ran, or cannot be seen.
	Loader *Loader
	// Start is the way to the first running Solution; nil once one runs.
	Start *Checklist
	// Checking is set while health is not known yet.
	Checking bool
}

// Loader has the progress of the loader and the loaded Solutions: /loader.
type Loader struct {
	// Progress is nil where it never ran.
	Progress *schema.LoadProgress
}

// Yours is the overview of a user who is not allowed to list environments: /.
type Yours struct {
	// Unseen lists the parts that they are not allowed to read.
	Unseen schema.Unseen
	// Name is the name to open, from parameter "open" of /environments, and Problem what is wrong with it.
	Name, Problem string
	// Opened are the environments that were found already.
	Opened []string
}

// Open is the form that leads to an environment.
func (y *Yours) Open() Form {
	return Form{
		Action: Action{Label: Text("action.open"), URL: "/environments", Weight: WeightPrimary},
		Inputs: []Input{{Name: "open", Label: Text("yours.name"), Help: Text("yours.name.help"), Value: y.Name, Problem: y.Problem, Required: true}},
	}
}

// Solutions are the versions that are imported or stored: /solutions.
type Solutions struct {
	// Listing is how they are listed. Result has been searched for its query already.
	Listing Listing
	Result  *schema.SearchResult
	Import  *Action
}

// Solution is one Solution: /solutions/NAME.
type Solution struct {
	Status schema.SolutionStatus
	// Compatibility is nil where it could not be computed.
	Compatibility *schema.Compatibility
	// Versions has details of each version: its deployments and its images; nil where they are unknown.
	Versions []schema.FoundVersion
	// Needs are the Solutions that each version depends on, by version.
	Needs map[string][]schema.Dependency
	// Actions of each version, by version: activate, unimport.
	VersionActions map[string][]Action
	AlertState     *AlertState // alerts
	// Actions are the actions on the Solution: deactivate, drift.
	Actions []Action
}

// Import is where archives come from: /import.
type Import struct {
	// Upload takes a bundle and an archive from the browser; nil where the host is elsewhere.
	Upload *Form
	// Path takes an archive that lies on the host; nil where the host is elsewhere.
	Path *Form
	// Elsewhere names the host and the command for an import, where the console cannot import.
	Elsewhere *Elsewhere
	Uploads   []Upload
}

// Elsewhere is something that has to be done on another machine.
type Elsewhere struct {
	Host string // "" where it is unknown
	// Reason is one sentence.
	Reason  string
	Command string
}

// Upload is an archive on its way to the host.
type Upload struct {
	ID, Name       string
	Received, Size int64
	User           string
	Changed        time.Time // when the last piece came
	Problem        *Problem
	// Page leads to the examination, "" before it is whole.
	Page    string
	Actions []Action // discard
}

// Examination is the judgement on an archive before it is imported: /import/ID.
type Examination struct {
	Name     string // the file
	Solution string
	Version  string
	Size     int64
	// Busy is true during the examination; the rest is not known yet.
	Busy bool
	// Verdict has the signers, and whether they suffice.
	Verdict *sign.Verdict
	// Signers are the names of those who signed, for people.
	Signers []string
	// Lint are the findings; nil where it was not judged.
	Lint         *schema.LintTarget
	ReleaseNotes string
	// Brings are sentences about its content, compared with the active version: images, definitions, components.
	Brings []string
	// Facts has the provenance and the vendor's statements; nil where it was not read.
	Facts *schema.ArchiveFacts
	// Plan is the plan of activating it; nil where it could not be computed.
	Plan    *schema.Operation
	Problem *Problem // why it is refused
	Form    Form
}

// ArchiveContent describes the content of an imported version: /solutions/NAME/content/VERSION.
type ArchiveContent struct {
	Facts *schema.ArchiveFacts
}

// Environments are all environments: /environments.
type Environments struct {
	Listing Listing
	// Environments have their deployments where the user may see them.
	Environments []schema.EnvironmentStatus
	Create       *Action
}

// NewEnvironment asks for a name: /environments/new.
type NewEnvironment struct {
	// Of is the environment that gets another namespace; "" for a new environment.
	Of   string
	Form Form
}

// Environment is one environment: /environments/NAME.
type Environment struct {
	Status schema.EnvironmentStatus
	// Deployments are the actions on a Solution in a namespace that do something: upgrade, downgrade, repair, roll back, remove.
	Deployments map[Deployment][]Action
	// Newer are the highest imported releases above the deployed versions.
	Newer map[Deployment]string
	// Signers are the signers of the deployed versions; a version without an entry has an import whose signers are not known.
	Signers map[Deployment][]string
	// Namespaces are the actions on a namespace, where there are several: delete.
	Namespaces map[string][]Action
	// Held are the objects that finalizers hold, one line each. Objects that are not ready or drifted are part of
	// Status.
	Held       []string
	AlertState *AlertState // alerts
	// Visitor may see no page but those of this environment.
	Visitor bool
	// Actions are the actions on the environment: add, applications, add a namespace, drift, delete.
	Actions []Action
}

// Deployment names a Solution in a namespace.
type Deployment struct{ Namespace, Solution string }

// Components are the components of a deployed Solution: /environments/NAME/components/SOLUTION.
type Components struct {
	Environment, Namespace string
	Graph                  *schema.ComponentGraph
	// Deployment is the Solution as a whole.
	Deployment schema.DeploymentStatus
	Actions    []Action // on it: upgrade, downgrade, repair, remove
}

// YourComponents are the components for a user who is not allowed to read the records: …/components/SOLUTION.
type YourComponents struct {
	Environment, Namespace string
	Deployment             schema.DeploymentStatus
	Unseen                 []schema.Unseen // with the rights that are missing
}

// Plan is the plan of a verb, before it is applied: …/plan/VERB.
type Plan struct {
	Operation *schema.Operation
	// Unplanned is true without a plan: the user has to choose first, or it is refused.
	Unplanned bool
	// Changed is true when this is not the plan that the user has seen, and Differs shows how: nil where that is not
	// known.
	Changed bool
	Differs *Difference
	// Choose has the parameters of the plan, such as the version: sending it shows another plan. Nil where there is no
	// choice.
	Choose *Form
	// Values leads to the form with the values of charts; nil where there are none. Edited are the paths of those that were typed.
	Values *Action
	Edited []string
	// ReleaseNotes of the version that the plan deploys; "" for none.
	ReleaseNotes string
	// Dangers are sentences about irreversible effects.
	Dangers []Notice
	// Apply has the options to accept and the button; nil where nothing can be applied.
	Apply *Form
	// Downloads are data to be kept before it is lost.
	Downloads []Action
	// Refusal is why it cannot be applied.
	Refusal *Problem
	// Images has the steps that are left before nodes can fetch the images, instead of Refusal; nil where it is about something else.
	Images *Stage
}

// Difference is how a plan differs from one that was seen before: lines that are new in it, those that are gone, and those that are there and
// say something else. There is none where only the content of objects is another one of which a plan shows no more than the name.
type Difference struct{ New, Other, Gone []string }

// Apps are the instances in an environment: /environments/NAME/apps.
type Apps struct {
	Environment string
	Listing     Listing
	List        *schema.AppList
	// Create are the kinds of which one can be created, one action each.
	Create []Action
}

// App is one instance: /environments/NAME/apps/NAMESPACE/KIND/INSTANCE.
type App struct {
	App *schema.App
	// YAML is the whole object.
	YAML string
	// EventsUnseen is the reason why the events of the instance are not shown.
	EventsUnseen *schema.Unseen
	// Logs can be asked for, one link for each container.
	Logs []Link
	// Log is the requested log; nil without a request.
	Log *Log
	// Scale changes the number of replicas; nil where there is none.
	Scale   *Form
	Actions []Action // configure, delete
}

// Log is the end of the log of a container.
type Log struct {
	Pod, Container string
	Text           string
	// Cut is true when there is more before it.
	Cut bool
}

// AppEdit is the form of an instance: …/apps/new and …/edit.
type AppEdit struct {
	Environment string
	Form        schema.AppForm
	// Name is that of the instance; NameGiven means that it exists and cannot be changed.
	Name      string
	NameGiven bool
	// Namespace has the namespaces to choose from where there are several.
	Namespace *Select
	Values    []FieldValue // one for each field of Form, in the same order
	// YAML is the object that would be sent; "" unless requested by button "show" of the form.
	YAML   string
	Action Action
	Cancel Link
}

// Operations are the operations in progress, and the interrupted ones: /operations.
type Operations struct {
	Running []Running
	// Pending are the recorded operations of all users that are not complete.
	Pending []schema.ResumedOperation
	// Locks are the held locks, one line each.
	Locks []Lock
	// Recent are the completed operations of this console.
	Recent []Running
	Resume *Action
}

// Lock is a lock that keeps two operations from changing the same object at once.
type Lock struct {
	What, Holder string
	Since        time.Time
	// Abandoned is true when its holder has ended without releasing it: the next operation acquires it.
	Abandoned bool
}

// Running is an operation of this console.
type Running struct {
	ID        string
	Operation *schema.Operation // as planned
	User      string
	Started   time.Time
	Finished  *time.Time
	Failed    bool
	Stopped   bool // by its user; it has failed then, too
}

// Progress is one operation of this console, live: /operations/ID.
type Progress struct {
	Running
	// Steps are the last event of each line of progress, in the order in which they began.
	Steps   []report.Event
	Problem *Problem
	// Interrupted is true when the console ended during it, and Stopped is set when the user has stopped it.
	Interrupted bool
	Stopped     *time.Time
	Actions     []Action // resume, stop waiting
	Outcome     *Outcome // nil before the end, and where nothing is known
}

// States are the states of deployments and applications, with their meaning: /states.
type States struct{ States []schema.State }

// History has the recorded operations: /history.
type History struct {
	Environment, Solution string // the shown part, "" for everything; parameters of the same names
	History               *schema.History
	// RollBack are the actions of revisions that one can go back to, by place in History.Operations.
	RollBack map[int]Action
}

// Doctor has the problems of the host and the cluster: /doctor.
type Doctor struct {
	Diagnosis *schema.Diagnosis
	// Remedies of checks, by "AREA/NAME", where one is something that the console can do.
	Remedies map[string]Action
	Support  *Action
}

// Support makes a support bundle: /support.
type Support struct {
	Form     Form
	Includes []string // its content, one line each
	Report   *schema.SupportReport
	Download *Action
}

// Settings are the settings of the console: /settings.
type Settings struct {
	Registry        *schema.EndpointList
	RegistryUnknown bool // it could not be read
	Keys            []TrustedKey
	// PolicyFile is the path of the policy; "" where there is none.
	PolicyFile string
	// TrustElsewhere is the reason why no keys are shown; "" where they are.
	TrustElsewhere string
	// ReadOnly names the place where these can be changed; "" where it is here.
	ReadOnly       string
	AddEndpoint    *Form             // nil where it is not possible
	RemoveEndpoint map[string]Action // by URL; nil where it is not possible
	AddKey         *Form             // nil where it is not possible
	Sessions       []Session
	About          []Fact
	Actions        []Action // log out everywhere
}

// TrustedKey is a key of the trust store.
type TrustedKey struct {
	Name, ID, Algorithm string
	Revoked             bool
	Remove              *Action
}

// Session is a session in one browser.
type Session struct {
	User, Way     string // organisation, token, host
	Started, Seen time.Time
	Current       bool
	End           *Action
}

// Fact is a name and a value.
type Fact struct{ Name, Value string }

// Failure is the page with the error of another one. Frame.Problem is not used with it.
type Failure struct {
	Problem Problem
	// Begun is for the rest of a page whose title was sent: the problem has a heading of its own. Otherwise it is the title.
	Begun bool
}

// Confirmation is the question before a change without a plan, such as unimport: it describes the effect.
type Confirmation struct {
	Heading  string
	Warnings []Notice
	Form     Form
}

func (*Login) name() string          { return "login" }
func (*Overview) name() string       { return "overview" }
func (*Loader) name() string         { return "loader" }
func (*Yours) name() string          { return "yours" }
func (*Solutions) name() string      { return "solutions" }
func (*Solution) name() string       { return "solution" }
func (*Import) name() string         { return "import" }
func (*Examination) name() string    { return "examination" }
func (*ArchiveContent) name() string { return "content" }
func (*Environments) name() string   { return "environments" }
func (*NewEnvironment) name() string { return "newenvironment" }
func (*Environment) name() string    { return "environment" }
func (*Components) name() string     { return "components" }
func (*YourComponents) name() string { return "yourcomponents" }
func (*Plan) name() string           { return "plan" }
func (*Apps) name() string           { return "apps" }
func (*App) name() string            { return "app" }
func (*AppEdit) name() string        { return "appedit" }
func (*Operations) name() string     { return "operations" }
func (*Progress) name() string       { return "progress" }
func (*History) name() string        { return "history" }
func (*States) name() string         { return "states" }
func (*Doctor) name() string         { return "doctor" }
func (*Support) name() string        { return "support" }
func (*Settings) name() string       { return "settings" }
func (*Failure) name() string        { return "failure" }
func (*Confirmation) name() string   { return "confirmation" }

func (*Login) title() string         { return Text("login.title") }
func (*Overview) title() string      { return Text("overview.title") }
func (*Loader) title() string        { return Text("loader.title") }
func (*Yours) title() string         { return Text("yours.title") }
func (*Solutions) title() string     { return Text("solutions.title") }
func (c *Solution) title() string    { return c.Status.DisplayName }
func (*Import) title() string        { return Text("import.title") }
func (*Environments) title() string  { return Text("environments.title") }
func (c *Environment) title() string { return Text("environment.title", c.Status.Name) }
func (c *Components) title() string  { return Text("components.title", c.Graph.Solution, c.Environment) }

func (c *YourComponents) title() string {
	return Text("components.title", c.Deployment.Solution, c.Environment)
}
func (c *Plan) title() string         { return c.Operation.Heading() }
func (c *Apps) title() string         { return Text("apps.title", c.Environment) }
func (c *App) title() string          { return c.App.Name }
func (*Operations) title() string     { return Text("operations.title") }
func (c *Progress) title() string     { return c.Operation.Heading() }
func (*History) title() string        { return Text("history.title") }
func (*States) title() string         { return Text("states.title") }
func (*Doctor) title() string         { return Text("doctor.title") }
func (*Support) title() string        { return Text("support.title") }
func (*Settings) title() string       { return Text("settings.title") }
func (c *Confirmation) title() string { return c.Heading }

func (c *ArchiveContent) title() string {
	return Text("content.title", c.Facts.Solution, c.Facts.Version)
}

func (c *Examination) title() string {
	if c.Solution == "" {
		return Text("examination.unknown", c.Name)
	}
	return Text("examination.title", c.Solution, c.Version)
}

func (c *AppEdit) title() string {
	if c.NameGiven {
		return Text("appedit.title", c.Name)
	}
	return Text("appedit.new", c.Form.Kind)
}

func (c *NewEnvironment) title() string {
	if c.Of != "" {
		return Text("newenvironment.another", c.Of)
	}
	return Text("newenvironment.title")
}

func (c *Failure) title() string { return Text("code." + string(c.Problem.Code)) }
