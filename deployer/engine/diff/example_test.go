package diff_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/engine/diff"
)

// A Deployment is compared with what the API server would make of it.
func Example() {
	deployment := func(replicas int64, image string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "shop"},
			"spec": map[string]any{"replicas": replicas, "containers": []any{map[string]any{"name": "web", "image": image}}},
		}}
	}
	for _, change := range diff.Fields(deployment(1, "shop:1.0.0"), deployment(2, "shop:1.1.0")) {
		fmt.Println(change.Path, change.From, change.To)
	}
	// Output:
	// spec.containers[name=web].image "shop:1.0.0" "shop:1.1.0"
	// spec.replicas 1 2
}
