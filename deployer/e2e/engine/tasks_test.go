package engine_test

import (
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestTasks runs a Job that the cluster deletes as soon as it has ended: it stays until its end is recorded.
func TestTasks(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	release := func(version string) engine.Release {
		r := b.release(version, configMap)
		r.Tasks = []engine.Task{{
			Task:   schema.Task{When: schema.MomentBefore, On: []schema.Occasion{schema.OccasionInstall, schema.OccasionUpgrade}, Replace: true},
			Object: b.objects(strings.Replace(migration, "Finished: 1000", "Finished: 0", 1))[0],
		}}
		return r
	}
	gone := func() {
		b.until("the cluster has deleted the Job", func() bool { return b.get("batch/v1/Job", "j") == nil })
	}
	b.runJob(release("1"), engine.PlanOptions{})
	gone()
	b.restart()
	if plan := b.deploy(release("1")); !plan.Empty() {
		t.Errorf("again: %s", b.actions(plan))
	}
	b.failed(b.tryJob(release("2"), engine.PlanOptions{}, "Failed"), report.Timeout, "task Job $ns/j failed")
	if b.get("batch/v1/Job", "j") == nil {
		t.Error("the Job that failed is not there to be looked at")
	}
	b.restart()
	b.runJob(release("2"), engine.PlanOptions{}) // continues with the failed task
	gone()
	b.deploy(engine.Release{Key: b.Key, Operation: "remove"})
}
