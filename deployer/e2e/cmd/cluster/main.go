// Command cluster starts a Kubernetes cluster to try things on, from Go modules alone, and removes it when it ends.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
)

const usage = `usage: cluster [-nodes real|fake|none] [-oldest] [COMMAND [ARG...]]

Starts a Kubernetes cluster and runs COMMAND, on its node if that is real. Without a command it runs until Ctrl-C.`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	var exit exitStatus
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case errors.As(err, &exit):
		os.Exit(int(exit))
	case err != nil:
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) (err error) {
	flags := flag.NewFlagSet("cluster", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprintln(stderr, usage)
		flags.PrintDefaults()
	}
	nodes := flags.String("nodes", "", "whether containers run (real), only seem to (fake), or have nowhere to (none); real if this host can")
	build := flags.Bool("build", false, "only build all that any cluster needs on this host")
	oldest := flags.Bool("oldest", false, "Kubernetes "+testcluster.OldestKubernetes+", the oldest version that is supported; its nodes are fake")
	if err = flags.Parse(args); err != nil {
		return err
	}
	missing := testcluster.CheckNode()
	if *build {
		return testcluster.Build(ctx, testcluster.Options{Node: missing == nil && !*oldest, FakeNodes: 1, Oldest: *oldest, Progress: stderr})
	}
	if *oldest && *nodes == "" {
		*nodes = "fake"
	}
	if *nodes == "" {
		*nodes = "real"
		if missing != nil {
			*nodes = "fake"
			fmt.Fprintf(stderr, "containers cannot run: %v\n", missing)
		}
	}
	options := testcluster.Options{Oldest: *oldest, Progress: stderr}
	switch *nodes {
	case "real":
		options.Node = true
	case "fake":
		options.FakeNodes = 3
	case "none":
	default:
		return fmt.Errorf("-nodes %s: want real, fake or none", *nodes)
	}
	c, err := testcluster.Start(ctx, options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	if flags.NArg() > 0 {
		return runCommand(ctx, c, *nodes, flags.Args(), stdin, stdout, stderr)
	}
	describe(stdout, c, *nodes)
	<-ctx.Done()
	return nil
}

// exitStatus is the status of the user's command, which has printed its own errors.
type exitStatus int

func (e exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// runCommand runs a command that finds kubectl and the cluster, on the node if that is real.
func runCommand(ctx context.Context, c *testcluster.Cluster, nodes string, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, stderr
	cmd.Env = append(os.Environ(),
		"KUBECONFIG="+c.Kubeconfig,
		"PATH="+c.Bin+string(filepath.ListSeparator)+os.Getenv("PATH"),
		"CLUSTER_NODES="+nodes)
	var err error
	if nodes != "real" {
		err = cmd.Run()
	} else if cmd.Dir, err = os.Getwd(); err == nil {
		err = c.RunOnNode(cmd)
	}
	if exit, ended := errors.AsType[*exec.ExitError](err); ended {
		return exitStatus(max(1, exit.ExitCode()))
	}
	return err
}

func describe(w io.Writer, c *testcluster.Cluster, nodes string) {
	fmt.Fprintf(w, `Kubernetes %s at %s

  export KUBECONFIG=%s PATH=%s:$PATH
  kubectl get nodes

`, c.KubernetesVersion(), c.Host, c.Kubeconfig, c.Bin)
	switch nodes {
	case "real":
		fmt.Fprintf(w, `Containers run on one node, which is a machine of its own: its network leads nowhere, and it has its own /etc, /run,
/srv, /var/lib and /var/log. It has no image but that of the pause container. To be on it:

  nsenter --all --target %d --wd="$PWD"

Not there, compared to a cluster in production: DNS, storage, a second node.
`, c.NodePID())
	case "fake":
		fmt.Fprintln(w, `The nodes are simulated: pods become ready, but nothing is pulled and nothing runs in them.`)
	case "none":
		fmt.Fprintln(w, `There are no nodes: pods stay pending.`)
	}
	fmt.Fprintf(w, `
The logs of the components are in %s
Press Ctrl-C to remove all of it.
`, c.Logs)
}
