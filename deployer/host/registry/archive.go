package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"sync/atomic"

	"github.com/solutionctl/solutionctl/build/archive"
	"github.com/solutionctl/solutionctl/build/iso"
	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

const (
	// smallBlob is the size below which a blob is verified and sent from memory.
	smallBlob = 64 << 10
	// keptBytes bounds the small blobs of an archive in memory, in bytes; others are read and verified each time.
	keptBytes = 8 << 20
)

// Archive is an archive that can be served.
type Archive struct {
	id         string
	fsys       fs.FS // nil when everything is read from the file
	file       *file
	images     []*image
	shared     *Shared          // nil: only its images are served
	blobs      map[string]*blob // by digest
	budget     atomic.Int64     // of bytes that small blobs may still take
	unreadable atomic.Bool      // a blob could not be read
}

// image is one image of an archive with everything that it refers to.
type image struct {
	ref       schema.ImageRef
	origin    string // the origin in the archive; may be empty
	root      string // digest of the manifest that the tag points to
	manifests []*manifest
	blobs     []*blob
}

// blob is content that lies in the file of an archive.
type blob struct {
	oci.Descriptor
	archive  *Archive
	path     string        // in the archive
	sections []iso.Section // in the file; none of what is opened in another way
	open     func(context.Context, int64) (io.ReadCloser, error)
	data     atomic.Pointer[[]byte] // of a small blob that was read before
}

// NewArchive indexes an archive. It reads no blob. f is the ISO file of the archive: blobs are read from it, not
// through a, so that readers behind a can be released. The Archive owns the file from now on, see Close. With a nil f,
// for an archive that is not an ISO image, blobs are read through a.
func NewArchive(a *archive.Archive, f *os.File) (*Archive, error) {
	open, err := newFile(f)
	if err != nil {
		return nil, err
	}
	served := &Archive{id: a.Solution.ID(), fsys: a.FS, file: open, blobs: map[string]*blob{}}
	served.budget.Store(keptBytes)
	if f != nil {
		defer func() { served.fsys = nil }()
	}
	for _, i := range slices.Concat(a.Images.Images(), a.Images.Artifacts()) {
		next := &image{ref: i.Ref, origin: a.Solution.Spec.ImageOrigins[i.Ref], root: i.Root.Digest.String()}
		for _, m := range i.Manifests {
			parsed, err := parseManifest(m)
			if err != nil {
				return nil, fmt.Errorf("%s: image %s: %w", served.id, i.Ref, err)
			}
			next.manifests = append(next.manifests, parsed)
		}
		for n := range i.Blobs {
			b, err := served.addBlob(i.Ref, i.Blobs[n].Descriptor)
			if err != nil {
				return nil, fmt.Errorf("%s: image %s: %w", served.id, i.Ref, err)
			}
			next.blobs = append(next.blobs, b)
		}
		served.images = append(served.images, next)
	}
	return served, nil
}

// ID is the name and version of the Solution, the first component of its repositories.
func (a *Archive) ID() string { return a.id }

// Close closes the file as soon as nothing is being sent out of it any more. Call it when no registry serves the
// archive.
func (a *Archive) Close() error { return a.file.close() }

// Check fails when the archive has changed since it was indexed: its file was truncated, removed or replaced, or a part
// of it could not be read. The readable parts are served nevertheless.
func (a *Archive) Check() error {
	if err := a.file.check(); err != nil {
		return err
	}
	if a.unreadable.Load() {
		return errors.New("it could not be read")
	}
	return nil
}

// Retry clears the mark of an archive that could not be read, so that it is read again.
func (a *Archive) Retry() { a.unreadable.Store(false) }

func (a *Archive) markUnreadable() { a.unreadable.Store(true) }

func (a *Archive) addBlob(ref schema.ImageRef, d oci.Descriptor) (*blob, error) {
	digest := d.Digest.String()
	if known := a.blobs[digest]; known != nil {
		return known, nil
	}
	b := &blob{Descriptor: d, archive: a, path: path.Join("blobs", d.Digest.Algorithm, d.Digest.Hex)}
	info, err := fs.Stat(a.fsys, b.path)
	if errors.Is(err, fs.ErrNotExist) { // an archive with MetalK8s' directories only
		b.path = path.Join("images", ref.Name, ref.Tag, d.Digest.Hex)
		info, err = fs.Stat(a.fsys, b.path)
	}
	if err != nil {
		return nil, err
	}
	if info.Size() != b.Size {
		return nil, report.Errorf(report.Corrupt, "%s has %d bytes, want %d", b.path, info.Size(), b.Size)
	}
	if a.file.f != nil {
		stat, ok := info.Sys().(*iso.Stat)
		if !ok {
			return nil, fmt.Errorf("%s does not lie in an ISO image", b.path)
		}
		b.sections = stat.Sections
	}
	a.blobs[digest] = b
	return b, nil
}

// end returns the offset of the byte after the blob.
func (b *blob) end() (end int64) {
	for _, section := range b.sections {
		end = max(end, section.Offset+section.Size)
	}
	return end
}

// isSmall reports whether the blob is sent from memory.
func (b *blob) isSmall() bool { return b.Size < smallBlob }

// reader returns a reader of the blob.
func (b *blob) reader(ctx context.Context) (io.ReadSeekCloser, error) {
	if b.open != nil {
		return &stream{ctx: ctx, open: b.open, size: b.Size}, nil
	}
	if b.archive.fsys == nil {
		return &extent{r: b.archive.file.f, sections: b.sections, size: b.Size}, nil
	}
	f, err := b.archive.fsys.Open(b.path)
	if err != nil {
		return nil, err
	}
	seeker, ok := f.(io.ReadSeekCloser)
	if !ok {
		return nil, errors.Join(fmt.Errorf("%s: the file system of the archive cannot seek", b.path), f.Close())
	}
	return seeker, nil
}

// load returns the bytes of a small blob, which have the digest they must have.
func (b *blob) load(ctx context.Context) ([]byte, error) {
	if kept := b.data.Load(); kept != nil {
		return *kept, nil
	}
	r, err := b.reader(ctx)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(oci.VerifyReader(r, b.Descriptor))
	if err = errors.Join(err, r.Close()); err != nil {
		return nil, err
	}
	if b.archive.budget.Add(-b.Size) >= 0 {
		b.data.Store(&data)
	} else {
		b.archive.budget.Add(b.Size)
	}
	return data, nil
}
