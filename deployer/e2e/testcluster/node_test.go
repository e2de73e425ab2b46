package testcluster_test

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/watch"

	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
)

// TestNode runs a pod on a real node, and checks that it survives what should not touch it and comes back after the rest.
func TestNode(t *testing.T) {
	c := testcluster.StartFor(t, testcluster.Options{Node: true})
	images, err := c.Images()
	if err != nil {
		t.Fatal(err)
	}
	image := "solutionctl.invalid/pause:test"
	if images[image] == "" || len(images) != 2 { // containerd lists it by its ID as well
		t.Fatalf("the node starts with the images %v, want %s alone", images, image)
	}

	_, err = c.Client().CoreV1().Pods("default").Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "pod"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "pause", Image: image, ImagePullPolicy: corev1.PullNever}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod := awaitPod(t, c, 0)
	if _, err := c.DialNode(t.Context(), "tcp", pod.Status.PodIP+":80"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a pod in which nobody listens at %s: %v, want a refusal", pod.Status.PodIP, err)
	}
	restarts := map[string]func(context.Context) error{"kubelet": c.RestartKubelet, "containerd": c.RestartContainerd, "API server": c.RestartAPIServer}
	if testing.Short() { // TestRestartAPIServer restarts one, and RestartNode starts this one again
		delete(restarts, "API server")
	}
	for name, restart := range restarts {
		if err := restart(t.Context()); err != nil {
			t.Fatalf("restart of %s: %v", name, err)
		}
	}
	awaitPod(t, c, 0)
	if err := c.RestartNode(t.Context()); err != nil {
		t.Fatal(err)
	}
	awaitPod(t, c, 1)
}

// awaitPod waits until the pod is ready and its container has been restarted that often.
func awaitPod(t *testing.T, c *testcluster.Cluster, restarts int32) *corev1.Pod {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	pods := cache.NewListWatchFromClient(c.Client().CoreV1().RESTClient(), "pods", "default", fields.OneTermEqualSelector("metadata.name", "pod"))
	seen := "nothing"
	event, err := watch.UntilWithSync(ctx, pods, &corev1.Pod{}, nil, func(event apiwatch.Event) (bool, error) {
		pod, isPod := event.Object.(*corev1.Pod)
		if !isPod || len(pod.Status.ContainerStatuses) != 1 {
			return false, nil
		}
		status := pod.Status.ContainerStatuses[0]
		seen = fmt.Sprintf("%+v", status)
		return status.Ready && status.RestartCount == restarts, nil
	})
	if err != nil {
		t.Fatalf("wait for the pod: %v; seen: %s", err, seen)
	}
	return event.Object.(*corev1.Pod)
}
