package testcluster_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/watch"

	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
)

// TestFakeNodes checks that a Deployment becomes available where nothing runs.
func TestFakeNodes(t *testing.T) {
	c := testcluster.Shared(t)
	labels := map[string]string{"app": "web"}
	replicas := int32(3)
	_, err := c.Client().AppsV1().Deployments("default").Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "nowhere.invalid/web:1"}}},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	deployments := cache.NewListWatchFromClient(c.Client().AppsV1().RESTClient(), "deployments", "default", fields.Everything())
	_, err = watch.UntilWithSync(t.Context(), deployments, &appsv1.Deployment{}, nil, func(event apiwatch.Event) (bool, error) {
		deployment, ok := event.Object.(*appsv1.Deployment)
		return ok && deployment.Status.AvailableReplicas == replicas, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
