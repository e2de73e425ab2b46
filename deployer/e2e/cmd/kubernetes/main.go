// Command kubernetes is etcd, the Kubernetes components and kubectl in one binary: the name it is started by, or else its
// first argument, chooses which.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

func main() {
	name := filepath.Base(os.Args[0])
	if _, known := components()[name]; !known && len(os.Args) > 1 {
		name, os.Args = os.Args[1], os.Args[1:]
	}
	if name == "etcd" {
		etcdmain.Main(os.Args)
		return
	}
	component, known := components()[name]
	if !known {
		fmt.Fprintf(os.Stderr, "kubernetes: %q is none of etcd, kubectl, kube-apiserver, kube-controller-manager, kube-scheduler, kubelet, kube-proxy\n", name)
		os.Exit(2)
	}
	if name == "kubectl" {
		cmdutil.CheckErr(cli.RunNoErrOutput(component()))
		return
	}
	os.Exit(cli.Run(component()))
}

func components() map[string]func() *cobra.Command {
	return map[string]func() *cobra.Command{
		"etcd":                    nil,
		"kubectl":                 kubectl.NewDefaultKubectlCommand,
		"kube-apiserver":          apiserver.NewAPIServerCommand,
		"kube-controller-manager": controllermanager.NewControllerManagerCommand,
		"kube-proxy":              proxy.NewProxyCommand,
		"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
		"kubelet":                 func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
	}
}
