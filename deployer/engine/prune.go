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
		if r.outlived(steps) && r.options.NoWait {
			r.emit(report.Event{
				Step: "wait", Name: r.plan.Release.Label(), State: report.Skipped,
				Note: "its pods may still be ending while what it needs is removed, as nothing is waited for",
			})
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

// runsPods are the kinds whose pods end after the object is deleted, unless they are to go first.
var runsPods = map[kube.GroupKind]bool{
	{Group: "apps", Kind: "Deployment"}: true, {Group: "apps", Kind: "StatefulSet"}: true,
	{Group: "apps", Kind: "DaemonSet"}: true, {Group: "apps", Kind: "ReplicaSet"}: true,
	{Group: "batch", Kind: "Job"}: true, {Group: "batch", Kind: "CronJob"}: true,
	{Kind: "ReplicationController"}: true,
}

// outlived reports whether pods of these objects could still run while another release goes that they need.
func (r *run) outlived(steps []*step) bool {
	return r.precedes && r.plan.Release.removes() && slices.ContainsFunc(steps, func(s *step) bool { return runsPods[kindOfRef(s.Object).GroupKind()] })
}

// propagation is how the object of a step is deleted: what the next release is needed for ends before that goes. An object that is
// deleted in the foreground is there until its pods are gone.
func (r *run) propagation(s *step) metav1.DeletionPropagation {
	if r.outlived([]*step{s}) && !r.options.NoWait {
		return metav1.DeletePropagationForeground
	}
	return metav1.DeletePropagationBackground
}

// remove deletes the very object that the record names and waits until it is gone.
func (r *run) remove(ctx context.Context, s *step) error {
	for attempt := range attempts {
		if attempt >= attempts/2 { // somebody changes it all the time, and it goes all the same
			s.live.SetResourceVersion("")
		}
		err := r.Cluster.Delete(ctx, s.live, cluster.DeleteOptions{Propagation: r.propagation(s)})
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
