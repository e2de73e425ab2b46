package sbom

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"hash/maphash"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/schema/report"
)

// layer has the data of one layer for the merge: the files that name packages, and what it hides of the layers below.
// Paths are kept as hashes, eight bytes each.
type layer struct {
	finds  map[string]*find
	hidden []uint64 // files and whiteouts: they hide the same path, and everything below it
	opaque []uint64 // directories that hide everything below them
	dirs   []uint64 // directories: they hide a file of the same path
}

// Names of whiteouts in layers.
const (
	whiteout       = ".wh."
	whiteoutMeta   = ".wh..wh."
	whiteoutOpaque = ".wh..wh..opq"
)

// layerScan reads one layer.
type layerScan struct {
	ctx context.Context
	*layer
	*scanner
	entries int
	read    int64 // bytes of files that were read; a sparse file has more than its layer
}

// layer reads a layer from its first to its last byte.
func (s *scanner) layer(ctx context.Context, blob oci.Blob) (l *layer, err error) {
	plain, err := blob.OpenUncompressed(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, plain.Close()) }()
	stream := &boundedReader{r: plain, left: s.limit.layerBytes}
	scan := &layerScan{ctx: ctx, layer: &layer{finds: map[string]*find{}}, scanner: s}
	if err = scan.scan(stream); err != nil {
		return nil, err
	}
	if _, err = io.Copy(io.Discard, stream); err != nil { // verifies the digest
		return nil, err
	}
	for _, hashes := range [][]uint64{scan.hidden, scan.opaque, scan.dirs} {
		slices.Sort(hashes)
	}
	return scan.layer, nil
}

var errLayer = report.Errorf(report.Invalid, "its layers unpack to more bytes, or have more files or packages, than are read")

// boundedReader fails when more than a number of bytes are read.
type boundedReader struct {
	r    io.Reader
	left int64
}

func (b *boundedReader) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, errLayer
	}
	return n, err
}

func (s *layerScan) scan(r io.Reader) error {
	content := tar.NewReader(bufio.NewReaderSize(r, 1<<18))
	for {
		header, err := content.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return asDamaged(err)
		}
		if s.entries++; s.entries > s.limit.layerEntries || s.budget.entries.Add(1) > s.limit.entries {
			return errLayer
		}
		name := strings.TrimPrefix(path.Clean("/"+header.Name), "/")
		if name == "" || len(name) > s.limit.pathLength {
			continue
		}
		if err := s.entry(name, header, content); err != nil {
			return err
		}
	}
}

// asDamaged is the error about a layer that is not a tar file.
func asDamaged(err error) error {
	if report.CodeOf(err) != report.Failure || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return report.Errorf(report.Corrupt, "it is not a valid tar file: %w", err)
}

func (s *layerScan) entry(name string, header *tar.Header, content io.Reader) error {
	dir, base := path.Split(name)
	if strings.HasPrefix(base, whiteout) {
		s.whiteout(strings.TrimSuffix(dir, "/"), base)
		return nil
	}
	if header.Typeflag == tar.TypeDir {
		s.dirs = append(s.dirs, s.hash(name))
		return nil
	}
	s.hidden = append(s.hidden, s.hash(name))
	delete(s.finds, name) // of two entries with one name, the later one counts
	if strings.Count(name, "/") > s.limit.pathDepth {
		return nil
	}
	var found *find
	switch header.Typeflag {
	case tar.TypeReg, tar.TypeGNUSparse:
		var err error
		if found, err = s.file(name, header.Size, content); err != nil {
			return err
		}
	case tar.TypeLink:
		found = s.finds[strings.TrimPrefix(path.Clean("/"+header.Linkname), "/")]
	}
	if found == nil {
		return nil
	}
	s.finds[name] = found
	return s.budget.take(&s.limit, int64(len(name))+found.size())
}

func (s *layerScan) whiteout(dir, base string) {
	switch {
	case base == whiteoutOpaque:
		s.opaque = append(s.opaque, s.hash(dir))
	case !strings.HasPrefix(base, whiteoutMeta):
		s.hidden = append(s.hidden, s.hash(path.Join(dir, strings.TrimPrefix(base, whiteout))))
	}
}

func (s *layerScan) hash(name string) uint64 { return maphash.String(s.seed, name) }

// file reads a file that names packages; the result is nil for any other file.
func (s *layerScan) file(name string, size int64, content io.Reader) (*find, error) {
	read := readerOf(name)
	if read == nil {
		if size < minProgram {
			return nil, nil
		}
		head := make([]byte, len(elfMagic))
		if _, err := io.ReadFull(content, head); err != nil {
			return nil, asDamaged(err)
		}
		if string(head) != elfMagic {
			return nil, nil
		}
		read, size = readGoProgram, size-int64(len(head))
	}
	counted := &boundedReader{r: content, left: s.limit.layerBytes - s.read}
	found, err := read(file{ctx: s.ctx, Reader: counted, path: name, size: size, limit: &s.limit})
	s.read = s.limit.layerBytes - counted.left
	if err == nil {
		return found, nil
	}
	if counted.left < 0 {
		return nil, errLayer
	}
	if report.CodeOf(err) != report.Failure || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return nil, err // of the layer: it is damaged, or the user interrupts
	}
	if found == nil {
		found = &find{}
	}
	found.unread = clean(err.Error(), s.limit.text)
	return found, nil
}
