package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/build/artifact"
	"github.com/solutionctl/solutionctl/build/delta"
	"github.com/solutionctl/solutionctl/build/layout"
	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/schema/report"
)

// registryFlags say how a registry is reached.
type registryFlags struct {
	plainHTTP, mirrors []string
	jobs               int
}

func (f *registryFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.plainHTTP, "plain-http", nil, "ask this registry without TLS: `HOST[:PORT]`; may be repeated")
}

// addSource adds the flags of commands that read an archive in a registry.
func (f *registryFlags) addSource(cmd *cobra.Command) {
	f.add(cmd)
	cmd.Flags().StringArrayVar(&f.mirrors, "mirror", nil, "try another registry first: `REGISTRY=ENDPOINT`; may be repeated")
}

// find finds an archive in a registry. Close the resolver after the last use.
func (f *registryFlags) find(ctx context.Context, a *app, name string) (*artifact.Remote, *oci.Resolver, error) {
	reference, err := artifact.ParseReference(name)
	if err != nil {
		return nil, nil, err
	}
	mirrors, err := parseMirrors(f.mirrors)
	if err != nil {
		return nil, nil, err
	}
	resolver := oci.NewResolver(oci.Options{
		Keychain: oci.DefaultKeychain(), CertsDirs: oci.DefaultCertsDirs(), PlainHTTP: f.plainHTTP, Mirrors: mirrors, Jobs: f.jobs, Sink: a.Sink,
	})
	remote, err := artifact.Open(ctx, resolver, reference)
	if err != nil {
		return nil, nil, errors.Join(err, resolver.Close())
	}
	return remote, resolver, nil
}

// remoteArchive is an archive that is read where it lies in a registry.
type remoteArchive struct {
	*artifact.Remote
	*artifact.Reader
	resolver *oci.Resolver
}

func (f *registryFlags) open(ctx context.Context, a *app, name string) (*remoteArchive, error) {
	remote, resolver, err := f.find(ctx, a, name)
	if err != nil {
		return nil, err
	}
	reader, err := remote.Reader(ctx)
	if err != nil {
		return nil, errors.Join(err, resolver.Close())
	}
	return &remoteArchive{remote, reader, resolver}, nil
}

func (r *remoteArchive) Close() error { return errors.Join(r.Reader.Close(), r.resolver.Close()) }

// isInRegistry reports whether the name of an archive is one in a registry.
func isInRegistry(name string) bool { return strings.HasPrefix(name, artifact.Scheme) }

func newPushCommand(a *app) *cobra.Command {
	var p archivePush
	cmd := &cobra.Command{
		Use:   "push ARCHIVE oci://REGISTRY/PATH[:TAG]",
		Short: "Store an archive in a registry",
		Long: `Store an archive in a registry as an OCI artifact. Signatures refer to it, and so do the bills of materials and OpenVEX documents of the
archive. The tag is the version unless one is named. What the registry has of other versions is not sent again. After an interruption the
same command continues.

The registry serves the archive to people, not images to nodes: for these, see 'solutionctl deploy push'. It uses the credentials of
docker or podman.`,
		Example: `  solutionctl push example-solution-1.0.0.iso oci://registry.example.com/solutions/example-solution
  solutionctl push example-solution-1.0.0.iso oci://registry.example.com/solutions/example-solution --dry-run`,
		Args:              cli.ExactArgs("ARCHIVE", "oci://REGISTRY/PATH[:TAG]"),
		ValidArgsFunction: completeArchive(false),
		RunE:              func(cmd *cobra.Command, args []string) error { return p.run(cmd.Context(), a, args[0], args[1]) },
	}
	p.add(cmd)
	cmd.Flags().IntVar(&p.jobs, "jobs", 4, "uploads at once; fewer when the registry cannot keep up")
	cmd.Flags().BoolVar(&p.dryRun, "dry-run", false, "upload nothing, only show how much would be uploaded")
	return cmd
}

// archivePush is a run of 'push'.
type archivePush struct {
	registryFlags
	dryRun bool
}

func (p *archivePush) run(ctx context.Context, a *app, name, target string) error {
	reference, err := artifact.ParseReference(target)
	if err != nil {
		return err
	}
	if reference.Digest != "" {
		return report.Errorf(report.Usage, "%s names a digest, which follows from the archive", target).WithHint("name a tag, or none for the version")
	}
	s, err := openSources([]string{name})
	if err != nil {
		return err
	}
	defer s.close() //nolint:errcheck // opened for reading
	if err = delta.Refuse(s.list[0], name); err != nil {
		return err
	}
	bundles, err := bundlesBeside(name)
	if err != nil {
		return err
	}
	made, err := artifact.New(ctx, s.list[0], bundles, a.Sink)
	if err != nil {
		return err
	}
	reference.Tag = cmp.Or(reference.Tag, artifact.DefaultTag(made.Layout.Version))
	upload := oci.Upload{Repository: reference.Repository, Image: made.Image, Tags: []string{reference.Tag}}
	push, err := oci.NewPush(ctx, []oci.Upload{upload}, nil, oci.PushOptions{
		Keychain: oci.DefaultKeychain(), CertsDirs: oci.DefaultCertsDirs(), PlainHTTP: p.plainHTTP, Jobs: p.jobs, Sink: a.Sink,
	})
	if err == nil && !p.dryRun {
		err = push.Run(ctx)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", reference, err)
	}
	l := &made.Layout
	result := pushedArchive{
		archiveInRegistry: archiveInRegistry{reference.String(), made.Image.Root.Digest.String(), l.Name, l.Version, l.SHA256, l.Size, len(bundles)},
		Bytes:             push.Bytes, NewBytes: push.NewBytes, Blobs: push.Blobs, NewBlobs: push.NewBlobs, DryRun: p.dryRun,
	}
	return a.EmitResult(result, result.print)
}

// archiveInRegistry is an archive and its place.
type archiveInRegistry struct {
	Reference  string `json:"reference"`
	Digest     string `json:"digest"` // of the artifact
	Solution   string `json:"solution"`
	Version    string `json:"version"`
	SHA256     string `json:"sha256"` // of the archive
	Size       int64  `json:"size"`
	Signatures int    `json:"signatures"`
}

// signatures describes them in a message.
func (r *archiveInRegistry) signatures() string {
	if r.Signatures == 0 {
		return "no signature"
	}
	return report.Count(r.Signatures, "signature")
}

// pushedArchive is an archive that is in a registry, or would be.
type pushedArchive struct {
	archiveInRegistry
	Blobs    int   `json:"blobs"`
	Bytes    int64 `json:"bytes"`
	NewBlobs int   `json:"newBlobs"` // that the registry did not have
	NewBytes int64 `json:"newBytes"`
	DryRun   bool  `json:"dryRun"`
}

func (r pushedArchive) print(w *console.Stream) {
	verb := "pushed"
	if r.DryRun {
		verb = "would push"
	}
	fmt.Fprintf(w, "%s %s to %s, with %s\n", verb, console.Clean(r.Solution+" "+r.Version), console.Clean(r.Reference), r.signatures())
	fmt.Fprintf(w, "  %s of %s are new, in %d of %s\n", report.Bytes(r.NewBytes), report.Bytes(r.Bytes), r.NewBlobs, report.Count(r.Blobs, "blob"))
	fmt.Fprintf(w, "  digest %s\n", r.Digest)
}

func newPullCommand(a *app) *cobra.Command {
	var p archivePull
	cmd := &cobra.Command{
		Use:   "pull oci://REGISTRY/PATH:TAG",
		Short: "Get an archive from a registry",
		Long: `Write an archive that 'solutionctl push' stored, and its signatures beside it. It has every byte of the archive that was pushed, or
nothing is written. Its signatures prove its origin: verify it before it is used.

What older archives have is not asked for: name them with --have. After an interruption the same command continues. It uses the
credentials of docker or podman.`,
		Example: `  solutionctl pull oci://registry.example.com/solutions/example-solution:1.1.0
  solutionctl pull oci://registry.example.com/solutions/example-solution:1.1.0 --have example-solution-1.0.0.iso`,
		Args: cli.ExactArgs("oci://REGISTRY/PATH:TAG"),
		RunE: func(cmd *cobra.Command, args []string) error { return p.run(cmd.Context(), a, args[0]) },
	}
	p.addSource(cmd)
	flags := cmd.Flags()
	flags.IntVar(&p.jobs, "jobs", 4, "blobs at once")
	flags.StringArrayVar(&p.have, "have", nil, "take what it has from this older `ARCHIVE`; may be repeated")
	flags.StringVar(&p.to, "to", "", "write the archive to this `FILE` or directory, NAME-VERSION.iso by default")
	return cmd
}

// archivePull is a run of 'pull'.
type archivePull struct {
	registryFlags
	have []string
	to   string
}

func (p *archivePull) run(ctx context.Context, a *app, source string) error {
	remote, resolver, err := p.find(ctx, a, source)
	if err != nil {
		return err
	}
	defer resolver.Close() //nolint:errcheck // it opened no file
	bundles, err := remote.Bundles(ctx)
	if err != nil {
		return err
	}
	to, err := outputFile(p.to, remote.Layout.ID()+".iso")
	if err != nil {
		return err
	}
	pulled, err := p.write(ctx, a, remote, to)
	if err != nil {
		return err
	}
	if err = layout.WriteBundles(to, bundles); err != nil {
		return err
	}
	l := &remote.Layout
	result := pulledArchive{
		archiveInRegistry: archiveInRegistry{source, remote.Digest, l.Name, l.Version, l.SHA256, l.Size, len(bundles)},
		File:              to, Fetched: pulled.Fetched, Had: pulled.Had, Kept: pulled.Kept,
	}
	return a.EmitResult(result, result.print)
}

func (p *archivePull) write(ctx context.Context, a *app, remote *artifact.Remote, to string) (*artifact.Pulled, error) {
	if err := refuseInputs(to, p.have); err != nil {
		return nil, err
	}
	s, err := openSources(p.have)
	if err != nil {
		return nil, err
	}
	defer s.close() //nolint:errcheck // opened for reading
	return remote.WriteFile(ctx, to, artifact.PullOptions{Have: s.list, Jobs: p.jobs, Sink: a.Sink})
}

// pulledArchive is an archive that came from a registry.
type pulledArchive struct {
	archiveInRegistry
	File    string `json:"file"`
	Fetched int64  `json:"fetched"` // bytes from the registry
	Had     int64  `json:"had"`     // bytes in older archives
	Kept    int64  `json:"kept"`    // bytes that an interrupted pull had fetched
}

func (r pulledArchive) print(w *console.Stream) {
	file := console.Clean(r.File)
	fmt.Fprintf(w, "wrote %s: %s, %s, sha256:%s, with %s\n", file, console.Clean(r.Solution+" "+r.Version), report.Bytes(r.Size), r.SHA256, r.signatures())
	fmt.Fprintf(w, "  fetched %s", report.Bytes(r.Fetched))
	if r.Had > 0 {
		fmt.Fprintf(w, "; %s were in older archives", report.Bytes(r.Had))
	}
	if r.Kept > 0 {
		fmt.Fprintf(w, "; %s had arrived before", report.Bytes(r.Kept))
	}
	fmt.Fprintf(w, "\nverify it: solutionctl verify %s\n", console.Clean(report.ShellFile(r.File)))
}
