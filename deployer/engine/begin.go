package engine

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// begin records the pending revision before the first change.
func (r *run) begin(ctx context.Context, user string) error {
	r.state = *r.plan.state
	r.results = map[*step]*unstructured.Unstructured{}
	data, err := r.plan.decider.content()
	if err != nil {
		return err
	}
	if err = record.CheckSize(data); err != nil {
		return err
	}
	r.propose(user, record.DigestOf(data))
	if err = ctx.Err(); err != nil {
		return err
	}
	r.changed = true
	if err = r.Save(ctx, &r.state); errors.Is(err, record.ErrStale) {
		r.changed = false
		return report.As(report.Locked, err).WithHint("another process changes it at the same time; run the command again")
	}
	if err != nil {
		return err
	}
	r.begun.here, r.begun.there, r.plan.Begun = r.Now(), r.state.WrittenAt(), true
	// The record comes first: content that no record refers to would never be deleted.
	_, err = r.StoreContent(ctx, r.plan.Release.ID(), data)
	return err
}

// manyObjects is the number of objects from which on the size of a record is checked before the records of other releases are written.
const manyObjects = 2000

// checkRoom refuses a run whose record or content is too large, before any release is recorded.
func (r *run) checkRoom(user string) error {
	if len(r.plan.steps) < manyObjects && len(r.plan.Release.SavedOptions) == 0 {
		return nil
	}
	data, err := r.plan.decider.content()
	if err == nil {
		err = record.CheckSize(data)
	}
	if err != nil {
		return err
	}
	draft := &run{Engine: r.Engine, plan: r.plan, options: r.options, state: *r.plan.state, results: map[*step]*unstructured.Unstructured{}}
	draft.propose(user, record.DigestOf(data))
	return r.CheckRoom(&draft.state)
}

// propose makes the new work the pending revision. A run that resumes the same work keeps its number; other work moves the pending
// revision to the history.
func (r *run) propose(user, digest string) {
	release := r.plan.Release
	pending := &schema.DeploymentRevision{
		Number: r.state.Last() + 1, Operation: release.Operation, Version: release.Version, Outcome: schema.DeploymentPending,
		User: user, Tool: r.Tool, Token: r.options.Token, Started: r.second(), Settings: release.Settings, Together: release.Together, Components: release.Components, Needs: release.neededComponents(), Content: digest,
	}
	if old := r.state.Pending; old != nil {
		if sameWork(old, pending) {
			pending.Number, pending.User, pending.Started = old.Number, old.User, old.Started
		} else {
			r.state.AddHistory(old, schema.DeploymentReplaced)
		}
	}
	for _, s := range r.plan.steps {
		if object, ok := s.planned(); ok {
			pending.Objects = append(pending.Objects, object)
		} else if s.Note != NotRecorded {
			pending.Waiting = append(pending.Waiting, s.Object)
		}
	}
	pending.Objects = append(pending.Objects, r.taskObjects(false)...)
	pending.Tasks = r.plan.decider.recorded()
	r.plan.decider.markRuns(pending)
	r.state.Pending, r.state.SavedOptions = pending, release.SavedOptions
	r.state.Approve(release.Approval, user, r.second())
}

// age returns the time since a moment by the clock of the cluster, which may differ from that of this host.
func (r *run) age(at time.Time) time.Duration {
	if r.begun.there.IsZero() {
		return r.Now().Sub(at)
	}
	return r.Now().Sub(r.begun.here) + r.begun.there.Sub(at)
}

// planned returns the object as the record of a pending revision has it.
func (s *step) planned() (schema.DeployedObject, bool) {
	object := schema.DeployedObject{ObjectRef: s.Object, Hash: s.hash, Phase: s.phase, Replacing: s.replacing, Stays: s.stays}
	if s.desired != nil && kindOfRef(s.Object).GroupKind() == jobKind {
		object.Completed, object.Expires = s.completed(), expires(s.desired)
	}
	switch {
	case s.Action == schema.ActionSkip:
		return object, false
	case s.desired != nil && s.Action == schema.ActionKeep:
		object = s.known
	case s.desired == nil:
		object = s.known
		object.Leaving, object.Kept = s.Action == schema.ActionDelete, s.Action == schema.ActionKeep
	case s.live == nil && s.Action == schema.ActionNone:
		object.UID, object.ResourceVersion, object.Generation = s.known.UID, s.known.ResourceVersion, s.known.Generation
	case s.live != nil && s.Action != schema.ActionReplace && s.Action != schema.ActionDelete && !s.late:
		object.UID = string(s.live.GetUID())
	}
	return object, true
}

// objects returns the desired objects as they are applied.
func (d *decider) objects() []*unstructured.Unstructured {
	objects := make([]*unstructured.Unstructured, len(d.desired))
	for i, s := range d.desired {
		objects[i] = s.desired
	}
	return objects
}
