package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"sync"
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
	// keptBytes is what an archive keeps of its small blobs; the others are read and verified each time.
	keptBytes = 8 << 20
)

// Archive is an archive that can be served.
type Archive struct {
	id     string
	fsys   fs.FS
	file   *file
	images []*image
	blobs  map[string]*blob // by digest
	budget atomic.Int64     // of bytes that small blobs may still take
}

// image is one image of an archive with everything that it refers to.
type image struct {
	ref       schema.ImageRef
	origin    string // as the archive tells it; may be empty
	root      string // digest of the manifest that the tag points to
	manifests []*manifest
	blobs     []*blob
}

// blob is content that lies in the file of an archive.
type blob struct {
	oci.Descriptor
	archive  *Archive
	path     string        // in the archive
	sections []iso.Section // in the file; none when it is read through the archive's file system only
	open     func(ctx context.Context, offset int64) (io.ReadCloser, error)
	data     atomic.Pointer[[]byte] // of a small blob that was read before
}

// NewArchive indexes an archive. It reads no blob. f is the ISO file that the archive lies in, out of which large blobs
// are sent; with a nil f they are read through the archive. The file belongs to the Archive from now on, see Close.
func NewArchive(a *archive.Archive, f *os.File) (*Archive, error) {
	served := &Archive{id: a.Solution.ID(), fsys: a.FS, file: newFile(f), blobs: map[string]*blob{}}
	served.budget.Store(keptBytes)
	for _, i := range a.Images.Images() {
		next := &image{ref: i.Ref, origin: a.Solution.Spec.ImageOrigins[i.Ref], root: i.Root.Digest.String()}
		for _, m := range i.Manifests {
			parsed, err := parseManifest(m)
			if err != nil {
				return nil, fmt.Errorf("%s: image %s: %w", served.id, i.Ref, err)
			}
			next.manifests = append(next.manifests, parsed)
		}
		for n := range i.Blobs {
			b, err := served.addBlob(i.Ref, &i.Blobs[n], f != nil)
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

func (a *Archive) addBlob(ref schema.ImageRef, from *oci.Blob, inFile bool) (*blob, error) {
	digest := from.Digest.String()
	if known := a.blobs[digest]; known != nil {
		return known, nil
	}
	b := &blob{Descriptor: from.Descriptor, archive: a, open: from.Open, path: path.Join("blobs", from.Digest.Algorithm, from.Digest.Hex)}
	info, err := fs.Stat(a.fsys, b.path)
	if errors.Is(err, fs.ErrNotExist) { // an archive with MetalK8s' directories only
		b.path = path.Join("images", ref.Name, ref.Tag, from.Digest.Hex)
		info, err = fs.Stat(a.fsys, b.path)
	}
	if err != nil {
		return nil, err
	}
	if info.Size() != b.Size {
		return nil, report.Errorf(report.Corrupt, "%s has %d bytes, want %d", b.path, info.Size(), b.Size)
	}
	if stat, ok := info.Sys().(*iso.Stat); ok && inFile {
		b.sections = stat.Sections
	}
	a.blobs[digest] = b
	return b, nil
}

// isSmall reports whether the blob is sent from memory.
func (b *blob) isSmall() bool { return b.Size < smallBlob }

// load returns the bytes of a small blob, which have the digest they must have.
func (b *blob) load(ctx context.Context) ([]byte, error) {
	if kept := b.data.Load(); kept != nil {
		return *kept, nil
	}
	r, err := b.open(ctx, 0)
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

// file is the file of an archive. It stays open while somebody reads from it.
type file struct {
	f    *os.File // nil: there is none
	self string   // opens the same file again, with a position of its own, whatever has become of its name

	mu     sync.Mutex
	users  int
	closed bool
}

// newFile takes a file that may be nil.
func newFile(f *os.File) *file {
	if f == nil {
		return &file{}
	}
	return &file{f: f, self: fmt.Sprintf("/proc/self/fd/%d", f.Fd())}
}

// acquire keeps the file open until release is called; it reports false when the file is closed already.
func (f *file) acquire() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return false
	}
	f.users++
	return true
}

func (f *file) release() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.users--; f.users == 0 && f.closed && f.f != nil {
		_ = f.f.Close() // nothing was written to it
	}
}

func (f *file) close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	f.closed = true
	if f.users > 0 || f.f == nil {
		return nil
	}
	return f.f.Close()
}
