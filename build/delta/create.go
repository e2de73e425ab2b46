package delta

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/solutionctl/solutionctl/build/layout"
	"github.com/solutionctl/solutionctl/build/media"
	"github.com/solutionctl/solutionctl/durable"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/chunk"
)

// CreateOptions select the archives of a delta.
type CreateOptions struct {
	New       layout.Source
	Old       []layout.Source
	Bundles   []layout.Bundle // the signatures of the new archive, which travel with the delta
	WrittenBy string          // the version of the program
	Sink      report.Sink
}

// creation is a delta on its way.
type creation struct {
	CreateOptions
	document schema.ArchiveDelta
	parts    *layout.Parts
	absent   map[string]bool // blobs that the old archives lack
}

// Create writes a delta to a file: the same bytes for the same archives. The delta is applied and the result compared with the
// new archive before the file has its name.
func Create(ctx context.Context, name string, o CreateOptions) (*Delta, error) {
	c := &creation{CreateOptions: o, document: schema.ArchiveDelta{Stamp: schema.NewStamp("delta", o.WrittenBy), Bases: []schema.DeltaBase{}}, absent: map[string]bool{}}
	var err error
	if c.parts, err = layout.TakeApart(ctx, o.New, layout.DeltaLimits, o.Sink); err != nil {
		return nil, fmt.Errorf("%s: %w", o.New.Name, err)
	}
	c.document.Layout = c.parts.Layout
	if err = c.compare(ctx); err != nil {
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

// compare finds the blobs that the old archives do not have, and leaves out old archives that have none that is needed.
func (c *creation) compare(ctx context.Context) error {
	rest := layout.Blobs(&c.document.Layout)
	var used []layout.Source
	for _, old := range c.Old {
		x, err := layout.NewIndex(old)
		if err != nil {
			return fmt.Errorf("%s: %w", old.Name, err)
		}
		var without []layout.Blob
		for _, b := range rest {
			run, failure := x.Find(ctx, b)
			if failure != nil {
				return failure
			}
			if run.ReaderAt == nil {
				without = append(without, b)
			}
		}
		if len(without) == len(rest) {
			continue
		}
		rest = without
		sums, err := chunk.Sum(ctx, old, old.Size, c.Sink)
		if err != nil {
			return fmt.Errorf("%s: %w", old.Name, err)
		}
		digest := hex.EncodeToString(sums.SHA256[:])
		if digest == c.document.Layout.SHA256 {
			return report.Errorf(report.Usage, "%s and %s are the same archive", old.Name, c.New.Name).WithHint("name the older archive first: solutionctl delta create OLD.iso NEW.iso")
		}
		used = append(used, old)
		c.document.Bases = append(c.document.Bases, schema.DeltaBase{Name: x.Solution, Version: x.Version, SHA256: digest, Size: old.Size})
	}
	for _, b := range rest {
		c.absent[b.SHA256] = true
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
	for i, b := range layout.Blobs(&c.document.Layout) {
		if !c.absent[b.SHA256] {
			continue
		}
		if err = t.file(blobsDir+b.SHA256, b.Size, c.parts.Blob(i)); err != nil {
			return 0, err
		}
	}
	if err = t.end(); err != nil {
		return 0, err
	}
	return f.Seek(0, io.SeekCurrent)
}

func (c *creation) writeFrame(ctx context.Context, t tarWriter) error {
	compressed := layout.FrameSize(c.document.Layout.Frame)
	if _, err := t.w.Write(header(frameName, compressed)); err != nil {
		return err
	}
	err := c.parts.WriteFrame(ctx, func(block []byte) error {
		_, err := t.w.Write(block)
		return err
	})
	if err != nil {
		return err
	}
	_, err = t.w.Write(make([]byte, padding(compressed)))
	return err
}
