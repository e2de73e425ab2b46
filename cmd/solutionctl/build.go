package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/build"
	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/durable"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign"
)

// buildFlags are the flags of `solutionctl build`.
type buildFlags struct {
	build.Overrides
	to, volumeID, cacheDir string
	mirrors, plainHTTP     []string
	jobs                   int
	sha256sum, md5, check  bool
	signing                keyFlags
	expires                string
	planOnly, noLint       bool
	provenance, sbom       bool
	deltaFrom              []string
	noPatches              bool
}

func newBuildCommand(a *app) *cobra.Command {
	var f buildFlags
	cmd := &cobra.Command{
		Use:   "build [PROJECT]",
		Short: "Build a Solution archive from images and manifests",
		Long: `Build a Solution archive from the project in a directory: its solution.yaml lists the images, manifests, charts
and dashboards. Without PROJECT, the project in the current directory is built.

An image comes from one of these sources:

  oci:DIR[:REF]                an OCI image layout
  oci-archive:FILE[:REF]       the same in a tar file
  docker-archive:FILE[:REF]    what "docker save" writes; "-" reads standard input
  docker-daemon:REF            the local Docker engine
  docker://REF                 a registry, with the credentials of docker or podman
  dir:DIR                      what "skopeo copy … dir:" writes
  solution:FILE:NAME:TAG       an image of an earlier archive

Relative paths in solution.yaml start from its directory, those of --image and --add-image from the current one.

Before that, the project is checked as 'solutionctl lint' does, without the content of images: an error ends the build, and --no-lint
builds all the same. With --sign-key and a key that does not exist, a key pair is made when you confirm it.

With --provenance, a statement in the form of SLSA 1.0 is written beside the archive: the digests of images and files, the options, and the version
of the program. It names origins of images that are names in registries, and no other place.

The archive is written to NAME-VERSION.iso.partial and renamed when it is complete. A build that was interrupted is
completed by running it again. The same input gives the same bytes; --check proves it.`,
		Example: `  solutionctl build example-solution
  solutionctl build --version 1.0.1 --image ui=oci-archive:ui.tar --to dist/`,
		Args: cli.OptionalArgs(nil, "PROJECT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.build(cmd.Context(), append(args, ".")[0], f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.to, "to", ".", "file or directory to write the archive to")
	flags.StringVar(&f.Version, "version", "", "version of the Solution, instead of the project's")
	flags.StringArrayVar(&f.Images, "image", nil, "take an image of the project from another source: `NAME[:TAG]=SOURCE`; may be repeated")
	flags.StringArrayVar(&f.AddImages, "add-image", nil, "add an image to those of the project: `NAME[:TAG]=SOURCE`; may be repeated")
	flags.StringArrayVar(&f.Set, "set", nil, "set a field of solution.yaml: `PATH=VALUE`; may be repeated")
	flags.StringSliceVar(&f.Platforms, "platform", nil, "platforms that every image must have, such as linux/amd64")
	flags.StringVar(&f.volumeID, "volume-id", "", "volume identifier of the image")
	flags.StringArrayVar(&f.mirrors, "mirror", nil, "try another registry first: `REGISTRY=ENDPOINT`; may be repeated")
	flags.StringArrayVar(&f.plainHTTP, "plain-http", nil, "ask this registry without TLS: `HOST[:PORT]`; may be repeated")
	flags.StringVar(&f.cacheDir, "cache-dir", "", "directory that keeps compressed layers from build to build")
	flags.IntVar(&f.jobs, "jobs", 4, "transfers at once")
	flags.BoolVar(&f.sha256sum, "sha256sum", false, "write SHA256SUM beside the archive")
	flags.StringVar(&f.signing.key, "sign-key", "", "sign the archive in the same pass: a key `FILE`, or NAME://REF")
	f.signing.addPassword(cmd)
	flags.StringVar(&f.expires, "expires", "", "refuse the signature after this `TIME` (2028-01-31 or RFC 3339)")
	flags.BoolVar(&f.sbom, "sbom", false, "put a bill of materials of each image into the archive, in SPDX: sbom/NAME/TAG.spdx.json.gz and as a referrer, with those that the image brings; reads each layer twice")
	flags.BoolVar(&f.provenance, "provenance", false, "write the provenance of the archive: its sources, the flags and this version; signed with --sign-key, else by 'sign'")
	flags.StringArrayVar(&f.deltaFrom, "delta-from", nil, "write a delta as well, for sites that have this older `ARCHIVE`; may be repeated")
	flags.BoolVar(&f.noPatches, "no-patches", false, "with --delta-from: write changed layers as a whole, see 'solutionctl delta create --help'")
	flags.BoolVar(&f.md5, "implant-md5", false, "implant the checksum that checkisomd5 reads")
	flags.BoolVar(&f.check, "check", false, "build a second time and compare every byte")
	flags.BoolVar(&f.noLint, "no-lint", false, "build the project whatever lint finds in it")
	flags.BoolVar(&f.planOnly, "plan", false, "print what the archive would hold, and write nothing")
	return cmd
}

// buildSummary is the result of `solutionctl build`.
type buildSummary struct {
	*build.Result
	ID           string `json:"id"`
	SHA256       string `json:"sha256,omitempty"`
	Signature    string `json:"signature,omitempty"`    // file
	Provenance   string `json:"provenance,omitempty"`   // file
	Reproducible bool   `json:"reproducible,omitempty"` // proven, by --check
	// Delta makes the archive from those of --delta-from.
	Delta *deltaReport `json:"delta,omitempty"`
}

func (a *app) build(ctx context.Context, project string, f buildFlags) error {
	if f.to == "" {
		return report.Errorf(report.Usage, "--to is empty").WithHint("name a file or a directory, such as --to dist/")
	}
	if f.noPatches && len(f.deltaFrom) == 0 {
		return report.Errorf(report.Usage, "--no-patches is about a delta, and none is written").WithHint("name an older archive with --delta-from")
	}
	if _, err := a.expiry(f.expires); err != nil {
		return err
	}
	if old, err := openSources(f.deltaFrom); err != nil { // before a long build
		return err
	} else if err = old.close(); err != nil {
		return err
	}
	source, err := build.Load(project, f.Overrides)
	if err != nil {
		return err
	}
	defer source.Close() //nolint:errcheck // a directory that was only read
	if !f.planOnly {
		if err = a.beforeBuild(ctx, source, project, &f); err != nil {
			return err
		}
	}
	resolver, err := a.newResolver(source, f)
	if err != nil {
		return err
	}
	defer resolver.Close() //nolint:errcheck // files that were only read
	plan, err := a.plan(ctx, source, resolver, f, a.Sink)
	if err != nil {
		return err
	}
	if f.planOnly {
		return a.EmitResult(summarizePlan(plan), func(w *console.Stream) { printPlan(w, plan) })
	}
	p := product{plan: plan}
	if f.provenance {
		if p.made, err = plan.Provenance(source, f.Overrides, a.Version); err != nil {
			return err
		}
	}
	summary, err := a.write(ctx, p, f)
	if err != nil {
		return err
	}
	if f.check {
		err = a.checkReproducible(ctx, source, summary.Path, f)
		summary.Reproducible = err == nil
	}
	if err == nil && len(f.deltaFrom) > 0 {
		to := filepath.Join(filepath.Dir(summary.Path), summary.ID+".delta")
		summary.Delta, err = a.makeDelta(ctx, append(slices.Clone(f.deltaFrom), summary.Path), to, f.noPatches)
	}
	return cli.Emit(a.App, summary, err, printBuildSummary)
}

// workDir returns the directory of the archive, which has room for the layers that are compressed on their way into it.
func (f *buildFlags) workDir() string {
	switch info, err := os.Stat(f.to); {
	case f.to == "" || f.planOnly:
		return ""
	case os.IsPathSeparator(f.to[len(f.to)-1]) || err == nil && info.IsDir():
		return f.to
	default:
		return filepath.Dir(f.to)
	}
}

func (a *app) newResolver(project *build.Project, f buildFlags) (*oci.Resolver, error) {
	mirrors, err := parseMirrors(f.mirrors)
	if err != nil {
		return nil, err
	}
	return oci.NewResolver(oci.Options{
		BaseDir: project.Dir, CacheDir: f.cacheDir, WorkDir: f.workDir(), Platforms: project.Build.Spec.Platforms, Bills: f.sbom, Keychain: oci.DefaultKeychain(), CertsDirs: oci.DefaultCertsDirs(),
		Mirrors: mirrors, PlainHTTP: f.plainHTTP, DockerHost: a.Getenv("DOCKER_HOST"), Stdin: a.In, OpenArchive: openSourceArchive, Jobs: f.jobs, Sink: a.Sink,
	}), nil
}

func (a *app) plan(ctx context.Context, project *build.Project, resolver *oci.Resolver, f buildFlags, sink report.Sink) (*build.Plan, error) {
	buildTime, err := sourceDateEpoch(a.Getenv("SOURCE_DATE_EPOCH"))
	if err != nil {
		return nil, err
	}
	o := build.Options{BuildTime: buildTime, VolumeID: f.volumeID, Jobs: f.jobs, Sink: sink}
	if f.sbom {
		o.SBOM = a.Version
	}
	return build.NewPlan(ctx, project, resolver, o)
}

func (a *app) write(ctx context.Context, p product, f buildFlags) (_ *buildSummary, err error) {
	if p.path, err = outputFile(f.to, p.plan.Solution.ID()+".iso"); err == nil {
		err = refuseInputs(p.path, f.deltaFrom)
	}
	if err != nil {
		return nil, err
	}
	done, err := a.writeAndSum(ctx, p, f)
	if err != nil {
		return nil, err
	}
	summary := &buildSummary{Result: done.result, ID: p.plan.Solution.ID()}
	if done.sums != nil {
		summary.SHA256 = hexSHA256(done.sums)
	}
	if done.list != nil {
		if err = done.list.Publish(0o644); err != nil {
			return nil, err
		}
	}
	if done.signed {
		summary.Signature = sign.BundleName(p.path, "")
		err = durable.Rename(pendingBundle(p.path), summary.Signature)
	}
	if done.provenance != "" && err == nil {
		summary.Provenance = p.provenanceFile(done.signed)
		err = durable.Rename(done.provenance, summary.Provenance)
	}
	return summary, err
}

// checkReproducible builds the project again, with another number of workers and no cache, and compares.
func (a *app) checkReproducible(ctx context.Context, project *build.Project, path string, f buildFlags) error {
	f.jobs, f.cacheDir = f.jobs+1, ""
	a.Sink.Emit(report.Event{Step: "check", Name: path, State: report.Started})
	resolver, err := a.newResolver(project, f)
	if err != nil {
		return err
	}
	defer resolver.Close() //nolint:errcheck // files that were only read
	plan, err := a.plan(ctx, project, resolver, f, report.Discard)
	if err != nil {
		return err
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // read only
	if err := plan.Verify(ctx, file, plan.Size()); err != nil {
		return err
	}
	a.Sink.Emit(report.Event{Step: "check", Name: path, State: report.Done, Note: "a second build gives the same bytes"})
	return nil
}
