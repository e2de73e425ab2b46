package deploy

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/deployer/host/node"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// nodeFlags are the flags of deploy node config.
type nodeFlags struct {
	*clusterFlags
	runtime, root, ca, print string
	config                   node.Config
	dryRun, remove           bool
}

func newNodeCommand(a *cli.App) *cobra.Command {
	return cli.NewGroup("node", "Configure nodes", newNodeConfigCommand(a), newNodePreloadCommand(a), newNodePreloadHereCommand(a))
}

func newNodeConfigCommand(a *cli.App) *cobra.Command {
	f := &nodeFlags{}
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Configure this node's container runtime to pull from the registry of Solutions",
		Long: `Write the files by which a node's container runtime finds the registry of Solutions. Each node needs this once, and again when the
registry's endpoints or its CA change. What the node has is found out by itself:

  containerd  hosts.toml below /etc/containerd/certs.d; config_path must be set, which needs one restart
  crio        a drop-in below /etc/containers
  k3s, rke2   /etc/rancher/k3s/registries.yaml or /etc/rancher/rke2/registries.yaml; each change needs a restart
  k0s         hosts.toml below /etc/k0s/certs.d, and a drop-in in /etc/k0s/containerd.d, which needs one restart
  microk8s    hosts.toml below /var/snap/microk8s/current/args/certs.d

Endpoints and CA come from the first import, as the cluster has recorded them, unless --endpoint sets others. Nodes begin
with different endpoints. No pull leaves the site: what the registry does not have does not exist. With --mirror the
images of other registries come from ours, too. With --peer the node asks a cache on the site, such as Spegel or Dragonfly, before the registry, and
by digest only, so that it need not be trusted; later calls keep it.

Only files of this command are changed or removed. A registries.yaml of the site stays as it is: the command prints the lines to
add. With --print the files go to standard output instead, as a state of Salt, tasks of Ansible, registries.yaml of K3s, or a
patch of Talos' machine configuration. On MetalK8s, which configures its nodes itself, there is nothing to do.`,
		Example: `  solutionctl deploy node config
  solutionctl deploy node config --endpoint https://10.0.0.1:5000 --endpoint https://10.0.0.2:5000 --ca ca.crt
  solutionctl deploy node config --peer http://10.0.0.7:30020
  solutionctl deploy node config --runtime crio --print ansible --endpoint https://10.0.0.1:5000 > registry.yml
  solutionctl deploy node config --remove`,
	}
	f.clusterFlags = addClusterFlags(a, cmd)
	flags := cmd.Flags()
	cli.AddChoice(cmd, flags, &f.runtime, "runtime", "", "container runtime of the node", append([]string{"auto"}, runtimeNames()...)...)
	flags.StringArrayVar(&f.config.Endpoints, "endpoint", nil, "`URL` of the registry; may be given several times")
	flags.StringVar(&f.ca, "ca", "", "`FILE` with the certificates by which the endpoints are trusted")
	flags.StringVar(&f.config.Host, "host", schema.RegistryHostOwn, "`NAME` of the registry in image references")
	flags.StringArrayVar(&f.config.Mirrors, "mirror", nil, "take the images of this other registry, a `HOST` as docker.io, from ours; may be given several times; none removes those of the node")
	flags.StringArrayVar(&f.config.Peers, "peer", nil, "ask this cache, a `URL` such as http://10.0.0.7:30020, for digests before the registry; may be given several times; none removes those of the node")
	flags.StringVar(&f.config.Node, "node", "", "`NAME` of the node, which decides with which endpoint it begins (default the host's name)")
	flags.StringVar(&f.config.CertsDir, "certs-dir", "", "`DIRECTORY` that containerd's config_path names (default the one that the node has, "+node.DefaultCertsDir+", or that of the distribution)")
	flags.StringVar(&f.root, "root", "/", "write below `DIRECTORY`, the file system of an image")
	cli.AddChoice(cmd, flags, &f.print, "print", "", "print the files for a configuration management instead of writing them", "no", "salt", "ansible", "k3s", "talos")
	flags.BoolVar(&f.dryRun, "dry-run", false, "only show what would be done")
	flags.BoolVar(&f.remove, "remove", false, "remove the files that this command has written")
	cmd.MarkFlagsMutuallyExclusive("remove", "print")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return f.configure(cmd.Context()) }
	return cmd
}

func (f *nodeFlags) configure(ctx context.Context) error {
	root, err := filepath.Abs(f.root)
	if err != nil {
		return err
	}
	var plan *node.Plan
	switch {
	case f.remove:
		plan, err = node.NewRemoval(root, f.config.CertsDir)
	default:
		if err = f.fillIn(ctx, root); err != nil {
			return err
		}
		if f.print != "no" {
			return f.printFiles()
		}
		plan, err = node.NewPlan(root, f.config)
	}
	if err != nil {
		return err
	}
	if !f.dryRun {
		if err := plan.Apply(); err != nil {
			return err
		}
	}
	return f.emitPlan(plan)
}

// fillIn finds out what the command line does not say.
func (f *nodeFlags) fillIn(ctx context.Context, root string) error {
	c := &f.config
	for _, list := range []*[]string{&c.Peers, &c.Mirrors} {
		if slices.Equal(*list, []string{"none"}) {
			*list = []string{}
		}
	}
	switch {
	case f.runtime != "auto":
		c.Runtime = node.Runtime(f.runtime)
	case f.print == "k3s":
		c.Runtime = node.K3s
	case f.print == "talos": // it has no files to write
	case f.print != "no":
		return report.Errorf(report.Usage, "--print needs --runtime: the files are for another host").WithHint("choose one of %q", node.Runtimes())
	default:
		runtime, err := node.Detect(root)
		if err != nil {
			return err
		}
		c.Runtime = runtime
	}
	if c.Node == "" && f.print == "no" {
		name, err := os.Hostname()
		if err != nil {
			return err
		}
		c.Node = name
	}
	if f.ca != "" {
		data, err := os.ReadFile(f.ca)
		if err != nil {
			return err
		}
		c.CA = data
	}
	if len(c.Endpoints) > 0 {
		return nil
	}
	return f.takeEndpoints(ctx)
}

// takeEndpoints takes the registry's endpoints, and its CA unless another one was given, from the cluster.
func (f *nodeFlags) takeEndpoints(ctx context.Context) error {
	const hint = "name the registry: --endpoint https://HOST:5000 --ca FILE"
	d, err := f.deployer()
	if err != nil {
		return fmt.Errorf("endpoints of the registry: %w", report.As(report.CodeOf(err), err).WithHint(hint))
	}
	registry, err := d.Records.Registry(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("endpoints of the registry: %w", report.As(report.CodeOf(err), err).WithHint(hint))
	case registry == nil:
		return report.Errorf(report.NotFound, "the cluster knows no registry yet: nothing was imported").WithHint(hint)
	case registry.Mode == schema.RegistryMetalK8s:
		return report.Errorf(report.Refused, "this cluster takes images from MetalK8s, which configures its nodes itself").
			WithHint("there is nothing to do here")
	}
	f.config.Host, f.config.Endpoints = registry.Host, registry.Endpoints
	if len(f.config.CA) == 0 {
		f.config.CA = []byte(registry.CA)
	}
	return nil
}

func (f *nodeFlags) printFiles() error {
	text, err := f.printed()
	if err != nil {
		return err
	}
	return f.EmitText(string(text))
}

// printed is the configuration in the form of --print.
func (f *nodeFlags) printed() ([]byte, error) {
	switch f.print {
	case "talos":
		return node.Talos(f.config)
	case "k3s":
		if f.config.Runtime != node.K3s && f.config.Runtime != node.RKE2 {
			return nil, report.Errorf(report.Usage, "--print k3s is for --runtime k3s or rke2, not %s", f.config.Runtime)
		}
		return node.Registries(f.config)
	}
	files, err := node.Files(f.config)
	if err != nil {
		return nil, err
	}
	if f.print == "ansible" {
		return node.Ansible(f.config.Runtime, files), nil
	}
	return node.Salt(f.config.Runtime, files), nil
}

// runtimeNames lists the values of --runtime.
func runtimeNames() (names []string) {
	for _, runtime := range node.Runtimes() {
		names = append(names, string(runtime))
	}
	return names
}

func (f *nodeFlags) emitPlan(plan *node.Plan) error {
	result := schema.NodeConfig{Runtime: string(plan.Runtime), Files: []schema.NodeFile{}, Notes: append([]string{}, plan.Notes...), DryRun: f.dryRun}
	table := &console.Table{Columns: []string{"ACTION", "FILE"}}
	for _, change := range plan.Changes {
		result.Files = append(result.Files, schema.NodeFile{Path: change.Path, Action: change.Action, Content: string(change.Content)})
		table.Add(string(change.Action), change.Path)
	}
	return f.EmitResult(result, func(w *console.Stream) {
		if len(table.Rows) == 0 {
			fmt.Fprintln(w, "there is nothing to remove")
			return
		}
		table.Print(w)
		for _, note := range result.Notes {
			fmt.Fprintln(w, note)
		}
	})
}
