package engine

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/schema"
)

// prune removes what is no longer wanted, the phases backwards: a custom resource goes while its operator is still there
// to serve the finalizers, and what belongs to the cluster goes before a namespace.
func (r *run) prune(ctx context.Context) error {
	for phase := phases - 1; phase >= 0; phase-- {
		var steps []*step
		for _, s := range r.plan.steps {
			if s.phase == phase && s.desired == nil && s.Action == schema.ActionDelete {
				steps = append(steps, s)
			}
		}
		if len(steps) == 0 {
			continue
		}
		progress := r.progress("remove", phaseNames[phase], len(steps))
		err := each(len(steps), true, func(i int) error {
			err := r.remove(ctx, steps[i])
			progress.step(err)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// remove deletes the very object that the record names and waits until it is gone.
func (r *run) remove(ctx context.Context, s *step) error {
	for attempt := range attempts {
		if attempt >= attempts/2 { // somebody changes it all the time, and it goes all the same
			s.live.SetResourceVersion("")
		}
		err := r.Cluster.Delete(ctx, s.live, cluster.DeleteOptions{Propagation: metav1.DeletePropagationBackground})
		if err == nil {
			return r.gone(ctx, s.live)
		}
		if !errors.Is(err, cluster.ErrChanged) {
			return err
		}
		if err := r.plan.judge.decide(ctx, s); err != nil {
			return err
		}
		switch s.Action {
		case schema.ActionDelete:
		case "": // it is gone, or what has its name now is not ours
			s.Action = schema.ActionDelete
			return nil
		default:
			return nil
		}
	}
	return restless(s)
}
