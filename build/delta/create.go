package delta

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"

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
	Whole     bool            // no patches: each new blob as a whole, in format 1
	WrittenBy string          // the version of the program
	Sink      report.Sink
}

// creation is a delta on its way.
type creation struct {
	CreateOptions
	document schema.ArchiveDelta
	parts    *layout.Parts
	indexes  []*layout.Index // of the old archives
	used     []bool          // old archives that have something that is needed
	absent   map[string]bool // blobs that the old archives lack, and that no patch makes
	patches  *patches
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
	c.patches = &patches{creation: c, dir: filepath.Dir(name)}
	defer c.patches.close() //nolint:errcheck // a temporary file
	if !o.Whole {
		if err = c.patches.find(ctx); err != nil {
			return nil, media.WriteError(name, err)
		}
	}
	if err = c.nameBases(ctx); err != nil {
		return nil, err
	}
	f, err := durable.TryCreate(name)
	if err != nil {
		return nil, media.WriteError(name, err)
	}
	d, err := c.write(ctx, f)
	if err != nil {
		return nil, errors.Join(media.WriteError(name, err), f.Discard())
	}
	return d, media.WriteError(name, f.Publish(0o644))
}

// compare finds the blobs that the old archives do not have.
func (c *creation) compare(ctx context.Context) error {
	rest := layout.Blobs(&c.document.Layout)
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
		c.indexes = append(c.indexes, x)
		c.used = append(c.used, len(without) < len(rest))
		rest = without
	}
	for _, b := range rest {
		c.absent[b.SHA256] = true
	}
	return nil
}

// nameBases names the old archives that are needed, and leaves out all others.
func (c *creation) nameBases(ctx context.Context) error {
	var used []layout.Source
	for i, x := range c.indexes {
		if !c.used[i] {
			continue
		}
		sums, err := chunk.Sum(ctx, x.Source, x.Size, c.Sink)
		if err != nil {
			return fmt.Errorf("%s: %w", x.Name, err)
		}
		digest := hex.EncodeToString(sums.SHA256[:])
		if digest == c.document.Layout.SHA256 {
			return report.Errorf(report.Usage, "%s and %s are the same archive", x.Name, c.New.Name).WithHint("name the older archive first: solutionctl delta create OLD.iso NEW.iso")
		}
		used = append(used, x.Source)
		c.document.Bases = append(c.document.Bases, schema.DeltaBase{Name: x.Solution, Version: x.Version, SHA256: digest, Size: x.Size})
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
	made, err := d.Archive(ctx, Workspace{Dir: c.patches.dir}, c.Old...)
	if err != nil {
		return nil, fmt.Errorf("apply the new delta: %w", err)
	}
	return d, errors.Join(made.Copy(ctx, io.Discard, c.Sink), made.Close())
}

func (c *creation) writeFiles(ctx context.Context, f *durable.File) (int64, error) {
	t := tarWriter{ctx, f}
	for _, b := range c.Bundles {
		c.document.Bundles = append(c.document.Bundles, schema.DeltaBundle{Signer: b.Signer, Size: int64(len(b.Data))})
	}
	if len(c.document.Patches) == 0 {
		c.document.FormatVersion = 1 // readers that know no patches read it
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
	if err = c.writeBlobs(t); err != nil {
		return 0, err
	}
	if err = t.end(); err != nil {
		return 0, err
	}
	return f.Seek(0, io.SeekCurrent)
}

// writeBlobs writes the new blobs, and the patches, in the order of the layout.
func (c *creation) writeBlobs(t tarWriter) error {
	left, at := c.document.Patches, int64(0)
	for i, b := range layout.Blobs(&c.document.Layout) {
		var err error
		switch {
		case len(left) > 0 && left[0].SHA256 == b.SHA256:
			err = t.file(patchesDir+b.SHA256, left[0].Size, io.NewSectionReader(c.patches.file, at, left[0].Size))
			at += left[0].Size
			left = left[1:]
		case c.absent[b.SHA256]:
			err = t.file(blobsDir+b.SHA256, b.Size, c.parts.Blob(i))
		}
		if err != nil {
			return err
		}
	}
	return nil
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
