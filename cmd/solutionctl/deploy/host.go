package deploy

import (
	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/host"
	"github.com/solutionctl/solutionctl/deployer/host/store"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// hostFlags say where this host keeps imported archives, and what else names them.
type hostFlags struct {
	*clusterFlags
	places    host.Places
	noCluster bool
}

func addHostFlags(a *cli.App, cmd *cobra.Command) *hostFlags {
	f := &hostFlags{clusterFlags: addClusterFlags(a, cmd)}
	f.addLockWait(cmd)
	f.addHost(cmd)
	return f
}

// addHost adds the flags that are about this host alone.
func (f *hostFlags) addHost(cmd *cobra.Command) {
	f.addPlaces(cmd)
	cmd.Flags().StringVar(&f.places.Nginx, "nginx-dir", store.DefaultNginxDir, "where MetalK8s' nginx looks for what it serves, a `DIRECTORY`")
}

// addPlaces adds the flags that say where archives are kept and listed.
func (f *hostFlags) addPlaces(cmd *cobra.Command) {
	addStoreFlag(cmd, &f.places.Store)
	cmd.Flags().StringVar(&f.places.Configuration, "solutions-file", store.DefaultConfiguration, "MetalK8s' configuration, a `FILE`")
}

// addNoCluster adds the flag of a command that can do its part on the host alone.
func (f *hostFlags) addNoCluster(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.noCluster, "no-cluster", false, "change this host only; run the command without it later to update the cluster")
}

func addStoreFlag(cmd *cobra.Command, dir *string) {
	cmd.Flags().StringVar(dir, "store", store.DefaultDir, "where this host keeps imported archives, a `DIRECTORY`")
}

// open returns this host and, but with --no-cluster, the verbs on the cluster that it serves.
func (f *hostFlags) open() (*host.Host, *deployer.Deployer, error) {
	h, err := f.openAlone()
	if err != nil || f.noCluster {
		return h, nil, err
	}
	f.configuration = f.places.Configuration
	d, err := f.deployer()
	if err != nil {
		return nil, nil, err
	}
	h.Cluster = host.ClusterOf(d)
	return h, d, nil
}

// openAlone returns this host, which knows no cluster.
func (f *hostFlags) openAlone() (*host.Host, error) {
	h, err := host.Open(f.places)
	if err != nil {
		return nil, err
	}
	h.LockWait, h.Sink, h.Now, h.Version = f.lockWait, f.Sink, f.Now, f.Version
	return h, nil
}

// orWithoutCluster adds the other remedy to what is wrong with the connection to a cluster.
func orWithoutCluster(err error) error {
	return report.As(report.CodeOf(err), err).WithHint("where there is no cluster yet, --no-cluster prepares the host")
}

// importFlags are the flags of a command that imports.
type importFlags struct {
	host.ImportOptions
	verify              cli.TrustFlags
	mount, registryMode string
	push                host.PushTarget
}

func (f *importFlags) add(cmd *cobra.Command) {
	f.verify.Add(cmd)
	flags := cmd.Flags()
	flags.Lookup("key").Usage = "trust this public key, a `FILE`, instead of the keys of the trust store, if the policy allows it (may be repeated)"
	flags.BoolVar(&f.SkipVerify, "insecure-skip-verify", false, "import without a trusted signature, if the policy allows it")
	flags.BoolVar(&f.InPlace, "in-place", false, "do not copy archives, which are on read-only media of root")
	cli.AddChoice(cmd, flags, &f.mount, "mount", "", "mount archives: auto is where the kernel can", "auto", "always", "never")
	cli.AddChoice(cmd, flags, &f.registryMode, "registry-mode", "", "who serves images; auto is MetalK8s where its nginx is", "auto", "own", "metalk8s")
	flags.StringArrayVar(&f.Endpoints, "endpoint", nil, "`URL` at which nodes reach 'deploy serve' on this host, the same as 'deploy registry add' (may be repeated)")
	flags.StringVar(&f.CA, "ca", "", "`FILE` with the certificates by which nodes trust the endpoints (default the authority of 'deploy serve' on this host)")
	cmd.MarkFlagsMutuallyExclusive("insecure-skip-verify", "key")
}

// addPush adds the flags of a command that can upload the imported images.
func (f *importFlags) addPush(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.push.Registry, "push-to", "", "upload the images to a registry of the site, `REGISTRY/PATH`, as 'deploy push' does")
	flags.StringVar(&f.push.CA, "push-ca", "", "`FILE` with the certificates by which this host and the nodes trust that registry")
	addPushFlags(flags, &f.push)
	cmd.MarkFlagsMutuallyExclusive("push-to", "endpoint")
	cmd.MarkFlagsMutuallyExclusive("push-to", "ca")
}

// options returns the options of an import of archives.
func (f *importFlags) options(a *cli.App, archives ...string) host.ImportOptions {
	o := f.ImportOptions
	o.Archives, o.Mount = archives, host.Mounting(f.mount)
	if f.push.Registry != "" {
		login(&f.push)
		o.PushTo = &f.push
	}
	if f.registryMode != "auto" {
		o.RegistryMode = schema.RegistryMode(f.registryMode)
	}
	o.State, o.Bundles, o.AllowDowngrade = f.verify.State, f.verify.Bundles, f.verify.Downgrade
	o.Trusted = a.TrustedToImport(f.verify)
	return o
}
