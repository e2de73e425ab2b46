package loader_test

import (
	"context"
	"fmt"
	"time"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/loader"
	"github.com/solutionctl/solutionctl/schema"
)

// A platform written in Go starts its Solutions when its cluster answers.
func Example() {
	ctx := context.Background()
	configuration, err := schema.ParseLoaderConfiguration("loader.yaml", []byte(`
apiVersion: solutionctl.io/v1alpha1
kind: LoaderConfiguration
spec:
  environments:
    - name: infra
      solutions: [{name: edge}]
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := cluster.Connect(cluster.Options{Kubeconfig: "/var/lib/platform/kubeconfig", Now: time.Now})
	if err != nil {
		fmt.Println(err)
		return
	}
	l := &loader.Launcher{
		Deployer:      deployer.New(deployer.Config{Cluster: c, Now: time.Now, Version: "1.0.0", Identity: "platform"}),
		Configuration: configuration,
	}
	progress, err := l.Start(ctx, loader.StartOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(progress.Phase, progress.Ready, "of", len(progress.Parts))
}
