package install_test

import (
	"context"
	"fmt"
	"time"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/host"
	"github.com/solutionctl/solutionctl/deployer/install"
	"github.com/solutionctl/solutionctl/sign/trust"
)

// An installer written in Go shows the plan and, when its user agrees, installs.
func Example() {
	ctx := context.Background()
	c, err := cluster.Connect(cluster.Options{Kubeconfig: "/etc/kubernetes/admin.conf", Now: time.Now})
	if err != nil {
		fmt.Println(err)
		return
	}
	h, err := host.Open(host.Places{Store: "/var/lib/solutionctl", Configuration: "/etc/metalk8s/solutions.yaml", Nginx: "/etc/nginx/conf.d"})
	if err != nil {
		fmt.Println(err)
		return
	}
	d := deployer.New(deployer.Config{Cluster: c, Now: time.Now, Version: "1.0.0", Identity: "installer"})
	h.Cluster, h.Now = host.ClusterOf(d), time.Now
	i := &install.Installer{
		Host: h, Deployer: d, Services: install.Systemd{Root: "/"}, Root: "/", Program: "/usr/bin/solutionctl", TrustDir: "/etc/solutionctl/trust",
	}
	plan, err := i.Plan(ctx, install.Options{
		Import: host.ImportOptions{Archives: []string{"shop-1.0.0.iso"}, State: "/var/lib/solutionctl/state.json", Trusted: func() (*trust.Store, error) {
			return trust.Load([]string{i.TrustDir}, &trust.State{})
		}},
		Environment: "prod", Serve: host.ServeOptions{Store: h.Dir, Listen: ":5000", MaxTransfers: host.DefaultTransfers},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, step := range plan.Steps {
		fmt.Println(step.Step, step.Name, step.State)
	}
	if len(plan.Unapproved()) == 0 {
		fmt.Println(plan.Run(ctx))
	}
}
