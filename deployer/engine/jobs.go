package engine

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/health"
	"github.com/solutionctl/solutionctl/schema"
)

// decideEnded decides on a Job that has already ended with the same content: it is not run again unless the user asks for that. A
// Job of another version in its place is deleted.
func (d *decider) decideEnded(ctx context.Context, s *step) (done bool, err error) {
	if !d.hasEnded(s) {
		return false, nil
	}
	s.live, err = d.Cluster.Get(ctx, s.desired.GroupVersionKind(), s.Object.Namespace, s.Object.Name)
	if err != nil || s.live != nil && (health.JobEnded(s.live) == "" || !d.belongs(s)) {
		return false, err
	}
	return d.decideAfterEnd(s), nil
}

// decideAfterEnd decides on an ended Job, which may be deleted by now.
func (d *decider) decideAfterEnd(s *step) (done bool) {
	switch {
	case d.replaceRequested(s):
		s.Action, s.Note, s.propagation = schema.ActionReplace, "it is run again", metav1.DeletePropagationBackground
		if s.replacing = true; s.live == nil {
			s.Action = schema.ActionCreate
		}
		return true
	case s.live == nil:
		s.Action, s.Note = schema.ActionNone, "it has ended, and is not run again"
	case s.known.Hash == s.hash || d.options.Restore:
		return false // it is still there
	default:
		s.Action, s.Note, s.propagation = schema.ActionDelete, "that of this version has ended before, and is not run again", metav1.DeletePropagationBackground
	}
	s.ended = true
	return true
}

// noteRerun notes on a Job that a rollback creates whether it is run for the first time, or a different one has ended before.
func (d *decider) noteRerun(s *step) {
	isMade := s.Action == schema.ActionCreate || s.Action == schema.ActionReplace
	if !d.release.Back || !isMade || s.taskStep != nil || s.Note != "" || s.desired.GroupVersionKind().GroupKind() != jobKind {
		return
	}
	if s.Note = "it is run"; len(d.past[record.KeyOf(s.Object)]) > 0 {
		s.Note = "it is run again: the one that has ended was another"
	}
}

// hasEnded reports whether the desired Job has already ended. A recorded Job that the cluster deletes after its end counts as ended if
// it is gone, even if its end was not observed.
func (d *decider) hasEnded(s *step) bool {
	if s.desired.GroupVersionKind().GroupKind() != jobKind {
		return false
	}
	if d.release.Back && slices.Contains(d.past[record.KeyOf(s.Object)], s.hash) {
		return true
	}
	was := d.before[record.KeyOf(s.Object)]
	return s.known.Hash == s.hash && s.known.Completed || was.Hash == s.hash && was.UID != "" && expires(s.desired)
}

// replaceRequested reports whether the user has asked to replace an object, now or in the pending revision that is being resumed.
func (d *decider) replaceRequested(s *step) bool {
	return s.known.Replacing && s.known.Hash == s.hash || s.taskStep != nil && s.taskStep.task.Replace || d.isNamed(s)
}

// completed reports whether the Job of a step has succeeded, now or before.
func (s *step) completed() bool {
	return s.ended || s.done.Load() || s.known.Completed && s.known.Hash == s.hash && !s.changes()
}

// expires reports whether the cluster deletes a Job after its end.
func expires(job *unstructured.Unstructured) bool {
	_, ttl, _ := unstructured.NestedFieldNoCopy(job.Object, "spec", ttlField)
	return ttl
}

const ttlField = "ttlSecondsAfterFinished"

// recordJobEnd records at once that a Job has succeeded: the cluster may delete the Job before the run ends, and a resumed run must not
// run it again. If the record cannot be written now, it is written at the end of the run.
func (r *run) recordJobEnd(ctx context.Context, s *step) {
	if s.taskStep != nil || s.done.Swap(true) || s.known.Completed && s.known.Hash == s.hash && !s.replacing {
		return
	}
	r.recording.Lock()
	defer r.recording.Unlock()
	for i := range r.state.Pending.Objects {
		if r.state.Pending.Objects[i].ObjectRef == s.Object {
			r.state.Pending.Objects[i].Completed, r.state.Pending.Objects[i].Replacing = true, false
		}
	}
	_ = r.Save(ctx, &r.state) // see the comment of the function
}
