package health

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	document "github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/lazyregexp"
)

// problem is a fault of a pod, without its name, so that pods with the same problem become one line.
type problem struct {
	text  string
	grave bool // it does not pass by itself

	container string // whose log has more about it; "": none
	previous  bool   // the log of the container before it was started again
}

// of returns the reason that a problem is for a pod, which who names.
func (p problem) of(pod, who string) document.Reason {
	reason := document.Reason{Text: who + ": " + p.text}
	if p.container != "" {
		reason.Log = document.ContainerLog{Pod: pod, Container: p.container, Previous: p.previous}
	}
	return reason
}

// explainPods adds the problems of pods: those that do not pass by themselves first, each once, with its pods.
func (e *explainer) explainPods(pods []*unstructured.Unstructured) {
	pods = slices.DeleteFunc(slices.Clone(pods), func(pod *unstructured.Unstructured) bool { return Of(pod).Ready && !restarted(pod) })
	slices.SortFunc(pods, func(a, b *unstructured.Unstructured) int { return cmp.Compare(a.GetName(), b.GetName()) })
	var grave, others []problem
	owners := map[problem][]string{}
	for _, object := range pods[:min(len(pods), maxPods)] {
		for _, p := range e.problems(object) {
			switch {
			case owners[p] != nil:
			case p.grave:
				grave = append(grave, p)
			default:
				others = append(others, p)
			}
			owners[p] = append(owners[p], object.GetName())
		}
	}
	for _, p := range slices.Concat(grave, others) {
		who := "pod " + owners[p][0]
		if more := len(owners[p]) - 1; more > 0 {
			who += fmt.Sprintf(" and %d more", more)
		}
		e.addReason(p.of(owners[p][0], who))
	}
}

// restarted reports whether a container of the pod has failed before: one that runs now may do so again, and does not count as
// available until it has run for a while.
func restarted(pod *unstructured.Unstructured) bool {
	containers, _, _ := unstructured.NestedSlice(pod.Object, "status", "containerStatuses")
	return slices.ContainsFunc(containers, func(c any) bool {
		status, _ := c.(map[string]any)
		code, _, _ := unstructured.NestedInt64(status, "lastState", "terminated", "exitCode")
		return code != 0
	})
}

// problems returns the faults of one pod.
func (e *explainer) problems(object *unstructured.Unstructured) []problem {
	var pod corev1.Pod
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &pod); err != nil {
		return []problem{{text: fmt.Sprintf("its status cannot be understood: %v", err)}}
	}
	if pod.DeletionTimestamp != nil {
		return []problem{{text: deleting(object).Message}}
	}
	if pod.Status.Phase == corev1.PodFailed && pod.Status.Reason != "" {
		return []problem{{text: strings.ToLower(pod.Status.Reason) + ": " + pod.Status.Message, grave: true}}
	}
	if p, ok := unscheduled(&pod); ok {
		return []problem{p}
	}
	var found []problem
	events := e.warnings(object)
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if p, ok := containerProblem(&pod, c, events); ok {
			found = append(found, p)
		}
	}
	if len(found) == 0 {
		found = append(found, hindrances(events)...)
	}
	if len(found) == 0 {
		found = gates(&pod)
	}
	if len(found) == 0 {
		found = []problem{{text: Of(object).Message}}
	}
	return found
}

// unscheduled explains why no node runs the pod.
func unscheduled(pod *corev1.Pod) (problem, bool) {
	if pod.Spec.NodeName != "" {
		return problem{}, false
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			if c.Reason == corev1.PodReasonSchedulingGated {
				return problem{text: "must not be scheduled yet: a scheduling gate holds it", grave: true}, true
			}
			message, _, _ := strings.Cut(c.Message, ". ") // the rest is about how other pods could make room
			return problem{text: "no node can take it: " + strings.TrimSuffix(message, "."), grave: true}, true
		}
	}
	return problem{text: "is not scheduled to a node yet"}, true
}

// imageReasons are the reasons in the status of a container that waits for its image.
var imageReasons = []string{
	"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable", "ImageInspectError", "SignatureValidationFailed",
}

// containerProblem returns the fault of a container, false if it has none.
func containerProblem(pod *corev1.Pod, c corev1.ContainerStatus, events []event) (problem, bool) {
	name := "container " + c.Name + ": "
	switch waiting, ended := c.State.Waiting, c.State.Terminated; {
	case waiting != nil && slices.Contains(imageReasons, waiting.Reason):
		return problem{text: name + imageProblem(c, waiting, events), grave: true}, true
	case waiting != nil && waiting.Reason == "CrashLoopBackOff" && c.LastTerminationState.Terminated != nil:
		return problem{name + "ends again and again (" + times(c.RestartCount) + " so far): " + ending(c.LastTerminationState.Terminated), true, c.Name, true}, true
	case waiting != nil && waiting.Reason == "CrashLoopBackOff":
		return problem{name + "ends again and again: " + waiting.Message, true, c.Name, true}, true
	case waiting != nil && (waiting.Reason == "ContainerCreating" || waiting.Reason == "PodInitializing" || waiting.Reason == ""):
		return problem{}, false // something else is waited for
	case waiting != nil:
		return problem{text: name + "cannot be started: " + runtimeWords(cmp.Or(waiting.Message, waiting.Reason)), grave: true}, true
	case ended != nil && ended.ExitCode != 0:
		return problem{name + "has ended: " + ending(ended), true, c.Name, false}, true
	case c.State.Running != nil && !c.Ready && !isInit(pod, c.Name):
		return problem{name + probeProblem(c, events), false, c.Name, false}, true
	case c.State.Running != nil && isInit(pod, c.Name) && !c.Ready && !isSidecar(pod, c.Name):
		return problem{"initialization " + strings.TrimSuffix(name, ": ") + " has not ended yet", false, c.Name, false}, true
	case c.State.Running != nil && c.LastTerminationState.Terminated != nil && c.LastTerminationState.Terminated.ExitCode != 0:
		return runsAgain(c), true
	default:
		return problem{}, false
	}
}

// runsAgain is the problem of a container that runs and has ended before.
func runsAgain(c corev1.ContainerStatus) problem {
	text := "container " + c.Name + ": runs again; it has ended (" + times(c.RestartCount) + " so far): " + ending(c.LastTerminationState.Terminated)
	return problem{text: text, container: c.Name, previous: true}
}

func isInit(pod *corev1.Pod, name string) bool {
	return slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == name })
}

func isSidecar(pod *corev1.Pod, name string) bool {
	return slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool {
		return c.Name == name && c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
	})
}

func times(n int32) string {
	if n == 1 {
		return "1 time"
	}
	return fmt.Sprintf("%d times", n)
}

// ending describes the end of a container, in its own words if it left any.
func ending(t *corev1.ContainerStateTerminated) string {
	text := fmt.Sprintf("exit code %d", t.ExitCode)
	switch {
	case t.Reason == "OOMKilled":
		text = "it needs more memory than its limit allows"
	case t.Reason == "ContainerCannotRun", t.Reason == "StartError":
		text = "it cannot be started"
	case t.ExitCode == 137:
		text += ", killed"
	case t.ExitCode == 139:
		text += ", segmentation fault"
	case t.ExitCode == 143:
		text += ", asked to stop"
	}
	if t.Message != "" {
		text += ": " + runtimeWords(lastWords(t.Message))
	}
	return text
}

// lastWords returns the decisive lines of a message, which may be the end of a log: the panic of a Go program, else the last lines.
func lastWords(message string) string {
	lines := strings.Split(strings.TrimSpace(message), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
			return line + "\n" + strings.Join(lines[i+1:min(i+2, len(lines))], "\n")
		}
	}
	const few = 3
	return strings.Join(lines[max(0, len(lines)-few):], "\n")
}

// wrapping matches the text that the kubelet and containerd add around errors of the registry and of the container
// runtime. The expression is large, and few commands need it.
var wrapping = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(strings.Join([]string{
		`^Back-off pulling image "[^"]*"(: )?`,
		`^ErrImagePull: `,
		`^Failed to pull image "[^"]*": `,
		`^rpc error: code = \w+ desc = `,
		`^failed to pull and unpack image "[^"]*": `,
		`^failed to resolve (?:reference|image)(?: "[^"]*")?: `,
		`^failed to copy: `,
		`^failed to create containerd task: `,
		`^failed to create shim task: `,
		`^OCI runtime create failed: `,
		`^runc create failed: `,
		`^unable to start container process: `,
		`^error during container init: `,
		`^failed to do request: `,
		`^Failed to create pod sandbox: `,
	}, "|"))
})

// quotedReference matches the name of the image before the message about it.
var quotedReference = lazyregexp.New(`^(?:\S+/)+\S+?(?::\S+)?(?:@sha256:[0-9a-f]+)?: `)

// runtimeWords strips the text that each layer of software has put around the original error.
func runtimeWords(text string) string {
	for {
		stripped := wrapping().ReplaceAllString(text, "")
		if stripped == text {
			return text
		}
		text = stripped
	}
}

// imageProblem explains why an image is not pulled, in the words of the registry if they are known.
func imageProblem(c corev1.ContainerStatus, waiting *corev1.ContainerStateWaiting, events []event) string {
	if waiting.Reason == "InvalidImageName" {
		return fmt.Sprintf("%q is not a valid image reference", c.Image)
	}
	if waiting.Reason == "ErrImageNeverPull" {
		return fmt.Sprintf("image %s is not on the node, and its imagePullPolicy is Never", c.Image)
	}
	said := runtimeWords(waiting.Message)
	if said == "" { // older kubelets have forgotten the reason by the time they wait
		for _, w := range events {
			if w.reason == "Failed" && strings.HasPrefix(w.message, "Failed to pull image") {
				said = runtimeWords(w.message)
				break
			}
		}
	}
	said = quotedReference.ReplaceAllString(said, "")
	return fmt.Sprintf("image %s cannot be pulled: %s", c.Image, cmp.Or(said, "the node does not say why"))
}

// probeProblem explains why a running container is not ready.
func probeProblem(c corev1.ContainerStatus, events []event) string {
	which := "Readiness probe"
	if c.Started != nil && !*c.Started {
		which = "Startup probe"
	}
	for _, w := range events {
		if w.reason == "Unhealthy" && strings.HasPrefix(w.message, which) {
			return "runs, but is not ready: " + strings.ToLower(which[:1]) + strings.TrimRight(w.message[1:], ": \n")
		}
	}
	return "runs, but its " + strings.ToLower(which) + " does not succeed yet"
}

// hindrances returns the faults that the node reported of a pod whose containers it has not made yet.
func hindrances(events []event) []problem {
	var found []problem
	for _, w := range events {
		switch w.reason {
		case "FailedMount", "FailedAttachVolume", "FailedMapVolume":
			found = append(found, problem{text: "waits for a volume: " + w.message, grave: true})
		case "FailedCreatePodSandBox":
			found = append(found, problem{text: "its network cannot be made: " + runtimeWords(w.message), grave: true})
		case "NetworkNotReady", "FailedBinding", "FailedScheduling":
			found = append(found, problem{text: w.message, grave: true})
		}
	}
	const enough = 2
	return found[:min(len(found), enough)]
}

// gates are conditions that others have to fulfil before the pod counts as ready.
func gates(pod *corev1.Pod) []problem {
	var found []problem
	for _, gate := range pod.Spec.ReadinessGates {
		fulfilled := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == gate.ConditionType && c.Status == corev1.ConditionTrue
		})
		if !fulfilled {
			found = append(found, problem{text: "its readiness gate " + string(gate.ConditionType) + " is closed"})
		}
	}
	return found
}

var (
	exceeded  = lazyregexp.New(`exceeded quota: ([^,]+), requested: (\S+), used: (\S+), limited: (\S+)`)
	noAccount = lazyregexp.New(`error looking up service account ([^:]+): serviceaccount "[^"]*" not found`)
)

// creation explains why a controller cannot make pods.
func creation(message string) string {
	if m := exceeded.FindStringSubmatch(message); m != nil {
		return fmt.Sprintf("quota %s does not allow more pods: %s needed, %s used, limit %s", m[1], m[2], m[3], m[4])
	}
	if m := noAccount.FindStringSubmatch(message); m != nil {
		return "service account " + m[1] + " does not exist"
	}
	if _, said, found := strings.Cut(message, " is forbidden: violates PodSecurity "); found {
		return "the pod security level of the namespace does not allow its pods: " + said
	}
	return strings.TrimPrefix(message, "Error creating: ")
}
