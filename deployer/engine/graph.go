package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Need is a release to wait for, and the state that it has to reach: that its objects are applied, or that all of it is ready,
// for which Ready and Complete both stand.
type Need struct {
	Key
	Until schema.Until
}

// Content is the digest of what is stored with the revision that the plan makes.
func (p *Plan) Content() (string, error) {
	data, err := p.judge.content()
	return DigestOf(data), err
}

// queued is the place of a run among those that wait for each other. Its channels are closed when the run has come so far.
type queued struct {
	needs                 []need
	closes                []*run
	applied, ready, ended chan struct{}
	awaited               bool // somebody needs it ready
	precedes              bool // somebody does not begin before it has come so far
}

type need struct {
	*run
	until schema.Until
}

// reached is closed when what is needed is so.
func (n need) reached() <-chan struct{} {
	if n.until == schema.UntilApplied {
		return n.applied
	}
	return n.ready
}

// queue returns the runs of plans: of those that have something to do, and of those that others wait for. Ordered tells that they
// are not carried out side by side. Releases that wait for each other are refused.
func (e *Engine) queue(plans []*Plan, o ApplyOptions) (runs []*run, ordered bool, err error) {
	byKey := map[Key]*run{}
	for _, p := range plans {
		byKey[p.Release.Key] = &run{
			Engine: e, plan: p, options: o, timeout: cmp.Or(p.Release.Timeout, o.Timeout, defaultTimeout), idle: p.idle(),
			queued: queued{applied: make(chan struct{}), ready: make(chan struct{}), ended: make(chan struct{})},
		}
	}
	needed := map[*run]bool{}
	for _, p := range plans {
		r := byKey[p.Release.Key]
		if r.idle {
			continue
		}
		ordered = ordered || p.Release.Timeout > 0 // it has a patience of its own
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
		for _, key := range p.Release.Closes {
			if other, planned := byKey[key]; planned && !other.idle {
				ordered, r.closes = true, append(r.closes, other)
			}
		}
	}
	for _, p := range plans {
		if r := byKey[p.Release.Key]; !r.idle || needed[r] {
			runs = append(runs, r)
		}
	}
	return runs, ordered, e.endless(runs)
}

// endless refuses runs that would wait for themselves. What they need may come from a record, which somebody has changed.
func (e *Engine) endless(runs []*run) error {
	finished := map[*run]bool{} // false while what it needs is looked at
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
		finished[r] = true // what it closes may need it: that does not wait for its end
		return nil
	}
	for _, r := range runs {
		if err := visit(r); err != nil {
			return err
		}
	}
	return nil
}

// inOrder carries runs out, each as soon as what it needs is so. What goes wrong with one stops those that need it, and no others.
func (e *Engine) inOrder(ctx context.Context, runs []*run) {
	watches := newSharedWatches(e)
	defer watches.close()
	var group sync.WaitGroup
	places := make(chan struct{}, workers) // as many change objects at once as in runs side by side
	for _, r := range runs {
		group.Go(func() {
			defer close(r.ended)
			r.follow = watches.follow
			r.err = r.takeTurn(ctx, places)
			noteFailures(ctx, []*run{r}, nil)
			if !r.idle || r.err != nil {
				r.report(ctx)
			}
		})
	}
	group.Wait()
}

func (r *run) takeTurn(ctx context.Context, places chan struct{}) error {
	if err := r.awaitNeeds(ctx); err != nil {
		return err
	}
	var cancel context.CancelFunc
	r.patience, cancel = context.WithTimeout(ctx, r.timeout)
	defer cancel()
	if !r.idle {
		places <- struct{}{}
		err := r.change(ctx)
		<-places
		if err != nil {
			return err
		}
	}
	close(r.applied)
	if r.awaited || !r.options.NoWait {
		r.wait(ctx, r.patience, []*run{r}, r.follow)
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
	if err := r.awaitClosed(); err != nil {
		return err
	}
	return r.promote(ctx)
}

// awaitClosed waits until everything is complete that belongs to a run, and tells for what.
func (r *run) awaitClosed() error {
	if open := r.stillOpen(); len(open) > 0 {
		label := r.plan.Release.Label()
		r.emit(report.Event{Step: "wait", Name: label, State: report.Running, Note: OwnPartReady + ", and complete with " + strings.Join(open, ", ")})
		defer r.emit(report.Event{Step: "wait", Name: label, State: report.Done})
	}
	var failed []*run
	for _, other := range r.closes {
		if <-other.ended; other.err != nil {
			failed = append(failed, other)
		}
	}
	r.incomplete = len(failed) > 0
	return blockedBy(failed, "it is not complete without")
}

// stillOpen are the names of what belongs to a run and is not complete yet.
func (r *run) stillOpen() []string {
	var names []string
	for _, other := range r.closes {
		select {
		case <-other.ended:
		default:
			names = append(names, other.plan.Release.Label())
		}
	}
	return names
}

// awaitNeeds waits until everything is so that a run needs. What may fail without harm counts when it has failed, too.
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
		case <-n.reached(): // both were so
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
	return blockedBy(failed, "it was not begun, as it needs")
}

// errBeforeNeeds is the error of a run that was interrupted before its turn.
func errBeforeNeeds(ctx context.Context, n need) error {
	return fmt.Errorf("interrupted before it was begun, while waiting for %s: %w", n.plan.Release.Label(), ctx.Err())
}

// blockedBy is the error of a run that cannot go on because of others.
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

// blockedError is that of a run that could not go on because of another one.
type blockedError struct{ error }

func (e *blockedError) Unwrap() error { return e.error }
