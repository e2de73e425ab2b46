package apps_test

import (
	"context"
	"fmt"
	"time"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/apps"
	"github.com/solutionctl/solutionctl/deployer/cluster"
)

// Create an instance of the only kind that an environment offers, after listing its fields.
func Example() {
	ctx := context.Background()
	c, err := cluster.Connect(cluster.Options{Kubeconfig: "/home/user/.kube/config", Now: time.Now})
	if err != nil {
		fmt.Println(err)
		return
	}
	d := deployer.New(deployer.Config{Cluster: c, Now: time.Now, Version: "1.0.0"})
	wall := apps.Options{Environment: "site", Name: "wall"}
	kind, err := d.Apps.Kind(ctx, wall)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, field := range kind.Fields() {
		fmt.Println(field.Path, field.Type)
	}
	made, err := d.Apps.Create(ctx, apps.CreateOptions{Options: wall, Set: []string{"hands=2"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(made.Name, "is", made.Health)
}
