package engine_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/schema"
)

const migration = `
---
apiVersion: batch/v1
kind: Job
metadata: {name: j, namespace: $ns}
spec:
  backoffLimit: 0
  ttlSecondsAfterFinished: 1000
  template:
    spec:
      restartPolicy: Never
      containers: [{name: c, image: "example.invalid/job:1"}]
`

// end ends the pod of the Job with a phase, as a kubelet does.
func (b *fixture) end(phase string) {
	b.Helper()
	var pod string
	b.until("the Job has a pod", func() bool {
		for object, err := range b.Cluster.List(b.Context(), kube.GroupVersionKind{Version: "v1", Kind: "Pod"}, b.Namespace, metav1.ListOptions{LabelSelector: "job-name=j"}) {
			if err != nil {
				b.Fatal(err)
			}
			if status(object, "phase") == "Pending" && object.GetDeletionTimestamp() == nil {
				pod = object.GetName()
			}
		}
		return pod != ""
	})
	b.patch("test", "pods", pod, `{"status": {"phase": "`+phase+`"}}`, "status")
}

// runJob applies a release and makes its Job succeed.
func (b *fixture) runJob(r engine.Release, o engine.PlanOptions) {
	b.Helper()
	if err := b.tryJob(r, o, "Succeeded"); err != nil {
		b.Fatal(err)
	}
}

// tryJob applies a release and ends the pod of its Job with a phase.
func (b *fixture) tryJob(r engine.Release, o engine.PlanOptions, phase string) error {
	b.Helper()
	plan, err := b.Plan(b.Context(), r, o)
	if err != nil {
		b.Fatal(err)
	}
	ended := make(chan error)
	go func() {
		ended <- b.Apply(b.Context(), plan, engine.ApplyOptions{Timeout: testcluster.Deadline(time.Minute)})
	}()
	b.end(phase)
	return <-ended
}

// wantNoJob plans and applies a release, which must not create the Job.
func (b *fixture) wantNoJob(r engine.Release, o engine.PlanOptions) {
	b.Helper()
	plan, err := b.Plan(b.Context(), r, o)
	if err != nil {
		b.Fatal(err)
	}
	if strings.Contains(b.actions(plan), "create Job") || strings.Contains(b.actions(plan), "replace Job") {
		b.Errorf("the Job is to be run again: %s", b.actions(plan))
	}
	b.apply(plan)
	if b.get("batch/v1/Job", "j") != nil {
		b.Error("the Job was run again")
	}
}

// TestEndedJobs deletes Jobs after they have ended, as the cluster does after a while: no verb runs them again unless the user asks
// for it.
func TestEndedJobs(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	text := migration + configMap
	one := b.release("1", text)
	b.runJob(one, engine.PlanOptions{})
	if !slices.ContainsFunc(b.state().Current.Objects, func(o schema.DeployedObject) bool { return o.Name == "j" && o.Completed && o.Expires }) {
		t.Fatalf("that it has ended is not on record: %+v", b.state().Current.Objects)
	}
	b.deleteJob()
	b.restart()
	b.wantNoJob(one, engine.PlanOptions{})                                                                      // add again
	b.wantNoJob(one, engine.PlanOptions{Restore: true})                                                         // repair
	b.wantNoJob(b.release("1.1", strings.ReplaceAll(text, `first: "1"`, `first: "one"`)), engine.PlanOptions{}) // upgrade without a change of the Job

	two := b.release("2", strings.ReplaceAll(text, "job:1", "job:2"))
	b.runJob(two, engine.PlanOptions{})
	back := one
	back.Back, back.Operation = true, "rollback"
	plan := b.plan(back)
	b.wantActions(plan, "delete Job $ns/j")
	b.wantNoJob(back, engine.PlanOptions{})

	b.runJob(two, engine.PlanOptions{}) // an upgrade after all
	b.deleteJob()
	b.wantNoJob(two, engine.PlanOptions{})
	b.runJob(two, engine.PlanOptions{Replace: []string{"Job/j"}}) // asked for
	b.deleteJob()
	b.wantNoJob(two, engine.PlanOptions{})

	b.deploy(engine.Release{Key: b.Key, Operation: "remove"})
	b.runJob(two, engine.PlanOptions{}) // deployed again after a removal
}

// deleteJob deletes the Job, as the cluster does some time after its end.
func (b *fixture) deleteJob() {
	b.Helper()
	b.until("the Job is gone", func() bool {
		live := b.get("batch/v1/Job", "j")
		if live != nil {
			live.SetResourceVersion("")
			if err := b.Cluster.Delete(b.Context(), live, cluster.DeleteOptions{Propagation: metav1.DeletePropagationBackground}); err != nil {
				b.Fatal(err)
			}
		}
		return live == nil
	})
}
