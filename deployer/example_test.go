package deployer_test

import (
	"context"
	"fmt"
	"time"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Look at a plan, and carry out exactly that.
func Example() {
	ctx := context.Background()
	c, err := cluster.Connect(cluster.Options{Kubeconfig: "/etc/kubernetes/admin.conf", Now: time.Now})
	if err != nil {
		fmt.Println(err)
		return
	}
	d := deployer.New(deployer.Config{Cluster: c, Now: time.Now, Version: "1.0.0", Identity: "bob@host"})
	o := deployer.AddOptions{Options: plan.Options{DryRun: true}, Environment: "shop", Solution: "db"}
	plan, err := d.Add(ctx, o)
	if err != nil {
		fmt.Println(err, report.Hints(err))
		return
	}
	for _, part := range plan.Parts {
		for _, change := range part.Changes {
			fmt.Println(change.Action, change.Object)
		}
	}
	o.DryRun, o.Expect = false, plan.Digest
	if _, err = d.Add(ctx, o); err != nil {
		fmt.Println(err) // if others have changed what the plan was made of, nothing was done
	}
}
