package health

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// BackingOff returns the pods of a Deployment, StatefulSet or DaemonSet in which nothing runs, and whose node waits, up
// to five minutes, before it pulls an image again: a new pod pulls at once. Unreadable pods are left out.
func BackingOff(ctx context.Context, r Reader, owner *unstructured.Unstructured) []*unstructured.Unstructured {
	e := explainer{ctx: ctx, reader: r}
	switch owner.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Group: "apps", Kind: "Deployment"}:
		if owner = e.newest(owner); owner == nil {
			return nil
		}
	case schema.GroupKind{Group: "apps", Kind: "StatefulSet"}, schema.GroupKind{Group: "apps", Kind: "DaemonSet"}:
	default:
		return nil
	}
	pods := e.selected(podKind, owner, owner.GetUID())
	return slices.DeleteFunc(pods, func(pod *unstructured.Unstructured) bool { return !isBackingOff(pod) })
}

func isBackingOff(object *unstructured.Unstructured) bool {
	pod := podOf(object)
	if pod == nil || pod.DeletionTimestamp != nil {
		return false
	}
	containers := slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
	runs := slices.ContainsFunc(containers, func(c corev1.ContainerStatus) bool { return c.State.Running != nil })
	waits := slices.ContainsFunc(containers, func(c corev1.ContainerStatus) bool {
		return c.State.Waiting != nil && c.State.Waiting.Reason == "ImagePullBackOff"
	})
	return waits && !runs
}
