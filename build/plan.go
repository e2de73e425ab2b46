package build

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/solutionctl/solutionctl/build/iso"
	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/build/sbom"
	"github.com/solutionctl/solutionctl/kube/powers"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Names of the generated files of an archive.
const (
	ManifestFile       = "manifest.yaml"
	registryConfigFile = oci.RegistryConfigFile
	PayloadImage       = "payload" // name of the artifact that holds everything but the images
)

// applicationID is the application identifier of every archive. It names no version: a newer tool writes the same bytes.
const applicationID = "SOLUTIONCTL"

// epoch is the time of archives that know no better one: the first that FAT file systems and zip files can express.
var epoch = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

// Options say how a project becomes a plan. The zero value takes everything from the project.
type Options struct {
	BuildTime *time.Time  // time of every file, before the project's own buildTime
	VolumeID  string      // before the project's own
	Jobs      int         // images resolved at once; 0: 8
	Sink      report.Sink // nil: report.Discard
	// SBOM is the version of the program that bills of materials name. Without it none are made: each layer is read once more for them.
	SBOM string
}

// Plan is an archive before it is written: every file, its digest and its place.
type Plan struct {
	Solution *schema.Solution
	VolumeID string
	ModTime  time.Time
	Images   []*oci.Image // ordered by name and tag, without the payload
	LeftOut  []string     // files and directories ("x/") of the project that stay out, as their names begin with a dot

	image     *iso.Image
	files     []iso.File
	content   map[string]content // by digest, the key of an extent
	chartAPIs []powers.Object    // the charts' extensions of the API of a cluster
}

// content is one distinct sequence of bytes of the archive.
type content struct {
	oci.Blob
	name string // the first use of it, for people
}

// NewPlan resolves the images of the project with the resolver and lays the archive out. The resolver must stay open
// until the plan is written.
func NewPlan(ctx context.Context, project *Project, resolver *oci.Resolver, o Options) (*Plan, error) {
	o.Sink = cmp.Or(o.Sink, report.Discard)
	images, err := resolveAll(ctx, project, resolver, o)
	if err != nil {
		return nil, err
	}
	modTime, err := archiveTime(ctx, project.Build, images, o)
	if err != nil {
		return nil, err
	}
	p := &Plan{Images: images, ModTime: modTime, content: map[string]content{}}
	p.Solution = manifestOf(project.Build, images, modTime)
	if p.VolumeID, err = volumeID(project.Build, p.Solution, o.VolumeID); err != nil {
		return nil, err
	}
	if err = p.addFiles(ctx, project, o); err != nil {
		return nil, err
	}
	smallFirst(p.files)
	p.image, err = iso.Layout(p.files, iso.Options{VolumeID: p.VolumeID, ApplicationID: applicationID, ModTime: modTime})
	return p, err
}

// small is the size below which content counts as metadata, in bytes.
const small = 1 << 20

// smallFirst moves documents, manifests and configurations in front of the layers: an archive is verified in pieces,
// and reading its metadata then takes one or two of them instead of one for each image.
func smallFirst(files []iso.File) {
	rank := func(f iso.File) int {
		if f.Size < small {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(files, func(a, b iso.File) int { return cmp.Compare(rank(a), rank(b)) })
}

// Size is the size of the archive in bytes.
func (p *Plan) Size() int64 { return p.image.Size() }

func resolveAll(ctx context.Context, project *Project, resolver *oci.Resolver, o Options) ([]*oci.Image, error) {
	build := project.Build
	images := make([]*oci.Image, len(build.Spec.Images))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(cmp.Or(o.Jobs, 8))
	for i, wanted := range build.Spec.Images {
		group.Go(func() (err error) {
			ref, source := build.Spec.ImageRef(wanted), project.source(i)
			event := report.Event{Step: "resolve", Name: ref.String(), State: report.Started, Note: oci.Redact(source)}
			o.Sink.Emit(event)
			if images[i], err = resolve(ctx, resolver, ref, source, build.Spec.Platforms); err != nil {
				event.State = report.Failed
				o.Sink.Emit(event)
				return fmt.Errorf("image %s: %w", ref, err)
			}
			images[i].Origin = oci.FullReference(wanted.OriginName())
			event.State, event.Note = report.Done, cmp.Or(images[i].Note, event.Note)
			o.Sink.Emit(event)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	slices.SortFunc(images, func(a, b *oci.Image) int { return a.Ref.Compare(b.Ref) })
	return images, nil
}

func resolve(ctx context.Context, resolver *oci.Resolver, ref schema.ImageRef, source string, platforms []schema.Platform) (*oci.Image, error) {
	if ref.Name == PayloadImage {
		return nil, report.Errorf(report.Invalid, "the name %q is taken by the archive's own payload", PayloadImage).
			WithHint("give the image another name in %s", ProjectFile)
	}
	image, err := resolver.Resolve(ctx, ref, source)
	if err != nil {
		return nil, err
	}
	for _, wish := range platforms {
		if have := image.Platforms(); !slices.ContainsFunc(have, wish.Matches) {
			return nil, report.Errorf(report.Invalid, "no variant for platform %s, have %v", wish, have).
				WithHint("build the image for %s, or take it out of spec.platforms", wish)
		}
	}
	return image, nil
}

// archiveTime is the one time of an archive: given, of the project, of the newest image, or the epoch.
func archiveTime(ctx context.Context, build *schema.SolutionBuild, images []*oci.Image, o Options) (time.Time, error) {
	switch {
	case o.BuildTime != nil:
		return o.BuildTime.UTC(), nil
	case build.Spec.BuildTime != nil:
		return build.Spec.BuildTime.UTC(), nil
	}
	newest := epoch
	for _, image := range images {
		created, err := image.Created(ctx)
		if err != nil {
			return time.Time{}, fmt.Errorf("image %s: %w", image.Ref, err)
		}
		if created.After(newest) {
			newest = created.UTC()
		}
	}
	return newest.Truncate(time.Second), nil
}

func manifestOf(build *schema.SolutionBuild, images []*oci.Image, modTime time.Time) *schema.Solution {
	refs := make([]schema.ImageRef, len(images))
	for i, image := range images {
		refs[i] = image.Ref
	}
	return build.Solution(refs, modTime)
}

func volumeID(build *schema.SolutionBuild, solution *schema.Solution, given string) (string, error) {
	if id := cmp.Or(given, build.Spec.VolumeID); id != "" {
		return id, nil
	}
	return solution.VolumeID()
}

// addFiles collects everything the archive holds: manifest and configuration, the project's files, the images.
func (p *Plan) addFiles(ctx context.Context, project *Project, o Options) error {
	manifest, err := p.Solution.Marshal()
	if err != nil {
		return err
	}
	p.addData(ManifestFile, manifest)
	sources, leftOut, err := project.files()
	if err != nil {
		return err
	}
	p.LeftOut = leftOut
	statements, err := sbom.ReadStatements(project.root.FS())
	if err != nil { // sites cannot search an archive with damaged statements
		return err
	}
	for _, source := range sources {
		if err = p.addProjectFile(project, source); err != nil {
			return err
		}
	}
	if o.SBOM != "" {
		if err = p.addPackages(ctx, o); err != nil {
			return err
		}
	}
	if err = p.attachStatements(statements); err != nil {
		return err
	}
	payload, err := p.payload()
	if err != nil {
		return err
	}
	charts, err := p.charts(ctx)
	if err != nil {
		return err
	}
	if err = p.checkAPIs(ctx); err != nil {
		return err
	}
	form := string(cmp.Or(project.Build.Spec.RegistryConfig, schema.RegistryConfigExtended))
	if unserved := oci.LegacyUnserved(p.Images); form == oci.Legacy && len(unserved) > 0 {
		return report.Errorf(report.Invalid, "registryConfig: legacy serves neither images of several platforms nor manifests without a media type, and so not %v", unserved).
			WithHint("leave registryConfig out of %s, or take one platform with --platform linux/amd64", ProjectFile)
	}
	config, err := oci.RegistryConfig(p.Images, form)
	if err != nil {
		return err
	}
	p.addData(registryConfigFile, config)
	entries, err := oci.Layout(append(slices.Concat(p.Images, charts), payload))
	if err != nil {
		return err
	}
	for _, entry := range entries {
		p.addEntry(entry)
	}
	return nil
}

// payload is the artifact of everything that was added so far.
func (p *Plan) payload() (*oci.Image, error) {
	var files []oci.PayloadFile
	for _, file := range p.files {
		blob := p.content[file.Key]
		files = append(files, oci.PayloadFile{Path: file.Path, Digest: blob.Digest, Size: blob.Size, Open: blob.Open})
	}
	image, err := oci.PayloadImage(files)
	if err != nil {
		return nil, err
	}
	image.Ref = schema.ImageRef{Name: PayloadImage, Tag: p.Solution.Spec.Version}
	return image, nil
}

// file returns one of the files that were added so far.
func (p *Plan) file(name string) (iso.File, bool) {
	i := slices.IndexFunc(p.files, func(f iso.File) bool { return f.Path == name })
	if i < 0 {
		return iso.File{}, false
	}
	return p.files[i], true
}

func (p *Plan) add(path string, blob oci.Blob, name string) {
	key := blob.Digest.String()
	if _, known := p.content[key]; !known {
		p.content[key] = content{blob, name}
	}
	p.files = append(p.files, iso.File{Path: path, Size: blob.Size, Key: key})
}

func (p *Plan) addData(path string, data []byte) {
	p.add(path, oci.BytesBlob("", data), path)
}

func (p *Plan) addEntry(entry oci.Entry) {
	if entry.Blob == nil {
		p.addData(entry.Path, entry.Data)
		return
	}
	p.add(entry.Path, *entry.Blob, blobName(entry))
}

// blobName names a blob by the image that uses it first: "ui:1.0.0 3fa85f645717".
func blobName(entry oci.Entry) string {
	parts := strings.Split(entry.Path, "/")
	if len(parts) != 4 || parts[0] != "images" {
		return entry.Path
	}
	return fmt.Sprintf("%s:%s %.12s", parts[1], parts[2], entry.Blob.Digest.Hex)
}

// addProjectFile hashes a file of the project as it will be in the archive. A file that changes before it is copied fails the build: its
// digest is wrong by then.
func (p *Plan) addProjectFile(project *Project, source sourceFile) error {
	f, err := project.openFilled(source)
	if err != nil {
		return err
	}
	hash := sha256.New()
	size, err := io.Copy(hash, f)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("read project file %s: %w", source.source, err)
	}
	digest := oci.Digest{Algorithm: "sha256", Hex: hex.EncodeToString(hash.Sum(nil))}
	p.add(source.path, oci.Blob{
		Descriptor: oci.Descriptor{Digest: digest, Size: size},
		Open: func(_ context.Context, offset int64) (io.ReadCloser, error) {
			f, err := project.openFilled(source)
			if err != nil {
				return nil, err
			}
			_, err = f.Seek(offset, io.SeekStart)
			return f, err
		},
	}, source.path)
	return nil
}

func (p *Plan) blobCount() int {
	blobs := map[string]bool{}
	for _, image := range p.Images {
		for _, blob := range image.Blobs {
			blobs[blob.Digest.String()] = true
		}
	}
	return len(blobs)
}

// bytesSaved returns the bytes that sharing blobs between images saves.
func (p *Plan) bytesSaved() int64 {
	var saved int64
	seen := map[string]bool{}
	for _, image := range p.Images {
		for _, blob := range image.Blobs {
			if key := blob.Digest.String(); seen[key] {
				saved += blob.Size
			} else {
				seen[key] = true
			}
		}
	}
	return saved
}

// File is one file of a plan.
type File struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	Digest string `json:"digest"`
}

// Files lists the files of the archive, in the order of their bytes.
func (p *Plan) Files() []File {
	files := make([]File, len(p.files))
	for i, f := range p.files {
		files[i] = File{f.Path, f.Size, f.Key}
	}
	return files
}
