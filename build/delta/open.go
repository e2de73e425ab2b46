package delta

import (
	"context"
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
	bundles []int64 // the offset of each signature
	frame   int64   // the offset of the frame
	blobs   map[string]int64
}

// Open reads the headers of a delta, whatever its size, and refuses one with anything that its document does not require.
func Open(r io.ReaderAt, size int64) (*Delta, error) {
	t := &tarReader{r: r, size: size}
	document, err := t.document()
	if err != nil {
		return nil, err
	}
	d := &Delta{ArchiveDelta: document, r: r, size: size, blobs: map[string]int64{}}
	for i, b := range d.ArchiveDelta.Bundles {
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

// readBlobs finds the blobs in the delta, which have the order of the layout.
func (d *Delta) readBlobs(t *tarReader) error {
	rest := layout.Blobs(&d.Layout)
	for {
		name, block, err := t.peek()
		if err != nil || block == nil {
			return err
		}
		digest, ok := strings.CutPrefix(name, blobsDir)
		i := slices.IndexFunc(rest, func(b layout.Blob) bool { return b.SHA256 == digest })
		if !ok || i < 0 {
			return unexpected(t.at)
		}
		if d.blobs[digest], err = t.next(name, rest[i].Size); err != nil {
			return err
		}
		rest = rest[i+1:]
	}
}

// Refuse is the error for a delta in the place of an archive; nil for any other file.
func Refuse(r io.ReaderAt, name string) error {
	if !IsDelta(r) {
		return nil
	}
	return report.Errorf(report.Invalid, "%s is a delta, not an archive", name).
		WithHint("'solutionctl inspect %s' shows which archive it needs; make the new one with: solutionctl delta apply OLD.iso %s", name, name)
}

// Size is the size of the delta itself, in bytes.
func (d *Delta) Size() int64 { return d.size }

// NewBytes is how many bytes of blobs are in the delta.
func (d *Delta) NewBytes() int64 {
	sum := int64(0)
	for _, b := range layout.Blobs(&d.Layout) {
		if _, ok := d.blobs[b.SHA256]; ok {
			sum += b.Size
		}
	}
	return sum
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
// that is missing in the delta.
func (d *Delta) Archive(ctx context.Context, bases ...layout.Source) (*layout.Archive, error) {
	var indexes []*layout.Index
	for _, base := range bases {
		x, err := layout.NewIndex(base)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", base.Name, err)
		}
		indexes = append(indexes, x)
	}
	places := map[string]media.Run{}
	missing, bytes := 0, int64(0)
	for _, b := range layout.Blobs(&d.Layout) {
		run, err := d.place(ctx, b, indexes)
		if err != nil {
			return nil, err
		}
		if places[b.SHA256] = run; run.ReaderAt == nil {
			missing, bytes = missing+1, bytes+b.Size
		}
	}
	if missing > 0 {
		return nil, d.explainMissing(indexes, missing, bytes)
	}
	return layout.Assemble(&d.Layout, "the delta", layout.Frame{ReaderAt: d.r, At: d.frame}, places)
}

// place finds a blob in the delta or in an archive; the run has no reader when it is in none.
func (d *Delta) place(ctx context.Context, b layout.Blob, indexes []*layout.Index) (run media.Run, err error) {
	if at, ok := d.blobs[b.SHA256]; ok {
		return media.Run{ReaderAt: d.r, Name: "the delta", From: at}, nil
	}
	for _, x := range indexes {
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
