package delta

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"path"
	"slices"

	"github.com/solutionctl/solutionctl/build/archive"
	"github.com/solutionctl/solutionctl/build/iso"
	"github.com/solutionctl/solutionctl/schema"
)

// minBlob is the size of the smallest file, in bytes, that is a blob. What is smaller is part of the frame.
const minBlob = 4 << 10

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

// extent is the bytes of one file of an archive.
type extent struct {
	at, size int64
	// digest is the one in the name of the file, which is a claim; "" for other names.
	digest string
}

// extents returns the blobs of an archive in the order of their places, none of which overlap. When there are more than a
// layout can have, the smallest are left out.
func extents(a *archive.Archive, size int64) ([]extent, error) {
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
		if !ok || e.at > size-e.size {
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
	const most = schema.MaxSegments/2 - 1 // each may have frame before it, and the last one behind it
	slices.SortFunc(list, func(a, b extent) int { return cmp.Or(cmp.Compare(b.size, a.size), cmp.Compare(a.at, b.at)) })
	list = list[:min(len(list), most)]
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

// extentOf returns the bytes of a file that lies in one piece and is large enough.
func extentOf(info fs.FileInfo) (extent, bool) {
	sections := info.Sys().(*iso.Stat).Sections
	if info.Size() < minBlob || len(sections) == 0 {
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

// index finds the blobs of an archive by their digests.
type index struct {
	source  Source
	name    string // of the Solution
	version string
	blobs   map[string]extent
	unnamed map[int64][]extent // by size: their digests are not computed yet
}

func newIndex(s Source) (*index, error) {
	a, err := s.open()
	if err != nil {
		return nil, err
	}
	list, err := extents(a, s.Size)
	if err != nil {
		return nil, err
	}
	x := &index{source: s, name: a.Solution.Metadata.Name, version: a.Solution.Spec.Version, blobs: map[string]extent{}, unnamed: map[int64][]extent{}}
	for _, e := range list {
		if e.digest == "" {
			x.unnamed[e.size] = append(x.unnamed[e.size], e)
		} else if _, twice := x.blobs[e.digest]; !twice {
			x.blobs[e.digest] = e
		}
	}
	return x, nil
}

// find returns the place of a blob. A file with another kind of name is read when it has the size, each one once.
func (x *index) find(ctx context.Context, digest string, size int64) (extent, bool, error) {
	unnamed := x.unnamed[size]
	delete(x.unnamed, size)
	for _, e := range unnamed {
		sum := sha256.New()
		if err := copyContext(ctx, sum, io.NewSectionReader(x.source, e.at, e.size)); err != nil {
			return extent{}, false, err
		}
		e.digest = hex.EncodeToString(sum.Sum(nil))
		if _, twice := x.blobs[e.digest]; !twice {
			x.blobs[e.digest] = e
		}
	}
	e, ok := x.blobs[digest]
	return e, ok && e.size == size, nil
}

// copyContext copies until the context ends.
func copyContext(ctx context.Context, w io.Writer, r io.Reader) error {
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
