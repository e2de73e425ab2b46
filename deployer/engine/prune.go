package engine

import (
	"context"
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// prune deletes objects that the release does not have any more, the phases backwards: custom resources go while their operator still
// handles the finalizers, and cluster-wide objects before a namespace.
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
		if r.outlived(steps) && r.options.NoWait {
			r.emit(report.Event{
				Step: "wait", Name: r.plan.Release.Label(), State: report.Skipped,
				Note: "its pods may still run while the releases that it needs are removed, because of --no-wait",
			})
		}
		progress := r.progress("remove", phaseNames[phase], len(steps))
		err := cluster.Each(len(steps), func(i int) error {
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

// runsPods are kinds whose pods end after the object is deleted, unless the deletion is in the foreground.
var runsPods = map[kube.GroupKind]bool{
	{Group: "apps", Kind: "Deployment"}: true, {Group: "apps", Kind: "StatefulSet"}: true,
	{Group: "apps", Kind: "DaemonSet"}: true, {Group: "apps", Kind: "ReplicaSet"}: true,
	{Group: "batch", Kind: "Job"}: true, {Group: "batch", Kind: "CronJob"}: true,
	{Kind: "ReplicationController"}: true,
}

// outlived reports whether pods of these objects could still run while a release that they need is removed.
func (r *run) outlived(steps []*step) bool {
	return r.precedes && r.plan.Release.isRemoval() && slices.ContainsFunc(steps, func(s *step) bool { return runsPods[kindOfRef(s.Object).GroupKind()] })
}

// propagation returns foreground if a release that the object needs is removed next: the object then exists until its pods are gone.
func (r *run) propagation(s *step) metav1.DeletionPropagation {
	if r.outlived([]*step{s}) && !r.options.NoWait {
		return metav1.DeletePropagationForeground
	}
	return metav1.DeletePropagationBackground
}

// remove deletes the recorded object, and no other of its name, and waits until it is gone.
func (r *run) remove(ctx context.Context, s *step) error {
	for attempt := range attempts {
		if attempt >= attempts/2 { // it changes all the time: delete it in any version
			s.live.SetResourceVersion("")
		}
		gone, err := r.Cluster.Remove(ctx, s.live, cluster.DeleteOptions{Propagation: r.propagation(s)})
		if gone {
			return nil
		}
		if err == nil {
			return r.waitGone(ctx, s.live)
		}
		if !errors.Is(err, cluster.ErrChanged) {
			return err
		}
		if err := r.plan.decider.decide(ctx, s); err != nil {
			return err
		}
		switch s.Action {
		case schema.ActionDelete:
		case "": // it is gone, or another object has its name now
			s.Action = schema.ActionDelete
			return nil
		default:
			return nil
		}
	}
	return contended(s)
}
