package delta

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/solutionctl/solutionctl/build/media"
	"github.com/solutionctl/solutionctl/durable"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/chunk"
)

// CreateOptions select the archives of a delta.
type CreateOptions struct {
	New       Source
	Old       []Source
	Bundles   []Bundle // the signatures of the new archive, which travel with the delta
	WrittenBy string   // the version of the program
	Sink      report.Sink
}

// creation is a delta on its way.
type creation struct {
	CreateOptions
	document schema.ArchiveDelta
	extents  []extent // the blobs of the new archive, with computed digests
	absent   map[string]bool
}

// Create writes a delta to a file: the same bytes for the same archives. The delta is applied and the result compared with the
// new archive before the file has its name.
func Create(ctx context.Context, name string, o CreateOptions) (*Delta, error) {
	c := &creation{CreateOptions: o, document: schema.ArchiveDelta{Stamp: schema.NewStamp("delta", o.WrittenBy), Bases: []schema.DeltaBase{}}, absent: map[string]bool{}}
	if err := c.describe(ctx); err != nil {
		return nil, fmt.Errorf("%s: %w", o.New.Name, err)
	}
	if err := c.compare(ctx); err != nil {
		return nil, err
	}
	f, err := durable.Create(name)
	if err != nil {
		return nil, err
	}
	d, err := c.write(ctx, f)
	if err != nil {
		return nil, errors.Join(media.WriteError(name, err), f.Discard())
	}
	return d, media.WriteError(name, f.Publish(0o644))
}

// describe makes the layout of the new archive, which is read once.
func (c *creation) describe(ctx context.Context) error {
	a, err := c.New.open()
	if err != nil {
		return err
	}
	list, err := extents(a, c.New.Size)
	if err != nil {
		return err
	}
	l := &c.document.Layout
	l.Name, l.Version, l.Size = a.Solution.Metadata.Name, a.Solution.Spec.Version, c.New.Size
	l.Frame.BlockSize = frameBlock
	whole, at := sha256.New(), int64(0)
	seen, inFrame := map[string]bool{}, int64(0)
	endFrame := func(end int64) {
		if end > inFrame {
			l.Segments = append(l.Segments, schema.ArchiveSegment{Size: end - inFrame})
			l.Frame.Size += end - inFrame
		}
	}
	for _, e := range list {
		if err = copyContext(ctx, whole, io.NewSectionReader(c.New, at, e.at-at)); err != nil {
			return err
		}
		sum := sha256.New()
		if err = copyContext(ctx, io.MultiWriter(whole, sum), io.NewSectionReader(c.New, e.at, e.size)); err != nil {
			return err
		}
		digest := hex.EncodeToString(sum.Sum(nil))
		if e.digest != "" && e.digest != digest {
			return report.Errorf(report.Corrupt, "blob sha256:%s has the digest sha256:%s", e.digest, digest).WithHint("copy the archive again from its source")
		}
		e.digest, at = digest, e.at+e.size
		if !seen[digest] { // what archives of other programs have twice is part of the frame
			seen[digest] = true
			endFrame(e.at)
			l.Segments = append(l.Segments, schema.ArchiveSegment{Size: e.size, SHA256: digest})
			c.extents, inFrame = append(c.extents, e), at
		}
		c.Sink.Emit(report.Event{Step: "hash", Name: c.New.Name, State: report.Running, Done: at, Total: l.Size})
	}
	if err = copyContext(ctx, whole, io.NewSectionReader(c.New, at, l.Size-at)); err != nil {
		return err
	}
	endFrame(l.Size)
	l.SHA256 = hex.EncodeToString(whole.Sum(nil))
	c.Sink.Emit(report.Event{Step: "hash", Name: c.New.Name, State: report.Done, Done: l.Size, Total: l.Size})
	return compressFrame(ctx, c.frame(), l.Frame.Size, func(block []byte) error {
		l.Frame.Blocks = append(l.Frame.Blocks, int64(len(block)))
		return nil
	})
}

// frame reads all bytes of the new archive between its blobs.
func (c *creation) frame() io.Reader {
	var runs []io.Reader
	at := int64(0)
	for _, e := range c.extents {
		runs = append(runs, io.NewSectionReader(c.New, at, e.at-at))
		at = e.at + e.size
	}
	return io.MultiReader(append(runs, io.NewSectionReader(c.New, at, c.New.Size-at))...)
}

// compare finds the blobs that the old archives do not have, and leaves out old archives that have none that is needed.
func (c *creation) compare(ctx context.Context) error {
	rest := blobsOf(&c.document.Layout)
	var used []Source
	for _, old := range c.Old {
		x, err := newIndex(old)
		if err != nil {
			return fmt.Errorf("%s: %w", old.Name, err)
		}
		before := len(rest)
		for i := 0; i < len(rest); {
			_, ok, failure := x.find(ctx, rest[i].digest, rest[i].size)
			if failure != nil {
				return fmt.Errorf("%s: %w", old.Name, failure)
			}
			if ok {
				rest = slices.Delete(rest, i, i+1)
			} else {
				i++
			}
		}
		if len(rest) == before {
			continue
		}
		sums, err := chunk.Sum(ctx, old, old.Size, c.Sink)
		if err != nil {
			return fmt.Errorf("%s: %w", old.Name, err)
		}
		digest := hex.EncodeToString(sums.SHA256[:])
		if digest == c.document.Layout.SHA256 {
			return report.Errorf(report.Usage, "%s and %s are the same archive", old.Name, c.New.Name).WithHint("name the older archive first: solutionctl delta create OLD.iso NEW.iso")
		}
		used = append(used, old)
		c.document.Bases = append(c.document.Bases, schema.DeltaBase{Name: x.name, Version: x.version, SHA256: digest, Size: old.Size})
	}
	for _, b := range rest {
		c.absent[b.digest] = true
	}
	c.Old = used
	return nil
}

// write writes the delta and proves it.
func (c *creation) write(ctx context.Context, f *durable.File) (*Delta, error) {
	size, err := c.writeFiles(ctx, f)
	if err != nil {
		return nil, err
	}
	d, err := Open(f, size)
	if err != nil {
		return nil, fmt.Errorf("read the new delta: %w", err)
	}
	made, err := d.Archive(ctx, c.Old...)
	if err != nil {
		return nil, fmt.Errorf("apply the new delta: %w", err)
	}
	return d, made.Copy(ctx, io.Discard, c.Sink)
}

func (c *creation) writeFiles(ctx context.Context, f *durable.File) (int64, error) {
	t := tarWriter{ctx, f}
	for _, b := range c.Bundles {
		c.document.Bundles = append(c.document.Bundles, schema.DeltaBundle{Signer: b.Signer, Size: int64(len(b.Data))})
	}
	data, err := json.Marshal(c.document)
	if err != nil {
		return 0, err
	}
	if len(data) > maxDocument {
		return 0, report.Errorf(report.Invalid, "the layout of %s has %d bytes, more than %d", c.New.Name, len(data), maxDocument)
	}
	if err = t.file(documentName, int64(len(data)), bytes.NewReader(data)); err != nil {
		return 0, err
	}
	for i, b := range c.Bundles {
		if err = t.file(bundleName(i), int64(len(b.Data)), bytes.NewReader(b.Data)); err != nil {
			return 0, err
		}
	}
	if err = c.writeFrame(ctx, t); err != nil {
		return 0, err
	}
	for _, e := range c.extents {
		if !c.absent[e.digest] {
			continue
		}
		if err = t.file(blobsDir+e.digest, e.size, io.NewSectionReader(c.New, e.at, e.size)); err != nil {
			return 0, err
		}
	}
	if err = t.end(); err != nil {
		return 0, err
	}
	return f.Seek(0, io.SeekCurrent)
}

func (c *creation) writeFrame(ctx context.Context, t tarWriter) error {
	frame, compressed := c.document.Layout.Frame, int64(0)
	for _, n := range frame.Blocks {
		compressed += n
	}
	if _, err := t.w.Write(header(frameName, compressed)); err != nil {
		return err
	}
	err := compressFrame(ctx, c.frame(), frame.Size, func(block []byte) error {
		_, err := t.w.Write(block)
		return err
	})
	if err != nil {
		return err
	}
	_, err = t.w.Write(make([]byte, padding(compressed)))
	return err
}
