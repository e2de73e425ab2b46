package environments

import (
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/cluster/clustertest"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/deployer/records"
	kube "k8s.io/apimachinery/pkg/runtime/schema"
)

// TestReleaseTwice: the answer to a release was lost, and it is tried once more.
func TestReleaseTwice(t *testing.T) {
	s := clustertest.Start(t, "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop, finalizers: [example.com/hold, orphan]}}")
	c, err := cluster.Connect(cluster.Options{Kubeconfig: s.Kubeconfig(t), Now: time.Now, Retry: -1})
	if err != nil {
		t.Fatal(err)
	}
	e := &Environments{Planner: &plan.Planner{Cluster: c}}
	kind := kube.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	live, err := c.Get(t.Context(), kind, "shop", "a")
	if err != nil {
		t.Fatal(err)
	}
	held := Held{records.RefOf(kind, live), []string{"example.com/hold"}, live}
	for range 2 {
		if err := e.releaseOne(t.Context(), held); err != nil {
			t.Error(err)
		}
	}
	if got := s.Object("ConfigMap", "shop", "a").GetFinalizers(); len(got) != 1 || got[0] != "orphan" {
		t.Errorf("finalizers %v", got)
	}
}
