// Package logs reads what the containers of deployed Solutions write, and follows it.
//
// [Reader.Run] finds the pods of a Solution by their owners, opens their logs and passes on each line. It keeps no more than one line
// of each log, and writes nothing to the cluster.
package logs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/health"
	"github.com/solutionctl/solutionctl/deployer/survey"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// maxFollowed bounds how many logs are read at the same time.
const maxFollowed = 100

// Options select logs.
type Options struct {
	survey.Scope
	Pod, Container string // "" is each
	Follow         bool   // also later lines, and pods that start later
	Previous       bool   // of containers that ran before those that run
	Failing        bool   // only of containers that do not work: not ready, or ended with an error
	Since          time.Duration
	Tail           int // the last lines of each log; less than 0 is everything
}

// Reader reads logs from one cluster. All fields are required.
type Reader struct {
	Survey *survey.Survey
	Now    func() time.Time
	Line   func(schema.LogLine) error // is called for each line, by one goroutine at a time; its error ends the run
	Note   func(string)               // is called with the reason why a container has no log yet; likewise
}

// Run passes on the lines of the selected logs: without Follow those that are there, one log after the other, and with it every line
// until ctx is done, without an error.
func (r *Reader) Run(ctx context.Context, o Options) error {
	if err := o.check(); err != nil {
		return err
	}
	owned, err := r.Survey.Owned(ctx, o.Scope)
	if err != nil {
		return err
	}
	run := &run{Reader: r, o: o, owned: owned, noted: map[source]string{}, opened: map[source]bool{}}
	if o.Since > 0 {
		run.since = r.Now().Add(-o.Since)
	}
	if o.Follow {
		return run.follow(ctx)
	}
	return run.read(ctx)
}

func (o Options) check() error {
	for _, name := range []string{o.Pod, o.Container} {
		if name != "" && len(validation.IsDNS1123Subdomain(name)) > 0 {
			return report.Errorf(report.Usage, "%q is not the name of a pod or container", name)
		}
	}
	switch {
	case o.Follow && o.Previous:
		return report.Errorf(report.Usage, "--previous reads containers that have ended: it does not go with --follow")
	case o.Since < 0:
		return report.Errorf(report.Usage, "--since must be 0 or more")
	}
	return nil
}

// run is one run of a Reader.
type run struct {
	*Reader
	o     Options
	owned *survey.Owned
	since time.Time

	mu     sync.Mutex // of what follows, and of calls of Line and Note
	noted  map[source]string
	opened map[source]bool
	open   int // logs that are being read
	full   bool
}

// source is the output of one container between its start and its end.
type source struct {
	namespace, pod, uid, container string
	restarts                       int32
}

// state is a container of a pod as the cluster reports it.
type state struct {
	source
	started bool
	running bool
}

// containers are the containers of a pod that are selected: those that prepare it first.
func (r *run) containers(pod *corev1.Pod) []state {
	statuses := map[string]corev1.ContainerStatus{}
	for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses, pod.Status.EphemeralContainerStatuses) {
		statuses[s.Name] = s
	}
	var names []string
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		names = append(names, c.Name)
	}
	for _, c := range pod.Spec.EphemeralContainers {
		names = append(names, c.Name)
	}
	var found []state
	for _, name := range names {
		if r.o.Container != "" && name != r.o.Container {
			continue
		}
		s := statuses[name]
		if r.o.Failing && works(s) {
			continue
		}
		one := state{source: source{pod.Namespace, pod.Name, string(pod.UID), name, s.RestartCount}}
		one.running = s.State.Running != nil
		one.started = one.running || s.State.Terminated != nil
		if r.o.Previous {
			one.started = s.LastTerminationState.Terminated != nil
		} else if !one.started && s.LastTerminationState.Terminated != nil {
			one.restarts-- // it waits for its next start: the log is that of the one before
			one.started = true
		}
		found = append(found, one)
	}
	return found
}

// works reports whether a container is ready, or has ended without an error.
func works(s corev1.ContainerStatus) bool {
	return s.Ready || s.State.Terminated != nil && s.State.Terminated.ExitCode == 0
}

// selects reads a pod if it is one of those that are selected.
func (r *run) selects(ctx context.Context, object *unstructured.Unstructured) (*corev1.Pod, error) {
	if r.o.Pod != "" && object.GetName() != r.o.Pod {
		return nil, nil
	}
	if ours, err := r.owned.Has(ctx, object); err != nil || !ours {
		return nil, err
	}
	pod := &corev1.Pod{}
	return pod, survey.Convert(object, pod)
}

// read reads the logs that are there.
func (r *run) read(ctx context.Context) error {
	var pods []*corev1.Pod
	for _, namespace := range r.owned.Namespaces {
		for object, err := range r.Survey.Cluster.List(ctx, cluster.PodKind, namespace, metav1.ListOptions{}) {
			if err != nil {
				return err
			}
			pod, err := r.selects(ctx, object)
			if err != nil {
				return err
			}
			if pod != nil {
				pods = append(pods, pod)
			}
		}
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	found := false
	for _, pod := range pods {
		for _, c := range r.containers(pod) {
			found = true
			if !c.started {
				r.note(ctx, pod, c)
				continue
			}
			if _, err := r.copy(ctx, c.source, time.Time{}, false); err != nil {
				return r.explain(c.source, err)
			}
		}
	}
	if !found {
		return r.nothing()
	}
	return nil
}

// nothing is the error when no container is selected.
func (r *run) nothing() error {
	what := "pods"
	switch {
	case r.o.Container != "":
		what = "container " + r.o.Container
	case r.o.Pod != "":
		what = "pod " + r.o.Pod
	}
	err := report.Errorf(report.NotFound, "Solution %s has no %s in environment %s", r.o.Solution, what, r.o.Environment)
	if r.o.Pod != "" || r.o.Container != "" {
		return err.WithHint("leave out --pod and --container: each line shows its pod and container")
	}
	return err.WithHint("'%s' shows why", report.Run("deploy status"))
}

// follow follows the logs of pods that are there and of those that start later, until ctx is done.
func (r *run) follow(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	var running sync.WaitGroup
	for _, namespace := range r.owned.Namespaces {
		running.Go(func() {
			for change, err := range r.Survey.Cluster.Watch(ctx, cluster.PodKind, namespace, metav1.ListOptions{}) {
				switch {
				case err != nil:
				case change.Type == watch.Deleted:
					r.dropPod(string(change.Object.GetUID()))
				default:
					err = r.observe(ctx, change.Object, stop, &running)
				}
				if err != nil {
					stop(err)
					return
				}
			}
		})
	}
	running.Wait()
	failure := context.Cause(ctx)
	stop(nil)
	if errors.Is(failure, context.Canceled) || errors.Is(failure, context.DeadlineExceeded) {
		return nil
	}
	if failure == nil {
		return r.nothing() // there is no namespace to look at
	}
	return failure
}

// observe opens what has begun in a pod, and reports what has not.
func (r *run) observe(ctx context.Context, object *unstructured.Unstructured, stop context.CancelCauseFunc, running *sync.WaitGroup) error {
	pod, err := r.selects(ctx, object)
	if pod == nil || err != nil {
		return err
	}
	for _, c := range r.containers(pod) {
		if !c.started {
			r.note(ctx, pod, c)
			continue
		}
		if enter, again := r.enter(c.source); enter {
			running.Go(func() {
				if err := r.copyAll(ctx, c.source, again); err != nil && ctx.Err() == nil {
					stop(r.explain(c.source, err))
				}
				r.leave()
			})
		}
	}
	return nil
}

// enter reports whether a log is to be opened now, and whether the same container wrote another one in this run.
func (r *run) enter(s source) (enter, again bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.opened[s] {
		return false, false
	}
	if r.open == maxFollowed {
		if !r.full {
			r.full = true
			r.Note(fmt.Sprintf("more than %d containers: those that are left out are not followed; choose with --pod, --container or --component", maxFollowed))
		}
		return false, false
	}
	for other := range r.opened {
		if other.uid == s.uid && other.container == s.container {
			delete(r.opened, other)
			again = true
		}
	}
	r.opened[s] = true
	r.open++
	return true, again
}

// dropPod drops the state of a deleted pod.
func (r *run) dropPod(uid string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.opened, func(s source, _ bool) bool { return s.uid == uid })
	maps.DeleteFunc(r.noted, func(s source, _ string) bool { return s.uid == uid })
}

func (r *run) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open--
}

// note reports once why a container has no log.
func (r *run) note(ctx context.Context, pod *corev1.Pod, c state) {
	if r.o.Previous {
		return // it did not run before
	}
	reason := waitingReason(pod, c.container)
	if object, err := r.Survey.Cluster.Get(ctx, cluster.PodKind, pod.Namespace, pod.Name); err == nil && object != nil {
		if reasons := health.Explain(ctx, r.Survey.Cluster, object); len(reasons) > 0 {
			reason = reasons[0]
		}
	}
	reason = cmp.Or(strings.TrimPrefix(reason, "pod "+c.pod+": "), "it waits for its node")
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.noted[c.source] != reason {
		r.noted[c.source] = reason
		r.Note(fmt.Sprintf("%s/%s has not started: %s", c.pod, c.container, reason))
	}
}

// waitingReason returns the reason that the kubelet reports for a container that has not started.
func waitingReason(pod *corev1.Pod, container string) string {
	for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if w := s.State.Waiting; s.Name == container && w != nil {
			return strings.TrimSuffix(w.Reason+": "+w.Message, ": ")
		}
	}
	return ""
}

// explain adds which log an error is about.
func (r *run) explain(s source, err error) error {
	return fmt.Errorf("log of %s/%s: %w", s.pod, s.container, err)
}
