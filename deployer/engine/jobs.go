package engine

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/health"
	"github.com/solutionctl/solutionctl/schema"
)

// before returns the objects of the last completed revision.
func (s *State) before() map[objectKey]schema.DeployedObject {
	return (&State{Current: s.Current}).inventory()
}

// ended returns the hashes of the Jobs that have ended in the revisions that are known.
func (s *State) ended() map[objectKey][]string {
	all := map[objectKey][]string{}
	for _, r := range s.Revisions() {
		for _, object := range r.Objects {
			if object.Completed {
				key := keyOfRef(object.ObjectRef)
				all[key] = append(all[key], object.Hash)
			}
		}
	}
	return all
}

// decideEnded decides about a Job that has ended before, just as it is wanted now: it is not run again unless somebody asks
// for that. What another version has left in its place goes.
func (j *judge) decideEnded(ctx context.Context, s *step) (done bool, err error) {
	if !j.hasEnded(s) {
		return false, nil
	}
	s.live, err = j.Cluster.Get(ctx, s.desired.GroupVersionKind(), s.Object.Namespace, s.Object.Name)
	if err != nil || s.live != nil && (health.JobEnded(s.live) == "" || !j.isOurs(s)) {
		return false, err
	}
	return j.judgeEnded(s), nil
}

// judgeEnded is the decision about such a Job; it may be gone.
func (j *judge) judgeEnded(s *step) (done bool) {
	switch {
	case j.wanted(s):
		s.Action, s.Note, s.propagation = schema.ActionReplace, "it is run again", metav1.DeletePropagationBackground
		if s.replacing = true; s.live == nil {
			s.Action = schema.ActionCreate
		}
		return true
	case s.live == nil:
		s.Action, s.Note = schema.ActionNone, "it has ended, and is not run again"
	case s.known.Hash == s.hash || j.options.Restore:
		return false // it is still there
	default:
		s.Action, s.Note, s.propagation = schema.ActionDelete, "that of this version has ended before, and is not run again", metav1.DeletePropagationBackground
	}
	s.ended = true
	return true
}

// noteRun says of a Job that is made on the way back whether it is the first of its name, or one has ended before that was another.
func (j *judge) noteRun(s *step) {
	isMade := s.Action == schema.ActionCreate || s.Action == schema.ActionReplace
	if !j.release.Back || !isMade || s.turn != nil || s.Note != "" || s.desired.GroupVersionKind().GroupKind() != jobKind {
		return
	}
	if s.Note = "it is run"; len(j.past[keyOfRef(s.Object)]) > 0 {
		s.Note = "it is run again: the one that has ended was another"
	}
}

// hasEnded reports whether the very Job that is wanted has ended before. One that the cluster deletes after its end and that is
// on record has ended when it is gone, whether or not anybody saw it.
func (j *judge) hasEnded(s *step) bool {
	if s.desired.GroupVersionKind().GroupKind() != jobKind {
		return false
	}
	if j.release.Back && slices.Contains(j.past[keyOfRef(s.Object)], s.hash) {
		return true
	}
	was := j.before[keyOfRef(s.Object)]
	return s.known.Hash == s.hash && s.known.Completed || was.Hash == s.hash && was.UID != "" && expires(s.desired)
}

// wanted reports whether the user has asked to replace an object, now or when the revision was begun that is being finished.
func (j *judge) wanted(s *step) bool {
	return s.known.Replacing && s.known.Hash == s.hash || s.turn != nil && s.turn.task.Replace || j.asked(s)
}

// completed reports whether the Job of a step has ended well, now or before.
func (s *step) completed() bool {
	return s.ended || s.done.Load() || s.known.Completed && s.known.Hash == s.hash && !s.changes()
}

// expires reports whether the cluster deletes a Job when it has ended.
func expires(job *unstructured.Unstructured) bool {
	_, ttl, _ := unstructured.NestedFieldNoCopy(job.Object, "spec", ttlField)
	return ttl
}

const ttlField = "ttlSecondsAfterFinished"

// noteEnd writes down that a Job has ended well, as soon as that is seen: before the run ends, the cluster may have deleted
// the Job, and whoever finishes the run must not run it again. A record that cannot be written now is written at the end.
func (r *run) noteEnd(ctx context.Context, s *step) {
	if s.turn != nil || s.done.Swap(true) || s.known.Completed && s.known.Hash == s.hash && !s.replacing {
		return
	}
	r.recording.Lock()
	defer r.recording.Unlock()
	for i := range r.state.Pending.Objects {
		if r.state.Pending.Objects[i].ObjectRef == s.Object {
			r.state.Pending.Objects[i].Completed, r.state.Pending.Objects[i].Replacing = true, false
		}
	}
	_ = r.save(ctx, &r.state) // see above
}
