package deploy

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/deployer/host"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

func newPushCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "push SOLUTION VERSION REGISTRY/PATH",
		Short: "Upload the images of an imported version to a registry of the site",
		Long: `Upload the images of an imported version to a registry that the site has already, such as Harbor, zot or distribution, and record
it as an endpoint from which nodes pull. Each image gets a repository below PATH: REGISTRY/PATH/SOLUTION-VERSION/IMAGE. In Harbor
the first part of PATH is a project; it has to exist, and nodes must be able to pull from it without a login.

Image references and manifests stay as they are. Run 'solutionctl deploy node config' on each node once after the first push: nodes
look for the images below PATH then, and 'solutionctl deploy serve' is no longer needed for them.

Blobs that the registry has are not sent; others are sent once, and linked into further repositories. After an interruption the same
command continues. Nothing is recorded before the registry has every digest of the signed archive. It uses the credentials of
docker or podman.`,
		Example: `  solutionctl deploy push example-solution 1.0.0 harbor.example.com/solutions --dry-run
  solutionctl deploy push example-solution 1.0.0 harbor.example.com/solutions`,
	}
	c := &hostFlags{clusterFlags: addClusterFlags(a, cmd)}
	var o host.PushOptions
	c.addLockWait(cmd)
	addStoreFlag(cmd, &c.places.Store)
	c.addNoCluster(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.CA, "ca", "", "`FILE` with the certificates by which this host and the nodes trust the registry (default those that they trust anyway)")
	addPushFlags(flags, &o.PushTarget)
	flags.BoolVar(&o.DryRun, "dry-run", false, "upload nothing, only show how much would be uploaded")
	takesArguments(cmd, func(ctx context.Context, words []string) error {
		o.Solution, o.Version, o.Registry = words[0], words[1], words[2]
		login(&o.PushTarget)
		h, _, err := c.open()
		if err != nil {
			return orWithoutCluster(err)
		}
		done, err := h.Push(ctx, o)
		if report.CodeOf(err) == report.NotFound {
			return err
		}
		return cli.Emit(a, done, err, printPush)
	}, c.completeStored(), solutionAlone, versionArgument, argument{name: "REGISTRY/PATH"})
	return cmd
}

// addPushFlags adds the flags that say how images are uploaded.
func addPushFlags(flags *pflag.FlagSet, t *host.PushTarget) {
	flags.IntVar(&t.Jobs, "jobs", 4, "uploads, or downloads, at once; fewer when the registry cannot keep up")
	flags.StringArrayVar(&t.Plain, "plain-http", nil, "ask this registry without TLS: `HOST[:PORT]`; may be repeated")
}

// login lets a push use the logins and certificates of docker and podman.
func login(t *host.PushTarget) {
	t.Keychain, t.CertsDirs = oci.DefaultKeychain(), oci.DefaultCertsDirs()
}

func printPush(w *console.Stream, r *schema.PushReport) {
	id := console.Clean(r.Solution + "-" + r.Version)
	verb := "uploaded"
	if r.DryRun {
		verb = "would upload"
	}
	switch {
	case len(r.Images) == 0:
		fmt.Fprintf(w, "%s has no images\n", id)
		return
	case r.NewBlobs == 0:
		fmt.Fprintf(w, "%s: nothing to upload\n  the registry has all %s\n", id, report.Count(r.Blobs, "blob"))
	default:
		fmt.Fprintf(w, "%s: %s %s of %s in %d of %s\n", id, verb, report.Bytes(r.NewBytes), report.Bytes(r.Bytes), r.NewBlobs, report.Count(r.Blobs, "blob"))
	}
	for _, image := range r.Images {
		fmt.Fprintf(w, "  %s:%s\n", image.Repository, image.Tag)
	}
	if r.Recorded {
		fmt.Fprintf(w, "the cluster knows the registry; on each node, unless it was done before: %s\n", report.Run("deploy node config"))
	}
}
