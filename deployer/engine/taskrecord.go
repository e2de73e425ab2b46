package engine

import (
	"cmp"
	"context"
	"slices"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// taskObjects are the objects of tasks as a record has them, each once: of a revision that is completed, or of one that is begun.
func (r *run) taskObjects(completed bool) []schema.DeployedObject {
	var list []schema.DeployedObject
	seen := map[objectKey]bool{}
	add := func(t *turn, object schema.DeployedObject, there bool) {
		if key := keyOfRef(t.Object); !seen[key] {
			if seen[key] = true; there {
				list = append(list, object)
			}
		}
	}
	for _, t := range slices.Backward(r.plan.judge.turns) {
		if t.chosen && r.plan.judge.spares(t) {
			object, there := r.taskObject(t, completed)
			add(t, object, there)
		}
	}
	for _, t := range r.plan.judge.turns {
		if !t.chosen && r.plan.judge.spares(t) {
			known := t.known
			known.Leaving, known.Kept = false, false
			add(t, known, known.Name != "")
		}
	}
	return list
}

func (r *run) taskObject(t *turn, completed bool) (object schema.DeployedObject, there bool) {
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

// content is what is kept of the release: the objects and the tasks.
func (j *judge) content() ([]byte, error) {
	tasks := make([]Task, len(j.turns))
	for i, t := range j.turns {
		tasks[i] = Task{t.task, t.rendered}
	}
	return (&Content{j.objects(), tasks, j.release.Memory}).encode()
}

// recorded are the tasks as a revision that begins has them.
func (j *judge) recorded() []schema.DeployedTask {
	var tasks []schema.DeployedTask
	for _, t := range j.turns {
		tasks = append(tasks, schema.DeployedTask{ObjectRef: t.Object, When: t.task.When, Hash: t.hash, Once: t.task.Once, Finished: t.finished})
	}
	return tasks
}

// tasksOfRemoval are the tasks of what is deployed, or was begun to be, that are for its removal.
func (e *Engine) tasksOfRemoval(ctx context.Context, s *State) ([]Task, error) {
	revision := s.Current
	if !s.Installed() {
		revision = s.Pending
	}
	if revision == nil || len(revision.Tasks) == 0 {
		return nil, nil
	}
	if revision == s.Pending {
		if _, err := e.LoadContent(ctx, s.ID(), revision.Content); report.CodeOf(err) == report.NotFound {
			return nil, nil // it ended before anything was changed
		}
	}
	content, err := e.Content(ctx, s.Key, revision)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(content.Tasks, func(t Task) bool { return !slices.Contains(t.On, schema.OccasionRemove) }), nil
}
