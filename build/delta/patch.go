package delta

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"io/fs"
	"math"
	"os"

	"github.com/solutionctl/solutionctl/build/layout"
	"github.com/solutionctl/solutionctl/build/media"
	"github.com/solutionctl/solutionctl/build/recompress"
	"github.com/solutionctl/solutionctl/build/tardiff"
	"github.com/solutionctl/solutionctl/durable"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// maxRatio bounds what the patches of a delta unpack and make: this many bytes for each byte of the delta and of the archives that it needs.
// Layers have three to ten.
const maxRatio = 32

// Made is the archive that a delta makes. Blobs that patches have made lie in a temporary file until it is closed.
type Made struct {
	*layout.Archive
	file *durable.Scratch // nil: no patch was applied
}

// Close gives the space of the temporary file back.
func (m *Made) Close() error {
	if m.file == nil {
		return nil
	}
	return m.file.Close()
}

// Workspace is where patches are applied.
type Workspace struct {
	Dir   string // of temporary files; that of the system where it is "" or must not be written
	Spare int64  // bytes that the caller writes to the file system of Dir later, for which there must be room as well
}

// patching applies the patches of a delta.
type patching struct {
	*Delta
	Workspace
	out  *durable.Scratch
	at   int64     // where the next blob begins
	last *unpacked // the source of the last patch, which the next one often has as well
	from string    // its digest
}

// patches applies patches whose sources were found, and adds the places of their blobs.
func (p *patching) patches(ctx context.Context, list []schema.DeltaPatch, sources, places map[string]media.Run) (err error) {
	defer func() { err = errors.Join(err, p.last.close()) }()
	p.out, err = durable.NewScratch(p.Dir)
	if errors.Is(err, fs.ErrPermission) { // a user who only looks at what would be imported
		p.Workspace = Workspace{}
		p.out, err = durable.NewScratch("")
	}
	if err == nil {
		err = p.requireSpace(list, places)
	}
	if err != nil {
		return err
	}
	for _, patch := range list {
		made := places[patch.SHA256]
		if err = p.patch(ctx, patch, sources[patch.SHA256], made.Size); err != nil {
			return err
		}
		places[patch.SHA256] = media.Run{ReaderAt: p.out, Name: "the delta", From: p.at}
		p.at += made.Size
	}
	return nil
}

// requireSpace compares the free space with what the patches make, the largest source of one, and the caller's later output.
func (p *patching) requireSpace(list []schema.DeltaPatch, places map[string]media.Run) error {
	made, largest := int64(0), int64(0)
	for _, patch := range list {
		made, largest = made+places[patch.SHA256].Size, max(largest, patch.Source.Unpacked)
	}
	dir, needed := cmp.Or(p.Dir, os.TempDir()), p.Spare+made+largest
	if needed < p.Spare { // the size of the archive is not proven yet
		needed = math.MaxInt64
	}
	if err := durable.RequireSpace(dir, needed); err != nil {
		return report.Errorf(report.NoSpace, "make %s of the delta: %w", p.Layout.ID(), err).WithHint("free some space on the file system of %s", dir)
	}
	return nil
}

// patch makes one blob of size bytes.
func (p *patching) patch(ctx context.Context, patch schema.DeltaPatch, source media.Run, size int64) error {
	if err := p.open(ctx, patch.Source, source); err != nil {
		return err
	}
	out := &limited{w: io.NewOffsetWriter(p.out, p.at), left: size, sum: sha256.New()}
	w, err := recompress.Codec(patch.Codec).NewWriter(out)
	if err != nil {
		return p.explainCodec(err)
	}
	content := sha256.New()
	operations := io.NewSectionReader(p.r, p.blobs[patch.SHA256], patch.Size)
	err = tardiff.Apply(ctx, io.MultiWriter(content, w), operations, p.last.tar(), patch.Content.Size)
	if closed := w.Close(); err == nil {
		err = closed
	}
	switch {
	case errors.Is(err, errLonger):
		return p.explainCodec(report.Errorf(report.Mismatch, "blob sha256:%s has %d bytes, and the codec %q makes more", patch.SHA256, size, patch.Codec))
	case err != nil && (ctx.Err() != nil || report.CodeOf(err) == report.Failure):
		return err
	case err != nil || hex.EncodeToString(content.Sum(nil)) != patch.Content.SHA256:
		return p.explainPatch(ctx, patch, source, err)
	case out.left > 0 || hex.EncodeToString(out.sum.Sum(nil)) != patch.SHA256:
		return p.explainCodec(report.Errorf(report.Mismatch, "the codec %q of this program does not make the bytes of blob sha256:%s", patch.Codec, patch.SHA256))
	}
	return nil
}

// open unpacks the source of a patch.
func (p *patching) open(ctx context.Context, source schema.DeltaSource, run media.Run) error {
	if p.last != nil && p.from == source.SHA256 {
		return nil
	}
	err := p.last.close()
	p.last = nil
	if err != nil {
		return err
	}
	u, err := unpack(ctx, p.Dir, run, source.Unpacked)
	if errors.Is(err, errContent) {
		return cmp.Or(layout.CheckBlob(ctx, run, source.SHA256), p.damaged("blob sha256:"+source.SHA256+" of "+run.Name+" has other content than a patch expects"))
	}
	p.last, p.from = u, source.SHA256
	return err
}

func (p *patching) explainCodec(err error) error {
	return report.As(report.CodeOf(err), err).WithHint("apply the delta with solutionctl %s, which wrote it, or get the whole archive of %s", p.WrittenBy, p.Layout.ID())
}

// explainPatch finds out whether the source or the patch is damaged.
func (p *patching) explainPatch(ctx context.Context, patch schema.DeltaPatch, source media.Run, err error) error {
	if damage := layout.CheckBlob(ctx, source, patch.Source.SHA256); damage != nil {
		return damage
	}
	if err == nil {
		return p.damaged("the patch for blob sha256:" + patch.SHA256 + " makes other content than it names")
	}
	return report.Errorf(report.CodeOf(err), "the delta is damaged: the patch for blob sha256:%s: %w", patch.SHA256, err).WithHint("get the delta again from its source")
}

func (p *patching) damaged(reason string) error {
	return report.Errorf(report.Corrupt, "the delta is damaged: %s", reason).WithHint("get the delta again from its source")
}

// errLonger means that more bytes were written than a blob has.
var errLonger = errors.New("more bytes than expected")

// limited writes and hashes at most left bytes.
type limited struct {
	w    io.Writer
	left int64
	sum  hash.Hash
}

func (l *limited) Write(p []byte) (int, error) {
	if int64(len(p)) > l.left {
		return 0, errLonger
	}
	l.left -= int64(len(p))
	l.sum.Write(p)
	return l.w.Write(p)
}

// checkPatches refuses patches that unpack or make more than the delta and the archives that it needs can hold.
func (f *finding) checkPatches() error {
	left := f.size
	for _, x := range f.indexes {
		left += x.Size
	}
	left *= maxRatio
	for _, p := range f.patches {
		for _, size := range []int64{p.Source.Unpacked, p.Content.Size, f.places[p.SHA256].Size} {
			if left -= min(size, left+1); left < 0 {
				return report.Errorf(report.Invalid, "the patches of the delta make more than %d times what the delta and the archives that it needs have", maxRatio).
					WithHint("get the whole archive of %s", f.Layout.ID())
			}
		}
	}
	return nil
}
