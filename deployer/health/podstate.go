package health

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/solutionctl/solutionctl/schema"
)

// PodTree describes a pod and its containers by its status alone. [Explain] reads events, too.
func PodTree(pod *corev1.Pod) schema.TreePod {
	tree := schema.TreePod{Name: pod.Name, Node: pod.Spec.NodeName, Containers: []schema.TreeContainer{}}
	for _, volume := range pod.Spec.Volumes {
		if volume.PersistentVolumeClaim != nil {
			tree.Claims = append(tree.Claims, volume.PersistentVolumeClaim.ClaimName)
		}
	}
	statuses := slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		at := slices.IndexFunc(statuses, func(s corev1.ContainerStatus) bool { return s.Name == c.Name })
		if at < 0 {
			tree.Containers = append(tree.Containers, schema.TreeContainer{Name: c.Name, State: schema.ObjectProgressing, Reason: "it has not started"})
			continue
		}
		tree.Containers = append(tree.Containers, containerTree(pod, statuses[at]))
	}
	tree.State, tree.Reason = podState(pod, tree.Containers)
	return tree
}

func podState(pod *corev1.Pod, containers []schema.TreeContainer) (schema.ObjectState, string) {
	switch {
	case pod.DeletionTimestamp != nil:
		return schema.ObjectDeleting, ""
	case pod.Status.Phase == corev1.PodSucceeded:
		return schema.ObjectCompleted, ""
	case pod.Status.Phase == corev1.PodFailed:
		return schema.ObjectFailed, strings.TrimSuffix(pod.Status.Reason+": "+pod.Status.Message, ": ")
	case slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue }):
		return schema.ObjectReady, ""
	}
	if p, waits := unscheduled(pod); waits && p.grave {
		return schema.ObjectFailed, p.text
	} else if waits {
		return schema.ObjectProgressing, p.text
	}
	if slices.ContainsFunc(containers, func(c schema.TreeContainer) bool { return c.State == schema.ObjectFailed }) {
		return schema.ObjectFailed, ""
	}
	return schema.ObjectProgressing, ""
}

// containerTree describes a container that the kubelet knows.
func containerTree(pod *corev1.Pod, s corev1.ContainerStatus) schema.TreeContainer {
	c := schema.TreeContainer{Name: s.Name, Restarts: int(s.RestartCount), State: schema.ObjectProgressing}
	found, _ := containerProblem(pod, s, nil)
	c.Reason = strings.TrimPrefix(found.text, "container "+s.Name+": ")
	switch ended := s.State.Terminated; {
	case found.grave:
		c.State = schema.ObjectFailed
	case ended != nil:
		c.State = schema.ObjectCompleted
	case s.Ready && s.State.Running != nil:
		c.State = schema.ObjectReady
	case c.Reason == "":
		c.Reason = "it has not started"
	}
	return c
}
