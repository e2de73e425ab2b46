package render

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/kube/chart"
	"github.com/solutionctl/solutionctl/schema"
)

// Task is an object of a component that is applied by itself: a hook of a chart, or a job.
type Task struct {
	schema.Task
	Object *unstructured.Unstructured
}

// JobTask is the task of a component that is a job. It runs for each installation and upgrade, or once for each version, and not
// on the way back. One that is still at work for an earlier operation is not ended.
func JobTask(c *schema.Component, job *unstructured.Unstructured) Task {
	return Task{
		schema.Task{
			When: schema.MomentApplied, On: []schema.Occasion{schema.OccasionInstall, schema.OccasionUpgrade}, Once: c.Once,
		}, job,
	}
}

// The delete policies of a hook.
const (
	policyBefore    = "before-hook-creation"
	policySucceeded = "hook-succeeded"
	policyFailed    = "hook-failed"
)

// occasions maps the operations of Helm to those of tasks.
var occasions = map[string]schema.Occasion{
	"install": schema.OccasionInstall, "upgrade": schema.OccasionUpgrade, "rollback": schema.OccasionBack, "delete": schema.OccasionRemove,
}

// hookTasks converts a hook into one task for its events before an operation and one for those after it, without
// ignored events and tests.
func hookTasks(c *schema.Component, h *chart.Hook, object *unstructured.Unstructured) []Task {
	var ignored []string
	after := schema.MomentApplied
	if c.Hooks != nil {
		ignored = c.Hooks.Ignore
		if c.Hooks.PostAfter == schema.UntilReady {
			after = schema.MomentReady
		}
	}
	if slices.Contains(ignored, object.GetKind()+"/"+object.GetName()) {
		return nil
	}
	policy := func(name string) bool { return slices.Contains(h.DeletePolicies, name) }
	var tasks []Task
	add := func(when schema.Moment, prefix string) {
		var on []schema.Occasion
		for _, event := range h.Events {
			verb, ok := strings.CutPrefix(event, prefix)
			if occasion, known := occasions[verb]; ok && known && !slices.Contains(ignored, event) {
				on = append(on, occasion)
			}
		}
		if len(on) > 0 {
			tasks = append(tasks, Task{schema.Task{
				When: when, On: slices.Compact(on), Weight: h.Weight,
				Replace: policy(policyBefore), DeleteOnSuccess: policy(policySucceeded), DeleteOnFailure: policy(policyFailed),
			}, object})
		}
	}
	add(schema.MomentBefore, "pre-")
	add(after, "post-")
	return tasks
}

// isTest reports whether Helm applies a hook only for 'helm test'.
func isTest(h *chart.Hook) bool {
	return slices.Contains(h.Events, "test") || slices.Contains(h.Events, "test-success")
}
