package delta

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/build/layout"
	"github.com/solutionctl/solutionctl/build/media"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Delta is an opened delta. Nothing in it is trusted.
type Delta struct {
	*schema.ArchiveDelta
	r       io.ReaderAt
	size    int64
	bundles []int64          // the offset of each signature
	frame   int64            // the offset of the frame
	blobs   map[string]int64 // by digest: the offset of the blob, or of the patch that makes it
	patched map[string]schema.DeltaPatch
}

// Open reads the headers of a delta, whatever its size, and refuses one with anything that its document does not require.
func Open(r io.ReaderAt, size int64) (*Delta, error) {
	t := &tarReader{r: r, size: size}
	document, err := t.document()
	if err != nil {
		return nil, err
	}
	d := &Delta{ArchiveDelta: document, r: r, size: size, blobs: map[string]int64{}, patched: map[string]schema.DeltaPatch{}}
	for _, p := range document.Patches {
		d.patched[p.SHA256] = p
	}
	left := int64(maxBundles)
	for i, b := range d.ArchiveDelta.Bundles {
		if left -= b.Size; left < 0 {
			return nil, report.Errorf(report.Invalid, "the signatures in the delta have more than %d MiB", maxBundles>>20)
		}
		at, failure := t.next(bundleName(i), b.Size)
		if failure != nil {
			return nil, failure
		}
		d.bundles = append(d.bundles, at)
	}
	if d.frame, err = t.next(frameName, layout.FrameSize(d.Layout.Frame)); err != nil {
		return nil, err
	}
	return d, d.readBlobs(t)
}

func bundleName(i int) string { return fmt.Sprintf("%s%d.sigstore.json", bundlesDir, i+1) }

// readBlobs finds the blobs and patches in the delta, which have the order of the layout. No patch is missing.
func (d *Delta) readBlobs(t *tarReader) error {
	rest, patches := layout.Blobs(&d.Layout), 0
	for {
		name, block, err := t.peek()
		if err == nil && block == nil && patches < len(d.Patches) {
			err = unexpected(t.at)
		}
		if err != nil || block == nil {
			return err
		}
		i := slices.IndexFunc(rest, func(b layout.Blob) bool { return name == d.fileName(b) })
		if i < 0 {
			return unexpected(t.at)
		}
		size := rest[i].Size
		if p, ok := d.patched[rest[i].SHA256]; ok {
			size = p.Size
			patches++
		}
		if d.blobs[rest[i].SHA256], err = t.next(name, size); err != nil {
			return err
		}
		rest = rest[i+1:]
	}
}

// fileName is the name of the file with a blob, or with the patch that makes it.
func (d *Delta) fileName(b layout.Blob) string {
	if _, ok := d.patched[b.SHA256]; ok {
		return patchesDir + b.SHA256
	}
	return blobsDir + b.SHA256
}

// Refuse is the error for a delta in the place of an archive; nil for any other file.
func Refuse(r io.ReaderAt, name string) error {
	if !IsDelta(r) {
		return nil
	}
	return report.Errorf(report.Invalid, "%s is a delta, not an archive", name).
		WithHint("see which archive it needs with: solutionctl inspect %s; make the new one with: solutionctl delta apply OLD.iso %s", report.ShellFile(name), report.ShellFile(name))
}

// Size is the size of the delta itself, in bytes.
func (d *Delta) Size() int64 { return d.size }

// NewBytes is how many bytes of whole blobs are in the delta.
func (d *Delta) NewBytes() int64 {
	sum := int64(0)
	for _, b := range layout.Blobs(&d.Layout) {
		_, ok := d.blobs[b.SHA256]
		if _, patched := d.patched[b.SHA256]; ok && !patched {
			sum += b.Size
		}
	}
	return sum
}

// PatchBytes is how many bytes of patches are in the delta, and how many the blobs have that they make.
func (d *Delta) PatchBytes() (patches, blobs int64) {
	for _, b := range layout.Blobs(&d.Layout) {
		if p, ok := d.patched[b.SHA256]; ok {
			patches, blobs = patches+p.Size, blobs+b.Size
		}
	}
	return patches, blobs
}

// Bundles reads the signatures of the archive that the delta makes.
func (d *Delta) Bundles() ([]layout.Bundle, error) {
	list := make([]layout.Bundle, len(d.bundles))
	for i, at := range d.bundles {
		described := d.ArchiveDelta.Bundles[i]
		list[i] = layout.Bundle{Signer: described.Signer, Data: make([]byte, described.Size)}
		if n, err := d.r.ReadAt(list[i].Data, at); n < len(list[i].Data) {
			return nil, fmt.Errorf("read the signatures in the delta: %w", err)
		}
	}
	return list, nil
}

// Needs describes the archives that the delta needs, "" for none.
func (d *Delta) Needs() string {
	names := make([]string, len(d.Bases))
	for i, b := range d.Bases {
		names[i] = fmt.Sprintf("%s %s (sha256:%s)", b.Name, b.Version, b.SHA256)
	}
	return strings.Join(names, " and ")
}

// Archive returns the archive that the delta makes from others. It fails with [report.Mismatch] when these do not have all
// that is missing in the delta. Patches are applied now, into a temporary file.
func (d *Delta) Archive(ctx context.Context, w Workspace, bases ...layout.Source) (_ *Made, err error) {
	f := &finding{Delta: d, places: map[string]media.Run{}, sources: map[string]media.Run{}}
	for _, base := range bases {
		x, failure := layout.NewIndex(base)
		if failure != nil {
			return nil, fmt.Errorf("%s: %w", base.Name, failure)
		}
		f.indexes = append(f.indexes, x)
	}
	if err = f.findAll(ctx); err != nil {
		return nil, err
	}
	p := &patching{Delta: d, Workspace: w}
	made := &Made{}
	if len(f.patches) > 0 {
		if err = f.checkPatches(); err == nil {
			err = p.patches(ctx, f.patches, f.sources, f.places)
		}
		made.file = p.out
	}
	if err == nil {
		made.Archive, err = layout.Assemble(&d.Layout, "the delta", layout.Frame{ReaderAt: d.r, At: d.frame}, f.places)
	}
	if err != nil {
		return nil, errors.Join(err, made.Close())
	}
	return made, nil
}

// finding looks for the blobs of the archive that a delta makes.
type finding struct {
	*Delta
	indexes []*layout.Index
	places  map[string]media.Run // by the digest of the blob; only with a size where a patch makes it
	sources map[string]media.Run // of the patches
	patches []schema.DeltaPatch  // that are needed
}

func (f *finding) findAll(ctx context.Context) error {
	missing, bytes := 0, int64(0)
	for _, b := range layout.Blobs(&f.Layout) {
		found, err := f.find(ctx, b)
		if err != nil {
			return err
		}
		if !found {
			missing, bytes = missing+1, bytes+b.Size
		}
	}
	if missing > 0 {
		return f.explainMissing(f.indexes, missing, bytes)
	}
	return nil
}

// find finds a blob in the delta or in an archive, or the source of the patch that makes it. An archive that has the whole blob comes first:
// it may be the one that the delta makes, which has no sources.
func (f *finding) find(ctx context.Context, b layout.Blob) (bool, error) {
	patch, patched := f.patched[b.SHA256]
	if at, ok := f.blobs[b.SHA256]; ok && !patched {
		f.places[b.SHA256] = media.Run{ReaderAt: f.r, Name: "the delta", From: at}
		return true, nil
	}
	run, err := f.inArchives(ctx, b)
	if err != nil || run.ReaderAt != nil || !patched {
		f.places[b.SHA256] = run
		return run.ReaderAt != nil, err
	}
	if run, err = f.inArchives(ctx, layout.Blob{SHA256: patch.Source.SHA256, Size: patch.Source.Size}); err != nil || run.ReaderAt == nil {
		return false, err
	}
	run.Size = patch.Source.Size
	f.sources[b.SHA256] = run
	f.places[b.SHA256] = media.Run{Size: b.Size}
	f.patches = append(f.patches, patch)
	return true, nil
}

// inArchives finds a blob in an archive; the run has no reader when it is in none.
func (f *finding) inArchives(ctx context.Context, b layout.Blob) (run media.Run, err error) {
	for _, x := range f.indexes {
		if run, err = x.Find(ctx, b); err != nil || run.ReaderAt != nil {
			break
		}
	}
	return run, err
}

func (d *Delta) explainMissing(indexes []*layout.Index, missing int, bytes int64) error {
	var have []string
	for _, x := range indexes {
		have = append(have, fmt.Sprintf("%s is %s %s", x.Name, x.Solution, x.Version))
	}
	given := strings.Join(have, ", ")
	if given == "" {
		given = "none was named"
	}
	return report.Errorf(report.Mismatch, "the delta makes %s %s from %s; %s: %d blobs of %d bytes are missing",
		d.Layout.Name, d.Layout.Version, d.Needs(), given, missing, bytes).
		WithHint("name the archive that the delta was made from, or get the whole archive of %s", d.Layout.ID())
}
