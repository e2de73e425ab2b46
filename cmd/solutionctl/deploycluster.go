package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/deployer/cluster"
)

// clusterFlags says which cluster a command talks to, as whom, and how long it may take.
type clusterFlags struct {
	kubeconfig, context, as string
	asGroups                []string
	qps                     float32
	lockWait, timeout       time.Duration
}

// addClusterFlags adds the flags of a command that talks to a cluster. A command that changes it calls addWaitFlags, too.
func (a *app) addClusterFlags(cmd *cobra.Command) *clusterFlags {
	var f clusterFlags
	flags := cmd.Flags()
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "`FILE` that describes the cluster (default $KUBECONFIG, ~/.kube/config, /etc/kubernetes/admin.conf)")
	flags.StringVar(&f.context, "context", "", "context `NAME` of the kubeconfig (default its current one)")
	flags.StringVar(&f.as, "as", "", "act as `USER`, whom you must be allowed to impersonate")
	flags.StringArrayVar(&f.asGroups, "as-group", nil, "with --as, act as a member of `GROUP`; may be given several times")
	flags.Float32Var(&f.qps, "qps", 0, "send at most `N` requests per second; 0 is as many as the API server takes")
	contexts := func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		_ = a.settings.Apply(cmd) // what is wrong with them is said when the command runs
		return cluster.Contexts(a.clusterOptions(&f)), cobra.ShellCompDirectiveNoFileComp
	}
	if err := cmd.RegisterFlagCompletionFunc("context", contexts); err != nil {
		panic(err) // the flag was added above
	}
	return &f
}

// defaultTimeout is for how long a command waits until what it deployed is ready.
const defaultTimeout = 10 * time.Minute

// addWaitFlags adds the flags of a command that changes the cluster.
func (f *clusterFlags) addWaitFlags(cmd *cobra.Command) {
	f.addLockWait(cmd)
	cmd.Flags().DurationVar(&f.timeout, "timeout", defaultTimeout, "wait for `DURATION` until what was deployed is ready")
}

func (f *clusterFlags) addLockWait(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&f.lockWait, "lock-wait", 0, "wait for `DURATION` when somebody else is at work")
}

func (a *app) clusterOptions(f *clusterFlags) cluster.Options {
	return cluster.Options{
		Kubeconfig:  f.kubeconfig,
		Environment: a.getenv("KUBECONFIG"),
		Home:        a.getenv("HOME"),
		Context:     f.context,
		As:          f.as,
		AsGroups:    f.asGroups,
		QPS:         f.qps,
		UserAgent:   "solutionctl/" + readVersion().Version,
		Now:         a.now,
		Sink:        a.sink,
	}
}

// connect returns the cluster that the flags name. Nothing is sent before the first method of it is called.
func (a *app) connect(f *clusterFlags) (*cluster.Cluster, error) {
	return cluster.Connect(a.clusterOptions(f))
}

// completionTime is how long a shell waits for names out of the cluster. Somebody who pressed a key is not kept longer.
const completionTime = time.Second

// completeFromCluster returns a completion by names out of the cluster. One that does not answer at once completes
// nothing.
func (a *app) completeFromCluster(f *clusterFlags, list func(context.Context, *cluster.Cluster) ([]string, error)) cobra.CompletionFunc {
	return completeNames(func(cmd *cobra.Command) ([]string, error) {
		_ = a.settings.Apply(cmd) // what is wrong with them is said when the command runs
		c, err := a.connect(f)
		if err != nil {
			return nil, err
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
		defer cancel()
		return list(ctx, c)
	})
}
