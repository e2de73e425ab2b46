package schema

import (
	"fmt"
	"strings"
	"time"

	"github.com/solutionctl/solutionctl/schema/report"
)

// DeploymentState is the record of one Solution in one namespace: its current revision, the one of an operation that has not
// ended, and earlier ones. It is stored in Secret solutionctl-system/state.<id>, key state.json.gz, one for each pair of
// namespace and Solution, and one for each component of it.
type DeploymentState struct {
	Stamp
	// Namespace is empty for the part of a Solution that belongs to the whole cluster.
	Namespace string `json:"namespace,omitempty"`
	Solution  string `json:"solution" schema:"minLength=1 maxLength=63"`
	// Component is set on the record of a component; what a Solution has besides is on a record without it.
	Component string `json:"component,omitempty" schema:"maxLength=63"`
	// Current is the last revision that was completed. It is absent before the first one.
	Current *DeploymentRevision `json:"current,omitempty"`
	// Pending is written before the first change of an operation and becomes current at its end. While it is there, the last
	// operation was not completed, and objects of either or both exist.
	Pending *DeploymentRevision `json:"pending,omitempty"`
	// History are earlier revisions, the newest first; of their objects only those that are Completed.
	History []DeploymentRevision `json:"history,omitempty" schema:"maxItems=5"`
	// Approvals lists the approved powers of the Solution, the newest first. They apply to every version until the Solution
	// is removed. They are on the record of the Solution, never on that of a component.
	Approvals []PowerApproval `json:"approvals,omitempty" schema:"maxItems=32"`
}

// PowerApproval is a set of powers that a person has approved of.
type PowerApproval struct {
	// Version is the version that requested the powers, Archive the SHA-256 digest of its archive.
	Version    string    `json:"version"`
	Archive    string    `json:"archive,omitempty" schema:"sha256"`
	Powers     []Power   `json:"powers"`
	ApprovedBy string    `json:"approvedBy"`
	ApprovedAt time.Time `json:"approvedAt"`
}

// LabelRelease is on every object of a release and names it: the Solution, a dot, and a hash of the namespace.
const LabelRelease = "solutionctl.io/release"

// DeploymentOutcome is the end of a revision.
type DeploymentOutcome string

// The outcomes.
const (
	// DeploymentPending: it was begun, and the next run of the same command finishes it.
	DeploymentPending DeploymentOutcome = "pending"
	// DeploymentDone: all its objects were applied and became ready.
	DeploymentDone DeploymentOutcome = "done"
	// DeploymentReplaced: it was not completed; another operation replaced it.
	DeploymentReplaced DeploymentOutcome = "replaced"
)

// The verbs that records name. Those of one that changes the version are a direction, too.
const (
	VerbActivate   = "activate"
	VerbDeactivate = "deactivate"
	VerbAdd        = "add"
	VerbRemove     = "remove"
	VerbUpgrade    = "upgrade"
	VerbDowngrade  = "downgrade"
	VerbRollback   = "rollback"
	VerbRepair     = "repair"
	VerbDelete     = "delete" // an environment
	VerbEnsure     = "ensure" // several of the others as one; each Solution has its own on record

	VerbRemoveWebhooks = "remove-webhooks" // of a Solution that stays active; it is on no record
)

// DeploymentRevision is one operation on a Solution in a namespace.
type DeploymentRevision struct {
	// Number counts the operations from 1.
	Number int64 `json:"number" schema:"minimum=1"`
	// Operation is the verb, such as "add" or "remove".
	Operation string            `json:"operation" schema:"minLength=1"`
	Version   string            `json:"version,omitempty"`
	Outcome   DeploymentOutcome `json:"outcome"`
	User      string            `json:"user"`
	// Tool is the version of solutionctl that did it.
	Tool string `json:"tool"`
	// Token is the fencing token of the lock under which it was begun.
	Token    int64      `json:"token,omitempty" schema:"minimum=0"`
	Started  time.Time  `json:"started"`
	Finished *time.Time `json:"finished,omitempty"`
	// Failure is why the last run that worked on it did not complete it.
	Failure *DeploymentFailure `json:"failure,omitempty"`
	// Settings are how the objects were rendered, such as with a webhook; the next operation keeps them.
	Settings map[string]string `json:"settings,omitempty"`
	// Together are other Solutions of the same namespaces that changed in the same run, and the versions that they were to have.
	Together []SolutionAt `json:"together,omitempty"`
	// Content is the digest of the objects as they were rendered. They are kept in the cluster for as long as the
	// revision is.
	Content string           `json:"content" schema:"digest"`
	Objects []DeployedObject `json:"objects,omitempty"`
	// Tasks are the objects that are applied by themselves; in the history those that the version does not run again.
	Tasks []DeployedTask `json:"tasks,omitempty"`
	// Waiting are the objects that were not created, because the cluster did not have their kinds.
	Waiting []ObjectRef `json:"waiting,omitempty"`
	// Components lists the components in this revision of a Solution, sorted by name.
	Components []ComponentRevision `json:"components,omitempty"`
	// Needs are the components, and parts of the Solution, that this component was brought up after, and is removed before.
	Needs []string `json:"needs,omitempty"`
}

// ComponentRevision is the state of a component in a revision of its Solution: the content of a revision on its own record.
type ComponentRevision struct {
	Name    string `json:"name" schema:"minLength=1 maxLength=63"`
	Content string `json:"content" schema:"digest"`
}

// DeploymentFailure is the error with which a run ended.
type DeploymentFailure struct {
	Code report.Code `json:"code" schema:"minLength=1"`
	// Message is one line, and the beginning of it when it was long.
	Message string `json:"message"`
}

// DeployedObject is one object of an inventory.
type DeployedObject struct {
	ObjectRef `schema:"minLength=1"`
	// UID distinguishes the object from a later one of the same name. It is absent while the object is being created.
	UID string `json:"uid,omitempty"`
	// Hash is that of the object as it was rendered.
	Hash  string `json:"hash" schema:"sha256"`
	Phase int    `json:"phase" schema:"minimum=0"`
	// ResourceVersion is that of the object after it was applied, as is Generation: while the cluster shows the same, and the
	// hash is that of the object that is wanted, nothing has to be done.
	ResourceVersion string `json:"resourceVersion,omitempty"`
	Generation      int64  `json:"generation,omitempty" schema:"minimum=0"`
	// Leaving marks an object that is no longer part of the release and has not been deleted yet.
	Leaving bool `json:"leaving,omitempty"`
	// Kept marks an object that is no longer part of the release and is never deleted as a side effect.
	Kept bool `json:"kept,omitempty"`
	// Stays is set on what is to be left where it is when it is no longer wanted.
	Stays bool `json:"stays,omitempty"`
	// Replacing is set while an object is deleted and created again at a user's request. A run that finishes the revision is
	// allowed to repeat this.
	Replacing bool `json:"replacing,omitempty"`
	// Completed is set on a Job that has ended well. It is not run again.
	Completed bool `json:"completed,omitempty"`
	// Expires is set on a Job that the cluster deletes when it has ended.
	Expires bool `json:"expires,omitempty"`
}

// ObjectRef names an object of a cluster.
type ObjectRef struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
}

// String returns the name of the object in messages: Deployment shop/web, or Namespace shop.
func (r ObjectRef) String() string {
	if r.Namespace == "" {
		return r.Kind + " " + r.Name
	}
	return r.Kind + " " + r.Namespace + "/" + r.Name
}

// Action is the kind of a [Change].
type Action string

// The actions.
const (
	ActionCreate  Action = "create"
	ActionUpdate  Action = "update"
	ActionReplace Action = "replace" // delete and create, for what cannot be changed in place
	ActionDelete  Action = "delete"
	ActionAdopt   Action = "adopt" // adopt an object that another field manager created
	ActionKeep    Action = "keep"  // not wanted any more, and never deleted as a side effect
	ActionNone    Action = "none"
	ActionSkip    Action = "skip" // the cluster does not have the kind
)

// Change is the change of one object in a plan.
type Change struct {
	Action Action        `json:"action"`
	Object ObjectRef     `json:"object"`
	Fields []FieldChange `json:"fields,omitempty"`
	// Definition lists the effects of a change of a CustomResourceDefinition on its custom resources, the most serious first;
	// the fields contain the raw schemas.
	Definition []DefinitionChange `json:"definition,omitempty"`
	// Note is a remark for a person.
	Note string `json:"note,omitempty"`
	// Task is the moment of the operation at which the object is applied by itself. It is absent for what is applied with
	// everything else.
	Task Moment `json:"task,omitempty"`
}

// DefinitionChange is one difference between two versions of a CustomResourceDefinition.
type DefinitionChange struct {
	// Kind is such as field-added, field-removed, type, version-added.
	Kind string `json:"kind"`
	// Severity is lossy when stored data is dropped, breaking when objects or clients that worked are refused, else safe.
	Severity string `json:"severity" schema:"enum=lossy|breaking|safe"`
	// Version is that of the API, "v1 -> v2" where objects that are stored in one are read in another; empty for all of them.
	Version string `json:"version,omitempty"`
	// Path leads to a field of the custom resources, as spec.ports[*].name; empty for the definition itself.
	Path    string `json:"path,omitempty"`
	Message string `json:"message"`
}

// String is the change in one line.
func (c DefinitionChange) String() string {
	text := c.Message
	if c.Path != "" {
		text = c.Path + ": " + text
	}
	if c.Version != "" {
		text = c.Version + ": " + text
	}
	if c.Severity != "safe" {
		text += " (" + c.Severity + ")"
	}
	return text
}

// FieldChange is one field that gets another value. Values are JSON; those of Secrets are hidden.
type FieldChange struct {
	// Path is such as spec.template.spec.containers[name=web].image.
	Path string `json:"path"`
	// From is empty where the field does not exist before.
	From string `json:"from,omitempty"`
	// To is empty where the field does not exist afterwards.
	To string `json:"to,omitempty"`
	// Manager owns the value that is there now.
	Manager string `json:"manager,omitempty"`
	// Since is when that manager last changed its fields of the object; absent for solutionctl itself.
	Since *time.Time `json:"since,omitempty"`
}

// Excerpts of values that are too long to be read begin a little before the place where they differ.
const (
	maxShown    = 240 // bytes that are shown whole
	excerpt     = 100
	excerptLead = 20
)

// Excerpt returns both values, or of long ones the part where they begin to differ, and how long they are.
func (f FieldChange) Excerpt() (from, to string) {
	same := 0
	for same < len(f.From) && same < len(f.To) && f.From[same] == f.To[same] {
		same++
	}
	if f.From == "" || f.To == "" {
		same = 0
	}
	return cut(f.From, same), cut(f.To, same)
}

func cut(text string, differs int) string {
	if len(text) <= maxShown {
		return text
	}
	start := max(0, min(differs, len(text))-excerptLead)
	end := min(len(text), start+excerpt)
	shown := strings.ToValidUTF8(text[start:end], "")
	if start > 0 {
		shown = "…" + shown
	}
	if end < len(text) {
		shown += "…"
	}
	return fmt.Sprintf("%s (%d bytes)", shown, len(text))
}
