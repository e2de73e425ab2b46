package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/health"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Task is an object that is applied separately, at a moment of some operations, such as a hook of a chart. A Job or a Pod is created
// again by each revision and has to succeed before the run continues; any other object is complete once it is applied. A resumed
// revision does not repeat tasks that it has completed.
//
// The object of a task belongs to the release until the release does not have the task any more. Others may change it: a repair
// creates it again if it is missing, except Jobs and Pods, but does not reset it.
type Task struct {
	schema.Task
	Object *unstructured.Unstructured
}

// Runs reports whether a task ends: it is a Job or a Pod.
func (t Task) Runs() bool {
	kind := t.Object.GroupVersionKind().GroupKind()
	return kind == jobKind || kind == podKind
}

// AnnotationRun is on the Job or Pod of a task, with the number, start and moment of its revision.
const AnnotationRun = "solutionctl.io/run"

// taskStep is the step of a task in a plan.
type taskStep struct {
	*step
	task     schema.Task
	rendered *unstructured.Unstructured // as it is stored; a Job is created without ttlSecondsAfterFinished
	chosen   bool                       // it is run by this operation
	finished *time.Time                 // when it succeeded in this revision or version; nil if it has not
	over     bool                       // nothing is left to apply
	dropped  bool                       // it was deleted after its end
}

// taskKey identifies a task: one object may be applied at several moments.
type taskKey struct {
	when schema.Moment
	record.ObjectKey
}

func (t *taskStep) key() taskKey { return taskKey{t.task.When, record.KeyOf(t.Object)} }

var (
	podKind           = kube.GroupKind{Kind: "Pod"}
	priorityClassKind = kube.GroupKind{Group: "scheduling.k8s.io", Kind: "PriorityClass"}
)

// runs reports whether the object is a Job or a Pod.
func (t *taskStep) runs() bool { return Task{Object: t.rendered}.Runs() }

// protected reports whether the object of a task is never deleted as a side effect.
func (t *taskStep) protected() bool { return protected[kindOfRef(t.Object).GroupKind()] }

// isRemoval reports whether a release is the removal of another one.
func (r *Release) isRemoval() bool { return r.Version == "" && len(r.Objects) == 0 }

// occasion returns the kind of operation for tasks, on a release with this record.
func (r *Release) occasion(s *record.State) schema.Occasion {
	switch {
	case r.isRemoval():
		return schema.OccasionRemove
	case r.Back && s.Installed(): // the deployed version might lack the task
		return schema.OccasionBack
	case s.Installed() || r.Adopt != nil:
		return schema.OccasionUpgrade
	default:
		return schema.OccasionInstall
	}
}

var moments = []schema.Moment{schema.MomentBefore, schema.MomentApplied, schema.MomentReady}

// describeMoment returns the moment of a task in words.
func (d *decider) describeMoment(t *taskStep) string {
	switch {
	case t.task.When == schema.MomentBefore:
		return "before everything else"
	case d.release.isRemoval():
		return "when everything is gone"
	case t.task.When == schema.MomentApplied:
		return "when everything is applied"
	default:
		return "when everything is ready"
	}
}

// addTasks adds the tasks of a release in their order: by moment, weight and, as Helm does, name; tasks of one name are sorted by
// phase.
func (d *decider) addTasks(ctx context.Context, state *record.State) error {
	occasion, seen := d.release.occasion(state), map[taskKey]bool{}
	for _, task := range d.release.Tasks {
		t, err := d.newTaskStep(ctx, task, occasion)
		if err != nil {
			return err
		}
		if seen[t.key()] {
			return report.Errorf(report.Invalid, "task %s is in it twice", t.Object)
		}
		seen[t.key()] = true
		d.tasks = append(d.tasks, t)
	}
	slices.SortStableFunc(d.tasks, func(a, b *taskStep) int {
		return cmp.Or(
			cmp.Compare(slices.Index(moments, a.task.When), slices.Index(moments, b.task.When)),
			cmp.Compare(a.task.Weight, b.task.Weight), cmp.Compare(a.Object.Name, b.Object.Name), cmp.Compare(a.phase, b.phase),
			cmp.Compare(a.Object.Kind, b.Object.Kind), cmp.Compare(a.Object.Namespace, b.Object.Namespace),
		)
	})
	return d.loadFinished(state)
}

func (d *decider) newTaskStep(ctx context.Context, task Task, occasion schema.Occasion) (*taskStep, error) {
	if task.Object == nil || !slices.Contains(moments, task.When) || len(task.On) == 0 {
		return nil, report.Errorf(report.Invalid, "a task has no object or no operation, or its moment %q is unknown", task.When)
	}
	s, err := d.newStep(ctx, task.Object)
	if err != nil {
		return nil, err
	}
	if phaseOf(kindOfRef(s.Object).GroupKind()) == phaseDefinitions {
		return nil, report.Errorf(report.Invalid, "%s cannot be a task: CustomResourceDefinitions are applied before everything else", s.Object)
	}
	t := &taskStep{step: s, task: task.Task, rendered: s.desired, chosen: slices.Contains(task.On, occasion)}
	if occasion == schema.OccasionRemove && t.task.When == schema.MomentApplied {
		t.task.When = schema.MomentReady // a removal has nothing that becomes ready
	}
	s.taskStep, s.known, s.Task = t, d.inventory[record.KeyOf(s.Object)], t.task.When
	if d.options.Restore {
		t.chosen = s.known.Name != "" && !t.runs()
	}
	if t.runs() {
		s.desired = s.desired.DeepCopy()
		unstructured.RemoveNestedField(s.desired.Object, "spec", ttlField)
	}
	return t, nil
}

// loadFinished sets which tasks have succeeded before, in the resumed revision or in the version.
func (d *decider) loadFinished(state *record.State) error {
	if len(d.tasks) == 0 {
		return nil
	}
	finished := finishedOnce(state, d.release.Version)
	if state.Pending != nil {
		data, err := d.content()
		if err != nil {
			return err
		}
		r := &d.release
		if sameWork(state.Pending, &schema.DeploymentRevision{Operation: r.Operation, Version: r.Version, Settings: r.Settings, Content: record.DigestOf(data)}) {
			collectFinished(finished, state.Pending, func(schema.DeployedTask) bool { return true })
			d.markRuns(state.Pending)
		}
	}
	open := map[schema.Moment]bool{}
	for _, t := range d.tasks {
		t.finished = finished[t.key()]
		open[t.task.When] = open[t.task.When] || t.chosen && t.finished == nil
	}
	for _, t := range d.tasks {
		// An object that is not a Job or Pod is applied again while other tasks of the moment are open, which may need it.
		t.over = t.finished != nil && (t.runs() || !open[t.task.When])
	}
	return nil
}

// collectFinished adds the end times of tasks of a revision.
func collectFinished(finished map[taskKey]*time.Time, r *schema.DeploymentRevision, which func(schema.DeployedTask) bool) {
	for _, t := range r.Tasks {
		if t.Finished != nil && which(t) {
			finished[taskKey{t.When, record.KeyOf(t.ObjectRef)}] = t.Finished
		}
	}
}

// finishedOnce returns the tasks that are not repeated for a version. After a removal they are run again.
func finishedOnce(s *record.State, version string) map[taskKey]*time.Time {
	finished := map[taskKey]*time.Time{}
	for _, r := range s.Revisions() {
		switch r.Version {
		case "":
			return finished
		case version:
			collectFinished(finished, r, func(t schema.DeployedTask) bool { return t.Once == schema.OncePerVersion })
		}
	}
	return finished
}

// markRuns annotates Jobs and Pods with the revision, so that a resumed run recognizes them.
func (d *decider) markRuns(r *schema.DeploymentRevision) {
	for _, t := range d.tasks {
		if t.chosen && t.runs() {
			cluster.SetAnnotation(t.desired, AnnotationRun, fmt.Sprintf("%d %s %s", r.Number, r.Started.UTC().Format(time.RFC3339), t.task.When))
		}
	}
}

// filterTasks returns the tasks for which which is true.
func filterTasks(tasks []*taskStep, which func(*taskStep) bool) []*taskStep {
	return slices.DeleteFunc(slices.Clone(tasks), func(t *taskStep) bool { return !which(t) })
}

func stepsOf(tasks []*taskStep) []*step {
	steps := make([]*step, len(tasks))
	for i, t := range tasks {
		steps[i] = t.step
	}
	return steps
}

// keepsObject reports whether the object of a task is not pruned. A removal prunes all except those that it applies itself, which it
// deletes at its end.
func (d *decider) keepsObject(t *taskStep) bool {
	return !d.release.isRemoval() || t.chosen && !t.protected()
}

// sameTasks reports whether a revision had the tasks of this release.
func (d *decider) sameTasks(r *schema.DeploymentRevision) bool {
	return d.release.isRemoval() || slices.EqualFunc(d.tasks, r.Tasks, func(t *taskStep, on schema.DeployedTask) bool {
		return t.Object == on.ObjectRef && t.task.When == on.When && t.hash == on.Hash
	})
}

// made reports whether a Job or a Pod was created for this task.
func (t *taskStep) made(live *unstructured.Unstructured) bool {
	mark := t.desired.GetAnnotations()[AnnotationRun]
	return mark != "" && mark == live.GetAnnotations()[AnnotationRun]
}

// decideTask decides on the object of a task, which must not be skipped.
func (d *decider) decideTask(ctx context.Context, s *step) (err error) {
	switch t := s.taskStep; {
	case d.options.Restore:
		if s.live, err = d.find(ctx, s); s.live != nil || err != nil {
			s.Action = schema.ActionNone
			return err
		}
		return d.decideRestore(ctx, s)
	case t.over:
		s.Action, s.Note = schema.ActionNone, "it has succeeded, and is not run again"
		if s.live, err = d.find(ctx, s); s.live != nil && !d.belongs(s) {
			s.live = nil
		}
	case t.runs():
		err = d.decideRun(ctx, s)
	default:
		err = d.decideWanted(ctx, s)
	}
	switch {
	case d.release.isRemoval() && (s.Action == schema.ActionSkip || isNamespaceGone(err)):
		s.taskStep.over, s.Action, s.Note = true, schema.ActionNone, "it is left out: its kind or its namespace does not exist any more"
	case err != nil:
		return err
	case s.Action == schema.ActionSkip:
		return report.Errorf(report.NotFound, "task %s: %s", s.Object, s.Note).WithHint("first deploy the Solution that defines the kind")
	case s.Note == "":
		s.Note = d.describeMoment(s.taskStep)
		if d.release.Back && s.taskStep.runs() {
			s.Note = "it is run " + s.Note
		}
	}
	return nil
}

// omitted returns the Jobs and Pods for installations and upgrades that a rollback does not run. Existing ones stay as they are.
func (d *decider) omitted() []schema.Change {
	if !d.release.Back {
		return nil
	}
	listed := map[schema.ObjectRef]bool{}
	for _, t := range d.tasks {
		listed[t.Object] = listed[t.Object] || t.chosen // among the tasks that are run
	}
	var changes []schema.Change
	for _, t := range d.tasks {
		on := slices.ContainsFunc(t.task.On, func(o schema.Occasion) bool { return o == schema.OccasionInstall || o == schema.OccasionUpgrade })
		if on && !listed[t.Object] && t.runs() {
			listed[t.Object] = true
			changes = append(changes, schema.Change{Action: schema.ActionNone, Object: t.Object, Task: t.task.When, Note: "it is not run again: it is for installations and upgrades"})
		}
	}
	return changes
}

// isNamespaceGone reports whether nothing can be created because the namespace is deleted or being deleted.
func isNamespaceGone(err error) bool {
	return report.CodeOf(err) == report.NotFound || apierrors.HasStatusCause(err, namespaceTerminating)
}

// decideRun decides on a Job or a Pod. One that this revision has created is waited for, unless it has failed; any other one of its
// name is replaced.
func (d *decider) decideRun(ctx context.Context, s *step) error {
	for range attempts {
		live, err := d.Cluster.Get(ctx, kindOfRef(s.Object), s.Object.Namespace, s.Object.Name)
		if err != nil {
			return err
		}
		if s.live = live; live != nil {
			return d.decideStarted(ctx, s)
		}
		if done, err := d.tryCreate(ctx, s); done || err != nil {
			return err
		}
	}
	return contended(s)
}

func (d *decider) decideStarted(ctx context.Context, s *step) error {
	status := s.health(ctx, s.live)
	switch {
	case s.live.GetDeletionTimestamp() != nil:
		s.Action, s.late, s.Note = schema.ActionCreate, true, terminating(s.live)
		return nil
	case s.taskStep.made(s.live) && !status.Failed:
		s.Action, s.Note = schema.ActionNone, "it was started before, and is waited for"
		return nil
	}
	mine, err := d.owns(ctx, s)
	if err == nil && !mine {
		err = d.adopt(s, false)
	}
	if err != nil {
		return err
	}
	s.Action, s.propagation = schema.ActionReplace, metav1.DeletePropagationBackground
	if !status.Ready && !status.Failed {
		if s.propagation = metav1.DeletePropagationForeground; !d.replaceRequested(s) {
			return report.Errorf(report.Refused, "%s is still running for an earlier operation", s.Object).
				WithHint("wait until it has ended, or: to end it, add %s", report.Accept("replace", s.Object.Kind+"/"+s.Object.Name).About("ending "+s.Object.String()))
		}
	}
	if _, err = d.trial(ctx, s); d.isCreatedFirst(s.desired, err) {
		s.late, err = true, nil
	}
	return err
}

// endedWell reports whether a Job or a Pod has succeeded.
func endedWell(object *unstructured.Unstructured) bool {
	phase, _, _ := unstructured.NestedString(object.Object, "status", "phase")
	return health.JobEnded(object) == "Complete" || phase == "Succeeded"
}

// tasksAt returns the tasks of a moment.
func (p *Plan) tasksAt(when schema.Moment) []*taskStep {
	return filterTasks(p.tasks, func(t *taskStep) bool { return t.task.When == when })
}

// runTasks applies the tasks of a moment one after the other, each after the one before has succeeded, and then deletes those that are
// not to stay. After a failure all stay for the next run.
func (r *run) runTasks(ctx context.Context, when schema.Moment) error {
	tasks := r.plan.tasksAt(when)
	for _, t := range tasks {
		if t.over {
			continue
		}
		if err := r.runTask(ctx, t); err != nil {
			return err
		}
	}
	leaves := r.plan.Release.isRemoval() && when == schema.MomentReady
	if leaves {
		tasks = r.plan.tasks // none of them stays
	}
	for _, t := range slices.Backward(tasks) {
		if err := r.tidy(ctx, t, leaves || t.task.DeleteOnSuccess); err != nil {
			return err
		}
	}
	return nil
}

// runTask applies a task. It is planned again now, because earlier tasks may have changed the cluster.
func (r *run) runTask(ctx context.Context, t *taskStep) error {
	r.emit(report.Event{Step: "task", Name: t.Object.String(), State: report.Started, Note: r.plan.decider.describeMoment(t)})
	t.late = true
	live, err := r.perform(ctx, t.step)
	if err == nil && t.runs() {
		r.results[t.step] = live
		err = r.awaitEnd(ctx, t)
	}
	if err != nil {
		r.emit(report.Event{Step: "task", Name: t.Object.String(), State: report.Failed})
		return err
	}
	r.results[t.step] = cmp.Or(r.results[t.step], live)
	r.emit(report.Event{Step: "task", Name: t.Object.String(), State: report.Done})
	return r.recordTask(ctx, t)
}

// awaitEnd waits until a Job or a Pod has ended.
func (r *run) awaitEnd(ctx context.Context, t *taskStep) error {
	awaited := newTarget(r, t.step)
	r.await(r.waitCtx, []*target{awaited}, r.follow)
	status := awaited.status
	switch {
	case status.Ready:
		return nil
	case ctx.Err() != nil:
		return errInterruptedWait(ctx, []*target{awaited}, 1)
	}
	reasons := r.explain(ctx, t.step)
	if len(reasons) == 0 || status.Reason == "Deleted" {
		reasons = []string{status.Message}
	}
	what := "did not end in " + r.timeout.String()
	if status.Failed {
		what = "failed"
	}
	if status.Failed && t.task.DeleteOnFailure {
		if err := r.drop(ctx, t, r.results[t.step]); err != nil {
			reasons = append(reasons, err.Error())
		}
	}
	return report.Errorf(report.Timeout, "task %s %s: %s", t.Object, what, strings.Join(reasons, "\n    ")).
		WithHint("repair the cause and run the same command again: it continues with this task")
}

// recordTask records that a task has succeeded. Objects that do not run may be applied twice, so they are saved with the next Job or Pod.
func (r *run) recordTask(ctx context.Context, t *taskStep) error {
	r.recording.Lock()
	defer r.recording.Unlock()
	now := r.second()
	for i := range r.state.Pending.Tasks {
		if on := &r.state.Pending.Tasks[i]; (taskKey{on.When, record.KeyOf(on.ObjectRef)}) == t.key() {
			on.Finished = &now
		}
	}
	if !t.runs() {
		return nil
	}
	return r.Save(ctx, &r.state)
}

// tidy deletes the object of a completed task unless it stays. A Job gets its ttlSecondsAfterFinished only now: a Job that is deleted
// before its end is recorded would be run again.
func (r *run) tidy(ctx context.Context, t *taskStep, leaves bool) error {
	live := cmp.Or(r.results[t.step], t.live)
	switch {
	case live == nil || t.over && t.runs() && !t.made(live):
		return nil
	case leaves && !t.protected():
		return r.drop(ctx, t, live)
	case !expires(t.rendered) || expires(live):
		return nil
	}
	object := t.rendered.DeepCopy()
	object.SetAnnotations(t.desired.GetAnnotations())
	object.SetUID(live.GetUID())
	applied, err := r.Cluster.Apply(ctx, object, cluster.WriteOptions{})
	if errors.Is(err, cluster.ErrChanged) { // the Job was deleted
		return nil
	}
	r.results[t.step] = applied
	return err
}

// drop deletes the object that was created for a task, and no other of its name, and waits until it is gone.
func (r *run) drop(ctx context.Context, t *taskStep, live *unstructured.Unstructured) error {
	object := identity(live)
	gone, err := r.Cluster.Remove(ctx, object, cluster.DeleteOptions{Propagation: metav1.DeletePropagationBackground})
	if err != nil && !errors.Is(err, cluster.ErrChanged) {
		return err
	}
	if t.dropped = true; gone {
		return nil
	}
	return r.waitGone(ctx, object)
}
