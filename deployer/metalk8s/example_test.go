package metalk8s_test

import (
	"context"
	"fmt"
	"time"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
)

// Make an environment and ask for a version of a Solution in it, as MetalK8s' own tools do.
func Example() {
	ctx := context.Background()
	c, err := cluster.Connect(cluster.Options{Kubeconfig: "/etc/kubernetes/admin.conf", Now: time.Now})
	if err != nil {
		fmt.Println(err)
		return
	}
	documents := &metalk8s.Documents{Cluster: c}
	if _, err = documents.CreateEnvironment(ctx, metalk8s.CreateOptions{Name: "shop"}); err != nil {
		fmt.Println(err)
		return
	}
	solutions, err := documents.Solutions(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, imported := solutions.Find("db", "1.4.0"); imported {
		err = documents.SetVersion(ctx, "shop", "db", "1.4.0")
	}
	fmt.Println(err)
}
