package deploy

import (
	"cmp"
	"os"
	"os/user"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/host"
	"github.com/solutionctl/solutionctl/deployer/host/store"
)

// clusterFlags say which cluster a command of the program talks to, as whom, and how long it may take.
type clusterFlags struct {
	*cli.App
	kubeconfig, context, as string
	asGroups                []string
	qps                     float32
	lockWait, timeout       time.Duration
	configuration           string // MetalK8s' file with the active versions
}

// addClusterFlags adds the flags of a command that talks to a cluster. A command that changes it calls addWaitFlags, too.
func addClusterFlags(a *cli.App, cmd *cobra.Command) *clusterFlags {
	f := &clusterFlags{App: a}
	flags := cmd.Flags()
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "`FILE` that describes the cluster (default $KUBECONFIG, ~/.kube/config, /etc/kubernetes/admin.conf)")
	flags.StringVar(&f.context, "context", "", "context `NAME` of the kubeconfig (default its current one)")
	flags.StringVar(&f.as, "as", "", "act as `USER`, whom you must be allowed to impersonate")
	flags.StringArrayVar(&f.asGroups, "as-group", nil, "with --as, act as a member of `GROUP`; may be given several times")
	flags.Float32Var(&f.qps, "qps", 0, "send at most `N` requests per second; 0 is as many as the API server takes")
	contexts := func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		_ = a.Settings.Apply(cmd) // errors in the settings are reported when the command runs
		return cluster.Contexts(f.clusterOptions()), cobra.ShellCompDirectiveNoFileComp
	}
	cli.Must(cmd.RegisterFlagCompletionFunc("context", contexts))
	return f
}

// defaultTimeout is for how long a command waits until what it deployed is ready.
const defaultTimeout = 10 * time.Minute

// addWaitFlags adds the flags of a command that changes the cluster.
func (f *clusterFlags) addWaitFlags(cmd *cobra.Command) {
	f.addLockWait(cmd)
	cmd.Flags().DurationVar(&f.timeout, "timeout", defaultTimeout, "wait for `DURATION` until what was deployed is ready")
}

func (f *clusterFlags) addLockWait(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&f.lockWait, "lock-wait", 0, "wait for `DURATION` when another operation holds the lock")
}

func (f *clusterFlags) clusterOptions() cluster.Options {
	return cluster.Options{
		Kubeconfig:  f.kubeconfig,
		Environment: f.Getenv("KUBECONFIG"),
		Home:        f.Getenv("HOME"),
		Context:     f.context,
		As:          f.as,
		AsGroups:    f.asGroups,
		QPS:         f.qps,
		UserAgent:   "solutionctl/" + f.Version,
		Now:         f.Now,
		Sink:        f.Sink,
	}
}

// connect returns the cluster that the flags name. Nothing is sent before the first method of it is called.
func (f *clusterFlags) connect() (*cluster.Cluster, error) {
	return cluster.Connect(f.clusterOptions())
}

// deployer returns the verbs on the cluster that the flags name.
func (f *clusterFlags) deployer() (*deployer.Deployer, error) {
	c, err := f.connect()
	if err != nil {
		return nil, err
	}
	return f.deployerOn(c), nil
}

func (f *clusterFlags) deployerOn(c *cluster.Cluster) *deployer.Deployer {
	name, err := os.Hostname()
	if err != nil {
		name = "unknown host"
	}
	user := cmp.Or(f.Getenv("SUDO_USER"), f.Getenv("USER"), processUser())
	return deployer.New(deployer.Config{
		Cluster: c, Sink: f.Sink, Now: f.Now, Version: f.Version, Identity: user + "@" + name, LockWait: f.lockWait,
		Active: host.ActiveVersions(cmp.Or(f.configuration, store.DefaultConfiguration)),
	})
}

// show connects, asks the cluster and prints the answer.
func show[T any](f *clusterFlags, print func(*console.Stream, T), ask func(*deployer.Deployer) (T, error)) error {
	d, err := f.deployer()
	if err != nil {
		return err
	}
	answer, err := ask(d)
	return cli.Emit(f.App, answer, err, print)
}

// processUser names the user that this process runs as, where no variable does: in a service, or a container.
func processUser() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	if id := os.Getuid(); id >= 0 {
		return "uid " + strconv.Itoa(id)
	}
	return "unknown user"
}
