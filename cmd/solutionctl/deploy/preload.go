package deploy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/host/cri"
	"github.com/solutionctl/solutionctl/deployer/host/node"
	"github.com/solutionctl/solutionctl/deployer/preload"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// preloadFlags are the flags of deploy node preload.
type preloadFlags struct {
	*clusterFlags
	o                    preload.Options
	runtime, print, node string
}

// allNodes is the value of --nodes for each node of the cluster.
const allNodes = "all"

func newNodePreloadCommand(a *cli.App) *cobra.Command {
	f := &preloadFlags{}
	cmd := &cobra.Command{
		Use:   "preload [SOLUTION [VERSION]]",
		Short: "Pull the images of deployed Solutions to nodes and keep them there",
		Long: `Pull the images of all versions that are active or deployed, and that of solutionctl, and pin them: the kubelet does not remove them.
Pods then start while every registry is away, also after a reboot. Images that an earlier run pinned and that are not needed any more
are released, and the kubelet removes them when it needs the space. Run it again after a change; a run without changes transfers
nothing.

With --next the images of the highest imported version of each deployed Solution are needed, too, as before an upgrade; with SOLUTION
those of this version, or of the highest one. With --release no image is.

Without --nodes it works on this node, as root, through the socket of its container runtime. With --nodes a Job works on each of
them, with the image that the archive of solutionctl brings. It has no account in the cluster, but the socket of the container runtime,
and is removed afterwards. With --print the same is printed as lines of a shell, a state of Salt or a task of Ansible.

containerd keeps pinned images. CRI-O keeps those that its configuration names, which --print writes.`,
		Example: `  solutionctl deploy node preload --nodes all
  solutionctl deploy node preload --nodes worker-1,worker-2 --next
  solutionctl deploy node preload shop 1.1.0 --dry-run
  solutionctl deploy node preload --print ansible --runtime containerd > preload.yml
  solutionctl deploy node preload --nodes all --release`,
	}
	f.clusterFlags = addClusterFlags(a, cmd)
	f.addLockWait(cmd)
	flags := cmd.Flags()
	flags.StringSliceVar(&f.o.Nodes, "nodes", nil, "work on these nodes of the cluster by Jobs: `all|NAME,...`")
	flags.BoolVar(&f.o.Next, "next", false, "also for the highest imported version of each deployed Solution")
	flags.BoolVar(&f.o.Release, "release", false, "release all images that were pinned")
	flags.BoolVar(&f.o.DryRun, "dry-run", false, "change nothing, only show which images are missing")
	cli.AddChoice(cmd, flags, &f.runtime, "runtime", "", "container runtime of the node", append([]string{"auto"}, runtimeNames()...)...)
	cli.AddChoice(cmd, flags, &f.print, "print", "", "print the work on a node instead of doing it", "no", preload.Shell, preload.Salt, preload.Ansible)
	flags.StringVar(&f.o.Socket, "socket", "", "where the container runtime listens, a `FILE` on the node (default that of its kubelet or its distribution)")
	flags.StringVar(&f.node, "node", "", "`NAME` that the cluster has for this node (default the host's name)")
	flags.DurationVar(&f.o.Timeout, "timeout", defaultPreloadTimeout, "give each node `DURATION`")
	cmd.MarkFlagsMutuallyExclusive("print", "nodes")
	cmd.MarkFlagsMutuallyExclusive("print", "release")
	cmd.MarkFlagsMutuallyExclusive("nodes", "node")
	cli.Must(cmd.RegisterFlagCompletionFunc("nodes", f.completeNodes))
	takesArguments(cmd, f.run, f.completeImported, solutionAlone.orNone(), versionArgument.orNone())
	return cmd
}

// defaultPreloadTimeout is how long a node has for its images.
const defaultPreloadTimeout = 30 * time.Minute

// completeNodes completes the last of a list of nodes.
func (f *preloadFlags) completeNodes(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	names, directive := f.completeList(cmd, prefix, preload.NodeNames)
	if !strings.Contains(prefix, ",") {
		names = append(names, allNodes)
	}
	return names, directive | cobra.ShellCompDirectiveNoSpace
}

func (f *preloadFlags) run(ctx context.Context, args []string) error {
	f.o.Solution, f.o.Version = args[0], args[1]
	if f.o.Release && f.o.Solution != "" {
		return report.Errorf(report.Usage, "--release releases the images of all Solutions, so it takes no argument")
	}
	if f.o.Timeout < time.Second {
		return report.Errorf(report.Usage, "--timeout must be a second or more")
	}
	if f.print != "no" {
		if err := preload.CheckForm(node.Runtime(f.runtime)); err != nil {
			return err
		}
	}
	d, err := f.deployer()
	if err != nil {
		return err
	}
	if f.print != "no" {
		return f.printLines(ctx, d)
	}
	var result *schema.Preload
	if len(f.o.Nodes) > 0 {
		if f.o.Nodes[0] == allNodes {
			f.o.Nodes = nil
		}
		result, err = preload.Run(ctx, d, f.o)
	} else {
		result, err = f.here(ctx, d)
	}
	if result == nil {
		return err
	}
	return errors.Join(cli.Emit(f.App, result, nil, printPreload), err)
}

// here works on the node that this program runs on.
func (f *preloadFlags) here(ctx context.Context, d *deployer.Deployer) (*schema.Preload, error) {
	socket, name := f.o.Socket, f.node
	if socket == "" {
		runtime := node.Runtime(f.runtime)
		if f.runtime == "auto" {
			var err error
			if runtime, err = node.Detect("/"); err != nil {
				return nil, report.As(report.CodeOf(err), err).WithHint("name its socket with --socket, or nodes of the cluster with --nodes")
			}
		}
		socket = node.FindSocket("/", runtime)
	}
	if name == "" {
		host, err := os.Hostname()
		if err != nil {
			return nil, err
		}
		name = strings.ToLower(host) // as the kubelet does
	}
	ctx, cancel := context.WithTimeout(ctx, f.o.Timeout)
	defer cancel()
	r, err := cri.Dial(socket)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return preload.Here(ctx, d, r, name, f.o)
}

func (f *preloadFlags) printLines(ctx context.Context, d *deployer.Deployer) error {
	result, err := f.o.Need(ctx, d)
	if err != nil {
		return err
	}
	for _, notice := range result.Notices {
		f.Sink.Emit(report.Event{Step: "preload", State: report.Warning, Note: notice})
	}
	return f.EmitText(string(preload.Print(f.print, node.Runtime(f.runtime), result.Images)))
}

func printPreload(w *console.Stream, p *schema.Preload) {
	table := &console.Table{Columns: []string{"NODE", "PRESENT", "PULLED", "PINNED", "RELEASED", "MISSING", "PROBLEM"}}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		table.Add(n.Node, strconv.Itoa(n.Present), strconv.Itoa(n.Pulled), strconv.Itoa(n.Pinned), strconv.Itoa(n.Released), strconv.Itoa(len(n.Missing)), n.Problem)
	}
	table.Print(w)
	notices := append([]string{}, p.Notices...)
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if len(n.Unpinned) > 0 && !p.DryRun {
			notices = append(notices, preload.UnpinnedText(n))
		}
	}
	if p.DryRun {
		fmt.Fprintf(w, "%s needed; nothing was changed\n", report.Count(len(p.Images), "image"))
	}
	console.PrintEach(w, console.Yellow, "note:", notices)
}

// newNodePreloadHereCommand returns the command of the Jobs.
func newNodePreloadHereCommand(a *cli.App) *cobra.Command {
	var socket, result string
	cmd := &cobra.Command{
		Use:    "preload-here [IMAGE...]",
		Hidden: true, // the Job runs it
		Short:  "Pull images through a socket and pin them, as a Job on a node does",
		Long: `Make the node behind the socket of a container runtime keep these images, and release others that an earlier run has pinned. The Job of
'deploy node preload' calls it; users call that.`,
		Example: "  solutionctl deploy node preload-here --socket /run/containerd/containerd.sock",
		Args:    cobra.ArbitraryArgs,
	}
	cmd.Flags().StringVar(&socket, "socket", "", "where the container runtime listens, a `FILE`")
	cmd.Flags().StringVar(&result, "result", "", "write the result to this `FILE`")
	cli.Must(cmd.MarkFlagRequired("socket"))
	cmd.RunE = func(cmd *cobra.Command, images []string) error {
		r, err := cri.Dial(socket)
		if err != nil {
			return err
		}
		defer r.Close()
		done := preload.OnNode(cmd.Context(), r, images, a.Sink)
		if result != "" {
			if err := os.WriteFile(result, preload.Message(done, images), 0o600); err != nil {
				return err
			}
		}
		return preload.Failure([]schema.NodePreload{*done})
	}
	return cmd
}
