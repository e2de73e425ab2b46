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
	"github.com/solutionctl/solutionctl/deployer/health"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// target is an object that is waited for.
type target struct {
	run  *run
	step *step
	live *unstructured.Unstructured // as it was last seen, perhaps its metadata only

	mu     sync.Mutex
	status health.Status

	foreign bool            // it belongs to no release, and whoever looks after it may yet repair what has failed
	settled bool            // it is ready, and can be trusted to stay so
	moved   chan<- struct{} // told of every news, unless it is nil
	which   string          // of its containers have not run for long enough, as it was last seen
	since   time.Time       // when that was seen first
}

func newTarget(r *run, s *step) *target {
	live := r.results[s]
	return &target{run: r, step: s, live: live, settled: !hasPods[kindOfRef(s.Object).GroupKind()] || scaledToNothing(live)}
}

// scaledToNothing tells of an object that was read that it wants no pods.
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

// wait waits until the objects of all runs are ready, and gives those runs an error whose objects did not become so.
func (e *Engine) wait(ctx, patience context.Context, runs []*run, follow follower) {
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
	e.restartPods(patience, all)
	e.await(patience, all, follow)
	// The errors are kept with the runs.
	_ = each(len(runs), false, func(i int) error {
		runs[i].err = runs[i].verdict(ctx, byRun[runs[i]])
		return nil
	})
}

// restartPods deletes the pods of workloads that an earlier run has applied and whose nodes wait before they pull an image
// again: the cause may be repaired, and a pod in their place does not wait. It does so once, and tells.
func (e *Engine) restartPods(ctx context.Context, targets []*target) {
	for _, t := range targets {
		kind := kindOfRef(t.step.Object)
		if t.step.Action != schema.ActionNone || kind.Group != "apps" {
			continue
		}
		live, err := e.Cluster.Get(ctx, kind, t.step.Object.Namespace, t.step.Object.Name)
		if err != nil || live == nil || health.Of(live).Ready {
			continue // what is wrong with it shows while it is waited for
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
				continue // it has changed, or is gone
			}
			t.run.emit(event)
		}
	}
}

// alwaysReady are the phases whose objects are ready as soon as they exist. A volume claim may wait for its first pod; whether
// it ever gets a volume shows there.
var alwaysReady = [phases]bool{phaseAccounts: true, phaseRoles: true, phaseBindings: true, phaseConfiguration: true}

// awaited reports whether the object of a step has to become ready.
func (s *step) awaited() bool {
	return s.desired != nil && s.Action != schema.ActionSkip && s.Action != schema.ActionKeep && !s.ended && (!alwaysReady[s.phase] || len(s.conditions) > 0)
}

// Awaits reports whether an object is watched until it is ready.
func Awaits(object schema.ObjectRef) bool {
	return !alwaysReady[phaseOf(kindOfRef(object).GroupKind())]
}

// await follows the targets until all of them are ready and stay so, or failed, or until the patience ends.
func (e *Engine) await(patience context.Context, targets []*target, follow follower) {
	for {
		follow(patience, targets)
		var mu sync.Mutex
		var pause time.Duration
		again := false
		_ = each(len(targets), false, func(i int) error { // there are no errors
			settled, wait := targets[i].settle(patience)
			mu.Lock()
			defer mu.Unlock()
			again, pause = again || !settled, max(pause, wait)
			return nil
		})
		if !again || patience.Err() != nil {
			return
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-patience.Done():
			timer.Stop()
			return
		}
	}
}

// longest is the greatest time between two looks at containers that have not run for long enough, and after which one that
// still runs is trusted: the clock of its node may be wrong.
const longest = 30 * time.Second

// settle reports whether an object that is ready can be trusted to stay so, and how long to wait until that is asked again.
// Without a probe a container is ready as soon as it is started, however soon it ends.
func (t *target) settle(ctx context.Context) (settled bool, wait time.Duration) {
	if t.settled || !t.ready() {
		return true, 0
	}
	kind := kindOfRef(t.step.Object)
	live, err := t.run.Cluster.Get(ctx, kind, t.step.Object.Namespace, t.step.Object.Name)
	if err != nil || live == nil {
		t.settled = true // who may not look cannot know better
		return true, 0
	}
	t.live = live
	if t.see(ctx, live); !t.ready() {
		return t.over(), 0
	}
	found := health.LooksUnsteady(ctx, t.run.Cluster, live, t.run.age)
	if t.which != found.Which {
		t.which, t.since = found.Which, t.run.Now()
	}
	if found.Wait == 0 || len(found.Reasons) == 0 && t.run.Now().Sub(t.since) >= longest {
		t.settled = true
		t.tell(health.Status{Ready: true})
		return true, 0
	}
	t.set(health.Status{Reason: "Settling", Message: cmp.Or(strings.Join(found.Reasons, "; "), "is ready, and has to stay so for a few seconds")})
	return false, min(found.Wait, longest)
}

// hasPods are the kinds whose pods run for as long as they are there.
var hasPods = map[kube.GroupKind]bool{
	{Group: "apps", Kind: "Deployment"}: true, {Group: "apps", Kind: "StatefulSet"}: true,
	{Group: "apps", Kind: "DaemonSet"}: true, {Group: "apps", Kind: "ReplicaSet"}: true,
}

// watch follows the targets until all of them are ready or failed, or until the patience ends. There is one watch for each
// kind in a namespace, and only one for a kind that is waited for in many.
func (e *Engine) watch(patience context.Context, targets []*target) {
	open := map[kube.GroupVersionKind]map[string][]*target{}
	for _, t := range targets {
		if t.live != nil && !t.ready() {
			t.see(patience, t.live)
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
	patience, cancel := context.WithCancel(patience)
	defer cancel()
	var explaining, watching sync.WaitGroup
	explaining.Go(func() { e.explainAll(patience, targets) })
	for kind, namespaces := range open {
		if len(namespaces) > manyNamespaces {
			var together []*target
			for _, some := range namespaces {
				together = append(together, some...)
			}
			namespaces = map[string][]*target{"": together}
		}
		for namespace, some := range namespaces {
			watching.Go(func() { e.watchKind(patience, kind, namespace, some) })
		}
	}
	watching.Wait()
	cancel()
	explaining.Wait()
}

// watchKind follows the targets of one kind.
func (e *Engine) watchKind(ctx context.Context, kind kube.GroupVersionKind, namespace string, targets []*target) {
	byKey := map[objectKey]*target{}
	var known []*unstructured.Unstructured
	for _, t := range targets {
		byKey[keyOfRef(t.step.Object)] = t
		if t.live != nil {
			known = append(known, identity(t.live))
		}
	}
	var options metav1.ListOptions
	if !targets[0].foreign {
		options.LabelSelector = LabelRelease
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
			t.vanish(ctx, change.Object)
		} else {
			t.see(ctx, change.Object)
		}
		if !slices.ContainsFunc(targets, func(t *target) bool { return !t.over() }) {
			return
		}
	}
}

// watchEach follows the targets of one kind in each of their namespaces, for a user who may not see the whole cluster.
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

// identity is an object without the state that it was in, because not all of that may have been read.
func identity(object *unstructured.Unstructured) *unstructured.Unstructured {
	who := &unstructured.Unstructured{Object: map[string]any{}}
	who.SetGroupVersionKind(object.GroupVersionKind())
	who.SetNamespace(object.GetNamespace())
	who.SetName(object.GetName())
	who.SetUID(object.GetUID())
	return who
}

// vanish judges an object that is no longer there. A Job that the cluster deletes after its end may be gone before anybody has
// seen the end, and then nothing but its name is known.
func (t *target) vanish(ctx context.Context, last *unstructured.Unstructured) {
	if t.foreign {
		t.set(health.Status{Ready: true, Reason: "Deleted"})
		return
	}
	_, seen := last.Object["spec"]
	if kindOfRef(t.step.Object).GroupKind() == jobKind && (expires(t.step.desired) && !seen || health.JobEnded(last) == "Complete") {
		t.run.noteEnd(ctx, t.step)
		t.set(health.Status{Ready: true, Reason: "Ready"})
		return
	}
	t.set(health.Status{Failed: true, Reason: "Deleted", Message: "somebody deleted it"})
}

// see judges what the object is now.
func (t *target) see(ctx context.Context, object *unstructured.Unstructured) {
	status := t.step.judge(ctx, object)
	if object.GetDeletionTimestamp() != nil {
		status = health.Status{Failed: true, Reason: "Deleting", Message: terminating(object)}
	}
	if kindOfRef(t.step.Object).GroupKind() == jobKind && health.JobEnded(object) == "Complete" {
		t.run.noteEnd(ctx, t.step)
	}
	t.set(status)
}

// set takes a judgement over and tells the user when it is news.
func (t *target) set(status health.Status) {
	status.Failed = status.Failed && !t.foreign
	t.mu.Lock()
	news := t.status != status
	t.status = status
	t.mu.Unlock()
	if news && (!status.Ready || t.settled) {
		t.tell(status)
	}
	select {
	case t.moved <- struct{}{}:
	default: // it is told already, or nobody listens
	}
}

func (t *target) tell(status health.Status) {
	event := report.Event{Step: "wait", Name: t.step.Object.String(), State: report.Running, Note: status.Message}
	switch {
	case status.Ready:
		event.State = report.Done
	case status.Failed:
		event.State = report.Failed
	}
	t.run.emit(event)
}

// gone waits until an object that was deleted, or is being deleted by somebody else, does not exist any more.
func (r *run) gone(ctx context.Context, object *unstructured.Unstructured) error {
	kind := object.GroupVersionKind()
	live, err := r.Cluster.Get(ctx, kind, object.GetNamespace(), object.GetName())
	if err != nil || live == nil || live.GetUID() != object.GetUID() {
		return err
	}
	ref := refOf(live)
	s := &step{Change: schema.Change{Object: ref}}
	r.emit(report.Event{Step: "wait", Name: ref.String(), State: report.Started, Note: terminating(live)})
	explaining, stop := context.WithCancel(r.patience)
	var explainer sync.WaitGroup
	explainer.Go(func() { r.explainAll(explaining, []*target{{run: r, step: s}}) })
	defer explainer.Wait()
	defer stop()
	one := metav1.ListOptions{FieldSelector: "metadata.name=" + live.GetName(), ResourceVersion: live.GetResourceVersion()}
	for change, err := range r.Cluster.Watch(r.patience, kind, live.GetNamespace(), one, live) {
		if err != nil {
			return err
		}
		if change.Type == watch.Deleted || change.Object.GetUID() != object.GetUID() {
			r.emit(report.Event{Step: "wait", Name: ref.String(), State: report.Done, Note: "it is gone"})
			return nil
		}
		if note := terminating(change.Object); note != terminating(live) {
			r.emit(report.Event{Step: "wait", Name: ref.String(), State: report.Running, Note: note})
		}
		live = change.Object
	}
	if ctx.Err() != nil {
		return fmt.Errorf("interrupted while waiting until %s is gone: %w", ref, ctx.Err())
	}
	text := strings.Join(append([]string{terminating(live)}, r.explain(ctx, s)...), "\n  ")
	return report.Errorf(report.Timeout, "%s is still there after %s: %s", ref, r.timeout, text).
		WithHint("%s", r.inTheWay(live))
}

// inTheWay says what to do about an object that does not go.
func (r *run) inTheWay(object *unstructured.Unstructured) string {
	hint := "remove what is in the way, and run the same command again"
	if slices.Contains(object.GetFinalizers(), metav1.FinalizerDeleteDependents) && r.precedes {
		hint += "; with --no-wait it does not wait for pods"
	}
	return hint
}

// poll asks again and again, ever more rarely, until the answer is yes.
func (r *run) poll(ctx context.Context, done func() (bool, error), complaint string) error {
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		if yes, err := done(); err != nil || yes {
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-r.patience.Done():
			timer.Stop()
			if ctx.Err() != nil {
				return fmt.Errorf("interrupted: %s: %w", complaint, ctx.Err())
			}
			return report.Errorf(report.Timeout, "%s after %s", complaint, r.timeout).WithHint("run the same command again")
		}
	}
}

// counter shows how far a phase is.
type counter struct {
	mu    sync.Mutex
	sink  func(report.Event)
	event report.Event
}

// step counts one object that is done or went wrong.
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
