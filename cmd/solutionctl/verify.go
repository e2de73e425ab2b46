package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/build/delta"
	"github.com/solutionctl/solutionctl/build/media"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/cli"
	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign"
	"github.com/solutionctl/solutionctl/sign/chunk"
)

func newVerifyCommand(a *app) *cobra.Command {
	var v verification
	cmd := &cobra.Command{
		Use:   "verify ARCHIVE [PART|DIRECTORY|OLD...]",
		Short: "Verify the signature and the content of an archive",
		Long: `Check an archive against the signatures beside it, ARCHIVE.sigstore.json and ARCHIVE.*.sigstore.json, and against the trust
store. No network is used for a file. The exit status shows the problem: 4 not trusted, 5 altered, 6 refused; see
'solutionctl help errors' and docs/guides/verifying.md.

An archive in parts is verified where they lie: name the first one, and the other parts or the directories that have them where they
are not beside it. With another part alone, or with --part, only that part is verified. With a delta and the archives that it needs,
the archive is verified that it makes.

With --provenance, show how the archive was made: of which images and files, with which options, and by which version of the program. It has to be
signed by a signer of the policy, and be about this archive.

An archive in a registry, oci://REGISTRY/PATH:TAG, is read from there and compared with its signatures there. Nothing of it is stored: 'solutionctl
pull' gets it. The digest that is printed names what was verified, whatever the tag is moved to later.`,
		Example: `  solutionctl verify --key acme-release.pub example-solution-1.0.0.iso
  solutionctl verify example-solution-1.0.0.iso.001 /media/second
  solutionctl verify example-solution-1.0.0.iso.002
  solutionctl verify example-solution-1.1.0.delta example-solution-1.0.0.iso
  solutionctl verify oci://registry.example.com/solutions/example-solution:1.0.0`,
		Args: cli.AtLeastArgs("ARCHIVE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			v.app = a
			return v.run(cmd.Context(), args)
		},
	}
	v.trust.Add(cmd)
	v.registry.addSource(cmd)
	cmd.Flags().BoolVar(&v.full, "full", false, "compute the digest of the whole file too")
	cmd.Flags().BoolVar(&v.provenance, "provenance", false, "require the provenance of the archive, signed as the policy wants, and show it")
	cmd.Flags().BoolVar(&v.part, "part", false, "verify this part of an archive, without the others")
	return cmd
}

// verification is a run of 'solutionctl verify'.
type verification struct {
	*app
	trust      cli.TrustFlags
	registry   registryFlags
	full, part bool
	provenance bool

	name    string
	image   *media.Image   // nil: the archive is in a registry
	remote  *remoteArchive // nil: it is not
	content io.ReaderAt    // the image, or what a delta makes
	size    int64
	bundles []sign.NamedBundle
}

func (v *verification) run(ctx context.Context, args []string) (err error) {
	v.name = args[0]
	if isInRegistry(v.name) {
		return v.verifyRemote(ctx, args)
	}
	_, number, isPart := media.PartOf(v.name)
	archives, more := media.Arguments(args)
	switch {
	case isPart && len(archives) > 1:
		return v.refuseSecond(archives[1])
	case v.part && (!isPart || len(args) > 1):
		return report.Errorf(report.Usage, "--part is for one part of an archive, such as X.iso.001")
	case v.part, isPart && number > 1 && len(args) == 1:
		return v.verifyPart(ctx, number)
	}
	if v.image, err = media.OpenNoFollow(v.name, more...); err != nil {
		return err
	}
	defer v.image.Close() //nolint:errcheck // opened for reading
	v.content, v.size = v.image, v.image.Size
	if v.bundles, err = sign.ReadBundles(v.name, v.trust.Bundles, more...); err != nil {
		return err
	}
	if delta.IsDelta(v.image) {
		s, err := v.apply(ctx, archives[1:])
		if err != nil {
			return err
		}
		defer s.close() //nolint:errcheck // opened for reading
	} else if len(archives) > 1 {
		return v.refuseSecond(archives[1])
	}
	return v.verify(ctx)
}

func (v *verification) refuseSecond(name string) error {
	return report.Errorf(report.Usage, "%s is neither a part of %s nor a directory with one", name, v.name).WithHint("verify one archive after the other")
}

// apply makes what a delta makes the content.
func (v *verification) apply(ctx context.Context, bases []string) (*sources, error) {
	d, err := openDelta(v.name, v.image)
	if err != nil {
		return nil, err
	}
	if len(bases) == 0 && len(d.Bases) > 0 {
		return nil, missingBases(v.name, d).WithHint("name what it needs: solutionctl verify %s %s.iso", report.ShellFile(v.name), d.Bases[0].ID())
	}
	if len(v.bundles) == 0 {
		bundles, failure := d.Bundles()
		if failure != nil {
			return nil, failure
		}
		v.bundles = sign.NameBundles(v.name, bundles)
	}
	if err = v.allowPatches(ctx, d); err != nil {
		return nil, err
	}
	s, err := openSources(bases)
	if err != nil {
		return nil, err
	}
	made, err := d.Archive(ctx, delta.Workspace{}, s.list...)
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	s.made = made
	v.content, v.size = made, made.Size()
	return s, nil
}

// allowPatches refuses a delta whose signatures do not count, before its patches take time and room on the disk.
func (v *verification) allowPatches(ctx context.Context, d *delta.Delta) error {
	o, err := v.options()
	if err != nil || len(d.Patches) == 0 {
		return err
	}
	_, _, err = v.judge(ctx, v.bundles, o)
	return err
}

// judge judges the signatures alone, and prints the verdict where they do not count.
func (v *verification) judge(ctx context.Context, bundles []sign.NamedBundle, o sign.Options) (*sign.Verdict, *chunk.List, error) {
	verdict, list, err := sign.Judge(ctx, bundles, o)
	if err != nil {
		err = fmt.Errorf("%s: %w", v.name, errors.Join(err, v.emit(verdict)))
	}
	return verdict, list, err
}

func (v *verification) emit(verdict *sign.Verdict) error {
	return v.EmitResult(verdict, func(w *console.Stream) { printVerdict(w, verdict) })
}

// verifyRemote verifies an archive where it lies in a registry.
func (v *verification) verifyRemote(ctx context.Context, args []string) (err error) {
	if len(args) > 1 || v.part {
		return report.Errorf(report.Usage, "%s is a whole archive: it takes neither parts nor --part", v.name)
	}
	if v.remote, err = v.registry.open(ctx, v.app, v.name); err != nil {
		return err
	}
	defer v.remote.Close() //nolint:errcheck // opened for reading
	v.content, v.size = v.remote, v.remote.Size()
	if v.trust.Bundles != nil {
		v.bundles, err = sign.ReadBundles(v.name, v.trust.Bundles)
	} else {
		v.bundles, err = v.remoteBundles(ctx)
	}
	if err != nil {
		return err
	}
	return v.verify(ctx)
}

func (v *verification) remoteBundles(ctx context.Context) ([]sign.NamedBundle, error) {
	bundles, err := v.remote.Bundles(ctx)
	return sign.NameBundles(v.remote.Layout.ID()+".iso", bundles), err
}

func (v *verification) options() (sign.Options, error) {
	state, store, err := v.Trusted(v.trust)
	return sign.Options{
		Store: store, State: state, Now: v.Now(), Path: v.name, AllowDowngrade: v.trust.Downgrade, Workers: runtime.GOMAXPROCS(0), Sink: v.Sink, ToolVersion: v.Version,
		Provenance: v.provenance,
	}, err
}

func (v *verification) verify(ctx context.Context) error {
	o, err := v.options()
	if err != nil {
		return err
	}
	o.Full, o.Identify, o.Locate = v.full, sign.Identify, sign.Locate(ctx, v.content, v.size)
	if v.image != nil {
		o.Device, o.Unchanged = v.image.Device, v.image.Unchanged
	} else {
		o.Workers = 1 // from the beginning to the end: each blob is one stream
	}
	o.Examine = func(r *chunk.Reader) error { return sign.CheckStructure(r, v.content, r.Size(), 1) }
	verdict, _, err := sign.Verify(ctx, v.content, v.size, v.bundles, o)
	if v.remote != nil {
		verdict.Archive.Artifact, verdict.Archive.Fetched = v.remote.Digest, v.remote.Fetched()
	}
	printed := v.emit(verdict)
	if err != nil && v.image != nil && len(v.image.Parts) > 1 {
		err = cmp.Or(v.findMisplaced(ctx, o), err)
	}
	if err = errors.Join(err, printed); err != nil {
		return fmt.Errorf("%s: %w", v.name, err)
	}
	return nil
}

// findMisplaced names a part that is not the one of its name, as far as a trusted signature shows it.
func (v *verification) findMisplaced(ctx context.Context, o sign.Options) error {
	_, list, err := sign.Judge(ctx, v.bundles, o)
	if err != nil {
		return nil //nolint:nilerr // the archive was judged before, and that is the verdict
	}
	return sign.FindMisplaced(v.image, list)
}

// verifyPart verifies one part of an archive.
func (v *verification) verifyPart(ctx context.Context, number int) error {
	if v.full {
		return report.Errorf(report.Usage, "--full is for a whole archive: one part has no digest of its own").WithHint("leave out --full and SOLUTIONCTL_FULL, or name all parts")
	}
	image, err := media.OpenFile(v.name)
	if err != nil {
		return err
	}
	defer image.Close() //nolint:errcheck // opened for reading
	bundles, err := sign.ReadBundles(v.name, v.trust.Bundles)
	if err != nil {
		return err
	}
	o, err := v.options()
	if err != nil {
		return err
	}
	verdict, list, err := v.judge(ctx, bundles, o)
	if err != nil {
		return err
	}
	place, err := sign.VerifyPart(ctx, image.Parts[0], number, list, o.Workers, v.Sink)
	if err != nil {
		return err
	}
	result := verifiedPart{
		File: v.name, Part: number, From: place.From, To: place.To, Of: list.Size,
		Solution: verdict.Solution.String(), Signatures: verdict.Signatures, Provenance: verdict.Provenance,
	}
	return v.EmitResult(result, result.print)
}

// verifiedPart is a part of an archive that has the signed bytes.
type verifiedPart struct {
	File       string           `json:"file"`
	Part       int              `json:"part"`
	From       int64            `json:"from"` // the first byte of the archive that the part has
	To         int64            `json:"to"`   // the one after the last
	Of         int64            `json:"of"`   // the size of the archive
	Solution   string           `json:"solution"`
	Signatures []sign.Signature `json:"signatures"`

	Provenance *schema.ProvenanceStatement `json:"provenance,omitempty"`
}

func (p verifiedPart) print(w *console.Stream) {
	fmt.Fprintf(w, "verified %s: part %d of %s, bytes %d to %d of %d\n", console.Clean(p.File), p.Part, p.Solution, p.From, p.To-1, p.Of)
	printSignatures(w, p.Signatures)
	if p.Provenance != nil {
		printProvenance(w, p.Provenance)
	}
}

func printVerdict(w *console.Stream, v *sign.Verdict) {
	if v.Verified {
		fmt.Fprintf(w, "verified %s: %s\n", v.Archive.Path, v.Solution)
	}
	printSignatures(w, v.Signatures)
	if v.Archive.Artifact != "" {
		fmt.Fprintf(w, "read %s from the registry, stored nothing; digest %s\n", report.Bytes(v.Archive.Fetched), v.Archive.Artifact)
	}
	if v.Verified && v.Provenance != nil {
		printProvenance(w, v.Provenance)
	}
	for _, t := range v.Tampered {
		fmt.Fprintf(w, "altered bytes %d to %d: %s\n", t.From, t.To-1, console.Clean(cmp.Or(t.File, "unknown")))
	}
}

func printSignatures(w *console.Stream, signatures []sign.Signature) {
	for _, s := range signatures {
		text := string(s.Status) + " " + s.File
		if s.KeyName != "" {
			text += "  " + s.KeyName + "  " + s.Fingerprint
		}
		if s.Reason != "" {
			text += ": " + s.Reason
		}
		fmt.Fprintln(w, console.Clean(text))
	}
}
