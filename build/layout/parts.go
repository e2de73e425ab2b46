package layout

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Parts is an archive that was taken apart.
type Parts struct {
	Layout      schema.ArchiveLayout
	FrameSHA256 string // the digest of the compressed frame

	source  Source
	extents []extent // the blobs, with computed digests
}

// TakeApart reads an archive once and describes it: the same document for the same bytes.
func TakeApart(ctx context.Context, s Source, limits Limits, sink report.Sink) (*Parts, error) {
	return describe(ctx, s, limits, func(p *Parts, list []extent) error { return p.read(ctx, list, sink) })
}

// Describe describes an archive whose digest is known, as [TakeApart] does. It reads no blob whose digest is its name: where the name is
// wrong, the archive cannot be put together again.
func Describe(ctx context.Context, s Source, digest string, limits Limits) (*Parts, error) {
	return describe(ctx, s, limits, func(p *Parts, list []extent) error {
		for i := range list {
			e := &list[i]
			if e.digest != "" {
				continue
			}
			sum, err := sumOf(ctx, io.NewSectionReader(s, e.at, e.size))
			if err != nil {
				return err
			}
			e.digest = sum
		}
		p.Layout.SHA256 = digest
		p.arrange(list)
		return nil
	})
}

func describe(ctx context.Context, s Source, limits Limits, digests func(*Parts, []extent) error) (*Parts, error) {
	a, err := s.open()
	if err != nil {
		return nil, err
	}
	list, err := extents(a, s.Size, limits)
	if err != nil {
		return nil, err
	}
	p := &Parts{source: s}
	l := &p.Layout
	l.Name, l.Version, l.Size = a.Solution.Metadata.Name, a.Solution.Spec.Version, s.Size
	l.Frame.BlockSize = frameBlock
	if err = digests(p, list); err != nil {
		return nil, err
	}
	sum := sha256.New()
	err = p.WriteFrame(ctx, func(block []byte) error {
		l.Frame.Blocks = append(l.Frame.Blocks, int64(len(block)))
		sum.Write(block)
		return nil
	})
	p.FrameSHA256 = hex.EncodeToString(sum.Sum(nil))
	return p, err
}

// read computes the digests of the archive and of its blobs, and lists the segments.
func (p *Parts) read(ctx context.Context, list []extent, sink report.Sink) error {
	l := &p.Layout
	whole, at := sha256.New(), int64(0)
	for i := range list {
		e := &list[i]
		if err := Copy(ctx, whole, io.NewSectionReader(p.source, at, e.at-at)); err != nil {
			return err
		}
		sum := sha256.New()
		if err := Copy(ctx, io.MultiWriter(whole, sum), io.NewSectionReader(p.source, e.at, e.size)); err != nil {
			return err
		}
		digest := hex.EncodeToString(sum.Sum(nil))
		if e.digest != "" && e.digest != digest {
			return report.Errorf(report.Corrupt, "blob sha256:%s has the digest sha256:%s", e.digest, digest).WithHint("copy the archive again from its source")
		}
		e.digest, at = digest, e.at+e.size
		sink.Emit(report.Event{Step: "hash", Name: p.source.Name, State: report.Running, Done: at, Total: l.Size})
	}
	if err := Copy(ctx, whole, io.NewSectionReader(p.source, at, l.Size-at)); err != nil {
		return err
	}
	l.SHA256 = hex.EncodeToString(whole.Sum(nil))
	p.arrange(list)
	sink.Emit(report.Event{Step: "hash", Name: p.source.Name, State: report.Done, Done: l.Size, Total: l.Size})
	return nil
}

// arrange lists the segments. What archives of other programs have twice is part of the frame.
func (p *Parts) arrange(list []extent) {
	l := &p.Layout
	seen, inFrame := map[string]bool{}, int64(0)
	endFrame := func(end int64) {
		if end > inFrame {
			l.Segments = append(l.Segments, schema.ArchiveSegment{Size: end - inFrame})
			l.Frame.Size += end - inFrame
		}
	}
	for _, e := range list {
		if seen[e.digest] {
			continue
		}
		seen[e.digest] = true
		endFrame(e.at)
		l.Segments = append(l.Segments, schema.ArchiveSegment{Size: e.size, SHA256: e.digest})
		p.extents, inFrame = append(p.extents, e), e.at+e.size
	}
	endFrame(l.Size)
}

// Blob reads a blob by its place in [Blobs].
func (p *Parts) Blob(i int) *io.SectionReader {
	e := p.extents[i]
	return io.NewSectionReader(p.source, e.at, e.size)
}

// WriteFrame calls use for each block of the compressed frame.
func (p *Parts) WriteFrame(ctx context.Context, use func(block []byte) error) error {
	var runs []io.Reader
	at := int64(0)
	for _, e := range p.extents {
		runs = append(runs, io.NewSectionReader(p.source, at, e.at-at))
		at = e.at + e.size
	}
	runs = append(runs, io.NewSectionReader(p.source, at, p.source.Size-at))
	return compressFrame(ctx, io.MultiReader(runs...), p.Layout.Frame.Size, use)
}

// FrameSize is the size of a compressed frame in bytes.
func FrameSize(f schema.ArchiveFrame) int64 {
	size := int64(0)
	for _, n := range f.Blocks { // the document bounds their number and their sizes
		size += n
	}
	return size
}
