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
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

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
	out *durable.Scratch
}

// job is a source, and the patches that need it.
type job struct {
	source  schema.DeltaSource
	from    media.Run
	patches []target
}

// target is a patch, and the place of its blob in the temporary file.
type target struct {
	schema.DeltaPatch
	at, size int64
}

const (
	memory   = 20 << 20 // bytes that patches take at the same time; the process has 20 MB beside
	applying = 5 << 20  // bytes that one takes without its codec
)

// patches applies patches whose sources were found, and adds the places of their blobs. Those of different sources are applied side by side.
func (p *patching) patches(ctx context.Context, list []schema.DeltaPatch, sources, places map[string]media.Run) (err error) {
	p.out, err = durable.NewScratch(p.Dir)
	if errors.Is(err, fs.ErrPermission) { // a user who only looks at what would be imported
		p.Workspace = Workspace{}
		p.out, err = durable.NewScratch("")
	}
	if err != nil {
		return err
	}
	jobs, made := p.jobs(list, sources, places)
	most, err := p.sideBySide(jobs, made)
	if err != nil {
		return err
	}
	bound := semaphore.NewWeighted(memory)
	group, bounded := errgroup.WithContext(ctx)
	for _, j := range jobs {
		share := max(memory/most, j.memory())
		if bound.Acquire(bounded, share) != nil {
			break // another one has failed, or the caller does not wait any more
		}
		group.Go(func() error {
			defer bound.Release(share)
			return p.apply(bounded, j)
		})
	}
	return cmp.Or(group.Wait(), context.Cause(ctx))
}

// jobs groups patches by their sources, in the order of the delta, and returns how many bytes they make.
func (p *patching) jobs(list []schema.DeltaPatch, sources, places map[string]media.Run) (jobs []*job, made int64) {
	of := map[string]*job{}
	for _, patch := range list {
		j := of[patch.Source.SHA256]
		if j == nil {
			j = &job{source: patch.Source, from: sources[patch.SHA256]}
			of[patch.Source.SHA256] = j
			jobs = append(jobs, j)
		}
		size := places[patch.SHA256].Size
		j.patches = append(j.patches, target{patch, made, size})
		places[patch.SHA256] = media.Run{ReaderAt: p.out, Name: "the delta", From: made}
		made += size
	}
	return jobs, made
}

// memory is how many bytes applying the patches takes, one after another.
func (j *job) memory() int64 {
	most := int64(0)
	for _, patch := range j.patches {
		most = max(most, applying+recompress.Codec(patch.Codec).Memory())
	}
	return min(most, memory)
}

// sideBySide returns how many jobs run at once: one for each processor, and fewer where there is no room for their sources beside what all
// patches make and the caller's later output.
func (p *patching) sideBySide(jobs []*job, made int64) (most int64, err error) {
	var sizes []int64
	for _, j := range jobs {
		sizes = append(sizes, j.source.Unpacked)
	}
	beside := p.Spare + made
	if beside < p.Spare { // the size of the archive is not proven yet
		beside = math.MaxInt64
	}
	dir := cmp.Or(p.Dir, os.TempDir())
	n, err := roomFor(dir, sizes, beside)
	if err != nil {
		return 0, report.Errorf(report.NoSpace, "make %s of the delta: %w", p.Layout.ID(), err).WithHint("free some space on the file system of %s", dir)
	}
	return int64(n), nil
}

// roomFor returns how many temporary files a directory has room for at once beside other bytes, whichever of them these are, and at most one for each
// processor. It fails where there is no room for one.
func roomFor(dir string, sizes []int64, beside int64) (n int, err error) {
	slices.SortFunc(sizes, func(a, b int64) int { return cmp.Compare(b, a) })
	for n = min(len(sizes), runtime.GOMAXPROCS(0)); n > 0; n-- {
		needed := beside
		for _, size := range sizes[:n] {
			needed += size
		}
		if needed < beside {
			needed = math.MaxInt64
		}
		if err = durable.RequireSpace(dir, needed); err == nil {
			break
		}
	}
	return n, err
}

// apply unpacks a source and applies its patches.
func (p *patching) apply(ctx context.Context, j *job) error {
	old, err := unpack(ctx, p.Dir, j.from, j.source.Unpacked)
	if errors.Is(err, errContent) {
		return cmp.Or(layout.CheckBlob(ctx, j.from, j.source.SHA256), p.damaged("blob sha256:"+j.source.SHA256+" of "+j.from.Name+" has other content than a patch expects"))
	}
	for i := 0; i < len(j.patches) && err == nil; i++ {
		err = p.patch(ctx, j, j.patches[i], old.tar())
	}
	return errors.Join(err, old.close())
}

// patch makes one blob of the content of its source.
func (p *patching) patch(ctx context.Context, j *job, patch target, old tardiff.Tar) error {
	out := &limited{w: io.NewOffsetWriter(p.out, patch.at), left: patch.size, sum: sha256.New()}
	w, err := recompress.Codec(patch.Codec).NewWriter(out)
	if err != nil {
		return p.explainCodec(err)
	}
	content := sha256.New()
	operations := io.NewSectionReader(p.r, p.blobs[patch.SHA256], patch.Size)
	err = tardiff.Apply(ctx, io.MultiWriter(content, w), operations, old, patch.Content.Size)
	if closed := w.Close(); err == nil {
		err = closed
	}
	switch {
	case errors.Is(err, errLonger):
		return p.explainCodec(report.Errorf(report.Mismatch, "blob sha256:%s has %d bytes, and the codec %q makes more", patch.SHA256, patch.size, patch.Codec))
	case err != nil && (ctx.Err() != nil || report.CodeOf(err) == report.Failure):
		return err
	case err != nil || hex.EncodeToString(content.Sum(nil)) != patch.Content.SHA256:
		return p.explainPatch(ctx, j, patch.SHA256, err)
	case out.left > 0 || hex.EncodeToString(out.sum.Sum(nil)) != patch.SHA256:
		return p.explainCodec(report.Errorf(report.Mismatch, "the codec %q of this program does not make the bytes of blob sha256:%s", patch.Codec, patch.SHA256))
	}
	return nil
}

func (p *patching) explainCodec(err error) error {
	return report.As(report.CodeOf(err), err).WithHint("apply the delta with solutionctl %s, which wrote it, or get the whole archive of %s", p.WrittenBy, p.Layout.ID())
}

// explainPatch finds out whether the source or the patch is damaged.
func (p *patching) explainPatch(ctx context.Context, j *job, blob string, err error) error {
	if damage := layout.CheckBlob(ctx, j.from, j.source.SHA256); damage != nil {
		return damage
	}
	if err == nil {
		return p.damaged("the patch for blob sha256:" + blob + " makes other content than it names")
	}
	return report.Errorf(report.CodeOf(err), "the delta is damaged: the patch for blob sha256:%s: %w", blob, err).WithHint("get the delta again from its source")
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
