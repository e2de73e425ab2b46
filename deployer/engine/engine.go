// Package engine deploys a Release: it applies its objects, waits until they are ready and deletes the objects of the
// previous Release that are not part of it any more.
//
// Start with [Engine.Plan], which compares a Release with the cluster and writes nothing, and pass the result to [Engine.Apply].
// Apply records what it is about to do before it does it, applies the objects phase by phase, deletes those that are no longer
// wanted, waits for readiness, and only then makes the Release the current one. A [Task] is an object that is applied separately,
// such as a Job that others wait for. Each step reads the cluster and does not rely on the plans of an earlier run: after a crash
// at any point, planning and applying the same Release again completes the work. A removal is a Release without objects.
//
// Records ([record.State]) are stored in namespace solutionctl-system, where a Solution cannot write.
//
// Package engine knows objects, not Solutions. It takes no lock: the caller does, and passes it with [cluster.WithGuard], so that
// each write checks it first. The engine never forces a field away from its owner, never removes a finalizer, and never deletes a
// CustomResourceDefinition, a Namespace or a volume claim as a side effect. It replaces an object that cannot be changed in place
// only if the user has asked for that and nothing is lost.
package engine

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Engine plans and applies releases in one cluster, and records them in its Store. Sink and User are optional. Several goroutines may use
// it at once, for different releases.
type Engine struct {
	*record.Store
	Sink report.Sink // nil discards progress
	Now  func() time.Time
	User string // for the history; "" asks the cluster
}

func (e *Engine) emit(event report.Event) {
	if e.Sink != nil {
		e.Sink.Emit(event)
	}
}

// second returns the current time in the precision of records.
func (e *Engine) second() time.Time { return e.Now().UTC().Truncate(time.Second) }

// Release is the desired state of the objects of a key.
type Release struct {
	record.Key
	Version   string // for the record; "" for a removal
	Operation string // the verb, for the record
	// Settings are the options with which the caller rendered the objects. They are recorded with the revision, so that the next
	// operation can use them again.
	Settings map[string]string
	Together []schema.SolutionAt // for the record: the other Solutions of the same operation
	Objects  []*unstructured.Unstructured
	// Tasks are objects that are applied separately, in the order of their weights. A removal without tasks uses those of the
	// record.
	Tasks []Task
	// Back is set for a rollback or a downgrade. A Job that has already ended is not run again then.
	Back bool
	// Delete are objects to delete although their kind is never deleted as a side effect, once they are no longer in Objects.
	// Objects that this release never had are not deleted.
	Delete []schema.ObjectRef
	// Adopt lists what this release adopts from another tool; nil for nothing.
	Adopt *Adoption
	// Found are objects of this release that no record has, see [Found.Deployed]. They are treated as if it had them.
	Found []schema.DeployedObject
	// Ready are conditions that objects have to meet to count as ready, in addition to those of their kind. They are not recorded:
	// each operation passes them again.
	Ready []schema.Readiness

	// Needs are releases that have to reach a state before this one is changed. Those that are not planned in the same run are ignored.
	Needs []Need
	// Parts are releases that belong to this one, which becomes the current one when they are complete.
	Parts []record.Key
	// Tolerated lets releases that need this one continue when it fails.
	Tolerated bool
	// Timeout limits the wait for this release, from its turn on; 0 is the timeout of the run.
	Timeout time.Duration
	// Complete requires that every object is created: the run waits for a kind that the cluster does not have yet. Without it, and
	// for OptionalKinds (<group>/<kind>), such objects are skipped.
	Complete      bool
	OptionalKinds []string
	// Confined refuses objects with a namespace whose kind is cluster-wide.
	Confined bool
	// Stay are objects that are left in the cluster when the release does not have them any more.
	Stay []schema.ObjectRef
	// GeneratedValues are stored with the revision for the caller, see [Engine.Content], and kept as secret as the objects.
	GeneratedValues []byte
	// SavedOptions are the options that a resumed run needs beyond Settings, see [record.State]. They are stored beside the record until the release is
	// complete, and kept as secret as the objects.
	SavedOptions []byte
	// Approval is recorded for this release; nil if there is no new one. The engine fills in the user and the time.
	Approval *schema.PowerApproval
	// Components are recorded: the revisions of the owner's components that belong to this release.
	Components []schema.ComponentRevision
}

// neededComponents returns the components of the same owner that come before this one, for the record.
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
	Adopt bool // adopt existing objects that belong to no other release, and set all fields of the release
	Force bool // take fields that belong to other managers
	// Replace names objects as KIND/NAME that may be deleted and created again if they cannot be changed in place and nothing is
	// lost with them, and Jobs to run again although they have ended.
	Replace []string
	// Restore plans to bring the recorded objects back to their deployed state, and nothing else. Fields that have been edited
	// since are reset, unless another manager applies them, and deleted objects are created. Nothing is deleted, and
	// CustomResourceDefinitions stay as they are.
	Restore bool
	// Yield, with Restore, skips objects that another manager applies or has created again. Without it they are a conflict.
	Yield bool
	// KeepEdits leaves an existing object as it is if it is to be as it was deployed, even if it has been edited since.
	KeepEdits bool
	// Unchanged makes it an error if an object or a task needs more than the common reads. It is for a plan without a lock, which is not
	// carried out.
	Unchanged bool
	// ReadOnly, with Restore, only detects changes, including those by managers that apply. It needs no right to write.
	ReadOnly bool
}

// ApplyOptions changes how a plan is carried out.
type ApplyOptions struct {
	Timeout time.Duration // limit of the wait for objects to become ready or to be deleted; 0 is ten minutes
	NoWait  bool          // do not wait for readiness, except that of tasks
	Token   int64         // the fencing token of the lock, for the record
	// Prepare, unless nil, is called once for all plans, after everything is recorded and before any object is changed. It is
	// called even if no plan changes anything, and again by the next run if this run fails in it.
	Prepare func(context.Context) error
}
