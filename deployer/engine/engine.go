// Package engine makes a cluster have the objects of a Release, and no longer those of the one before.
//
// Start with [Engine.Plan], which compares what is wanted with what the cluster has and writes nothing, then give the
// result to [Engine.Apply]. Apply writes down what it is about to do before it does it, applies phase by phase, removes
// what is no longer wanted, waits until everything is ready and only then calls the release the current one. A [Task] is an object
// that is applied by itself in between, such as a Job that others wait for. Each step
// looks at what is there and not at what an earlier run meant to do: after a crash at any point, planning and applying
// the same release again finishes the work. Removing is a Release without objects.
//
// What is known about a release lies in namespace solutionctl-system ([State]), never where a Solution can write.
//
// Package engine knows objects, not Solutions. It takes no lock: whoever calls it does, and passes the lock on with
// [cluster.WithGuard], so that every write is preceded by a look at it. It never forces a field away from its owner, never
// deletes a CustomResourceDefinition, a Namespace or a volume claim as a side effect, and never removes a finalizer. What
// cannot be changed in place it replaces only where somebody has asked for that and nothing is lost.
package engine

import (
	"cmp"
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Engine plans and applies releases in one cluster. All fields but Sink, User and Tool are required. Its methods may be
// called by several goroutines at once, for different releases.
type Engine struct {
	Cluster *cluster.Cluster
	Sink    report.Sink // nil discards progress
	Now     func() time.Time
	User    string // for the history; "" asks the cluster
	Tool    string // version of solutionctl

	compressors compressors
}

// Key names a release: the objects of one owner in a namespace, or with an empty Namespace its objects that belong to the
// whole cluster. A key has at most one release at a time.
type Key struct {
	Namespace string
	Name      string // a DNS label; for the verbs that of a Solution
	// Component is a DNS label, too, where the owner has further releases beside its own; with Name it has at most 53 characters.
	Component string
}

// Label returns the key without its namespace.
func (k Key) Label() string {
	if k.Component == "" {
		return k.Name
	}
	return k.Name + "." + k.Component
}

// String returns the name of the key in messages.
func (k Key) String() string {
	if k.Namespace == "" {
		return k.Label()
	}
	return k.Namespace + "/" + k.Label()
}

// CompareKeys orders keys by namespace, those of the whole cluster first, then by owner, its own release before its components.
func CompareKeys(a, b Key) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Component, b.Component))
}

// Release is what a cluster shall have under a key.
type Release struct {
	Key
	Version   string // for the record; "" when all of it is removed
	Operation string // the verb, for the record
	// Settings are how the caller was told to render the objects. They are recorded with the revision, so that the next
	// operation can keep them.
	Settings map[string]string
	Together []schema.SolutionAt // for the record: what changes in the same run
	Objects  []*unstructured.Unstructured
	// Tasks are objects that are applied by themselves, in the order of their weights. Those of a removal are taken from the record
	// where there are none.
	Tasks []Task
	// Back is set on what was there before, or is older than what is there. A Job that has ended then is not run again.
	Back bool
	// Delete allows to delete objects that are never deleted as a side effect, once they are no longer in Objects. An
	// object that this release never had is not deleted either.
	Delete []schema.ObjectRef
	// Adopt says what this release takes over from another tool; nil for nothing.
	Adopt *Adoption
	// Found are objects of this release that no record knows, see [Found.Deployed]. They count as if it did.
	Found []schema.DeployedObject
	// Ready are conditions that objects have to meet, beside the usual judgement, before they count as ready. They are not on
	// record: every operation that waits is given them.
	Ready []schema.Readiness

	// Needs are releases that have to be in a state before this one is touched. What is not planned in the same run has no say.
	Needs []Need
	// Closes are releases without which this one is not complete: it is called the current one after all of them.
	Closes []Key
	// Tolerated is set on what others go without when it fails.
	Tolerated bool
	// Timeout is for how long to wait for this release, once it is its turn; 0 is that of the run.
	Timeout time.Duration
	// Complete is set where every object has to be made: one whose kind the cluster does not have yet is waited for, but for those
	// of OptionalKinds, <group>/<kind>.
	Complete      bool
	OptionalKinds []string
	// Stay are objects that are left where they are when they are no longer wanted.
	Stay []schema.ObjectRef
	// Memory is what the caller wants to find again with the revision, see [Engine.Content]. It is kept as secret as the objects.
	Memory []byte
	// Given is what whoever goes on with this release has to know of it, and is not in its Settings, see [State]. It lies beside the
	// record until the release is complete, and is kept as secret as the objects.
	Given []byte
	// Approval is what a person has approved of for this release, for the record; nil for nothing new. Who and when is filled in.
	Approval *schema.PowerApproval
	// Components are for the record: the revisions of the owner's components that belong to this one.
	Components []schema.ComponentRevision
}

// neededComponents are the components of the same owner that come before this one, for the record.
func (r *Release) neededComponents() (names []string) {
	for _, need := range r.Needs {
		if need.Component != "" && need.Namespace == r.Namespace && need.Name == r.Name {
			names = append(names, need.Component)
		}
	}
	return names
}

// PlanOptions changes what a plan accepts.
type PlanOptions struct {
	Adopt bool // take over objects that exist and belong to nobody else's release, with all their fields that are given
	Force bool // take over fields that belong to other managers
	// Replace names objects as KIND/NAME that may be deleted and made again when they cannot be changed in place, where that
	// loses nothing, and Jobs that are to be run again although they have ended.
	Replace []string
	// Restore plans to bring back what was deployed of the objects that are on the record, and no more: fields that somebody
	// has changed since are taken back, unless another manager applies them, and objects that are gone are made again.
	// Nothing is removed, and definitions stay as they are.
	Restore bool
	// Yield, with Restore, leaves objects as they are that another manager applies or has made again, where that is a conflict else.
	Yield bool
	// KeepEdits leaves objects as they are that are there and wanted as they were deployed, whatever somebody has changed of them.
	KeepEdits bool
	// Look, with Restore, only finds what was changed, whoever did it: it needs no right to write.
	Look bool
}

// ApplyOptions changes how a plan is carried out.
type ApplyOptions struct {
	Timeout time.Duration // for how long to wait for objects to become ready or to go away; 0 is ten minutes
	NoWait  bool          // do not wait for readiness; what was applied counts as done. Tasks are waited for all the same.
	Token   int64         // the fencing token of the lock, for the record
	// Prepare, unless it is nil, is what the caller has to do when everything is on record and before any object is changed.
	// It is done once for all plans, also when none of them changes anything, and again by the next run if this one ends in it.
	Prepare func(context.Context) error
}
