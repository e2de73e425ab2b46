package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Need is a release to wait for, and the state that it has to reach: applied, or ready, which is both Ready and Complete.
type Need struct {
	record.Key
	Until schema.Until
}

// Content returns the digest of the content of the planned revision.
func (p *Plan) Content() (string, error) {
	data, err := p.decider.content()
	return record.DigestOf(data), err
}

// queued has the dependencies of a run. Its channels are closed when the run reaches the state.
type queued struct {
	needs                 []need
	parts                 []*run
	applied, ready, ended chan struct{}
	awaited               bool   // another run needs it ready
	precedes              bool   // another run starts after it
	leave                 func() // gives its place back
}

type need struct {
	*run
	until schema.Until
}

// reached is closed when the needed state is reached.
func (n need) reached() <-chan struct{} {
	if n.until == schema.UntilApplied {
		return n.applied
	}
	return n.ready
}

// queue returns the runs of plans: those with something to do, and those that others wait for. ordered reports whether runs depend
// on each other or have timeouts of their own. Circular dependencies are refused.
func (e *Engine) queue(plans []*Plan, o ApplyOptions) (runs []*run, ordered bool, err error) {
	byKey := map[record.Key]*run{}
	for _, p := range plans {
		byKey[p.Release.Key] = &run{
			Engine: e, plan: p, options: o, timeout: cmp.Or(p.Release.Timeout, o.Timeout, defaultTimeout), idle: p.Idle(),
			queued: queued{applied: make(chan struct{}), ready: make(chan struct{}), ended: make(chan struct{}), leave: func() {}},
		}
	}
	needed := map[*run]bool{}
	for _, p := range plans {
		r := byKey[p.Release.Key]
		if r.idle {
			continue
		}
		ordered = ordered || p.Release.Timeout > 0 // it has a timeout of its own
		for _, n := range p.Release.Needs {
			other, planned := byKey[n.Key]
			if !planned {
				continue
			}
			ordered, needed[other] = true, true
			other.precedes = true
			other.awaited = other.awaited || n.Until != schema.UntilApplied
			r.needs = append(r.needs, need{other, n.Until})
		}
		for _, key := range p.Release.Parts {
			if other, planned := byKey[key]; planned && !other.idle {
				ordered, r.parts = true, append(r.parts, other)
			}
		}
	}
	for _, p := range plans {
		if r := byKey[p.Release.Key]; !r.idle || needed[r] {
			runs = append(runs, r)
		}
	}
	return runs, ordered, e.rejectCycles(runs)
}

// rejectCycles refuses runs that wait for themselves. Dependencies may come from a record that has been edited.
func (e *Engine) rejectCycles(runs []*run) error {
	finished := map[*run]bool{} // false while its needs are visited
	var visit func(r *run) error
	visit = func(r *run) error {
		if done, visited := finished[r]; done {
			return nil
		} else if visited {
			return report.Errorf(report.Invalid, "%s waits for itself", r.plan.Release.Key)
		}
		finished[r] = false
		for _, n := range r.needs {
			if err := visit(n.run); err != nil {
				return err
			}
		}
		finished[r] = true // its parts may need it: they do not wait for its end
		return nil
	}
	for _, r := range runs {
		if err := visit(r); err != nil {
			return err
		}
	}
	return nil
}

// inOrder starts each run when its needs are met. A failure stops the runs that need it, and no others.
func (e *Engine) inOrder(ctx context.Context, runs []*run) {
	watches := newSharedWatches(e)
	defer watches.close()
	var group sync.WaitGroup
	places := make(chan struct{}, cluster.Workers) // the same limit as for runs side by side
	for _, r := range runs {
		group.Go(func() {
			defer close(r.ended)
			r.follow = watches.follow
			r.err = r.runInOrder(ctx, places)
			recordFailures(ctx, []*run{r}, nil)
			if !r.idle || r.err != nil {
				r.report(ctx)
			}
		})
	}
	group.Wait()
}

func (r *run) runInOrder(ctx context.Context, places chan struct{}) error {
	if err := r.awaitNeeds(ctx); err != nil {
		return err
	}
	defer r.takeTurn(ctx, places)()
	if !r.idle {
		err := r.change(ctx)
		r.leave()
		if err != nil {
			return err
		}
	}
	close(r.applied)
	if r.awaited || !r.options.NoWait {
		r.wait(ctx, r.waitCtx, []*run{r}, r.follow)
		if r.err != nil {
			return r.err
		}
	}
	if !r.idle {
		if err := r.runTasks(ctx, schema.MomentReady); err != nil {
			return err
		}
	}
	close(r.ready)
	if r.idle {
		return nil
	}
	if err := r.awaitParts(); err != nil {
		return err
	}
	return r.promote(ctx)
}

// takeTurn waits for a place, unless the run is idle, and starts the timeout of the run.
func (r *run) takeTurn(ctx context.Context, places chan struct{}) context.CancelFunc {
	if !r.idle {
		places <- struct{}{}
		r.leave = sync.OnceFunc(func() { <-places })
	}
	var cancel context.CancelFunc
	r.waitCtx, cancel = context.WithTimeout(ctx, r.timeout)
	return cancel
}

// awaitParts waits until the parts of a release are complete, and reports which it waits for.
func (r *run) awaitParts() error {
	if open := r.incompleteReleases(); len(open) > 0 {
		label := r.plan.Release.Label()
		note := ownPartReady + ", and complete with " + strings.Join(open, ", ")
		r.emit(report.Event{Step: "wait", Name: label, State: report.Running, Note: note, OwnPartReady: true})
		defer r.emit(report.Event{Step: "wait", Name: label, State: report.Done})
	}
	var failed []*run
	for _, other := range r.parts {
		if <-other.ended; other.err != nil {
			failed = append(failed, other)
		}
	}
	r.incomplete = len(failed) > 0
	return blockedBy(failed, "it is not complete without")
}

// incompleteReleases returns the labels of the parts that are not complete yet.
func (r *run) incompleteReleases() []string {
	var names []string
	for _, other := range r.parts {
		select {
		case <-other.ended:
		default:
			names = append(names, other.plan.Release.Label())
		}
	}
	return names
}

// awaitNeeds waits until the needs of a run are met. A tolerated release counts even if it has failed.
func (r *run) awaitNeeds(ctx context.Context) error {
	var failed []*run
	for _, n := range r.needs {
		select {
		case <-n.reached():
			continue
		case <-n.ended:
		case <-ctx.Done():
			return errBeforeNeeds(ctx, n)
		}
		select {
		case <-n.reached(): // both channels were closed
			continue
		default:
		}
		if ctx.Err() != nil {
			return errBeforeNeeds(ctx, n)
		}
		if !n.plan.Release.Tolerated {
			failed = append(failed, n.run)
		}
	}
	return blockedBy(failed, "it was not started, because it needs")
}

// errBeforeNeeds is the error of a run that was interrupted before it started.
func errBeforeNeeds(ctx context.Context, n need) error {
	return fmt.Errorf("interrupted before it was started, while waiting for %s: %w", n.plan.Release.Label(), ctx.Err())
}

// blockedBy returns the error of a run that cannot continue because others have failed; nil if none have.
func blockedBy(failed []*run, why string) error {
	if len(failed) == 0 {
		return nil
	}
	names := make([]string, len(failed))
	for i, r := range failed {
		names[i] = r.plan.Release.Label()
	}
	slices.Sort(names)
	return &blockedError{report.Errorf(report.CodeOf(failed[0].err), "%s %s, which failed", why, strings.Join(names, ", "))}
}

// blockedError marks the error of a run that could not continue because of another one.
type blockedError struct{ error }

func (e *blockedError) Unwrap() error { return e.error }
