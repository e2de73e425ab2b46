package engine

import (
	"context"
	"slices"
	"time"

	"github.com/solutionctl/solutionctl/deployer/health"
	"github.com/solutionctl/solutionctl/schema"
)

// calm is for how long objects of others have to be ready: who looks after them needs a moment to see that something has
// changed, and says nothing until then.
const calm = 10 * time.Second

// Await waits until objects that belong to no release are ready and stay so for a while, such as custom resources after the
// operator has changed that looks after them. One that is deleted meanwhile is not waited for. The error has the code Timeout
// and reports which are not ready, and why.
func (e *Engine) Await(ctx context.Context, objects []schema.ObjectRef, timeout time.Duration) error {
	patience, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	r := &run{Engine: e, patience: patience, timeout: timeout}
	targets := make([]*target, len(objects))
	for i, object := range objects {
		targets[i] = &target{run: r, step: &step{Change: schema.Change{Object: object}}, foreign: true, settled: true}
	}
	for before := false; ; before = true {
		stirred, err := r.look(targets)
		if err != nil && patience.Err() == nil {
			return err
		}
		if before && !stirred {
			return nil
		}
		e.watch(patience, targets)
		if !r.pause(calm) {
			return r.verdict(ctx, targets)
		}
	}
}

// look sees how objects are, and reports whether some of them are not ready.
func (r *run) look(targets []*target) (stirred bool, err error) {
	err = each(len(targets), true, func(i int) error {
		t := targets[i]
		live, failure := r.Cluster.Get(r.patience, kindOfRef(t.step.Object), t.step.Object.Namespace, t.step.Object.Name)
		if failure != nil {
			return failure
		}
		if t.live = live; live == nil {
			t.set(health.Status{Ready: true})
		} else {
			t.see(r.patience, live)
		}
		return nil
	})
	return slices.ContainsFunc(targets, func(t *target) bool { return !t.ready() }), err
}

// pause waits, unless the patience ends before.
func (r *run) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.patience.Done():
		return false
	}
}
