package health

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	document "github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

const (
	// settles is for how long a container without a probe has to run before it counts as one that works: it is ready as soon as
	// it is started, and most that fail do so at once.
	settles = 10 * time.Second
	// settlesAgain is for how long if it has failed before.
	settlesAgain = 30 * time.Second
)

// Age returns the time since a moment, by the clock of the cluster's nodes.
type Age func(time.Time) time.Duration

// Unsteady describes containers that have not run for long enough to be trusted.
type Unsteady struct {
	Wait    time.Duration // how much longer they have to run; 0 when all are steady
	Which   string        // the same for as long as it is about the same starts of the same containers
	Reasons []string      // earlier terminations, one sentence for each
}

// LooksUnsteady reports containers that restart, of a Deployment, StatefulSet, DaemonSet or ReplicaSet. For any other
// object, or without permission to list pods, it reports nothing.
func LooksUnsteady(ctx context.Context, r Reader, workload *unstructured.Unstructured, age Age) Unsteady {
	var found Unsteady
	e := explainer{ctx: ctx, reader: r}
	var which []string
	for _, object := range e.podsOf(workload) {
		pod := podOf(object)
		if pod == nil || pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded {
			continue
		}
		for _, c := range lasting(pod) {
			wait, fault := unsteady(pod, c, age)
			if wait > 0 {
				found.Wait = max(found.Wait, wait)
				which = append(which, fmt.Sprintf("%s/%s/%d", pod.UID, c.Name, c.RestartCount))
			}
			if fault.text != "" {
				e.addReason(fault.of(pod.Name, "pod "+pod.Name))
			}
		}
	}
	slices.Sort(which)
	found.Which, found.Reasons = strings.Join(which, " "), document.Sentences(e.bounded())
	return found
}

// Crashes describes the fault of a pod whose containers end again and again. One that runs at the moment
// is among them until it has run for a while.
func Crashes(object *unstructured.Unstructured, age Age) (reason document.Reason, crashes bool) {
	if !hasEnded(object) {
		return reason, false
	}
	pod := podOf(object)
	if pod == nil || pod.DeletionTimestamp != nil {
		return reason, false
	}
	for _, c := range lasting(pod) {
		if _, fault := unsteady(pod, c, age); fault.text != "" {
			fault.text = report.OneLine(fault.text, maxLength)
			return fault.of(pod.Name, "pod "+pod.Name), true
		}
	}
	return reason, false
}

// hasEnded reports whether a container of a pod is not running, or has terminated before. Most pods need no further
// check.
func hasEnded(pod *unstructured.Unstructured) bool {
	status, _ := pod.Object["status"].(map[string]any)
	for _, list := range []string{"initContainerStatuses", "containerStatuses"} {
		containers, _ := status[list].([]any)
		for _, one := range containers {
			container, _ := one.(map[string]any)
			state, _ := container["state"].(map[string]any)
			last, _ := container["lastState"].(map[string]any)
			if state["running"] == nil || last["terminated"] != nil {
				return true
			}
		}
	}
	return false
}

// unsteady returns the time that a container still has to run to be trusted, and its last end.
func unsteady(pod *corev1.Pod, c corev1.ContainerStatus, age Age) (wait time.Duration, found problem) {
	switch running := c.State.Running; {
	case running == nil:
		if p, ok := containerProblem(pod, c, nil); ok && c.RestartCount > 0 || c.State.Terminated != nil && c.State.Terminated.ExitCode != 0 {
			return settles, p
		}
		return 0, found // the object that makes the pod knows that it is not ready
	case c.LastTerminationState.Terminated != nil:
		if wait = left(settlesAgain, age(running.StartedAt.Time)); wait == 0 {
			return 0, found
		}
		return wait, runsAgain(c)
	case c.Ready && isProbed(pod, c.Name):
		return 0, found // it works, as it has answered
	default:
		return left(settles, age(running.StartedAt.Time)), found
	}
}

// isProbed reports whether a container has a readiness probe.
func isProbed(pod *corev1.Pod, name string) bool {
	return slices.ContainsFunc(slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers), func(c corev1.Container) bool {
		return c.Name == name && (c.ReadinessProbe != nil || c.StartupProbe != nil)
	})
}

// left returns how much longer a container has to run to reach an age. A start in the distant future means that the
// clock was set since, so the true start is unknown, and waiting until then could take hours: left is then 0.
func left(of, age time.Duration) time.Duration {
	const apart = 2 * time.Minute
	if age < -apart {
		return 0
	}
	return max(of-age, 0)
}

func podOf(object *unstructured.Unstructured) *corev1.Pod {
	var pod corev1.Pod
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &pod); err != nil {
		return nil
	}
	return &pod
}

// lasting are the containers of a pod that are to run for as long as it does.
func lasting(pod *corev1.Pod) []corev1.ContainerStatus {
	sidecars := slices.DeleteFunc(slices.Clone(pod.Status.InitContainerStatuses), func(c corev1.ContainerStatus) bool { return !isSidecar(pod, c.Name) })
	return slices.Concat(sidecars, pod.Status.ContainerStatuses)
}

// podsOf returns the pods that a workload has made.
func (e *explainer) podsOf(workload *unstructured.Unstructured) []*unstructured.Unstructured {
	owners := []types.UID{workload.GetUID()}
	switch workload.GroupVersionKind().GroupKind() {
	case deploymentKind.GroupKind():
		for _, set := range e.selected(replicaSetKind, workload, workload.GetUID()) {
			owners = append(owners, set.GetUID())
		}
	case replicaSetKind.GroupKind(), statefulSetKind, daemonSetKind:
	default:
		return nil
	}
	return e.selected(podKind, workload, owners...)
}

var (
	statefulSetKind = schema.GroupKind{Group: "apps", Kind: "StatefulSet"}
	daemonSetKind   = schema.GroupKind{Group: "apps", Kind: "DaemonSet"}
)

// WorkloadOf returns the kind and the name of the object that has made a pod, which is a Deployment where a ReplicaSet of one
// has done so.
func WorkloadOf(pod *unstructured.Unstructured) (kind, name string) {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil {
		return "", ""
	}
	if hash := pod.GetLabels()["pod-template-hash"]; owner.Kind == replicaSetKind.Kind && hash != "" {
		if deployment, ok := strings.CutSuffix(owner.Name, "-"+hash); ok {
			return deploymentKind.Kind, deployment
		}
	}
	return owner.Kind, owner.Name
}
