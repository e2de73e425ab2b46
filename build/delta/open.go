package delta

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

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

// blob is a blob of a layout.
type blob struct {
	digest string
	size   int64
}

// blobsOf returns the blobs of a layout.
func blobsOf(l *schema.ArchiveLayout) []blob {
	var list []blob
	for _, s := range l.Segments {
		if s.SHA256 != "" {
			list = append(list, blob{s.SHA256, s.Size})
		}
	}
	return list
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
	compressed := int64(0)
	for _, n := range d.Layout.Frame.Blocks { // the layout bounds their number and their sizes
		compressed += n
	}
	if d.frame, err = t.next(frameName, compressed); err != nil {
		return nil, err
	}
	return d, d.readBlobs(t)
}

func bundleName(i int) string { return fmt.Sprintf("%s%d.sigstore.json", bundlesDir, i+1) }

// readBlobs finds the blobs in the delta, which have the order of the layout.
func (d *Delta) readBlobs(t *tarReader) error {
	rest := blobsOf(&d.Layout)
	for {
		name, block, err := t.peek()
		if err != nil || block == nil {
			return err
		}
		digest, ok := strings.CutPrefix(name, blobsDir)
		i := slices.IndexFunc(rest, func(b blob) bool { return b.digest == digest })
		if !ok || i < 0 {
			return unexpected(t.at)
		}
		if d.blobs[digest], err = t.next(name, rest[i].size); err != nil {
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
	for _, b := range blobsOf(&d.Layout) {
		if _, ok := d.blobs[b.digest]; ok {
			sum += b.size
		}
	}
	return sum
}

// Bundle is a signature of the archive that a delta makes. Signer is the part of its file's name that distinguishes signers.
type Bundle struct {
	Signer string
	Data   []byte
}

// Bundles reads the signatures of the archive that the delta makes.
func (d *Delta) Bundles() ([]Bundle, error) {
	list := make([]Bundle, len(d.bundles))
	for i, at := range d.bundles {
		described := d.ArchiveDelta.Bundles[i]
		list[i] = Bundle{Signer: described.Signer, Data: make([]byte, described.Size)}
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
// that is missing in the delta. Whether the bytes are right is known once all of them were compared: [Archive.Copy] and
// the signatures of the archive do so.
func (d *Delta) Archive(ctx context.Context, bases ...Source) (*Archive, error) {
	frame, err := newFrameReader(d.r, d.frame, d.Layout.Frame)
	if err != nil {
		return nil, err
	}
	var indexes []*index
	for _, base := range bases {
		x, err := newIndex(base)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", base.Name, err)
		}
		indexes = append(indexes, x)
	}
	a := &Archive{delta: d}
	places := map[string]media.Run{}
	missing, bytes := 0, int64(0)
	for _, b := range blobsOf(&d.Layout) {
		run, err := d.place(ctx, b, indexes)
		if err != nil {
			return nil, err
		}
		if places[b.digest] = run; run.ReaderAt == nil {
			missing, bytes = missing+1, bytes+b.size
		}
	}
	if missing > 0 {
		return nil, d.explainMissing(indexes, missing, bytes)
	}
	at, inFrame := int64(0), int64(0)
	for _, s := range d.Layout.Segments {
		run := media.Run{ReaderAt: frame, Name: "the frame of the delta", From: inFrame}
		if s.SHA256 != "" {
			run = places[s.SHA256]
		} else {
			inFrame += s.Size
		}
		run.At, run.Size = at, s.Size
		a.runs = append(a.runs, run)
		at += s.Size
	}
	return a, nil
}

// place finds a blob in the delta or in an archive; the run has no reader when it is in none.
func (d *Delta) place(ctx context.Context, b blob, indexes []*index) (media.Run, error) {
	if at, ok := d.blobs[b.digest]; ok {
		return media.Run{ReaderAt: d.r, Name: "the delta", From: at}, nil
	}
	for _, x := range indexes {
		e, ok, err := x.find(ctx, b.digest, b.size)
		if err != nil {
			return media.Run{}, fmt.Errorf("%s: %w", x.source.Name, err)
		}
		if ok {
			return media.Run{ReaderAt: x.source, Name: x.source.Name, From: e.at}, nil
		}
	}
	return media.Run{}, nil
}

func (d *Delta) explainMissing(indexes []*index, missing int, bytes int64) error {
	var have []string
	for _, x := range indexes {
		have = append(have, fmt.Sprintf("%s is %s %s", x.source.Name, x.name, x.version))
	}
	given := strings.Join(have, ", ")
	if given == "" {
		given = "none was named"
	}
	return report.Errorf(report.Mismatch, "the delta makes %s %s from %s; %s: %d blobs of %d bytes are missing",
		d.Layout.Name, d.Layout.Version, d.Needs(), given, missing, bytes).
		WithHint("name the archive that the delta was made from, or get the whole archive of %s", d.Layout.ID())
}
