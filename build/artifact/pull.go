package artifact

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/solutionctl/solutionctl/build/layout"
	"github.com/solutionctl/solutionctl/build/media"
	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/durable"
	"github.com/solutionctl/solutionctl/schema/report"
)

// PullOptions say how an archive is written to a file.
type PullOptions struct {
	Have []layout.Source // older archives, whose blobs are not asked for
	Jobs int             // blobs at once; 0: 4
	Sink report.Sink
	// Damaged returns the ranges of a blob that does not have its digest, from and to offsets of the archive, in which it differs from the
	// archive, as far as that is known. Only these are asked for again. Without it the whole blob is, by the next call of WriteFile.
	Damaged func(ctx context.Context, written io.ReaderAt, from, to int64) ([]Range, error)
}

// Range is a range of bytes: From is the first one, To the one after the last.
type Range struct{ From, To int64 }

// Pulled counts the bytes of an archive by their sources.
type Pulled struct {
	Fetched int64 // bytes of blobs from the registry, and of the compressed frame
	Had     int64 // bytes of blobs in older archives
	Kept    int64 // bytes that an interrupted pull had fetched
}

// WriteFile writes the archive to a file. After an error, and when the process is killed, the file has its old content, and what
// arrived is in another one beside it: the next call continues there. Blobs are compared with their digests, and then the whole.
func (r *Remote) WriteFile(ctx context.Context, name string, o PullOptions) (*Pulled, error) {
	p := &pull{Remote: r, o: o}
	for _, source := range o.Have {
		x, err := layout.NewIndex(source)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", source.Name, err)
		}
		p.have = append(p.have, x)
	}
	if o.Jobs <= 0 {
		p.o.Jobs = 4
	}
	f, err := durable.Continue(name)
	if err != nil {
		return nil, media.WriteError(name, err)
	}
	if err = p.write(ctx, f.File); err == nil {
		return &p.Pulled, media.WriteError(name, f.Publish(0o644))
	}
	leave := f.Keep
	if p.complete || !p.resumed && p.done == 0 {
		leave = f.Discard // the archive is another one, or nothing of it has arrived
	}
	return nil, errors.Join(media.WriteError(name, err), leave())
}

// pull is an archive on its way into a file.
type pull struct {
	*Remote
	Pulled
	o        PullOptions
	have     []*layout.Index
	file     *os.File
	resumed  bool // the file had something before
	complete bool // all blobs were compared

	mu   sync.Mutex
	done int64
}

// write fills the file: the archive, and the frame behind it until it is complete.
func (p *pull) write(ctx context.Context, f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	p.file, p.resumed = f, info.Size() > 0
	l := &p.Layout
	if err = errors.Join(durable.Allocate(f, l.Size+p.frame.Size), f.Truncate(l.Size+p.frame.Size)); err != nil {
		return err
	}
	group, bounded := errgroup.WithContext(ctx)
	group.SetLimit(p.o.Jobs)
	group.Go(func() error { return p.blob(bounded, p.frame, l.Size) })
	at := int64(0)
	for _, s := range l.Segments {
		if s.SHA256 != "" {
			place := at
			group.Go(func() error { return p.blob(bounded, p.blobs[s.SHA256], place) })
		}
		at += s.Size
	}
	if err = group.Wait(); err != nil {
		return err
	}
	p.complete = true
	if err = p.compare(ctx); err != nil {
		return err
	}
	p.o.Sink.Emit(report.Event{Step: "pull", Name: l.ID(), State: report.Done, Done: l.Size, Total: l.Size})
	return f.Truncate(l.Size)
}

// blob writes a blob to its place: from an older archive, else from the registry, unless it is there.
func (p *pull) blob(ctx context.Context, b oci.Blob, at int64) error {
	wanted := layout.Blob{SHA256: b.Digest.Hex, Size: b.Size}
	arrived, there, err := p.arrived(ctx, wanted, at)
	if err != nil {
		return err
	}
	if there {
		p.count(&p.Kept, b.Size)
		return nil
	}
	for _, x := range p.have {
		copied, failure := p.copyFrom(ctx, x, b, at)
		if copied || failure != nil {
			return failure
		}
	}
	err = p.fetch(ctx, b, at, arrived)
	for tries := 0; tries < 2 && report.CodeOf(err) == report.Corrupt && p.o.Damaged != nil && at < p.Layout.Size; tries++ {
		err = p.mend(ctx, b, at)
	}
	if arrived > 0 && report.CodeOf(err) == report.Corrupt { // not all of it had come to the medium
		arrived = 0
		err = p.fetch(ctx, b, at, 0)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", p.reference, err)
	}
	p.count(&p.Kept, arrived)
	p.count(&p.Fetched, b.Size-arrived)
	return nil
}

// arrived returns how much of a blob an interrupted pull has brought to its place, at most, and whether it is the whole blob.
func (p *pull) arrived(ctx context.Context, b layout.Blob, at int64) (n int64, there bool, err error) {
	if !p.resumed {
		return 0, false, nil
	}
	sum, end := sha256.New(), &lastByte{}
	err = layout.Copy(ctx, io.MultiWriter(sum, end), io.NewSectionReader(p.file, at, b.Size))
	return min(end.after, b.Size-1), hex.EncodeToString(sum.Sum(nil)) == b.SHA256, err
}

// lastByte finds the last byte that was written to a file of zeros.
type lastByte struct {
	n, after int64 // bytes seen, and the offset behind the last one that is not zero
}

func (l *lastByte) Write(p []byte) (int, error) {
	if written := len(bytes.TrimRight(p, "\x00")); written > 0 {
		l.after = l.n + int64(written)
	}
	l.n += int64(len(p))
	return len(p), nil
}

// copyFrom copies a blob that an older archive has. A damaged one counts as missing.
func (p *pull) copyFrom(ctx context.Context, x *layout.Index, b oci.Blob, at int64) (copied bool, err error) {
	found, err := p.find(ctx, x, layout.Blob{SHA256: b.Digest.Hex, Size: b.Size})
	if err != nil || found.ReaderAt == nil {
		return false, err
	}
	content := oci.VerifyReader(io.NewSectionReader(found, found.From, b.Size), b.Descriptor)
	err = layout.Copy(ctx, io.NewOffsetWriter(p.file, at), content)
	if report.CodeOf(err) == report.Corrupt {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("%s: %w", found.Name, err)
	}
	p.count(&p.Had, b.Size)
	return true, nil
}

// fetch asks for the rest of a blob. Its digest is that of the bytes that had arrived, and of the rest.
func (p *pull) fetch(ctx context.Context, b oci.Blob, at, arrived int64) error {
	content, err := b.Open(ctx, arrived)
	if err != nil {
		return err
	}
	defer content.Close() //nolint:errcheck // opened for reading
	whole := io.MultiReader(io.NewSectionReader(p.file, at, arrived), content)
	return layout.Copy(ctx, io.NewOffsetWriter(p.file, at), oci.VerifyReader(whole, b.Descriptor))
}

// mend asks for the damaged ranges of a blob again.
func (p *pull) mend(ctx context.Context, b oci.Blob, at int64) error {
	damaged, err := p.o.Damaged(ctx, p.file, at, at+b.Size)
	if err != nil {
		return err
	}
	for _, d := range damaged {
		content, err := b.OpenPart(ctx, d.From-at, d.To-at)
		if err != nil {
			return err
		}
		err = layout.Copy(ctx, io.NewOffsetWriter(p.file, d.From), content)
		if err = errors.Join(err, content.Close()); err != nil {
			return err
		}
		p.mu.Lock()
		p.Fetched += d.To - d.From
		p.mu.Unlock()
	}
	return layout.Copy(ctx, io.Discard, oci.VerifyReader(io.NewSectionReader(p.file, at, b.Size), b.Descriptor))
}

// find looks for a blob in an older archive, which may have to be read for it: by one goroutine at a time.
func (p *pull) find(ctx context.Context, x *layout.Index, b layout.Blob) (media.Run, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return x.Find(ctx, b)
}

// count adds bytes that are in their place.
func (p *pull) count(sum *int64, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*sum += n
	p.done = min(p.done+n, p.Layout.Size-1)
	p.o.Sink.Emit(report.Event{Step: "pull", Name: p.Layout.ID(), State: report.Running, Done: p.done, Total: p.Layout.Size})
}

// compare writes the frame around the blobs and compares the digest of the whole.
func (p *pull) compare(ctx context.Context) error {
	places, at := map[string]media.Run{}, int64(0)
	for _, s := range p.Layout.Segments {
		places[s.SHA256] = media.Run{ReaderAt: p.file, Name: "the file", From: at}
		at += s.Size
	}
	made, err := layout.Assemble(&p.Layout, p.reference.String(), layout.Frame{ReaderAt: p.file, At: p.Layout.Size}, places)
	if err != nil {
		return err
	}
	at = 0
	for _, s := range p.Layout.Segments {
		if s.SHA256 == "" {
			if err = layout.Copy(ctx, io.NewOffsetWriter(p.file, at), io.NewSectionReader(made, at, s.Size)); err != nil {
				return err
			}
		}
		at += s.Size
	}
	return made.Copy(ctx, io.Discard, p.o.Sink)
}
