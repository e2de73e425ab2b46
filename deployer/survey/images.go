package survey

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solutionctl/solutionctl/deployer/cluster"
)

// RunningImages returns the images of the pods in a namespace, by the names of their nodes. Pods that have ended run none.
func (v *Survey) RunningImages(ctx context.Context, namespace string) (map[string][]string, error) {
	images := map[string][]string{}
	for object, err := range v.Cluster.List(ctx, cluster.PodKind, namespace, metav1.ListOptions{}) {
		if err != nil {
			return nil, err
		}
		var pod corev1.Pod
		if err = Convert(object, &pod); err != nil {
			return nil, err
		}
		if pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
			for _, c := range containers {
				images[pod.Spec.NodeName] = append(images[pod.Spec.NodeName], c.Image)
			}
		}
	}
	return images, nil
}
