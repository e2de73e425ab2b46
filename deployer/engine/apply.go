package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Apply carries out a plan. After an error, planning and applying the same release again completes the work. The error has the
// code Interrupted if ctx ended after something was written, and Timeout if not everything became ready in time; its text then
// includes the reasons, down to the container.
func (e *Engine) Apply(ctx context.Context, p *Plan, o ApplyOptions) error {
	return e.ApplyAll(ctx, []*Plan{p}, o)
}

// ApplyAll carries out several plans side by side. Nothing is changed before all of them are recorded. From then on the failure
// of one does not stop the others; the error joins those of all.
func (e *Engine) ApplyAll(ctx context.Context, plans []*Plan, o ApplyOptions) error {
	runs, ordered, err := e.queue(plans, o)
	if err != nil {
		return err
	}
	busy := slices.DeleteFunc(slices.Clone(runs), func(r *run) bool { return r.idle })
	if err := e.begin(ctx, busy, o); err != nil || len(busy) == 0 {
		recordFailures(ctx, busy, err)
		return err
	}
	if ordered {
		e.inOrder(ctx, runs)
		return cluster.Join(failures(runs))
	}
	e.sideBySide(ctx, busy, o)
	recordFailures(ctx, busy, nil)
	return finish(ctx, busy)
}

// defaultTimeout is the limit of a wait for which the caller sets none.
const defaultTimeout = 10 * time.Minute

// sideBySide carries out runs that do not wait for each other, and shares requests between them.
func (e *Engine) sideBySide(ctx context.Context, runs []*run, o ApplyOptions) {
	waitCtx, cancel := context.WithTimeout(ctx, cmp.Or(o.Timeout, defaultTimeout))
	defer cancel()
	all(runs, func(r *run) error {
		r.waitCtx, r.follow = waitCtx, e.watch
		return r.change(ctx)
	})
	good := unfailed(runs)
	if !o.NoWait {
		e.wait(ctx, waitCtx, good, e.watch)
		good = unfailed(good)
	}
	all(good, func(r *run) error { return r.runTasks(ctx, schema.MomentReady) })
	good = unfailed(good)
	all(good, func(r *run) error { return r.promote(ctx) })
}

// recordFailures records why runs have failed: their own errors, or the error met by all of them. This is only for readers of the
// history, so a failure to write it is ignored.
func recordFailures(ctx context.Context, runs []*run, met error) {
	// ctx may have ended, which is why the run failed.
	brief, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	_ = cluster.All(len(runs), func(i int) error {
		r := runs[i]
		err := cmp.Or(r.err, met)
		if err == nil || r.begun.here.IsZero() || r.state.Pending == nil {
			return nil
		}
		code := report.CodeOf(err)
		if ctx.Err() != nil {
			code = report.Interrupted
		}
		pending := *r.state.Pending
		pending.Failure = &schema.DeploymentFailure{Code: code, Message: report.OneLine(err.Error(), maxMessage)}
		r.state.Pending = &pending
		return r.Save(brief, &r.state)
	})
}

// maxMessage limits the size of a recorded error.
const maxMessage = 1000

// recordTimeout is short because a user who has interrupted a run waits for it.
const recordTimeout = 3 * time.Second

// begin records the runs and calls Prepare.
func (e *Engine) begin(ctx context.Context, runs []*run, o ApplyOptions) error {
	if len(runs) > 0 {
		user := e.User
		if user == "" {
			user = e.Cluster.User(ctx)
		}
		beginAll(ctx, runs, user)
	}
	if len(unfailed(runs)) < len(runs) {
		return finish(ctx, slices.DeleteFunc(slices.Clone(runs), func(r *run) bool { return r.err == nil }))
	}
	if o.Prepare == nil {
		return nil
	}
	err := o.Prepare(ctx)
	if err != nil && len(runs) > 0 && ctx.Err() != nil {
		return interrupted(err)
	}
	return err
}

// beginAll records runs. Releases that have parts come first: the record of a component alone does not show what the operation was.
func beginAll(ctx context.Context, runs []*run, user string) {
	if all(runs, func(r *run) error { return r.checkRoom(user) }); len(unfailed(runs)) < len(runs) {
		return
	}
	wholes := slices.DeleteFunc(slices.Clone(runs), func(r *run) bool { return len(r.plan.Release.Parts) == 0 })
	parts := slices.DeleteFunc(slices.Clone(runs), func(r *run) bool { return len(r.plan.Release.Parts) > 0 })
	begin := func(r *run) error { return r.begin(ctx, user) }
	if all(wholes, begin); len(unfailed(wholes)) == len(wholes) {
		all(parts, begin)
	}
}

// all calls f for every run; errors are kept in the runs.
func all(runs []*run, f func(r *run) error) {
	_ = cluster.All(len(runs), func(i int) error {
		runs[i].err = f(runs[i])
		return nil
	})
}

func unfailed(runs []*run) []*run {
	return slices.DeleteFunc(slices.Clone(runs), func(r *run) bool { return r.err != nil })
}

// run carries out one plan.
type run struct {
	*Engine
	plan    *Plan
	options ApplyOptions
	waitCtx context.Context //nolint:containedctx // ends the waiting, and nothing else, when the time is up
	timeout time.Duration

	state     record.State                         // as it is written
	results   map[*step]*unstructured.Unstructured // objects as the server returned them
	recording sync.Mutex                           // held to write the state while objects are waited for
	begun     struct{ here, there time.Time }      // start by the clocks of this host and of the API server
	changed   bool                                 // the cluster may have been written to

	incomplete bool // only its parts have failed
	err        error

	follow follower // how objects are waited for
	idle   bool     // nothing to do, but others wait until its objects are ready
	queued
}

// finish reports the results of runs.
func finish(ctx context.Context, runs []*run) error {
	for _, r := range runs {
		r.report(ctx)
	}
	return cluster.Join(failures(runs))
}

// ownPartReady is the note of an event for a release of which only parts have failed.
const ownPartReady = "its own part is ready"

// report reports the result of a run and adds the name of the release to its error.
func (r *run) report(ctx context.Context) {
	name := r.plan.Release.String()
	state, note := report.Done, ""
	if r.incomplete {
		note = ownPartReady
	}
	switch {
	case r.err == nil:
	case ctx.Err() != nil && r.changed:
		state, r.err = report.Failed, fmt.Errorf("deploy %s: %w", name, interrupted(r.err))
	case ctx.Err() != nil:
		state, r.err = report.Failed, report.Errorf(report.Cancelled, "deploy %s: %w", name, r.err)
	default:
		state, r.err = report.Failed, fmt.Errorf("deploy %s: %w", name, r.err)
	}
	r.emit(report.Event{Step: "deploy", Name: name, State: state, Note: note, OwnPartReady: r.incomplete})
}

// failures returns the errors of runs; those of runs that were never begun come last.
func failures(runs []*run) []error {
	var errs, idle []error
	for _, r := range runs {
		if _, blocked := errors.AsType[*blockedError](r.err); blocked || report.CodeOf(r.err) == report.Cancelled {
			idle = append(idle, r.err)
		} else {
			errs = append(errs, r.err)
		}
	}
	return append(errs, idle...)
}

// interrupted wraps the error of a run that has written something and was interrupted.
func interrupted(err error) error {
	return report.As(report.Interrupted, err).WithHint("run the same command again: it completes the operation")
}

// change applies and deletes the objects of a release, without waiting until they are ready. The first tasks may need the
// namespace or CustomResourceDefinitions, so these come before them; if a later task fails, the old objects are still there.
func (r *run) change(ctx context.Context) error {
	if err := r.adoptTaskObjects(ctx); err != nil {
		return err
	}
	for phase := range phases {
		if phase == phaseAccounts {
			if err := r.runTasks(ctx, schema.MomentBefore); err != nil {
				return err
			}
		}
		if err := r.applyPhase(ctx, phase); err != nil {
			return err
		}
	}
	if err := r.runTasks(ctx, schema.MomentApplied); err != nil {
		return err
	}
	return r.prune(ctx)
}

// applyPhase applies the objects of a phase and waits for those that the next phases depend on.
func (r *run) applyPhase(ctx context.Context, phase int) error {
	var steps []*step
	for _, s := range r.plan.steps {
		if s.phase == phase && s.desired != nil && s.changes() {
			steps = append(steps, s)
		}
	}
	if len(steps) == 0 {
		return nil
	}
	if phase == phaseConversions {
		if err := r.workloadsReady(ctx); err != nil {
			return err
		}
	}
	progress := r.progress("apply", phaseNames[phase], len(steps))
	results := make([]*unstructured.Unstructured, len(steps))
	err := cluster.Each(len(steps), func(i int) (err error) {
		results[i], err = r.perform(ctx, steps[i])
		progress.step(err)
		return err
	})
	if err != nil {
		return err
	}
	for i, s := range steps {
		if results[i] != nil {
			r.results[s] = results[i]
		}
	}
	if phase != phaseDefinitions && phase != phaseConversions {
		return nil
	}
	if err = r.established(ctx, steps); err != nil || phase == phaseDefinitions {
		return err
	}
	return r.converted(ctx, steps)
}

// perform applies one object. If the object is not as it was when it was planned, it is planned again.
func (r *run) perform(ctx context.Context, s *step) (*unstructured.Unstructured, error) {
	for attempt := range attempts {
		s.busy = s.busy || attempt >= attempts/2
		if s.late {
			if err := r.decideLate(ctx, s); err != nil {
				return nil, err
			}
		}
		result, err := r.write(ctx, s)
		switch {
		case err == nil && result != nil && result.GetDeletionTimestamp() != nil:
			// Applying to an object that is being deleted succeeds, but does not keep it.
			if err = r.waitGone(ctx, result); err != nil {
				return nil, err
			}
		case err == nil:
			return result, nil
		case errors.Is(err, cluster.ErrChanged), errors.Is(err, cluster.ErrExists), errors.Is(err, cluster.ErrNoKind):
			// It has changed since it was planned.
		default:
			return nil, err
		}
		s.late = true
	}
	return nil, contended(s)
}

// decideLate plans a step in the middle of the run, when what it depends on exists. A kind may be served only a moment after it was
// defined, and an object that is being deleted has to be gone first.
func (r *run) decideLate(ctx context.Context, s *step) error {
	return r.poll(ctx, func() (bool, error) {
		err := r.plan.decider.decide(ctx, s)
		if s.late {
			r.leave() // to another run, which may bring what the step waits for
		}
		switch {
		case errors.Is(err, cluster.ErrNoKind):
			return false, nil
		case err != nil:
			return false, err
		case s.late && s.live != nil && s.live.GetDeletionTimestamp() != nil:
			return false, r.waitGone(ctx, s.live)
		}
		return !s.late, nil
	}, timeoutMessage(s))
}

// timeoutMessage describes a step that could never be carried out.
func timeoutMessage(s *step) string {
	if s.Note != "" {
		return fmt.Sprintf("%s: %s", s.Object, s.Note)
	}
	return fmt.Sprintf("%s: the API server does not take it", s.Object)
}

// write sends the change of a step.
func (r *run) write(ctx context.Context, s *step) (*unstructured.Unstructured, error) {
	options := cluster.WriteOptions{Force: s.force, Brief: !s.awaited()}
	switch s.Action {
	case schema.ActionNone, schema.ActionSkip:
		return s.live, nil
	case schema.ActionCreate:
		return r.Cluster.Create(ctx, s.desired, options)
	case schema.ActionDelete:
		return nil, r.deleteExisting(ctx, s)
	case schema.ActionReplace:
		for _, c := range s.claims {
			if err := r.grow(ctx, c, false); err != nil {
				return nil, err
			}
		}
		if err := r.deleteExisting(ctx, s); err != nil {
			return nil, err
		}
		return r.Cluster.Create(ctx, s.desired, options)
	default:
		if err := r.clearFields(ctx, s); err != nil {
			return nil, err
		}
		return r.Cluster.Apply(ctx, update(s), options)
	}
}

// deleteExisting deletes the object that is to be replaced and waits until it is gone.
func (r *run) deleteExisting(ctx context.Context, s *step) error {
	if gone, err := r.Cluster.Remove(ctx, s.live, cluster.DeleteOptions{Propagation: s.propagation}); err != nil || gone {
		return err
	}
	return r.waitGone(ctx, s.live)
}

// workloadsReady waits until the workloads of the release run.
func (r *run) workloadsReady(ctx context.Context) error {
	var targets []*target
	for _, s := range r.plan.steps {
		if s.phase == phaseWorkloads && s.awaited() {
			targets = append(targets, newTarget(r, s))
		}
	}
	r.await(r.waitCtx, targets, r.follow)
	return r.waitError(ctx, targets)
}

// established waits until the API server serves the kinds that the release defines.
func (r *run) established(ctx context.Context, steps []*step) error {
	targets := make([]*target, len(steps))
	var kinds []kube.GroupVersionKind
	for i, s := range steps {
		targets[i] = newTarget(r, s)
		kinds = append(kinds, definedKinds(s.desired)...)
	}
	r.watch(r.waitCtx, targets)
	if err := r.waitError(ctx, targets); err != nil {
		return err
	}
	r.Cluster.Refresh()
	return r.poll(ctx, func() (bool, error) {
		for _, kind := range kinds {
			if _, err := r.Cluster.Mapping(ctx, kind); errors.Is(err, cluster.ErrNoKind) {
				r.Cluster.Refresh()
				return false, nil
			} else if err != nil {
				return false, err
			}
		}
		return true, nil
	}, "the API server does not serve the kinds of the new CustomResourceDefinitions")
}

// converted waits until the API server reaches the webhooks of new CustomResourceDefinitions, so that it can list objects in every
// version. Ready pods of a webhook are not enough, as the network learns of them a moment later.
func (r *run) converted(ctx context.Context, steps []*step) error {
	return r.poll(ctx, func() (bool, error) {
		for _, s := range steps {
			for _, kind := range definedKinds(s.desired) {
				for _, err := range r.Cluster.List(ctx, kind, "", metav1.ListOptions{Limit: 1}) {
					if report.CodeOf(err) == report.Unavailable && ctx.Err() == nil {
						return false, nil
					}
					if err != nil && report.CodeOf(err) != report.Forbidden {
						return false, err
					}
					break
				}
			}
		}
		return true, nil
	}, "the API server does not reach the webhook that converts custom resources")
}

// emit sends an event of this run.
func (r *run) emit(event report.Event) {
	event.Part = r.plan.Release.String()
	r.Engine.emit(event)
}

// progress returns a counter for the objects of a phase.
func (r *run) progress(step, phase string, total int) *counter {
	c := &counter{sink: r.emit, event: report.Event{
		Step: step, Name: r.plan.Release.String() + " " + phase, State: report.Started, Total: int64(total), Unit: "objects",
	}}
	r.emit(c.event)
	return c
}
