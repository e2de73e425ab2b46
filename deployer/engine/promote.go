package engine

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// promote makes the pending revision the current one with one write. Content that no revision refers to is deleted before: if the run
// dies in between, the revision is still pending and the next run continues.
func (r *run) promote(ctx context.Context) error {
	if err := r.collect(ctx); err != nil {
		return err
	}
	r.complete()
	err := r.Save(ctx, &r.state)
	if errors.Is(err, record.ErrStale) {
		return report.As(report.Interrupted, err).WithHint("run the same command again")
	}
	return err
}

// complete makes the pending revision the current one, with the objects as they are now.
func (r *run) complete() {
	done := *r.state.Pending
	finished := r.second()
	done.Outcome, done.Finished, done.Objects = schema.DeploymentDone, &finished, nil
	for _, s := range r.plan.steps {
		object, ok := s.planned()
		if !ok || object.Leaving {
			continue
		}
		object.Replacing = false
		if live := cmp.Or(r.results[s], s.live); live != nil && s.desired != nil && s.Action != schema.ActionKeep && s.Action != schema.ActionDelete {
			object.UID, object.ResourceVersion, object.Generation = string(live.GetUID()), live.GetResourceVersion(), live.GetGeneration()
		}
		done.Objects = append(done.Objects, object)
	}
	done.Objects = append(done.Objects, r.taskObjects(true)...)
	if r.succeeds(&r.state) {
		r.state.AddHistory(r.state.Current, r.state.Current.Outcome)
	}
	r.state.Current, r.state.Pending, r.state.SavedOptions = &done, nil, nil
	if done.Version == "" { // it was removed
		r.state.Approvals = nil
	}
}

// succeeds reports whether the current revision becomes history. Repeated repairs do not: they must not push out revisions to which
// the user could roll back.
func (r *run) succeeds(s *record.State) bool {
	return s.Current != nil && (!r.plan.decider.options.Restore || !sameWork(s.Current, s.Pending))
}

// sameWork reports whether two revisions are the same operation with the same content.
func sameWork(a, b *schema.DeploymentRevision) bool {
	return a.Operation == b.Operation && a.Version == b.Version && a.Content == b.Content && maps.Equal(a.Settings, b.Settings)
}

// collect deletes the content of revisions that leave the history. Only an interrupted run leaves content that no revision refers to,
// so only after one all content of the release is listed, which takes longer the more is stored.
func (r *run) collect(ctx context.Context) error {
	next := r.state
	if next.Current == nil && len(next.History) == 0 {
		return nil // it is the first
	}
	before := contents(next.Current, next.History)
	keep := []string{next.Pending.Content}
	if r.succeeds(&next) {
		next.AddHistory(next.Current, next.Current.Outcome)
	}
	keep = append(keep, contents(nil, next.History)...)
	if r.plan.Resumes != nil {
		return r.CollectContent(ctx, r.plan.Release.ID(), keep...)
	}
	for _, digest := range before {
		if digest == "" || slices.Contains(keep, digest) {
			continue
		}
		if err := r.DropContent(ctx, r.plan.Release.ID(), digest); err != nil {
			return err
		}
	}
	return nil
}

// contents returns the digests that revisions refer to.
func contents(current *schema.DeploymentRevision, history []schema.DeploymentRevision) []string {
	var digests []string
	if current != nil {
		digests = append(digests, current.Content)
	}
	for _, old := range history {
		digests = append(digests, old.Content)
	}
	return digests
}
