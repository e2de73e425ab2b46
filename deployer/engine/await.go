package engine

import (
	"context"
	"slices"
	"time"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/health"
	"github.com/solutionctl/solutionctl/schema"
)

// stablePeriod is how long objects without a release have to stay ready: their controller needs a moment to notice a change, and
// does not report it before.
const stablePeriod = 10 * time.Second

// Await waits until objects that belong to no release are ready and stay so for a while, such as custom resources after their
// operator was upgraded. An object that is deleted meanwhile is not waited for. The error has the code Timeout and lists the
// objects that are not ready, with reasons.
func (e *Engine) Await(ctx context.Context, objects []schema.ObjectRef, timeout time.Duration) error {
	waitCtx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	r := &run{Engine: e, waitCtx: waitCtx, timeout: timeout}
	targets := make([]*target, len(objects))
	for i, object := range objects {
		targets[i] = &target{run: r, step: &step{Change: schema.Change{Object: object}}, foreign: true, settled: true}
	}
	for before := false; ; before = true {
		stirred, err := r.observeAll(targets)
		if err != nil && waitCtx.Err() == nil {
			return err
		}
		if before && !stirred {
			return nil
		}
		e.watch(waitCtx, targets)
		if cluster.Sleep(waitCtx, stablePeriod) != nil {
			return r.waitError(ctx, targets)
		}
	}
}

// observeAll reads the objects and reports whether some of them are not ready.
func (r *run) observeAll(targets []*target) (stirred bool, err error) {
	err = cluster.Each(len(targets), func(i int) error {
		t := targets[i]
		live, failure := r.Cluster.Get(r.waitCtx, kindOfRef(t.step.Object), t.step.Object.Namespace, t.step.Object.Name)
		if failure != nil {
			return failure
		}
		if t.live = live; live == nil {
			t.set(health.Status{Ready: true})
		} else {
			t.observe(r.waitCtx, live)
		}
		return nil
	})
	return slices.ContainsFunc(targets, func(t *target) bool { return !t.ready() }), err
}
