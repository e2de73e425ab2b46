package engine

import (
	"cmp"
	"context"
	"slices"

	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// taskObjects returns the objects of tasks for the record, each once: of a completed revision, or of a pending one.
func (r *run) taskObjects(completed bool) []schema.DeployedObject {
	var list []schema.DeployedObject
	seen := map[record.ObjectKey]bool{}
	add := func(t *taskStep, object schema.DeployedObject, there bool) {
		if key := record.KeyOf(t.Object); !seen[key] {
			if seen[key] = true; there {
				list = append(list, object)
			}
		}
	}
	for _, t := range slices.Backward(r.plan.decider.tasks) {
		if t.chosen && r.plan.decider.keepsObject(t) {
			object, there := r.taskObject(t, completed)
			add(t, object, there)
		}
	}
	for _, t := range r.plan.decider.tasks {
		if !t.chosen && r.plan.decider.keepsObject(t) {
			known := t.known
			known.Leaving, known.Kept = false, false
			add(t, known, known.Name != "")
		}
	}
	return list
}

func (r *run) taskObject(t *taskStep, completed bool) (object schema.DeployedObject, there bool) {
	object, there = t.planned()
	live := cmp.Or(r.results[t.step], t.live)
	object.Completed, object.Expires = t.runs() && (completed || t.over), expires(t.rendered)
	if !completed || !there {
		return object, there
	}
	if t.dropped || live == nil && (t.task.DeleteOnSuccess || !expires(t.rendered)) {
		return object, false
	}
	if live == nil {
		return object, true // the cluster deletes it, sooner or later
	}
	object.UID, object.ResourceVersion, object.Generation = string(live.GetUID()), live.GetResourceVersion(), live.GetGeneration()
	return object, true
}

// content returns the encoded content of the release.
func (d *decider) content() ([]byte, error) {
	tasks := make([]Task, len(d.tasks))
	for i, t := range d.tasks {
		tasks[i] = Task{t.task, t.rendered}
	}
	return (&Content{d.objects(), tasks, d.release.GeneratedValues}).encode()
}

// recorded returns the tasks for the record of a new revision.
func (d *decider) recorded() []schema.DeployedTask {
	var tasks []schema.DeployedTask
	for _, t := range d.tasks {
		tasks = append(tasks, schema.DeployedTask{ObjectRef: t.Object, When: t.task.When, Hash: t.hash, Once: t.task.Once, Finished: t.finished})
	}
	return tasks
}

// tasksOfRemoval returns the tasks of the deployed (or pending) revision that are for its removal.
func (e *Engine) tasksOfRemoval(ctx context.Context, s *record.State) ([]Task, error) {
	revision := s.Current
	if !s.Installed() {
		revision = s.Pending
	}
	if revision == nil || len(revision.Tasks) == 0 {
		return nil, nil
	}
	if revision == s.Pending {
		if _, err := e.LoadContent(ctx, s.ID(), revision.Content); report.CodeOf(err) == report.NotFound {
			return nil, nil // the run ended before it changed anything
		}
	}
	content, err := e.Content(ctx, s.Key, revision)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(content.Tasks, func(t Task) bool { return !slices.Contains(t.On, schema.OccasionRemove) }), nil
}
