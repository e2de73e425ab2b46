package cluster_test

import (
	"context"
	"fmt"
	"time"

	"github.com/solutionctl/solutionctl/deployer/cluster"
)

// Read an object, and write it under a lock.
func Example() {
	ctx := context.Background()
	c, err := cluster.Connect(cluster.Options{Kubeconfig: "/etc/kubernetes/admin.conf", Now: time.Now})
	if err != nil {
		fmt.Println(err)
		return
	}
	lock, err := c.Lock(ctx, "env-shop", cluster.LockOptions{Identity: "bob@host", Wait: time.Minute})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = lock.Release(ctx) }() // it runs out by itself
	ctx = cluster.WithGuard(ctx, lock)

	settings, err := c.Get(ctx, cluster.ConfigMapKind, "shop", "settings")
	if err != nil || settings == nil {
		fmt.Println(err)
		return
	}
	settings.SetLabels(map[string]string{"app.kubernetes.io/part-of": "shop"})
	_, err = c.Update(ctx, settings, cluster.WriteOptions{})
	fmt.Println(err)
}

func ExampleRules() {
	fmt.Println(cluster.Rules(cluster.Permission{Resource: "pods"}.Each("get", "list")...))
	// Output:
	// - apiGroups: [""]
	//   resources: ["pods"]
	//   verbs: ["get", "list"]
}
