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
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Apply carries a plan out. When it returns an error, the same release, planned and applied again, finishes the work.
// The error has the code Interrupted when ctx ended after something was written, and Timeout when not everything became
// ready in time; its text then says why, down to the container.
func (e *Engine) Apply(ctx context.Context, p *Plan, o ApplyOptions) error {
	return e.ApplyAll(ctx, []*Plan{p}, o)
}

// ApplyAll carries out several plans side by side. Nothing is changed before all of them are on record. What goes wrong with
// one from then on does not stop the others; the error is that of all of them.
func (e *Engine) ApplyAll(ctx context.Context, plans []*Plan, o ApplyOptions) error {
	runs, ordered, err := e.queue(plans, o)
	if err != nil {
		return err
	}
	busy := slices.DeleteFunc(slices.Clone(runs), func(r *run) bool { return r.idle })
	if err := e.begin(ctx, busy, o); err != nil || len(busy) == 0 {
		noteFailures(ctx, busy, err)
		return err
	}
	if ordered {
		e.inOrder(ctx, runs)
		return join(failures(runs))
	}
	e.sideBySide(ctx, busy, o)
	noteFailures(ctx, busy, nil)
	return finish(ctx, busy)
}

// defaultTimeout is for how long something is waited for where nobody said how long.
const defaultTimeout = 10 * time.Minute

// sideBySide carries runs out that do not wait for each other: what is common to them is done once for all.
func (e *Engine) sideBySide(ctx context.Context, runs []*run, o ApplyOptions) {
	patience, cancel := context.WithTimeout(ctx, cmp.Or(o.Timeout, defaultTimeout))
	defer cancel()
	all(runs, func(r *run) error {
		r.patience, r.follow = patience, e.watch
		return r.change(ctx)
	})
	good := unfailed(runs)
	if !o.NoWait {
		e.wait(ctx, patience, good, e.watch)
		good = unfailed(good)
	}
	all(good, func(r *run) error { return r.runTasks(ctx, schema.MomentReady) })
	good = unfailed(good)
	all(good, func(r *run) error { return r.promote(ctx) })
}

// noteFailures puts on record why runs have not completed what they began, or the error that all of them met. That is for whoever
// reads the history: when it cannot be written, the error itself matters more.
func noteFailures(ctx context.Context, runs []*run, met error) {
	// The run may have ended because of its context.
	brief, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeToNote)
	defer cancel()
	_ = each(len(runs), false, func(i int) error {
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
		return r.save(brief, &r.state)
	})
}

// maxMessage bounds what is kept of an error.
const maxMessage = 1000

// timeToNote is for how long somebody who has interrupted a run waits for its last words.
const timeToNote = 3 * time.Second

// begin puts the runs on record and does what has to come before all of them.
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

// beginAll puts runs on record, those first that are not complete without others: what is known of those alone is not what was to
// be done.
func beginAll(ctx context.Context, runs []*run, user string) {
	wholes := slices.DeleteFunc(slices.Clone(runs), func(r *run) bool { return len(r.plan.Release.Closes) == 0 })
	parts := slices.DeleteFunc(slices.Clone(runs), func(r *run) bool { return len(r.plan.Release.Closes) > 0 })
	begin := func(r *run) error { return r.begin(ctx, user) }
	if all(wholes, begin); len(unfailed(wholes)) == len(wholes) {
		all(parts, begin)
	}
}

// all does something with every run; what goes wrong is kept with it.
func all(runs []*run, f func(r *run) error) {
	_ = each(len(runs), false, func(i int) error {
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
	plan     *Plan
	options  ApplyOptions
	patience context.Context //nolint:containedctx // ends the waiting, and nothing else, when the time is up
	timeout  time.Duration

	state     State                                // as it is written
	results   map[*step]*unstructured.Unstructured // what the server made of the objects
	recording sync.Mutex                           // held to write the state while objects are waited for
	begun     struct{ here, there time.Time }      // when it began, by the clocks of this host and of the API server
	changed   bool                                 // something in the cluster may have been changed

	incomplete bool // nothing is wrong with it but what it closes
	err        error

	follow follower // how objects are waited for
	idle   bool     // there is nothing to do, and others wait until what is there is ready
	queued
}

// finish reports the end of runs.
func finish(ctx context.Context, runs []*run) error {
	for _, r := range runs {
		r.report(ctx)
	}
	return join(failures(runs))
}

// OwnPartReady is the note of an event that tells that a release has failed for nothing but those that it closes.
const OwnPartReady = "its own part is ready"

// report tells the end of a run, and makes of its error one that says whose it is.
func (r *run) report(ctx context.Context) {
	name := r.plan.Release.String()
	state, note := report.Done, ""
	if r.incomplete {
		note = OwnPartReady
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
	r.emit(report.Event{Step: "deploy", Name: name, State: state, Note: note})
}

// failures are the errors of runs, those last of which nothing was begun.
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

// interrupted is the error of what was begun and ended before its end.
func interrupted(err error) error {
	return report.Errorf(report.Interrupted, "%w", err).WithHint("run the same command again: it finishes what was begun")
}

// change brings the objects of the cluster to what is wanted: everything but waiting for it to work. The first tasks may need
// the namespace or custom resources; when one of the others fails, what there was before is still there.
func (r *run) change(ctx context.Context) error {
	if err := r.takeLeft(ctx); err != nil {
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

// applyPhase makes and changes the objects of a phase and waits for what the next phases need of them.
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
	err := each(len(steps), true, func(i int) (err error) {
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

// perform makes one object what it shall be. What turns out to be different from what was planned is judged again.
func (r *run) perform(ctx context.Context, s *step) (*unstructured.Unstructured, error) {
	for attempt := range attempts {
		s.busy = s.busy || attempt >= attempts/2
		if s.late {
			if err := r.judgeLate(ctx, s); err != nil {
				return nil, err
			}
		}
		result, err := r.write(ctx, s)
		switch {
		case err == nil && result != nil && result.GetDeletionTimestamp() != nil:
			// Applying to what is being deleted succeeds, and then it disappears all the same.
			if err = r.gone(ctx, result); err != nil {
				return nil, err
			}
		case err == nil:
			return result, nil
		case errors.Is(err, cluster.ErrChanged), errors.Is(err, cluster.ErrExists), errors.Is(err, cluster.ErrNoKind):
			// It is not what it was when it was planned.
		default:
			return nil, err
		}
		s.late = true
	}
	return nil, restless(s)
}

// judgeLate judges a step in the middle of the run, when what it needs is there. A kind that was defined a moment ago may
// take another moment, and what is being deleted has to go first.
func (r *run) judgeLate(ctx context.Context, s *step) error {
	return r.poll(ctx, func() (bool, error) {
		err := r.plan.judge.decide(ctx, s)
		switch {
		case errors.Is(err, cluster.ErrNoKind):
			return false, nil
		case err != nil:
			return false, err
		case s.late && s.live != nil && s.live.GetDeletionTimestamp() != nil:
			return false, r.gone(ctx, s.live)
		}
		return !s.late, nil
	}, complaint(s))
}

// complaint is what is told of a step whose time never came.
func complaint(s *step) string {
	if s.Note != "" {
		return fmt.Sprintf("%s: %s", s.Object, s.Note)
	}
	return fmt.Sprintf("%s: the API server does not take it", s.Object)
}

// write sends the change of a step.
func (r *run) write(ctx context.Context, s *step) (*unstructured.Unstructured, error) {
	switch s.Action {
	case schema.ActionNone, schema.ActionSkip:
		return s.live, nil
	case schema.ActionCreate:
		return r.Cluster.Create(ctx, s.desired, cluster.WriteOptions{})
	case schema.ActionDelete:
		return nil, r.clear(ctx, s)
	case schema.ActionReplace:
		for _, c := range s.claims {
			if err := r.grow(ctx, c, false); err != nil {
				return nil, err
			}
		}
		if err := r.clear(ctx, s); err != nil {
			return nil, err
		}
		return r.Cluster.Create(ctx, s.desired, cluster.WriteOptions{})
	default:
		if err := r.makeWay(ctx, s); err != nil {
			return nil, err
		}
		return r.Cluster.Apply(ctx, update(s), cluster.WriteOptions{Force: s.force})
	}
}

// clear takes away what is in the place of an object.
func (r *run) clear(ctx context.Context, s *step) error {
	if err := r.Cluster.Delete(ctx, s.live, cluster.DeleteOptions{Propagation: s.propagation}); err != nil {
		return err
	}
	return r.gone(ctx, s.live)
}

// workloadsReady waits until the workloads of the release run.
func (r *run) workloadsReady(ctx context.Context) error {
	var targets []*target
	for _, s := range r.plan.steps {
		if s.phase == phaseWorkloads && s.awaited() {
			targets = append(targets, newTarget(r, s))
		}
	}
	r.await(r.patience, targets, r.follow)
	return r.verdict(ctx, targets)
}

// established waits until the kinds that the release defines can be used.
func (r *run) established(ctx context.Context, steps []*step) error {
	targets := make([]*target, len(steps))
	var kinds []kube.GroupVersionKind
	for i, s := range steps {
		targets[i] = newTarget(r, s)
		kinds = append(kinds, definedKinds(s.desired)...)
	}
	r.watch(r.patience, targets)
	if err := r.verdict(ctx, targets); err != nil {
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

// converted waits until the API server reaches the webhooks of new definitions: it can ask for objects in every version.
// That the pods of a webhook are ready is not enough, as the network learns of them a moment later.
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

// emit tells something of this run.
func (r *run) emit(event report.Event) {
	event.Part = r.plan.Release.String()
	r.Engine.emit(event)
}

// progress counts the objects of a phase.
func (r *run) progress(step, phase string, total int) *counter {
	c := &counter{sink: r.emit, event: report.Event{
		Step: step, Name: r.plan.Release.String() + " " + phase, State: report.Started, Total: int64(total), Unit: "objects",
	}}
	r.emit(c.event)
	return c
}
