package schema

import "time"

// Task specifies when an object of a release, such as a hook of a chart or a job, is applied on its own and not with the
// others: a Job or a Pod then runs to its end before anything else is done.
type Task struct {
	When Moment `json:"when"`
	// On lists the operations in which it is applied. The others leave an existing object in place, except a removal.
	On []Occasion `json:"on" schema:"minItems=1"`
	// Weight orders the tasks of a moment, ascending; those of one weight follow each other by name.
	Weight int `json:"weight,omitempty"`
	// Replace deletes what an earlier operation has left of a Job or a Pod even while it runs, and anything else where it
	// cannot be changed in place.
	Replace bool `json:"replace,omitempty"`
	// DeleteOnSuccess deletes the object when all tasks of the moment have ended well.
	DeleteOnSuccess bool `json:"deleteOnSuccess,omitempty"`
	// DeleteOnFailure deletes a Job or a Pod that has failed.
	DeleteOnFailure bool `json:"deleteOnFailure,omitempty"`
	// Once keeps a Job or a Pod that has ended well from running again.
	Once Once `json:"once,omitempty"`
}

// Moment is a place in the course of an operation.
type Moment string

// The moments.
const (
	MomentBefore  Moment = "before"  // namespaces and definitions are there, and nothing else has been changed
	MomentApplied Moment = "applied" // everything is applied, and nothing removed or waited for yet; in a removal: everything is gone
	MomentReady   Moment = "ready"   // everything is ready; in a removal as applied
)

// Occasion is the kind of change that an operation makes to a release.
type Occasion string

// The occasions.
const (
	OccasionInstall Occasion = "install" // nothing of it was there before
	OccasionUpgrade Occasion = "upgrade"
	OccasionBack    Occasion = "back" // to an earlier revision
	OccasionRemove  Occasion = "remove"
)

// DeployedTask is a [Task] on record.
type DeployedTask struct {
	ObjectRef `schema:"minLength=1"`
	When      Moment `json:"when"`
	// Hash is that of the object as it was rendered.
	Hash string `json:"hash" schema:"sha256"`
	Once Once   `json:"once,omitempty"`
	// Finished is when it succeeded: a run that finishes the revision does not run it again. It is absent before that, and
	// for a task of other operations.
	Finished *time.Time `json:"finished,omitempty"`
}
