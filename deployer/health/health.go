// Package health decides whether an object in a cluster is ready, and explains in plain words why it is not, down to
// the container that does not start.
//
// [Of] needs the object alone. [Explain] follows it to its pods and their events through a [Reader]; it needs
// permission to get and list, and reads no logs. Both know the kinds of Kubernetes. An object of any other kind is
// judged by the conditions in its status; without conditions it is ready as soon as it exists. A [Condition] adds a
// requirement of the object's author.
package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solutionctl/solutionctl/schema/lazyregexp"
)

// Status is the judgement on one object. One that is neither Ready nor Failed is on its way.
type Status struct {
	Ready   bool
	Failed  bool   // waiting will not help
	Reason  string // one word, for programs
	Message string // what it lacks, as the end of a sentence that begins with the object; "" when ready
}

var ready = Status{Ready: true, Reason: "Ready"}

// rules judge the kinds on which kstatus is too lenient, too strict or silent.
var rules = map[schema.GroupKind]func(*unstructured.Unstructured) Status{
	{Kind: "Pod"}:                   pod,
	{Kind: "Namespace"}:             phase("Active"),
	{Kind: "PersistentVolume"}:      phase("Available", "Bound", "Released"),
	{Kind: "PersistentVolumeClaim"}: phase("Bound"),
	{Group: "batch", Kind: "Job"}:   job,

	{Group: "apiregistration.k8s.io", Kind: "APIService"}: byCondition("Available"),

	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: definition,
}

// Of judges an object by itself.
func Of(object *unstructured.Unstructured) Status {
	if object.GetDeletionTimestamp() != nil {
		return deleting(object)
	}
	if judge := rules[object.GroupVersionKind().GroupKind()]; judge != nil {
		return judge(object)
	}
	result, err := status.Compute(object)
	if err != nil {
		return Status{Reason: "Unknown", Message: fmt.Sprintf("its status cannot be understood: %v", err)}
	}
	s := Status{Reason: reason(result), Message: words(result.Message)}
	switch result.Status {
	case status.CurrentStatus:
		if missing := notReady(object); missing != "" {
			return Status{Reason: "NotReady", Message: missing}
		}
		return available(object)
	case status.FailedStatus:
		s.Failed = true
	}
	if s.Reason == "ProgressDeadlineExceeded" {
		s.Message = "has not become ready within its progressDeadlineSeconds"
	}
	return s
}

// notReady counts the pods of a workload that are not ready. With the strategy OnDelete the status has nothing else.
func notReady(object *unstructured.Unstructured) string {
	count := func(path ...string) int64 {
		n, _, _ := unstructured.NestedInt64(object.Object, path...)
		return n
	}
	var ready, wanted int64
	switch object.GroupVersionKind().GroupKind() {
	case statefulSetKind:
		ready, wanted = count("status", "readyReplicas"), 1
		if n, set, _ := unstructured.NestedInt64(object.Object, "spec", "replicas"); set {
			wanted = n
		}
	case daemonSetKind:
		ready, wanted = count("status", "numberReady"), count("status", "desiredNumberScheduled")
	}
	if ready >= wanted {
		return ""
	}
	return fmt.Sprintf("%d of %d pods are ready", ready, wanted)
}

// available judges an object that nothing else is known about by the condition Available, which some kinds have instead
// of Ready.
func available(object *unstructured.Unstructured) Status {
	if c, ok := conditions(object)["Available"]; ok && c.status == "False" {
		return Status{Reason: cmp.Or(c.reason, "NotAvailable"), Message: cmp.Or(c.message, "is not available")}
	}
	return ready
}

func deleting(object *unstructured.Unstructured) Status {
	s := Status{Reason: "Terminating", Message: "is being deleted"}
	if finalizers := object.GetFinalizers(); len(finalizers) > 0 {
		s.Message += "; it waits for its finalizer " + strings.Join(finalizers, ", ")
	}
	return s
}

func pod(object *unstructured.Unstructured) Status {
	now, _, _ := unstructured.NestedString(object.Object, "status", "phase") // ignores a value that is not a string
	switch now {
	case "Succeeded":
		return ready
	case "Failed":
		return Status{Failed: true, Reason: "PodFailed", Message: "has failed"}
	case "Running":
		if IsTrue(object, "Ready") {
			return ready
		}
		return Status{Reason: "PodNotReady", Message: "runs, but is not ready"}
	default:
		return Status{Reason: "PodPending", Message: "has not started yet"}
	}
}

// job is ready when the Job is complete, because others may need its result.
func job(object *unstructured.Unstructured) Status {
	c := conditions(object)
	suspended, _, _ := unstructured.NestedBool(object.Object, "spec", "suspend")
	failed := c["Failed"]
	switch {
	case c["Complete"].status == "True", suspended:
		return ready
	case failed.status == "True":
		return Status{Failed: true, Reason: cmp.Or(failed.reason, "JobFailed"), Message: "has failed: " + cmp.Or(failed.message, failed.reason)}
	}
	count := func(field string) int64 {
		n, _, _ := unstructured.NestedInt64(object.Object, "status", field)
		return n
	}
	return Status{
		Reason:  "JobRunning",
		Message: fmt.Sprintf("has not ended yet; pods: %d at work, %d succeeded, %d failed", count("active"), count("succeeded"), count("failed")),
	}
}

// JobEnded is the condition with which a Job has ended, Complete or Failed; "" while it has not.
func JobEnded(job *unstructured.Unstructured) string {
	c := conditions(job)
	for _, end := range []string{"Complete", "Failed"} {
		if c[end].status == "True" {
			return end
		}
	}
	return ""
}

// JobTimedOut reports whether a Job fails because its deadline has passed. Its pod may still have to end.
func JobTimedOut(job *unstructured.Unstructured) bool {
	found := conditions(job)
	return slices.ContainsFunc([]string{"Failed", "FailureTarget"}, func(name string) bool {
		return found[name].status == "True" && found[name].reason == "DeadlineExceeded"
	})
}

// IsTrue reports whether an object has a condition with the status True.
func IsTrue(object *unstructured.Unstructured, name string) bool {
	return conditions(object)[name].status == "True"
}

// definition judges a CustomResourceDefinition: it is ready when its objects can be created.
func definition(object *unstructured.Unstructured) Status {
	c := conditions(object)
	names, established := c["NamesAccepted"], c["Established"]
	switch {
	case names.status == "False":
		return Status{Failed: true, Reason: cmp.Or(names.reason, "NamesNotAccepted"), Message: "has a name that is taken: " + names.message}
	case c["NonStructuralSchema"].status == "True":
		return Status{Failed: true, Reason: "NonStructuralSchema", Message: "has a schema that is not structural: " + c["NonStructuralSchema"].message}
	case established.status == "True":
		return ready
	default:
		return Status{Reason: "NotEstablished", Message: "is not served yet"}
	}
}

// phase returns the judgement by status.phase.
func phase(good ...string) func(*unstructured.Unstructured) Status {
	return func(object *unstructured.Unstructured) Status {
		now, _, _ := unstructured.NestedString(object.Object, "status", "phase")
		switch {
		case slices.Contains(good, now):
			return ready
		case now == "Lost" || now == "Failed":
			return Status{Failed: true, Reason: now, Message: "is " + strings.ToLower(now)}
		default:
			return Status{Reason: cmp.Or(now, "Pending"), Message: "is " + strings.ToLower(cmp.Or(now, "Pending"))}
		}
	}
}

// byCondition judges a kind whose controller always writes a condition.
func byCondition(name string) func(*unstructured.Unstructured) Status {
	return func(object *unstructured.Unstructured) Status {
		c := conditions(object)[name]
		if c.status == "True" {
			return ready
		}
		return Status{Reason: cmp.Or(c.reason, "Not"+name), Message: cmp.Or(c.message, "is not yet "+strings.ToLower(name))}
	}
}

type condition struct{ status, reason, message string }

// conditions returns the conditions in an object's status by type, without invalid ones.
func conditions(object *unstructured.Unstructured) map[string]condition {
	list, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	found := map[string]condition{}
	for _, item := range list {
		fields, _ := item.(map[string]any)
		text := func(key string) string {
			s, _ := fields[key].(string)
			return s
		}
		found[text("type")] = condition{text("status"), text("reason"), text("message")}
	}
	return found
}

// reason returns the reason that kstatus gives.
func reason(result *status.Result) string {
	for _, c := range result.Conditions {
		if c.Reason != "" {
			return c.Reason
		}
	}
	return result.Status.String()
}

var (
	ratio  = lazyregexp.New(`^(\w+): (\d+)/(\d+)$`)
	excess = lazyregexp.New(`^Pending termination: (\d+)$`)
)

// words returns a message of kstatus in whole words.
func words(message string) string {
	if m := excess.FindStringSubmatch(message); m != nil {
		return "pods of the old version have not ended yet: " + m[1]
	}
	if strings.Contains(message, "latest observed generation") {
		return "its controller has not seen the last change yet"
	}
	m := ratio.FindStringSubmatch(message)
	if m == nil {
		return strings.ToLower(message[:min(1, len(message))]) + message[min(1, len(message)):]
	}
	predicate := map[string]string{
		"Replicas": "exist", "Updated": "have the new version", "updated": "have the new version", "Available": "are available",
		"Ready": "are ready", "Current": "are scheduled", "current": "are of the current version", "Labelled": "exist",
	}[m[1]]
	return fmt.Sprintf("%s of %s pods %s", m[2], m[3], cmp.Or(predicate, m[1]))
}
