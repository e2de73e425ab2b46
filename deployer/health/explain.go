package health

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	document "github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Reader reads objects from a cluster; a *cluster.Cluster is one.
type Reader interface {
	Get(ctx context.Context, kind schema.GroupVersionKind, namespace, name string) (*unstructured.Unstructured, error)
	List(ctx context.Context, kind schema.GroupVersionKind, namespace string, o metav1.ListOptions) iter.Seq2[*unstructured.Unstructured, error]
}

const (
	// maxReasons bounds the result of Explain, maxLength one line of it, in bytes.
	maxReasons, maxLength = 10, 600
	// maxPods bounds the pods that are looked at, and maxEvents the events of each.
	maxPods, maxEvents = 20, 100
)

var (
	podKind        = corev1.SchemeGroupVersion.WithKind("Pod")
	eventKind      = corev1.SchemeGroupVersion.WithKind("Event")
	replicaSetKind = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "ReplicaSet"}
)

// Explain returns the reasons why an object is not ready: a sentence for each, the gravest first, at most ten. It reads
// the objects that belong to it, except those that the user is not allowed to read.
func Explain(ctx context.Context, r Reader, object *unstructured.Unstructured) []string {
	return document.Sentences(Reasons(ctx, r, object))
}

// Reasons is like Explain, and also returns the logs that have more about a reason.
func Reasons(ctx context.Context, r Reader, object *unstructured.Unstructured) []document.Reason {
	return (&explainer{ctx: ctx, reader: r}).explain(object)
}

func (e *explainer) explain(object *unstructured.Unstructured) []document.Reason {
	now := Of(object)
	if now.Ready {
		return nil
	}
	if object.GetDeletionTimestamp() != nil {
		return e.explainTerminating(object)
	}
	switch kind := object.GroupVersionKind().GroupKind(); kind {
	case schema.GroupKind{Kind: "Pod"}:
		e.explainPods([]*unstructured.Unstructured{object})
	case schema.GroupKind{Group: "apps", Kind: "Deployment"}:
		e.explainDeployment(object)
	case schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}, schema.GroupKind{Group: "apps", Kind: "StatefulSet"},
		schema.GroupKind{Group: "apps", Kind: "DaemonSet"}, schema.GroupKind{Group: "batch", Kind: "Job"}:
		e.explainOwner(object)
	default:
		e.addEvents("", e.warnings(object))
	}
	if len(e.reasons) == 0 && now.Message != "" {
		e.add(now.Message)
	}
	return e.bounded()
}

// explainer collects reasons.
type explainer struct {
	ctx      context.Context //nolint:containedctx // lives for one call of Explain
	reader   Reader
	gathered *Gathered // nil without any
	reasons  []document.Reason
}

func (e *explainer) add(reason string) { e.addReason(document.Reason{Text: reason}) }

func (e *explainer) addReason(reason document.Reason) {
	reason.Text = report.OneLine(reason.Text, maxLength)
	if reason.Text != "" && !slices.Contains(e.reasons, reason) {
		e.reasons = append(e.reasons, reason)
	}
}

func (e *explainer) bounded() []document.Reason {
	if more := len(e.reasons) - maxReasons; more > 0 {
		return append(slices.Clip(e.reasons[:maxReasons-1]), document.Reason{Text: fmt.Sprintf("and %d more reasons", more+1)})
	}
	return e.reasons
}

// list returns the objects that can be read, as many as limit.
func (e *explainer) list(kind schema.GroupVersionKind, namespace string, o metav1.ListOptions, limit int) []*unstructured.Unstructured {
	var found []*unstructured.Unstructured
	for object, err := range e.reader.List(e.ctx, kind, namespace, o) {
		if err != nil || len(found) == limit {
			break
		}
		found = append(found, object)
	}
	return found
}

// selected returns the objects of a kind that the selector of a workload matches and that one of the owners controls.
func (e *explainer) selected(kind schema.GroupVersionKind, workload *unstructured.Unstructured, owners ...types.UID) []*unstructured.Unstructured {
	if e.gathered != nil {
		return e.gathered.ownedBy(kind, owners)
	}
	fields, _, _ := unstructured.NestedMap(workload.Object, "spec", "selector")
	var selector metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &selector); err != nil {
		return nil
	}
	labels := metav1.FormatLabelSelector(&selector)
	if len(fields) == 0 || labels == "" {
		return nil
	}
	const many = 500
	found := e.list(kind, workload.GetNamespace(), metav1.ListOptions{LabelSelector: labels}, many)
	return slices.DeleteFunc(found, func(object *unstructured.Unstructured) bool {
		owner := metav1.GetControllerOfNoCopy(object)
		return owner == nil || !slices.Contains(owners, owner.UID)
	})
}

// explainDeployment looks at the pods of the newest ReplicaSet: those of older ones are on their way out.
func (e *explainer) explainDeployment(deployment *unstructured.Unstructured) {
	newest := e.newest(deployment)
	if newest == nil {
		e.addConditions(deployment, "ReplicaFailure")
		e.addEvents("", e.warnings(deployment))
		return
	}
	e.explainOwner(newest)
}

// newest returns the newest ReplicaSet of a Deployment; nil when there is none.
func (e *explainer) newest(deployment *unstructured.Unstructured) *unstructured.Unstructured {
	sets := e.selected(replicaSetKind, deployment, deployment.GetUID())
	if len(sets) == 0 {
		return nil
	}
	return slices.MaxFunc(sets, func(a, b *unstructured.Unstructured) int { return cmp.Compare(revision(a), revision(b)) })
}

func revision(set *unstructured.Unstructured) int {
	n, _ := strconv.Atoi(set.GetAnnotations()["deployment.kubernetes.io/revision"]) // 0 if it is none
	return n
}

// explainOwner looks at the pods that an object makes, and at why it makes too few.
func (e *explainer) explainOwner(owner *unstructured.Unstructured) {
	e.explainPods(e.selected(podKind, owner, owner.GetUID()))
	e.addConditions(owner, "ReplicaFailure")
	if len(e.reasons) == 0 {
		e.addEvents("", e.warnings(owner))
	}
}

// addConditions adds the messages of conditions that say that something is wrong.
func (e *explainer) addConditions(object *unstructured.Unstructured, names ...string) {
	found := conditions(object)
	for _, name := range names {
		if c := found[name]; c.status == "True" {
			e.add(creation(c.message))
		}
	}
}

// event holds the reason and the message of an Event.
type event struct{ reason, message string }

// warnings returns the warnings about an object, the newest first, each message once.
func (e *explainer) warnings(object *unstructured.Unstructured) []event {
	if object.GetUID() == "" {
		return nil
	}
	found := e.warningsOf(object)
	slices.SortStableFunc(found, func(a, b *unstructured.Unstructured) int { return cmp.Compare(lastSeen(b), lastSeen(a)) })
	var warnings []event
	for _, item := range found {
		reason, _, _ := unstructured.NestedString(item.Object, "reason")
		message, _, _ := unstructured.NestedString(item.Object, "message")
		if w := (event{reason, message}); !slices.Contains(warnings, w) {
			warnings = append(warnings, w)
		}
	}
	return warnings
}

// warningsOf returns the Events that warn about an object.
func (e *explainer) warningsOf(object *unstructured.Unstructured) []*unstructured.Unstructured {
	if e.gathered != nil {
		found := e.gathered.warnings[object.GetUID()]
		return slices.Clone(found[:min(len(found), maxEvents)])
	}
	return e.list(eventKind, object.GetNamespace(), metav1.ListOptions{
		FieldSelector: "involvedObject.uid=" + string(object.GetUID()) + ",type=Warning",
	}, maxEvents)
}

// lastSeen returns the time at which an Event was last observed, as text that sorts by time.
func lastSeen(event *unstructured.Unstructured) string {
	at := func(path ...string) string {
		text, _, _ := unstructured.NestedString(event.Object, path...)
		return text
	}
	return cmp.Or(at("series", "lastObservedTime"), at("lastTimestamp"), at("eventTime"), at("metadata", "creationTimestamp"))
}

// addEvents adds the newest of the warnings.
func (e *explainer) addEvents(prefix string, warnings []event) {
	const few = 3
	for _, w := range warnings[:min(len(warnings), few)] {
		e.add(prefix + creation(w.message))
	}
}
