package plan

import (
	"context"
	"slices"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/rights"
	"github.com/solutionctl/solutionctl/schema"
)

// unchanged plans the addition of what is deployed already, without locks, and returns its report if there is nothing to do. Otherwise it returns
// nil, and the run is as it was before: it has to be planned under locks.
//
// A change by another process is noticed: it records what is pending before it changes an object, and each object is compared after its record was
// read. So the report is that of a moment before the change.
func (r *Run) unchanged(ctx context.Context, namespaces []string, prepare func(context.Context) error) *schema.Operation {
	if r.DryRun || r.Operation.Operation != schema.VerbAdd {
		return nil
	}
	ctx = cluster.WithMemory(ctx)
	if !r.areDeployed(ctx, namespaces) || r.Cluster.Require(ctx, rights.Lock()) != nil {
		return nil
	}
	begun := *r
	r.unlocked = true
	if done, err := r.planIn(ctx, prepare); err == nil && r.isIdle() {
		return done
	}
	*r = begun
	return nil
}

// areDeployed reports whether a few namespaces have the Solution of the run, and no operation on it is pending.
func (r *Run) areDeployed(ctx context.Context, namespaces []string) bool {
	return len(namespaces) > 0 && len(namespaces) <= fewNamespaces && !slices.ContainsFunc(namespaces, func(namespace string) bool {
		state, err := r.Records.Engine.State(ctx, record.Key{Namespace: namespace, Name: r.Solution})
		return err != nil || !state.Installed() || state.Pending != nil
	})
}

// isIdle reports whether a planned run would write nothing.
func (r *Run) isIdle() bool {
	return len(r.Changes)+len(r.Rebuilt)+len(r.leaving)+len(r.lost) == 0 && !slices.ContainsFunc(r.Plans, func(p *engine.Plan) bool { return !p.Idle() })
}

// engine returns the options for the plans of the run.
func (r *Run) engine() engine.PlanOptions {
	o := r.Options.engine()
	o.Unchanged = r.unlocked
	return o
}
