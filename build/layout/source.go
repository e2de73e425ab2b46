package layout

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"

	"github.com/solutionctl/solutionctl/build/archive"
	"github.com/solutionctl/solutionctl/build/iso"
	"github.com/solutionctl/solutionctl/build/media"
	"github.com/solutionctl/solutionctl/schema"
)

// bufferSize is the size of the pieces, in bytes, in which archives are read.
const bufferSize = 1 << 20

// Source is an archive, by the name that messages use.
type Source struct {
	Name string
	io.ReaderAt
	Size int64
}

// open opens the archive with its directories.
func (s Source) open() (*archive.Archive, error) { return archive.Open(s.ReaderAt, s.Size) }

// Limits say which files of an archive are blobs. All others are part of the frame.
type Limits struct {
	Smallest int64 // in bytes
	Most     int   // the largest of them
}

var (
	// DeltaLimits are used for deltas. Each blob may have frame before it, and the last one behind it.
	DeltaLimits = Limits{Smallest: 4 << 10, Most: schema.MaxSegments/2 - 1}
	// RegistryLimits are used for registries, which take manifests of 4 MiB and want a request for each blob.
	RegistryLimits = Limits{Smallest: 64 << 10, Most: 2000}
)

// Blob is a blob by its digest, in hexadecimal, and its size in bytes.
type Blob struct {
	SHA256 string
	Size   int64
}

// Blobs returns the blobs of an archive in their order.
func Blobs(l *schema.ArchiveLayout) []Blob {
	var list []Blob
	for _, s := range l.Segments {
		if s.SHA256 != "" {
			list = append(list, Blob{s.SHA256, s.Size})
		}
	}
	return list
}

// extent is the bytes of one file of an archive.
type extent struct {
	at, size int64
	// digest is the one in the name of the file, which is a claim; "" for other names.
	digest string
}

// extents returns the blobs of an archive in the order of their places, none of which overlap. When there are too many, the smallest are
// left out.
func extents(a *archive.Archive, size int64, limits Limits) ([]extent, error) {
	found := map[int64]extent{}
	err := fs.WalkDir(a, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		e, ok := extentOf(info)
		if !ok || e.size < limits.Smallest || e.at > size-e.size {
			return nil
		}
		e.digest = digestIn(name)
		if other := found[e.at]; e.size > other.size || e.size == other.size && e.digest != "" {
			found[e.at] = e
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	list := make([]extent, 0, len(found))
	for _, e := range found {
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b extent) int { return cmp.Or(cmp.Compare(b.size, a.size), cmp.Compare(a.at, b.at)) })
	list = list[:min(len(list), limits.Most)]
	slices.SortFunc(list, func(a, b extent) int { return cmp.Compare(a.at, b.at) })
	end := int64(0)
	return slices.DeleteFunc(list, func(e extent) bool {
		if e.at < end {
			return true // files of foreign archives may share a part of their bytes
		}
		end = e.at + e.size
		return false
	}), nil
}

// extentOf returns the bytes of a file that lies in one piece.
func extentOf(info fs.FileInfo) (extent, bool) {
	sections := info.Sys().(*iso.Stat).Sections
	if len(sections) == 0 {
		return extent{}, false
	}
	e := extent{at: sections[0].Offset}
	for _, s := range sections {
		if s.Offset != e.at+e.size {
			return extent{}, false
		}
		e.size += s.Size
	}
	return e, true
}

// digestIn returns the digest that is the name of a file.
func digestIn(name string) string {
	base := path.Base(name)
	if digest, err := hex.DecodeString(base); err != nil || len(digest) != sha256.Size || hex.EncodeToString(digest) != base {
		return ""
	}
	return base
}

// Index finds the blobs of an archive by their digests.
type Index struct {
	Source
	Solution, Version string

	blobs   map[string]extent
	unnamed map[int64][]extent // by size: their digests are not computed yet
}

// NewIndex reads the directories of an archive.
func NewIndex(s Source) (*Index, error) {
	a, err := s.open()
	if err != nil {
		return nil, err
	}
	list, err := extents(a, s.Size, DeltaLimits)
	if err != nil {
		return nil, err
	}
	x := &Index{Source: s, Solution: a.Solution.Metadata.Name, Version: a.Solution.Spec.Version, blobs: map[string]extent{}, unnamed: map[int64][]extent{}}
	for _, e := range list {
		if e.digest == "" {
			x.unnamed[e.size] = append(x.unnamed[e.size], e)
		} else if _, twice := x.blobs[e.digest]; !twice {
			x.blobs[e.digest] = e
		}
	}
	return x, nil
}

// Named returns the blobs whose digest is their name, in the order of their digests.
func (x *Index) Named() []Blob {
	var list []Blob
	for _, digest := range slices.Sorted(maps.Keys(x.blobs)) {
		list = append(list, Blob{digest, x.blobs[digest].size})
	}
	return list
}

// Find returns the place of a blob as a run without a place in a whole; it has no reader when the archive lacks the blob. A file with another
// kind of name is read when it has the size, each one once.
func (x *Index) Find(ctx context.Context, b Blob) (media.Run, error) {
	unnamed := x.unnamed[b.Size]
	delete(x.unnamed, b.Size)
	for _, e := range unnamed {
		digest, err := sumOf(ctx, io.NewSectionReader(x, e.at, e.size))
		if err != nil {
			return media.Run{}, fmt.Errorf("%s: %w", x.Name, err)
		}
		e.digest = digest
		if _, twice := x.blobs[e.digest]; !twice {
			x.blobs[e.digest] = e
		}
	}
	e, ok := x.blobs[b.SHA256]
	if !ok || e.size != b.Size {
		return media.Run{}, nil
	}
	return media.Run{ReaderAt: x.Source, Name: x.Name, From: e.at}, nil
}

// sumOf returns the digest of all that r has, in hexadecimal.
func sumOf(ctx context.Context, r io.Reader) (string, error) {
	sum := sha256.New()
	err := Copy(ctx, sum, r)
	return hex.EncodeToString(sum.Sum(nil)), err
}

// Copy copies until the context ends.
func Copy(ctx context.Context, w io.Writer, r io.Reader) error {
	buffer := make([]byte, bufferSize)
	for {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		n, err := r.Read(buffer)
		if _, failed := w.Write(buffer[:n]); failed != nil {
			return failed
		}
		if err == io.EOF { // a Reader returns it bare
			return nil
		}
		if err != nil {
			return err
		}
	}
}
