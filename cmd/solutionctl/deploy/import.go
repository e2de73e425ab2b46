package deploy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/build/artifact"
	"github.com/solutionctl/solutionctl/build/media"
	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/deployer/host"
	"github.com/solutionctl/solutionctl/deployer/host/store"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

func newImportCommand(a *cli.App) *cobra.Command {
	var c archiveImport
	cmd := &cobra.Command{
		Use:   "import ARCHIVE...",
		Short: "Import archives into the store of this host and record them in the cluster",
		Long: `Import archives on the host that serves images. Each one is verified as 'solutionctl verify' does, judged by the rules
of 'solutionctl lint' that matter here, and brought into the store, where only root can change it. All of them are judged
before the first one is stored. Importing an archive again reads what is in the store and compares it with the signature: when it is
damaged it is replaced, else nothing changes. Another archive of the same version is refused, but of a pre-release such as
1.1.0-rc.1, where it takes the place of the one that was imported before.

An archive in parts is read where they lie: name the first one, and the other parts or the directories that have them where they are
not beside it. A delta makes the archive from those in the store that it needs, and that archive is verified and judged.

The name of an archive in a registry, as 'solutionctl push' stored it, is oci://REGISTRY/PATH:TAG. Blobs that the store has in other
versions are not asked for, and after an interruption the same command continues.

With --push-to the images are uploaded to a registry of the site, as 'solutionctl deploy push' does, before the cluster knows the
version. With --require-replicas the command ends when enough hosts serve the archives: 'solutionctl deploy store sync' copies them.

MetalK8s' configuration file lists the archive afterwards, and it is mounted at ` + store.MountRoot + `/NAME-VERSION where the
kernel can (--mount). Where MetalK8s' nginx is configured it serves the images, else 'solutionctl deploy serve' does; the
first import decides (--registry-mode).

When the API server does not answer, everything on this host is done; the same command later does the rest.`,
		Example: `  solutionctl deploy import example-solution-1.0.0.iso
  solutionctl deploy import oci://registry.example.com/solutions/example-solution:1.1.0`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args)+len(c.archives) == 0 {
				return errors.New("argument ARCHIVE is missing")
			}
			return nil
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"iso", "delta", "001"}, cobra.ShellCompDirectiveFilterFileExt
		},
	}
	c.hostFlags = addHostFlags(a, cmd)
	c.addNoCluster(cmd)
	c.imports.add(cmd)
	c.imports.addPush(cmd)
	flags := cmd.Flags()
	flags.IntVar(&c.imports.Replicas, "require-replicas", 0, "wait until `N` endpoints of the cluster serve the archives")
	flags.DurationVar(&c.imports.ReplicaTimeout, "replica-timeout", 30*time.Minute, "with --require-replicas, wait for `DURATION`")
	flags.StringArrayVar(&c.archives, "archive", nil, "the same as the argument ARCHIVE")
	cli.Must(flags.MarkHidden("archive"))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return c.run(cmd.Context(), append(c.archives, args...))
	}
	return cmd
}

// archiveImport is a run of 'deploy import'.
type archiveImport struct {
	*hostFlags
	imports  importFlags
	archives []string
}

func (c *archiveImport) run(ctx context.Context, archives []string) error {
	archives, more := media.Arguments(archives)
	if len(archives) > 1 && c.imports.verify.Bundles != nil {
		return fmt.Errorf("--bundle goes with one archive, not with %d", len(archives))
	}
	references, err := c.named(archives) // before anything is asked of a cluster
	if err != nil {
		return err
	}
	h, _, err := c.open()
	if err != nil {
		return orWithoutCluster(err)
	}
	options := c.imports.options(c.App, archives...)
	options.More = more
	pulled, err := c.pull(ctx, h, options, references)
	if err != nil {
		return h.EndPull(err, pulled...)
	}
	done, err := h.Import(ctx, options)
	err = h.EndPull(err, pulled...)
	if done == nil {
		return err
	}
	return errors.Join(err, c.EmitResult(done, func(w *console.Stream) { printImport(w, done) }))
}

// named returns the archives that are named in registries, by their place among the arguments. Files must be there.
func (c *archiveImport) named(archives []string) (map[int]artifact.Reference, error) {
	references := map[int]artifact.Reference{}
	for i, archive := range archives {
		if !strings.HasPrefix(archive, artifact.Scheme) {
			if _, err := os.Stat(archive); err != nil {
				return nil, media.Missing(archive, err)
			}
			continue
		}
		if c.imports.InPlace {
			return nil, report.Errorf(report.Usage, "--in-place does not go with %s, which is not on a medium of this host", archive)
		}
		reference, err := artifact.ParseReference(archive)
		if err != nil {
			return nil, err
		}
		references[i] = reference
	}
	return references, nil
}

// pull brings the archives that are named in registries to this host and puts their files in the place of their names.
func (c *archiveImport) pull(ctx context.Context, h *host.Host, o host.ImportOptions, references map[int]artifact.Reference) ([]string, error) {
	var files []string
	for i := range o.Archives {
		reference, ok := references[i]
		if !ok {
			continue
		}
		file, err := h.Pull(ctx, host.PullOptions{
			Reference: reference, Plain: c.imports.push.Plain, Jobs: c.imports.push.Jobs, Keychain: oci.DefaultKeychain(), CertsDirs: oci.DefaultCertsDirs(),
			Import: o,
		})
		if err != nil {
			return files, err
		}
		o.Archives[i], files = file, append(files, file)
	}
	return files, nil
}

func printImport(w *console.Stream, r *schema.ImportReport) {
	for _, archive := range r.Archives {
		id := archive.Solution + "-" + archive.Version
		switch store.Method(archive.Method) {
		case store.Present:
			fmt.Fprintf(w, "%s: imported before\n", id)
		case store.InPlace:
			fmt.Fprintf(w, "%s: imported, used where it is: %s\n", id, console.Clean(archive.Path))
		case store.Linked:
			fmt.Fprintf(w, "%s: imported, nothing copied: the pulled file is that of the store\n", id)
		case store.Reflinked:
			fmt.Fprintf(w, "%s: imported, nothing copied: shares its blocks with %s\n", id, console.Clean(archive.Original))
		default:
			fmt.Fprintf(w, "%s: imported, %s copied to %s\n", id, report.Bytes(archive.BytesCopied), console.Clean(archive.Path))
		}
		if archive.Replaces != "" {
			fmt.Fprintf(w, "  replaces the archive imported before (sha256:%s)\n", archive.Replaces)
		}
		if len(archive.Signers) > 0 {
			fmt.Fprintf(w, "  signed by %s\n", console.Clean(strings.Join(archive.Signers, ", ")))
		}
		if len(archive.Powers) > 0 {
			fmt.Fprintln(w, "  once it is deployed, it can")
			for _, line := range archive.Powers {
				fmt.Fprintf(w, "    %s\n", console.Clean(line))
			}
		}
		if archive.Mountpoint != "" {
			fmt.Fprintf(w, "  mounted at %s\n", archive.Mountpoint)
		}
	}
	for i := range r.Pushed {
		printPush(w, &r.Pushed[i])
	}
	console.PrintEach(w, console.Yellow, "note:", r.Notices)
}
