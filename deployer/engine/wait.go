package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/health"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// target is an object to wait for.
type target struct {
	run  *run
	step *step
	live *unstructured.Unstructured // as last read, perhaps its metadata only

	mu     sync.Mutex
	status health.Status

	foreign bool            // it belongs to no release, and its controller may still recover from a failure
	settled bool            // it counts as ready as soon as it reports so
	moved   chan<- struct{} // receives a value for each change; may be nil
	which   string          // names of containers that had not run long enough when last checked
	since   time.Time       // when they were first found
}

func newTarget(r *run, s *step) *target {
	live := r.results[s]
	return &target{run: r, step: s, live: live, settled: !hasPods[kindOfRef(s.Object).GroupKind()] || scaledToNothing(live)}
}

// scaledToNothing reports whether an object that was read wants no pods.
func scaledToNothing(live *unstructured.Unstructured) bool {
	if live == nil {
		return false
	}
	replicas, set, _ := unstructured.NestedInt64(live.Object, "spec", "replicas")
	return set && replicas == 0
}

func (t *target) ready() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.status.Ready
}

func (t *target) over() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.status.Ready || t.status.Failed
}

// wait waits until the objects of all runs are ready, and sets the errors of runs whose objects are not.
func (e *Engine) wait(ctx, waitCtx context.Context, runs []*run, follow follower) {
	byRun := map[*run][]*target{}
	var all []*target
	for _, r := range runs {
		for _, s := range r.plan.steps {
			if !s.awaited() {
				continue
			}
			t := newTarget(r, s)
			byRun[r] = append(byRun[r], t)
			all = append(all, t)
		}
	}
	e.restartPods(waitCtx, all)
	e.await(waitCtx, all, follow)
	// The errors are kept with the runs.
	_ = cluster.All(len(runs), func(i int) error {
		runs[i].err = runs[i].waitError(ctx, byRun[runs[i]])
		return nil
	})
}

// restartPods deletes, once, the pods of already applied workloads that wait before they pull an image again: the cause may have been
// repaired, and a new pod does not wait.
func (e *Engine) restartPods(ctx context.Context, targets []*target) {
	for _, t := range targets {
		kind := kindOfRef(t.step.Object)
		if t.step.Action != schema.ActionNone || kind.Group != "apps" {
			continue
		}
		live, err := e.Cluster.Get(ctx, kind, t.step.Object.Namespace, t.step.Object.Name)
		if err != nil || live == nil || health.Of(live).Ready {
			continue // its problem is reported while it is waited for
		}
		for _, pod := range health.BackingOff(ctx, e.Cluster, live) {
			event := report.Event{
				Step: "restart", Name: "Pod " + pod.GetNamespace() + "/" + pod.GetName(), State: report.Done,
				Note: "it waited before pulling its image again",
			}
			switch err := e.Cluster.Delete(ctx, pod, cluster.DeleteOptions{}); {
			case report.CodeOf(err) == report.Forbidden:
				event.State = report.Skipped
				event.Note = fmt.Sprintf("it waits up to five minutes before pulling its image again; without waiting: kubectl delete pod --namespace %s %s",
					pod.GetNamespace(), pod.GetName())
			case err != nil:
				continue // it was changed or deleted
			}
			t.run.emit(event)
		}
	}
}

// alwaysReady are phases whose objects are ready once they exist. A volume claim may wait for its first pod, which shows whether it gets
// a volume.
var alwaysReady = [phases]bool{phaseAccounts: true, phaseRoles: true, phaseBindings: true, phaseConfiguration: true}

// awaited reports whether the object of a step has to become ready.
func (s *step) awaited() bool {
	return s.desired != nil && s.Action != schema.ActionSkip && s.Action != schema.ActionKeep && !s.ended && (!alwaysReady[s.phase] || len(s.conditions) > 0)
}

// Awaits reports whether an object is watched until it is ready.
func Awaits(object schema.ObjectRef) bool {
	return !alwaysReady[phaseOf(kindOfRef(object).GroupKind())]
}

// await follows the targets until all are ready and stay so, or failed, or until waitCtx ends.
func (e *Engine) await(waitCtx context.Context, targets []*target, follow follower) {
	for {
		follow(waitCtx, targets)
		var mu sync.Mutex
		var pause time.Duration
		again := false
		_ = cluster.All(len(targets), func(i int) error { // there are no errors
			settled, wait := targets[i].settle(waitCtx)
			mu.Lock()
			defer mu.Unlock()
			again, pause = again || !settled, max(pause, wait)
			return nil
		})
		if !again || waitCtx.Err() != nil {
			return
		}
		if cluster.Sleep(waitCtx, pause) != nil {
			return
		}
	}
}

// maxSettle limits the time between two checks of containers that have not run long enough, and the total: the clock of a node may be
// wrong.
const maxSettle = 30 * time.Second

// settle reports whether a ready object can be expected to stay ready, and when to check again. Without a probe a container is ready as
// soon as it has started, even if it ends at once.
func (t *target) settle(ctx context.Context) (settled bool, wait time.Duration) {
	if t.settled || !t.ready() {
		return true, 0
	}
	kind := kindOfRef(t.step.Object)
	live, err := t.run.Cluster.Get(ctx, kind, t.step.Object.Namespace, t.step.Object.Name)
	if err != nil || live == nil {
		t.settled = true // without permission to read it, its reported state counts
		return true, 0
	}
	t.live = live
	if t.observe(ctx, live); !t.ready() {
		return t.over(), 0
	}
	found := health.LooksUnsteady(ctx, t.run.Cluster, live, t.run.age)
	if t.which != found.Which {
		t.which, t.since = found.Which, t.run.Now()
	}
	if found.Wait == 0 || len(found.Reasons) == 0 && t.run.Now().Sub(t.since) >= maxSettle {
		t.settled = true
		t.emitStatus(health.Status{Ready: true})
		return true, 0
	}
	t.set(health.Status{Reason: "Settling", Message: cmp.Or(strings.Join(found.Reasons, "; "), "is ready, and has to stay so for a few seconds")})
	return false, min(found.Wait, maxSettle)
}

// hasPods are kinds whose pods run as long as the object exists.
var hasPods = map[kube.GroupKind]bool{
	{Group: "apps", Kind: "Deployment"}: true, {Group: "apps", Kind: "StatefulSet"}: true,
	{Group: "apps", Kind: "DaemonSet"}: true, {Group: "apps", Kind: "ReplicaSet"}: true,
}

// watch follows the targets until all are ready or failed, or until waitCtx ends. It opens one watch for each kind in a namespace,
// or one for the whole cluster if a kind is in many namespaces.
func (e *Engine) watch(waitCtx context.Context, targets []*target) {
	open := map[kube.GroupVersionKind]map[string][]*target{}
	for _, t := range targets {
		if t.live != nil && !t.ready() {
			t.observe(waitCtx, t.live)
		}
		if t.over() {
			continue
		}
		kind := kindOfRef(t.step.Object)
		if open[kind] == nil {
			open[kind] = map[string][]*target{}
		}
		open[kind][t.step.Object.Namespace] = append(open[kind][t.step.Object.Namespace], t)
	}
	if len(open) == 0 {
		return
	}
	waitCtx, cancel := context.WithCancel(waitCtx)
	defer cancel()
	var explaining, watching sync.WaitGroup
	explaining.Go(func() { e.explainAll(waitCtx, targets) })
	for kind, namespaces := range open {
		if len(namespaces) > manyNamespaces {
			var together []*target
			for _, some := range namespaces {
				together = append(together, some...)
			}
			namespaces = map[string][]*target{"": together}
		}
		for namespace, some := range namespaces {
			watching.Go(func() { e.watchKind(waitCtx, kind, namespace, some) })
		}
	}
	watching.Wait()
	cancel()
	explaining.Wait()
}

// watchKind follows the targets of one kind.
func (e *Engine) watchKind(ctx context.Context, kind kube.GroupVersionKind, namespace string, targets []*target) {
	byKey := map[record.ObjectKey]*target{}
	var known []*unstructured.Unstructured
	for _, t := range targets {
		byKey[record.KeyOf(t.step.Object)] = t
		if t.live != nil {
			known = append(known, identity(t.live))
		}
	}
	var options metav1.ListOptions
	if !targets[0].foreign {
		options.LabelSelector = schema.LabelRelease
	}
	for change, err := range e.Cluster.Watch(ctx, kind, namespace, options, known...) {
		if report.CodeOf(err) == report.Forbidden && namespace == "" && targets[0].step.Object.Namespace != "" {
			e.watchEach(ctx, kind, targets)
			return
		}
		if err != nil {
			for _, t := range targets {
				t.set(unwatched(err))
			}
			return
		}
		t := byKey[keyOf(change.Object)]
		if t == nil {
			continue
		}
		if change.Type == watch.Deleted {
			t.observeDeletion(ctx, change.Object)
		} else {
			t.observe(ctx, change.Object)
		}
		if !slices.ContainsFunc(targets, func(t *target) bool { return !t.over() }) {
			return
		}
	}
}

// watchEach follows the targets of one kind in each of their namespaces, for a user who is not allowed to watch the whole cluster.
func (e *Engine) watchEach(ctx context.Context, kind kube.GroupVersionKind, targets []*target) {
	namespaces := map[string][]*target{}
	for _, t := range targets {
		namespaces[t.step.Object.Namespace] = append(namespaces[t.step.Object.Namespace], t)
	}
	var watching sync.WaitGroup
	for namespace, some := range namespaces {
		watching.Go(func() { e.watchKind(ctx, kind, namespace, some) })
	}
	watching.Wait()
}

// identity returns an object without its resource version, because perhaps only its metadata was read.
func identity(object *unstructured.Unstructured) *unstructured.Unstructured {
	bare := cluster.NewObject(object.GroupVersionKind(), object.GetNamespace(), object.GetName())
	bare.SetUID(object.GetUID())
	return bare
}

// observeDeletion updates the target after a deletion. A Job that the cluster deletes after its end may be gone before its end was
// observed.
func (t *target) observeDeletion(ctx context.Context, last *unstructured.Unstructured) {
	if t.foreign {
		t.set(health.Status{Ready: true, Reason: "Deleted"})
		return
	}
	_, seen := last.Object["spec"]
	if kindOfRef(t.step.Object).GroupKind() == jobKind && (expires(t.step.desired) && !seen || health.JobEnded(last) == "Complete") {
		t.run.recordJobEnd(ctx, t.step)
		t.set(health.Status{Ready: true, Reason: "Ready"})
		return
	}
	t.set(health.Status{Failed: true, Reason: "Deleted", Message: "it was deleted"})
}

// observe updates the target from an object.
func (t *target) observe(ctx context.Context, object *unstructured.Unstructured) {
	status := t.step.health(ctx, object)
	complete := kindOfRef(t.step.Object).GroupKind() == jobKind && health.JobEnded(object) == "Complete"
	if complete {
		t.run.recordJobEnd(ctx, t.step)
	}
	switch {
	case object.GetDeletionTimestamp() == nil:
	case complete:
		status = health.Status{Ready: true, Reason: "Ready"}
	default:
		status = health.Status{Failed: true, Reason: "Deleting", Message: terminating(object)}
	}
	t.set(status)
}

// set sets the status and reports it if it has changed.
func (t *target) set(status health.Status) {
	status.Failed = status.Failed && !t.foreign
	t.mu.Lock()
	news := t.status != status
	t.status = status
	t.mu.Unlock()
	if news && (!status.Ready || t.settled) {
		t.emitStatus(status)
	}
	select {
	case t.moved <- struct{}{}:
	default: // a value is pending, or nothing listens
	}
}

func (t *target) emitStatus(status health.Status) {
	event := report.Event{Step: "wait", Name: t.step.Object.String(), State: report.Running, Note: status.Message}
	switch {
	case status.Ready:
		event.State = report.Done
	case status.Failed:
		event.State = report.Failed
	}
	t.run.emit(event)
}

// waitGone waits until a deleted object does not exist any more.
func (r *run) waitGone(ctx context.Context, object *unstructured.Unstructured) error {
	kind := object.GroupVersionKind()
	live, err := r.Cluster.Get(ctx, kind, object.GetNamespace(), object.GetName())
	if err != nil || live == nil || live.GetUID() != object.GetUID() {
		return err
	}
	ref := refOf(live)
	s := &step{Change: schema.Change{Object: ref}}
	r.emit(report.Event{Step: "wait", Name: ref.String(), State: report.Started, Note: terminating(live)})
	explaining, stop := context.WithCancel(r.waitCtx)
	var explainer sync.WaitGroup
	explainer.Go(func() { r.explainAll(explaining, []*target{{run: r, step: s}}) })
	defer explainer.Wait()
	defer stop()
	one := metav1.ListOptions{FieldSelector: "metadata.name=" + live.GetName(), ResourceVersion: live.GetResourceVersion()}
	for change, err := range r.Cluster.Watch(r.waitCtx, kind, live.GetNamespace(), one, live) {
		if err != nil {
			return err
		}
		if change.Type == watch.Deleted || change.Object.GetUID() != object.GetUID() {
			r.emit(report.Event{Step: "wait", Name: ref.String(), State: report.Done, Note: "deleted"})
			return nil
		}
		if note := terminating(change.Object); note != terminating(live) {
			r.emit(report.Event{Step: "wait", Name: ref.String(), State: report.Running, Note: note})
		}
		live = change.Object
	}
	if ctx.Err() != nil {
		return fmt.Errorf("interrupted while waiting for the deletion of %s: %w", ref, ctx.Err())
	}
	text := strings.Join(append([]string{terminating(live)}, r.explain(ctx, s)...), "\n  ")
	return report.Errorf(report.Timeout, "%s is still there after %s: %s", ref, r.timeout, text).
		WithHint("%s", r.deletionHint(live))
}

// deletionHint returns the hint for an object whose deletion does not finish.
func (r *run) deletionHint(object *unstructured.Unstructured) string {
	hint := "remove the cause, and run the same command again"
	if slices.Contains(object.GetFinalizers(), metav1.FinalizerDeleteDependents) && r.precedes {
		hint += "; with --no-wait it does not wait for pods"
	}
	return hint
}

// poll calls done, with growing pauses, until it returns true.
func (r *run) poll(ctx context.Context, done func() (bool, error), message string) error {
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		if yes, err := done(); err != nil || yes {
			return err
		}
		if cluster.Sleep(r.waitCtx, pause) != nil {
			if ctx.Err() != nil {
				return fmt.Errorf("interrupted: %s: %w", message, ctx.Err())
			}
			return report.Errorf(report.Timeout, "%s after %s", message, r.timeout).WithHint("run the same command again")
		}
	}
}

// counter reports the progress of a phase.
type counter struct {
	mu    sync.Mutex
	sink  func(report.Event)
	event report.Event
}

// step counts one object that is done or failed.
func (c *counter) step(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.event.State = report.Running
	switch {
	case err != nil:
		c.event.State = report.Failed
	case c.event.Done+1 == c.event.Total:
		c.event.State = report.Done
	}
	if err == nil {
		c.event.Done++
	}
	c.sink(c.event)
}
