package delta

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sync/errgroup"

	"github.com/solutionctl/solutionctl/build/layout"
	"github.com/solutionctl/solutionctl/build/media"
	"github.com/solutionctl/solutionctl/build/recompress"
	"github.com/solutionctl/solutionctl/build/tardiff"
	"github.com/solutionctl/solutionctl/durable"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// smallestPatched is the size in bytes from which on a blob may be made by a patch.
const smallestPatched = 16 << 10

// patches makes the patches of a new delta, one after another in a temporary file.
type patches struct {
	*creation
	dir     string // of temporary files
	file    *durable.Scratch
	end     int64
	sources []candidate
	spent   int64 // bytes that the patches unpack and make, see maxRatio
}

// candidate is a layer of an old archive that the new one does not have.
type candidate struct {
	archive int // the number of the old archive
	blob    layout.Blob
	run     media.Run
	names   map[string]int64 // of its files, with their sizes
	size    int64            // of its content
}

func (p *patches) close() error {
	if p.file == nil {
		return nil
	}
	return p.file.Close()
}

// find makes a patch for each new blob that a codec makes of its content, if the patch is much smaller.
func (p *patches) find(ctx context.Context) error {
	var wanted []int
	blobs, event := layout.Blobs(&p.document.Layout), report.Event{Step: "patch", Name: p.New.Name, State: report.Running}
	for i, b := range blobs {
		if p.absent[b.SHA256] && b.Size >= smallestPatched {
			wanted = append(wanted, i)
			event.Total += b.Size
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	if err := p.findSources(ctx, blobs); err != nil || len(p.sources) == 0 {
		return err
	}
	var err error
	if p.file, err = durable.NewScratch(p.dir); err != nil {
		return err
	}
	p.Sink.Emit(event)
	group, bounded := errgroup.WithContext(ctx)
	group.SetLimit(p.sideBySide(blobs, wanted))
	turn := make(chan struct{})
	close(turn)
	for _, i := range wanted {
		mine, next := turn, make(chan struct{})
		turn = next
		group.Go(func() error {
			defer close(next)
			l, failure := p.readLayer(bounded, blobs[i], p.parts.Blob(i))
			<-mine // in the order of the layout: each patch leaves less to the next ones
			if failure == nil && l != nil {
				failure = errors.Join(p.diff(bounded, l), l.content.close())
			}
			event.Done += blobs[i].Size
			p.Sink.Emit(event)
			return failure
		})
	}
	if err = group.Wait(); err != nil {
		return err
	}
	event.State = report.Done
	p.Sink.Emit(event)
	return nil
}

// sideBySide returns how many new layers are unpacked at once: one for each processor, and fewer where there could be no room for them beside an old
// one.
func (p *patches) sideBySide(blobs []layout.Blob, wanted []int) int {
	var sizes []int64
	for _, i := range wanted {
		sizes = append(sizes, blobs[i].Size*maxRatio)
	}
	largest := int64(0)
	for _, c := range p.sources {
		largest = max(largest, c.size)
	}
	n, _ := roomFor(p.dir, sizes, largest) // most have less than the limit: one is tried
	return max(n, 1)
}

// findSources lists the layers of the old archives that the new one does not have.
func (p *patches) findSources(ctx context.Context, blobs []layout.Blob) error {
	seen := map[string]bool{}
	for _, b := range blobs {
		seen[b.SHA256] = true
	}
	for n, x := range p.indexes {
		for _, b := range x.Named() {
			if seen[b.SHA256] || b.Size < smallestPatched {
				continue
			}
			seen[b.SHA256] = true
			run, err := x.Find(ctx, b)
			if err != nil {
				return err
			}
			run.Size = b.Size
			if err = p.addSource(ctx, candidate{archive: n, blob: b, run: run}); err != nil {
				return err
			}
		}
	}
	return nil
}

// addSource adds a blob, if it is a layer.
func (p *patches) addSource(ctx context.Context, c candidate) error {
	u, err := unpack(ctx, p.dir, c.run, c.blob.Size*maxRatio)
	if errors.Is(err, errContent) {
		return nil
	}
	if err != nil {
		return err
	}
	defer u.close() //nolint:errcheck // a temporary file
	c.size = u.size
	if c.names, err = u.tar().Names(ctx); report.CodeOf(err) == report.Invalid {
		return nil
	}
	if err == nil && len(c.names) > 0 {
		p.sources = append(p.sources, c)
	}
	return err
}

// layer is a new blob that a codec makes of its content.
type layer struct {
	blob    layout.Blob
	content *unpacked
	names   map[string]int64 // of its files, with their sizes
	codec   recompress.Codec
}

// readLayer returns nil for a blob that no patch can make.
func (p *patches) readLayer(ctx context.Context, b layout.Blob, compressed *io.SectionReader) (*layer, error) {
	content, err := unpack(ctx, p.dir, media.Run{ReaderAt: compressed, Size: b.Size}, b.Size*maxRatio)
	if errors.Is(err, errContent) {
		return nil, nil //nolint:nilnil // documented
	}
	if err != nil {
		return nil, err
	}
	l := &layer{blob: b, content: content}
	if l.names, err = content.tar().Names(ctx); err == nil {
		l.codec, err = recompress.Find(ctx, compressed, content.section())
	}
	if report.CodeOf(err) == report.Invalid || err == nil && l.codec == "" {
		return nil, content.close()
	}
	if err != nil {
		return nil, errors.Join(err, content.close())
	}
	return l, nil
}

// nearest returns the layer that shares most bytes with one that has these files, judged by their names and sizes. When none shares a name,
// it is the one of the nearest size.
func (p *patches) nearest(names map[string]int64, size int64) candidate {
	best, most := p.sources[0], int64(-1)
	for _, c := range p.sources {
		shared := int64(0)
		for name, size := range names {
			shared += min(size, c.names[name])
		}
		if shared > most || shared == most && max(c.size-size, size-c.size) < max(best.size-size, size-best.size) {
			best, most = c, shared
		}
	}
	return best
}

// left is how many bytes patches may still unpack and make when an old archive is used.
func (p *patches) left(archive int) int64 {
	left := -p.spent
	for i, x := range p.indexes {
		if p.used[i] || i == archive {
			left += maxRatio * x.Size
		}
	}
	return left
}

// diff writes a patch from the nearest old layer to a new one behind the patches before, and keeps it if it saves a quarter of the blob: to
// apply one takes time.
func (p *patches) diff(ctx context.Context, l *layer) error {
	from := p.nearest(l.names, l.content.size)
	cost := from.size + l.content.size + l.blob.Size
	if cost > p.left(from.archive) {
		return nil
	}
	old, err := unpack(ctx, p.dir, from.run, from.size)
	if err != nil {
		return fmt.Errorf("%s: blob sha256:%s: %w", from.run.Name, from.blob.SHA256, err)
	}
	defer old.close() //nolint:errcheck // a temporary file
	w := io.NewOffsetWriter(p.file, p.end)
	if err = tardiff.Diff(ctx, w, old.tar(), l.content.tar()); err != nil {
		return err
	}
	size, err := w.Seek(0, io.SeekCurrent)
	if err != nil || size > l.blob.Size/4*3 {
		return err
	}
	sum := sha256.New()
	if err = layout.Copy(ctx, sum, l.content.section()); err != nil {
		return err
	}
	p.document.Patches = append(p.document.Patches, schema.DeltaPatch{
		SHA256: l.blob.SHA256, Size: size, Codec: string(l.codec),
		Content: schema.DeltaContent{SHA256: hex.EncodeToString(sum.Sum(nil)), Size: l.content.size},
		Source:  schema.DeltaSource{SHA256: from.blob.SHA256, Size: from.blob.Size, Unpacked: from.size},
	})
	p.end += size
	p.spent += cost
	p.used[from.archive] = true
	delete(p.absent, l.blob.SHA256)
	return nil
}
