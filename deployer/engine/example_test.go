package engine_test

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
)

// Deploy objects as a release, and delete those of the previous one.
func Example() {
	ctx := context.Background()
	c, err := cluster.Connect(cluster.Options{Kubeconfig: "/etc/kubernetes/admin.conf", Now: time.Now})
	if err != nil {
		fmt.Println(err)
		return
	}
	lock, err := c.Lock(ctx, "env-shop", cluster.LockOptions{Identity: "bob@host"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = lock.Release(ctx) }() // it expires by itself
	ctx = cluster.WithGuard(ctx, lock)

	var objects []*unstructured.Unstructured // as they were rendered
	e := &engine.Engine{Store: &record.Store{Cluster: c, Tool: "1.0.0"}, Now: time.Now}
	plan, err := e.Plan(ctx, engine.Release{Key: record.Key{Namespace: "shop", Name: "db"}, Version: "1.4.0", Operation: "add", Objects: objects}, engine.PlanOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, change := range plan.Changes {
		fmt.Println(change.Action, change.Object)
	}
	if err = e.Apply(ctx, plan, engine.ApplyOptions{Token: lock.Token()}); err != nil {
		fmt.Println(err)
	}
}
